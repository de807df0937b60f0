/* SPDX-License-Identifier: MIT */
/*
 * A range divided for answers in time: whole shards, of which what is stored (shard/shardcalls.h)
 * is used, and the parts around these, which are to be walked (timing.h). Shards of older servers
 * are counted anew, and stored. Both are by docs/time.md, so that any range is counted exactly,
 * however it is divided.
 *
 * A shard's counts have the instructions of the shard, but the time between two timestamps that are
 * the last before it and the last in it. So what is left to walk differs by weight.
 */
#ifndef TL_QUERY_TIMED_PARTS_H
#define TL_QUERY_TIMED_PARTS_H

#include "query/timing.h"
#include "shard/shardcalls.h"

struct tl_timed_part {
    struct tl_timing_part walk;
    bool insns, time; /* what is to be counted of it; one of them at least */
};

struct tl_timed_parts {
    const struct tl_cut *cut;
    uint64_t from, to; /* positions, `to` at most to the stream's end */
    bool tree;  /* trees and indexes of shards are wanted, these as bytes where they are stored; */
    bool index; /* … indexes alone; */
    const uint8_t *only; /* … of functions below `n_only` for which it is not 0; NULL: of all; */
    size_t n_only;
    bool rows;  /* … or exceptions and gaps, which have only time */
    bool walks; /* nothing that is stored is wanted */
    /* Receive the parts in order. A result < 0 ends it and is returned. `shard`: of row `row` of
     * the cut; it may take contents over, leaving zeros. */
    int (*walk)(void *context, const struct tl_timed_part *part, struct tl_fail *fail);
    int (*shard)(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail);
    void *context;
};

/* The part that a shard with such an extent stands for, by one weight. */
struct tl_timing_part tl_timed_part_of(const struct tl_shard_row *row,
                                       const struct tl_timed_extent *extent, bool time);
/* TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED. */
TL_MUST_USE int tl_timed_parts_visit(const struct tl_timed_parts *parts, struct tl_fail *fail);

#endif
