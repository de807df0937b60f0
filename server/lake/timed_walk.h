/* SPDX-License-Identifier: MIT */
/*
 * What ran when, by walking: a range of time as spans (shard/timedspan.h), with the times that
 * docs/time.md gives to positions. It serves ranges and shards without an index in time; whole
 * shards have counts of the same spans. Each is used by one thread.
 */
#ifndef TL_LAKE_TIMED_WALK_H
#define TL_LAKE_TIMED_WALK_H

#include "lake/cut.h"
#include "shard/timebucket.h"

/* A frame of the call stack that was popped, or is still there at the end of the walk. */
struct tl_timed_call {
    const struct tl_frame *frame; /* borrowed for the call */
    uint32_t depth;               /* 0 is the outermost */
    bool ended;                   /* it was popped, before position `end` */
    bool begun;                   /* its begin was walked, and was at this time: */
    uint64_t begin_time;
    uint64_t end, end_time; /* up to where it was, so far */
};
/* Receive calls in the order of their ends; those that have not ended come last. */
typedef int tl_timed_call_sink(void *context, const struct tl_timed_call *call);

/* Who receives what is walked: each may be NULL. */
struct tl_timed_sinks {
    tl_timed_sink *span;
    tl_timed_call_sink *call;
    tl_cut_each *each; /* all items walked */
    void *context;
};

/*
 * Pass on the spans of ticks [from, to), in order, and some before them: the first span is the
 * stream's, or begins before the range; and the calls that end in or behind them. TL_NOMEM, TL_BAD,
 * TL_IO, TL_CANCELLED, or a negative result of a sink.
 */
TL_MUST_USE int tl_timed_walk(const struct tl_cut *cut, uint64_t from, uint64_t to,
                              const struct tl_timed_sinks *sinks, struct tl_fail *fail);

/* The time of a cut's row: from where that of the one before it ends (or its first timestamp) to
 * its last timestamp. false: it has no timestamp. */
bool tl_cut_row_time(const struct tl_cut *cut, size_t row, uint64_t *from, uint64_t *to);

#endif
