/* SPDX-License-Identifier: MIT */
/* The columns of a range of a stream, on either axis, as positions. */
#ifndef TL_QUERY_COLUMNS_H
#define TL_QUERY_COLUMNS_H

#include "lake/scale.h"
#include "lake_lanes.h"
#include "lake_ranges.h"

/* Column i is [edges[i], edges[i + 1]). Used by one thread. */
struct tl_columns {
    struct tl_cut cut;
    struct tl_scale time;    /* full resolution over the range; without points the stream has no
                                time */
    enum tl_range_unit axis; /* insn or time */
    uint64_t from, to;       /* on the axis, clipped to the available trace */
    uint64_t *edges;         /* n + 1 */
    size_t n;
};

/* Open the stream, and divide the range. TL_USAGE: more than 4096 columns, an axis that is neither
 * insn nor time, a stream without times. Errors otherwise as tl_scale_open(). Close with
 * tl_columns_close(), also after an error. */
TL_MUST_USE int tl_columns_open(struct tl_columns *c, struct tl_lake *lake,
                                const struct tl_lane_request *request, struct tl_fail *fail);
void tl_columns_close(struct tl_columns *c);

/* Set those edges that are in a shard by all of its timestamps: where a range has many chunks,
 * `c->edges` interpolates over each. `edges` is a copy of them. Thread-safe. Errors as
 * tl_scale_open(). */
TL_MUST_USE int tl_columns_refine(const struct tl_columns *c, size_t shard, uint64_t *edges,
                                  struct tl_fail *fail);

/* Where a column begins on the axis; n: where the last one ends. */
uint64_t tl_columns_at(const struct tl_columns *c, size_t column);
/* A position on the axis, clipped to the range. */
uint64_t tl_columns_value(const struct tl_columns *c, uint64_t position);

#endif
