/* SPDX-License-Identifier: MIT */
/*
 * Times of the calls of a stream, while its shards are built. What the call stack does is logged
 * with its position until the next timestamp comes; then positions become times
 * (shard/timeknots.h), and what ran, and the calls that ended, are counted by them.
 *
 *     times.sink = …;                                  // who counts spans of time, if anyone
 *     for each shard:
 *         tl_call_times_begin(&times, &counts);        // both by call_counter.h
 *         as the flow continues:
 *             tl_call_times_frame(), _leaf(): changes of the stack, in the order of positions
 *             if (tl_call_times_wants(&times, item))
 *                 tl_call_times_item(&times, …): timestamps and what is told of the time between
 *         at the end of the stream: tl_call_times_finish(&times, position);
 *         tl_call_times_end(&times);
 *     tl_call_times_fini(&times);
 *
 * One object for a stream: it continues from shard to shard, and what is not settled when a shard
 * ends is counted for the next one. It follows the stack on its own, at the time that is settled.
 *
 * Items may come later than changes of the stack behind them, but not the first timestamp. Of more
 * than TL_CALL_EVENTS changes between two timestamps the time counts as lost. Calls whose paths the
 * tree has no room for are not counted; their time is that of their callers. When memory runs out
 * nothing is counted any more. Not thread-safe.
 */
#ifndef TL_BUILDER_CALL_TIMES_H
#define TL_BUILDER_CALL_TIMES_H

#include "base/state.h"
#include "builder/call_paths.h"
#include "builder/exception_times.h"
#include "flow/callstack.h"
#include "shard/shard.h"
#include "shard/timedspan.h"
#include "shard/timeknots.h"

#include <assert.h>

#define TL_CALL_EVENTS (1u << 19)

/* A change that is not settled yet. */
struct tl_call_event {
    uint64_t at;     /* position << 2 | enum tl_call_event_kind */
    uint32_t path;   /* PUSH, LEAF: in the shard's tree; between shards the function instead */
    uint32_t detail; /* PUSH: kind, flags << 8 and exception << 16 of the frame, also
                        TL_CALL_GOES_ON; LEAF: its length; MODE: the privilege, or
                        TL_CALL_UNSEEN and exception << 16 */
};

/* Of `detail`, above all flags of frames. PUSH: the frame continues the exception that ended last.
 * MODE: no mode, but an exception whose handler is not traced. */
#define TL_CALL_GOES_ON 0x8000u
#define TL_CALL_UNSEEN  0x4000u
static_assert(TL_FRAME_LOST << 9 <= TL_CALL_UNSEEN, "TL_FRAME_LOST is the highest flag");

enum tl_call_event_kind { TL_CALL_PUSH, TL_CALL_POP, TL_CALL_LEAF, TL_CALL_MODE };

/* A frame of the stack at the time that is settled. */
struct tl_timed_frame {
    uint64_t position, time; /* of its begin; the first timestamp of the stream, if that is later */
    uint32_t function;
    uint32_t path;
    uint32_t detail; /* as in struct tl_call_event */
};

struct tl_ran_path {
    uint32_t path, depth;
};

struct tl_call_times {
    tl_timed_sink *sink; /* the owner's; NULL: none */
    void *context;
    /* A tick that the owner moves on. What ran before it is reported by function, for how long and
     * not in which order; a span behind it is reported on its own. NULL: all are on their own. */
    const uint64_t *limit;
    bool known;   /* a timestamp has come */
    bool dropped; /* out of memory */
    uint8_t privilege;
    uint64_t position, time; /* everything before is settled: the last timestamp */
    uint64_t gap;     /* position of the last gap, or 0: until something runs time is missing */
    uint8_t gap_kind; /* … as enum tl_timed_kind; RUN: not known, and so lost */
    uint64_t before;  /* the time before that gap, at which what ended there did */
    struct tl_time_knots knots; /* since then */
    struct tl_call_event *log;
    size_t n, cap;
    struct tl_timed_frame *frames; /* outermost first; TL_CALLSTACK_MAX of them */
    uint32_t depth;
    uint32_t path;                /* of the innermost one */
    struct tl_call_paths *counts; /* of the shard */
    struct tl_exception_times exceptions;
    /* Paths that ran since the last report to the sink, which was up to: */
    struct tl_ran_path *ran;
    size_t n_ran, cap_ran;
    uint32_t round;
    uint64_t reported, reported_time; /* position, time */
};

void tl_call_times_fini(struct tl_call_times *t);
/* Count nothing any more. */
void tl_call_times_drop(struct tl_call_times *t);
/* Count for a shard from here on. TL_NOMEM. */
TL_MUST_USE int tl_call_times_begin(struct tl_call_times *t, struct tl_call_paths *counts);
/* Report to the sink all that is settled. */
void tl_call_times_report(struct tl_call_times *t);
/* The shard ends, and all is reported. */
void tl_call_times_end(struct tl_call_times *t);
/* Frame `i` began at this time. */
void tl_call_times_date(struct tl_call_times *t, uint32_t i, uint64_t time);
/* The stream ends at `position`: settle everything. What is behind the last timestamp has its
 * time. */
void tl_call_times_finish(struct tl_call_times *t, uint64_t position);

/* Does the item say anything about time? */
static inline bool tl_call_times_wants(const struct tl_call_times *t, const struct tl_item *item)
{
    const uint32_t always = 1u << TL_ITEM_TIME | 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON,
                   timed = 1u << TL_ITEM_CYCLES | 1u << TL_ITEM_MODE;
    return (always | (t->known ? timed : 0)) >> item->kind & 1;
}

/* Such an item at `position`; `now` is the state after it, and `calls` the stack, as it is needed
 * for the first timestamp. */
void tl_call_times_item(struct tl_call_times *t, const struct tl_callstack *calls,
                        uint64_t position, const struct tl_flow_now *now,
                        const struct tl_item *item);

/* Make room for more events, or settle some. False: out of memory. */
bool tl_call_times_room(struct tl_call_times *t);

static inline void tl_call_times_event(struct tl_call_times *t, enum tl_call_event_kind kind,
                                       uint64_t position, uint32_t path, uint32_t detail)
{
    if (t->known && (t->n < t->cap || tl_call_times_room(t)))
        t->log[t->n++] = (struct tl_call_event){position << 2 | kind, path, detail};
}

/* As a tl_frame_sink; a frame that is pushed has this path. `more`: TL_CALL_GOES_ON, or 0. */
static inline void tl_call_times_frame(struct tl_call_times *t, enum tl_frame_change change,
                                       const struct tl_frame *frame, uint32_t path, uint64_t insn,
                                       uint32_t more)
{
    const uint32_t detail =
        frame->kind | (uint32_t)frame->flags << 8 | (uint32_t)frame->exception << 16 | more;
    tl_call_times_event(t, change == TL_FRAME_PUSH ? TL_CALL_PUSH : TL_CALL_POP, insn, path,
                        detail);
}

/* As a tl_leaf_sink. */
static inline void tl_call_times_leaf(struct tl_call_times *t, uint32_t path, uint64_t begin,
                                      uint64_t end)
{
    tl_call_times_event(t, TL_CALL_LEAF, begin, path, (uint32_t)(end - begin));
}

/* For call_times.c: functions become paths of the shard, TL_NOMEM; and paths functions. */
TL_MUST_USE int tl_call_times_find_paths(struct tl_call_times *t);
void tl_call_times_name_paths(struct tl_call_times *t);

/* Save what is not settled yet, or load it, before tl_call_times_begin(). */
void tl_call_times_state(struct tl_call_times *t, struct tl_state *state);

#endif
