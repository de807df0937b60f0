/* SPDX-License-Identifier: MIT */
/*
 * A scale: positions of a lane against time or raw byte offsets, as points with linear
 * interpolation between them, by the model of docs/time.md. It has full resolution in the requested
 * range: every timestamp of the chunks there, or the first and last of chunks or shards if there
 * are many. Elsewhere it is coarse.
 */
#ifndef TL_LAKE_SCALE_H
#define TL_LAKE_SCALE_H

#include "lake/cut.h"

enum tl_scale_kind {
    TL_SCALE_TIME, /* as shown to users: ns, or ticks */
    TL_SCALE_BYTE,
    TL_SCALE_TICKS /* ticks of the axis (tl_flow_now.axis), the unit of sums */
};

struct tl_scale_point {
    uint64_t position;
    uint64_t value;  /* never decreases */
    bool estimated;  /* from cycle counts between two timestamps: it bounds nothing */
    uint8_t inexact; /* flags TL_ITEM_INEXACT: how it bounds what follows it */
};

/*
 * Trace is missing before a position. Everything between the last timestamp before it and the first
 * one after it happened at an unknown time between these two: no interpolation across.
 */
struct tl_scale_break {
    uint64_t position;
    uint64_t from, to; /* values: the last known one, and the next */
    uint64_t count;    /* number of gaps between them; 0: tracing was off, and nothing was lost */
    uint8_t flags;     /* enum tl_bucket_flag bits of all of them: tl_missing_kind() */
    uint32_t reasons;  /* bit set of enum tl_gap */
};

/* Another item, a GAP or TRACE_ON, tells of trace that is missing there. */
void tl_scale_break_add(struct tl_scale_break *missing, const struct tl_item *item);

struct tl_scale {
    struct tl_scale_point *points;
    size_t n, cap;
    /* Time scale: in order, where the resolution is full or they are wide. */
    struct tl_scale_break *breaks;
    size_t n_breaks, cap_breaks;
    uint64_t end; /* after the last position */
};

/*
 * Create a scale with full resolution at positions (`by_value`: at values) [from, to]. Breaks of at
 * least 1/512 of the scale are found everywhere. TL_NOMEM, TL_IO, TL_BAD.
 */
TL_MUST_USE int tl_scale_open(struct tl_scale *out, const struct tl_cut *cut,
                              enum tl_scale_kind kind, bool by_value, uint64_t from, uint64_t to,
                              struct tl_fail *fail);
/* The same for positions, with all timestamps, however many: for exact sums over a shard. In ticks
 * it has breaks of no width, too, which tell whose time follows at their place. */
TL_MUST_USE int tl_scale_open_exact(struct tl_scale *out, const struct tl_cut *cut,
                                    enum tl_scale_kind kind, uint64_t from, uint64_t to,
                                    struct tl_fail *fail);
void tl_scale_close(struct tl_scale *scale);

/* The value at a position; false: the scale has no points. */
bool tl_scale_value(const struct tl_scale *scale, uint64_t position, uint64_t *out);
/* The values at `n` positions from `first` on; 0 if the scale has no points. Takes a few
 * nanoseconds for each. */
void tl_scale_values(const struct tl_scale *scale, uint64_t first, size_t n, uint64_t *out);
/* Known values on both sides of a position: lower and upper bound, UINT64_MAX after the last point.
 * false: the scale has no points. */
bool tl_scale_bounds(const struct tl_scale *scale, uint64_t position, uint64_t *from, uint64_t *to);
/* Known values on both sides of the moment before the instruction at a position begins: lower and
 * upper bound, UINT64_MAX after the last point. Where a timestamp is, they differ only where trace
 * is missing as well. false: the scale has no points. */
bool tl_scale_edge(const struct tl_scale *scale, uint64_t position, uint64_t *from, uint64_t *to);
/* The first position whose value is at least `value`; the end if there is none. */
uint64_t tl_scale_position(const struct tl_scale *scale, uint64_t value);

#endif
