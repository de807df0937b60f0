/* SPDX-License-Identifier: MIT */
/* Who called whom, of ranges: for profiles, and for what is told of single calls. */
#ifndef TL_LAKE_CALLTREE_H
#define TL_LAKE_CALLTREE_H

#include "lake/lakeint.h"
#include "store/calltree.h"

/*
 * Add what happened at positions [from, to) of a stream: by all idle processors, shard by shard.
 * What stored shards had is mostly counted already (kept.h), and remembered as far as there is
 * room. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_calltree_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from,
                                uint64_t to, struct tl_fail *fail);
/* Is it remembered that no call of a function began in a shard? */
bool tl_calltree_none(const struct tl_cut *cut, size_t shard, uint32_t function);
/* How many calls of a function began at positions [0, to). */
TL_MUST_USE int tl_calltree_calls_before(const struct tl_cut *cut, uint32_t function, uint64_t to,
                                         uint64_t *calls, struct tl_fail *fail);

#endif
