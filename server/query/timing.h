/* SPDX-License-Identifier: MIT */
/*
 * A walk over a range of a stream that tells whose time it was (docs/time.md): spans of functions,
 * calls, gaps, in order. Exact for any range, also of shards under construction; it reads all items
 * of the range, some ten million instructions per second.
 *
 * Times are ticks of the stream's axis. A stream without time is walked all the same, with times of
 * 0.
 */
#ifndef TL_QUERY_TIMING_H
#define TL_QUERY_TIMING_H

#include "lake/scale.h"
#include "shard/timedspan.h"

/* A moment with its bounds. */
struct tl_moment {
    uint64_t time, least, most; /* `most` UINT64_MAX: unknown */
};

/* A frame of the call stack that ended, or at the end of the range is still there. */
struct tl_timing_call {
    struct tl_frame frame; /* frame.insn: its first instruction, also before the range */
    uint32_t depth;        /* 0: outermost */
    uint64_t end;          /* position after its last instruction */
    struct tl_moment from, to;
    uint64_t self, self_time; /* its own, as far as they are in the range */
    uint64_t interrupted;   /* of its time: exceptions, with those that these were interrupted by */
    uint64_t interruptions; /* their number, without the latter */
    uint64_t switched_out;  /* of its time, as far as it is in the range: the thread did not run */
    uint32_t caller;        /* the function below it; TL_NO_FUNCTION also if there is none */
    bool cut;               /* a gap hides its begin or end */
    bool open;              /* it goes on after the range */
};

/* From one moment to another, with bounds. */
struct tl_moment tl_timing_length(const struct tl_moment *from, const struct tl_moment *to);
/* The moment before the instruction at a position; `end`: for what ends there, which at a gap is
 * the last known time before it. TL_EOF: the stream has no time. */
TL_MUST_USE int tl_timing_moment(const struct tl_cut *cut, uint64_t position, bool end,
                                 struct tl_moment *out, struct tl_fail *fail);

/*
 * What the walk reports; functions may be NULL. A result < 0 ends it and is returned. `span`: the
 * moments of its ends, for bounds. `begin`: also of what continues after another stack was active,
 * see tl_frame_is_call(). Frames that are there at the begin of the range come first, with the
 * begin of the range as `at`.
 */
struct tl_timing_sinks {
    int (*span)(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                const struct tl_moment *to);
    int (*begin)(void *context, const struct tl_frame *frame, uint32_t depth,
                 const struct tl_moment *at);
    int (*end)(void *context, const struct tl_timing_call *call);
    int (*gap)(void *context, const struct tl_scale_break *gap);
    /* Exceptions, and what tells that trace is missing, from the begin of the range on, at the time
     * of their position. */
    int (*item)(void *context, const struct tl_item *item, uint64_t position,
                const struct tl_moment *at);
    void *context;
};

/* A part of a range that is counted in several ways. */
struct tl_timing_part {
    uint64_t from, to; /* positions */
    /* Where several timestamps are at one position: times at the ends, instead of the last ones. */
    bool has_begin, has_end;
    uint64_t begin, end; /* ticks */
    bool cycles;         /* what the trace counted (cycle_scale.h) takes the place of ticks */
};
TL_MUST_USE int tl_timing_walk_part(const struct tl_cut *cut, const struct tl_timing_part *part,
                                    const struct tl_timing_sinks *sinks, struct tl_fail *fail);
/* Walk positions [from, to), at most to the stream's end. Errors as tl_cut_walk_next(). */
TL_MUST_USE int tl_timing_walk(const struct tl_cut *cut, uint64_t from, uint64_t to,
                               const struct tl_timing_sinks *sinks, struct tl_fail *fail);

/* The duration of so many ticks in the unit that the stream shows. */
uint64_t tl_timing_shown(const struct tl_lane *lane, uint64_t ticks);
/* Mean distance of two timestamps, in that unit; 0: there are not two. */
uint64_t tl_timing_step(const struct tl_lane *lane, const struct tl_rows_times *times);

#endif
