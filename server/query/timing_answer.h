/* SPDX-License-Identifier: MIT */
/* What the answers of lake_timing.h have in common: the range asked about, and lengths of calls. */
#ifndef TL_QUERY_TIMING_ANSWER_H
#define TL_QUERY_TIMING_ANSWER_H

#include "lake_timing.h"
#include "query/timing.h"
#include "shard/sketch.h"
#include "shard/timedrows.h"

/* A question being answered. */
struct tl_timing_ask {
    struct tl_cut cut;
    struct tl_timing_about *about;
    uint64_t from, to;              /* positions */
    uint64_t ticks[TL_TIMED_KINDS]; /* by enum tl_timed_kind */
    uint64_t first, last;           /* ticks at the ends */
    bool any;                       /* a span has been counted */
};

/* Open the stream and resolve the range. Call tl_timing_ask_end() also after an error. */
TL_MUST_USE int tl_timing_ask_begin(struct tl_timing_ask *ask, struct tl_lake *lake,
                                    const struct tl_timing_range *range,
                                    struct tl_timing_about *about, struct tl_fail *fail);
/* Count a span as the range's time. */
void tl_timing_ask_span(struct tl_timing_ask *ask, const struct tl_timed_span *span);
/* The range's time is that of an extent. */
void tl_timing_ask_extent(struct tl_timing_ask *ask, const struct tl_timed_extent *extent);
/* Complete `about` and close the stream. */
void tl_timing_ask_end(struct tl_timing_ask *ask);
/* Convert a duration in ticks with its bounds. */
struct tl_duration tl_timing_duration(const struct tl_lane *lane, struct tl_moment ticks);

/* Lengths of calls, in instructions or ticks. Zero-initialised: none. */
struct tl_length_sum {
    struct tl_sketch sketch;
    uint64_t n, total, min, max, longest;
};
/* TL_NOMEM. */
TL_MUST_USE int tl_length_add(struct tl_length_sum *sum, uint64_t length, uint64_t position);
/* The result; `lane`: they are ticks, to be converted; NULL: instructions. */
struct tl_lengths tl_length_result(const struct tl_length_sum *sum, const struct tl_lane *lane);
void tl_length_fini(struct tl_length_sum *sum);

/* Keeps the first `most` rows in the order of `compare`, of any number that are added. */
struct tl_best {
    void *rows;
    size_t size; /* of a row */
    size_t n, cap, most;
    int (*compare)(const void *a, const void *b); /* as for qsort() */
};
/* TL_NOMEM. */
TL_MUST_USE int tl_best_add(struct tl_best *best, const void *row);
/* Sort and cut down to `most` rows. */
void tl_best_sort(struct tl_best *best);
/* Leave out the first rows, once they are sorted. */
void tl_best_skip(struct tl_best *best, uint64_t rows);

#endif
