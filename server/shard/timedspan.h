/* SPDX-License-Identifier: MIT */
/*
 * Spans of a stream in time: what ran from one change of the call stack to the next, in order and
 * without holes, as counters of time receive them (builder/call_times.h makes them).
 *
 * Times are ticks of the stream's axis (tl_flow_now.axis), which never goes back. A position has
 * the time of the last timestamp at or before it, and of what lies between that and the next
 * timestamp the part that the cycle counts say, or else the part of the instructions, rounded down.
 * So the ends of spans are times of positions, and their durations add up to the whole.
 */
#ifndef TL_SHARD_TIMEDSPAN_H
#define TL_SHARD_TIMEDSPAN_H

#include "flow/block.h"

enum tl_timed_kind {
    TL_TIMED_RUN,          /* instructions of `function` ran */
    TL_TIMED_LOST,         /* trace is missing: whatever ran is unknown. No positions */
    TL_TIMED_OFF,          /* tracing was switched off: nothing is missing. No positions */
    TL_TIMED_SWITCHED_OUT, /* the stream's thread did not run. No positions */
    TL_TIMED_KINDS
};

struct tl_timed_span {
    uint64_t time, end_time; /* ticks of the axis; the same if it was too short for a tick */
    uint64_t position, end;  /* positions [position, end) */
    uint32_t function;       /* index of the image's symbol, or TL_NO_FUNCTION */
    uint32_t depth;          /* frames of the call stack, including this one */
    uint8_t privilege;       /* as tl_flow_now_privilege(): > 3: not known */
    uint8_t kind;            /* enum tl_timed_kind */
};

/* Receive a span; the next one begins where it ends, in time and position. A result < 0 ends it:
 * nothing more is reported. */
typedef int tl_timed_sink(void *context, const struct tl_timed_span *span);

#endif
