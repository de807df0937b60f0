/* SPDX-License-Identifier: MIT */
/*
 * Calls of stored shards counted anew, with their times, as they were counted when the shards were
 * made: for shards from older servers, those that decoding was continued in, and lost objects.
 * Shards are walked in order, since what is not settled at the end of one is counted for the next.
 * Used by one thread.
 */
#ifndef TL_LAKE_RECOUNT_CALLS_H
#define TL_LAKE_RECOUNT_CALLS_H

#include "lake/cut.h"

/* Receive the calls of a row of the cut, of which it may take parts over, leaving zeros. A result <
 * 0 ends it. */
typedef int tl_recounted_calls(void *context, size_t row, struct tl_shard_calls *calls);

/*
 * Count the calls of rows [first, end) of the cut; of the last row of a sealed stream up to its
 * end. TL_NOMEM, TL_BAD, TL_IO, TL_CANCELLED, or the result of `take`.
 */
TL_MUST_USE int tl_recount_calls(const struct tl_cut *cut, size_t first, size_t end,
                                 tl_recounted_calls *take, void *context, struct tl_fail *fail);

/* Does an index, which is `timed` or not, have what can be known about this row? */
bool tl_cut_row_is_indexed(const struct tl_cut *cut, size_t row, bool timed);

#endif
