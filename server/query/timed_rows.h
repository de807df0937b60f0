/* SPDX-License-Identifier: MIT */
/*
 * Exceptions and gaps of a range one by one (shard/timedrows.h). Whole shards have them stored;
 * what is around these, and what has no time, is walked (timing.h). Shards of older servers are
 * counted anew, and stored.
 */
#ifndef TL_QUERY_TIMED_ROWS_H
#define TL_QUERY_TIMED_ROWS_H

#include "query/timing.h"
#include "shard/timedrows.h"

struct tl_timed_rows_sinks {
    /* Exceptions in the order of their ends, with their part of the range as their own; those that
     * are still active at its end come last, and only these have TL_EXCEPTION_OPEN. */
    int (*exception)(void *context, const struct tl_exception_span *exception);
    /* Pieces of the range, in order, for all else. */
    int (*piece)(void *context, const struct tl_timed_rows *rows);
    void *context;
};

/* Pass on what is in positions [from, to) of a cut; `out` is what they have times for, all of them
 * together. A sink's negative result ends it. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED. */
TL_MUST_USE int tl_timed_rows_gather(const struct tl_cut *cut, uint64_t from, uint64_t to,
                                     const struct tl_timed_rows_sinks *sinks,
                                     struct tl_timed_extent *out, struct tl_fail *fail);

/* The gap of a scale in ticks. */
struct tl_gap_span tl_timed_rows_gap_of(const struct tl_scale_break *gap);
/* Walk a part into empty rows. Errors as tl_timing_walk(). */
TL_MUST_USE int tl_timed_rows_walk(const struct tl_cut *cut, const struct tl_timing_part *part,
                                   struct tl_timed_rows *rows, struct tl_fail *fail);

#endif
