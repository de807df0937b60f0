/* SPDX-License-Identifier: MIT */
/* What calls took in whole shards, from their indexes (shard/callindex.h). */
#ifndef TL_QUERY_CALLINDEXES_H
#define TL_QUERY_CALLINDEXES_H

#include "lake/cut.h"
#include "shard/callindex.h"

/*
 * Add the indexes of stored shards [first, end) of a cut, read in parallel on all idle processors.
 * Those that are not there are counted by walking, and kept. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_call_indexes_add(struct tl_call_index *into, const struct tl_cut *cut,
                                    size_t first, size_t end, struct tl_fail *fail);

#endif
