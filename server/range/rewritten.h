/* SPDX-License-Identifier: MIT */
/*
 * A range of a cut rewritten as STF from its items. The result does not depend on shard boundaries.
 * Not thread-safe.
 */
#ifndef TL_RANGE_REWRITTEN_H
#define TL_RANGE_REWRITTEN_H

#include "lake/cut.h"
#include "range/sieve.h"
#include "stf/flow/flow_writer.h"

struct tl_range_flow {
    struct tl_cut_walk walk;
    struct tl_sieve *sieve;   /* borrowed; NULL: everything. Set before it is fed */
    struct tl_stf_flow *flow; /* NULL: nothing has been read yet */
    struct tl_stf_flow_at at;
    uint64_t first; /* position */
    bool ended;
    bool found;        /* there was an instruction */
    uint64_t position; /* of the first instruction */
};

/*
 * Begin with positions [from, to); `tail`: including what follows the last one. The cut is
 * borrowed.
 */
void tl_range_flow_begin(struct tl_range_flow *range, const struct tl_cut *cut, uint64_t from,
                         uint64_t to, bool tail);
void tl_range_flow_end(struct tl_range_flow *range);
/*
 * Feed items to the writer, range->flow, up to marker `stop`: TL_AGAIN when it is reached. TL_OK:
 * more may follow; TL_EOF: all were fed before. Unless an error is returned (as tl_cut_walk_next())
 * there is a writer afterwards.
 */
TL_MUST_USE int tl_range_flow_feed(struct tl_range_flow *range, uint64_t stop,
                                   struct tl_fail *fail);

#endif
