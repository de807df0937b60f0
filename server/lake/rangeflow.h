/* SPDX-License-Identifier: MIT */
/*
 * A range of a cut written as STF anew, from its items. What is written so does not depend on how
 * the range lies in shards. Not thread-safe.
 */
#ifndef TL_LAKE_RANGEFLOW_H
#define TL_LAKE_RANGEFLOW_H

#include "lake/lakeint.h"
#include "stf/flow_writer.h"

struct tl_range_flow {
    struct tl_cut_walk walk;
    struct tl_stf_flow *flow; /* NULL: nothing is read yet */
    struct tl_stf_flow_at at;
    uint64_t first; /* position */
    bool ended;
    bool found;        /* there was an instruction … */
    uint64_t position; /* … the first one at this */
};

/* Positions [from, to); `tail`: with what follows the last one. The cut is borrowed. */
void tl_range_flow_begin(struct tl_range_flow *range, const struct tl_cut *cut, uint64_t from,
                         uint64_t to, bool tail);
void tl_range_flow_end(struct tl_range_flow *range);
/*
 * Items into the writer, range->flow, up to marker `stop`: TL_AGAIN there. TL_OK: more may come;
 * TL_EOF: all was in before. But for errors, which are those of tl_cut_walk_next(), there is a
 * writer then.
 */
TL_MUST_USE int tl_range_flow_feed(struct tl_range_flow *range, uint64_t stop,
                                   struct tl_fail *fail);

#endif
