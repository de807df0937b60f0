/* SPDX-License-Identifier: MIT */
/* A lane's part of a tile: 512 spans of positions, and what is counted in them. */
#ifndef TL_QUERY_TILE_SPANS_H
#define TL_QUERY_TILE_SPANS_H

#include "base/numbers.h"
#include "lake_ranges.h"
#include "lake_tiles.h"
#include "query/query.h"
#include "query/time_tile.h"

struct tl_spans {
    const struct tl_cut *cut;
    const struct tl_image *image;
    enum tl_range_unit axis;
    unsigned level;                            /* of the tile */
    uint64_t edges[TL_TILE_BUCKETS + 1];       /* positions */
    struct tl_bucket buckets[TL_TILE_BUCKETS]; /* of functions, the two most frequent */
    struct tl_numbers functions; /* with positions in a span: span << 32 | symbol index + 1 */
    uint64_t *counts;            /* … how many, by number */
    size_t cap_counts;
    uint32_t last_counted;
    bool failed;                         /* no memory for these */
    uint64_t times[TL_TILE_BUCKETS + 1]; /* time axis */
    struct tl_scale time; /* for the time axis, and for the instruction axis if breaks are shown */
    struct tl_time_tile *timed; /* time axis; NULL: nothing continues between positions */
    size_t last;                /* span returned last */
    uint16_t tail_mask;         /* of items after the last position */
    uint8_t tail_flags;
    /* From items: */
    struct tl_callstack calls;
    struct tl_flow_now now;
};

/* Does the last instruction still run where none begins? Messages of software trace are
 * instantaneous: nothing continues between two of them. On the time axis alone. */
bool tl_spans_continue(const struct tl_spans *spans);

/* Where spans of `width` units of the axis begin, from `first` on. Errors as tl_scale_open(). */
void tl_spans_insn_edges(struct tl_spans *spans, uint64_t first, uint64_t width);
TL_MUST_USE int tl_spans_time_edges(struct tl_spans *spans, uint64_t first, uint64_t width,
                                    struct tl_fail *fail);
/* Count what is in them; `timed`, if there is one, has its level and begin. Errors as
 * tl_cut_walk_next(). */
TL_MUST_USE int tl_spans_fill(struct tl_spans *spans, struct tl_fail *fail);
void tl_spans_fini(struct tl_spans *spans);

/* The floor of n * part / whole; 0 if that is 0. */
static inline uint64_t tl_spans_share(uint64_t n, uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((unsigned __int128)n * part / whole);
}

#endif
