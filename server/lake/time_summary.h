/* SPDX-License-Identifier: MIT */
/*
 * Buckets in time of many shards, or counts of functions by position (shard/function_counts.h),
 * from the catalog's summaries, without opening a shard. A lane keeps those of all its stored
 * shards at one level of each, coarse enough for options.summary_buckets of them. Thread-safe.
 */
#ifndef TL_LAKE_TIME_SUMMARY_H
#define TL_LAKE_TIME_SUMMARY_H

#include "lake/cut.h"

/*
 * Copy the buckets of one of the lane's summaries that numbers [number, number + n) of `level`
 * consist of; `*shift`: how many bits their numbers have more. `*rows`: those of the cut that they
 * contain. `*found` is false if they are coarser, or a shard has none. The caller frees `out`, also
 * after an error.
 */
TL_MUST_USE int tl_time_summary_get(const struct tl_cut *cut, struct tl_time_summary *summary,
                                    unsigned level, uint64_t number, uint64_t n,
                                    struct tl_time_level *out, unsigned *shift, size_t *rows,
                                    bool *found, struct tl_fail *fail);

/* Call `each` with the summaries of the cut's stored rows of [row, end), in order; empty: the shard
 * has none. `*next` receives the first row behind them. */
typedef int tl_each_time_summary(void *context, size_t row, const struct tl_time_pyramid *pyramid,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_time_summary_each(const struct tl_cut *cut, bool by_position, size_t row,
                                     size_t end, tl_each_time_summary *each, void *context,
                                     size_t *next, struct tl_fail *fail);

#endif
