/* SPDX-License-Identifier: MIT */
/* Call trees of ranges: for profiles, and for details of single calls. */
#ifndef TL_QUERY_CALLTREE_H
#define TL_QUERY_CALLTREE_H

#include "lake/cut.h"
#include "shard/calltree.h"

/*
 * Add the calls at positions [from, to) of a stream, processing shards in parallel on all idle
 * processors. Stored shards have mostly been counted already (query/kept.h); results are cached
 * within a size limit. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_calltree_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from,
                                uint64_t to, struct tl_fail *fail);
/* Is it known from the cache that no call of a function began in a shard? */
bool tl_calltree_none(const struct tl_cut *cut, size_t shard, uint32_t function);
/* Count the calls of a function that began at positions [0, to). */
TL_MUST_USE int tl_calltree_calls_before(const struct tl_cut *cut, uint32_t function, uint64_t to,
                                         uint64_t *calls, struct tl_fail *fail);

#endif
