/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of a stream with their times, as rows of its shards (shard/timedrows.h): call_times.h
 * tells of those that are on the stack at the time that is settled, and of what they call.
 *
 * One object for a stream, all zero in the beginning. Not thread-safe.
 */
#ifndef TL_BUILDER_EXCEPTION_TIMES_H
#define TL_BUILDER_EXCEPTION_TIMES_H

#include "base/state.h"
#include "shard/timedrows.h"

/* An exception on the stack. */
struct tl_open_exception {
    uint64_t position, time;    /* of its begin */
    uint64_t inner, inner_time; /* in the shard, without being its own: callees, missing trace */
    uint32_t function;
    uint16_t number;
    uint8_t flags; /* enum tl_exception_flag */
    uint8_t unused;
};

struct tl_exception_times {
    struct tl_timed_rows *rows;     /* of the shard; NULL: none */
    uint64_t from, begin;           /* position and time since when it counts */
    struct tl_open_exception *open; /* outermost first */
    size_t n, cap;
    struct tl_open_exception left; /* the one that ended last, if `has_ended`: its row */
    struct tl_exception_span ended;
    bool has_ended;
};

void tl_exception_times_fini(struct tl_exception_times *x);
/* Count for a shard from a settled position and its time on. */
void tl_exception_times_begin(struct tl_exception_times *x, struct tl_timed_rows *rows,
                              uint64_t from, uint64_t begin);
/* An exception begins: `one` has its begin, function, number and flags. `goes_on`: it is the one
 * that ended last, whose handler has jumped to another function. TL_NOMEM. */
TL_MUST_USE int tl_exception_times_enter(struct tl_exception_times *x,
                                         const struct tl_open_exception *one, bool goes_on);
/* What exception `i` called itself took all of its time from a position to another: it has
 * returned, or is active where the shard ends. */
void tl_exception_times_called(struct tl_exception_times *x, size_t i, uint64_t position,
                               uint64_t time, uint64_t end, uint64_t end_time);
/* The innermost one ends where all is settled; at a gap it ended before that, at `end_time`;
 * `lost`: earlier, nobody told when. TL_NOMEM. */
TL_MUST_USE int tl_exception_times_leave(struct tl_exception_times *x, uint64_t position,
                                         uint64_t time, uint64_t end_time, bool lost);
/* One whose handler is not traced happens where all is settled. TL_NOMEM. */
TL_MUST_USE int tl_exception_times_unseen(struct tl_exception_times *x, uint16_t number,
                                          uint64_t position, uint64_t time);
/* The shard ends where all is settled. TL_NOMEM. */
TL_MUST_USE int tl_exception_times_end(struct tl_exception_times *x, uint64_t position,
                                       uint64_t time);

/* Save what is active, or load it. */
void tl_exception_times_state(struct tl_exception_times *x, struct tl_state *state);

#endif
