/* SPDX-License-Identifier: MIT */
/*
 * A scale: positions of a lane against time or raw byte offsets, as points with straight lines
 * between them. It is fine where it was asked to be, coarse elsewhere: every timestamp of the
 * chunks in question, or the first and last of chunks or shards where there are many of those.
 */
#ifndef TL_LAKE_SCALE_H
#define TL_LAKE_SCALE_H

#include "lake/lakeint.h"

enum tl_scale_kind { TL_SCALE_TIME, TL_SCALE_BYTE };

struct tl_scale_point {
    uint64_t position;
    uint64_t value; /* as users see it; never falls */
};

/*
 * Trace is missing in front of a position. What lies between the last timestamp before it and the
 * first one behind it happened sometime between these two: there is no line from one to the other.
 */
struct tl_scale_break {
    uint64_t position;
    uint64_t from, to; /* values: the last known one, and the next */
    uint64_t count;    /* of gaps between these two; 0: tracing was off, and nothing was lost */
    uint8_t flags;     /* enum tl_bucket_flag, of all of them */
};

/* Was nothing lost, because nothing was traced? */
static inline bool tl_scale_is_off(const struct tl_scale_break *b)
{
    return (b->flags & (uint8_t) ~(TL_FLAG_GAP | TL_FLAG_OPEN)) == TL_FLAG_OFF;
}

struct tl_scale {
    struct tl_scale_point *points;
    size_t n, cap;
    struct tl_scale_break *breaks; /* time: in order, wherever it is fine or they are wide */
    size_t n_breaks, cap_breaks;
    uint64_t end; /* behind the last position */
};

/*
 * A scale that is fine at positions (`by_value`: at values) [from, to]. Breaks of time that are as
 * wide as a 512th of it are found there wherever they are. TL_NOMEM, TL_IO, TL_BAD.
 */
TL_MUST_USE int tl_scale_open(struct tl_scale *out, const struct tl_cut *cut,
                              enum tl_scale_kind kind, bool by_value, uint64_t from, uint64_t to,
                              struct tl_fail *fail);
void tl_scale_close(struct tl_scale *scale);

/* The value at a position; false: there is no point at all. */
bool tl_scale_value(const struct tl_scale *scale, uint64_t position, uint64_t *out);
/* The values that are known on both sides of a position: no less than the one, no more than the
 * other, UINT64_MAX behind the last point. false: there is no point at all. */
bool tl_scale_bounds(const struct tl_scale *scale, uint64_t position, uint64_t *from, uint64_t *to);
/* The first position whose value is at least `value`; the end if there is none. */
uint64_t tl_scale_position(const struct tl_scale *scale, uint64_t value);

/* A position in all units. */
TL_MUST_USE int tl_cut_locate(const struct tl_cut *cut, uint64_t position, struct tl_position *out,
                              struct tl_fail *fail);
/* Resolve a range of any unit to positions. TL_USAGE: the stream has no times. */
TL_MUST_USE int tl_cut_resolve(const struct tl_cut *cut, enum tl_range_unit unit, uint64_t from,
                               uint64_t to, uint64_t *first, uint64_t *end, struct tl_fail *fail);

#endif
