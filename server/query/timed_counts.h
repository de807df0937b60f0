/* SPDX-License-Identifier: MIT */
/*
 * Counts of a range by instructions and by time: who called whom, and what the calls of each
 * function took. Whole shards have them stored, what is around these is walked (timed_parts.h).
 */
#ifndef TL_QUERY_TIMED_COUNTS_H
#define TL_QUERY_TIMED_COUNTS_H

#include "lake_ranges.h"
#include "query/timing.h"
#include "shard/shardcalls.h"

struct tl_timed_counts {
    struct tl_calltree tree; /* own instructions and own time of paths; not its functions */
    struct tl_call_index index;
    struct tl_timed_extent extent;
    size_t shards; /* number of those that were not walked */
    bool walks;    /* set to have shards walked, too */
    bool cycles;   /* set to have cycles in the place of time, all of them by walking */
    /* If set: receives the spans that are walked, with the moments of their ends. */
    int (*span)(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                const struct tl_moment *to);
    void *context;
};

/* Count positions [from, to) into zeroed counts. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED. */
TL_MUST_USE int tl_timed_counts_add(struct tl_timed_counts *counts, const struct tl_cut *cut,
                                    uint64_t from, uint64_t to, struct tl_fail *fail);
/* Add a call tree by time, in the unit that the stream shows, or by cycles: what a tree has as
 * instructions is that. Errors as above; TL_USAGE: the stream has no timestamps, or no cycles were
 * counted in the range. */
TL_MUST_USE int tl_timed_tree_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from,
                                  uint64_t to, enum tl_weight weight, struct tl_fail *fail);
void tl_timed_counts_fini(struct tl_timed_counts *counts);

#endif
