/* SPDX-License-Identifier: MIT */
/*
 * The time of positions between two timestamps: the one place of the model, for those who collect
 * times while shards are made and for those who ask later.
 *
 *     tl_time_knots_begin(&k, position, time);          // a timestamp
 *     for each item up to the next timestamp:
 *         tl_time_knots_item(&k, position, &item);      // cycle counts, gaps
 *     tl_time_knots_end(&k, position, time);            // the next one; k.points are complete
 *     s = tl_time_segment(&k.points[i]);                // i: the last point not behind `position`
 *     time_of_position = tl_time_in(&s, position);
 *
 * Points are positions of known time, in order, the first and the last are the two timestamps.
 * Between two of them time passes evenly with the positions, rounded down. Of several at one
 * position, the last is the position's own time; what ended there had the first.
 *
 * - Cycle counts divide the time up to the last of them in their proportion; that one is placed by
 *   positions. Counts at the first timestamp's position are of what was before it. Of more than
 *   TL_TIME_KNOTS only every second, fourth, … is used, and the last.
 * - Where trace is missing, or tracing was off, the time belongs to nothing that ran: all before
 *   the first such place has the time of the first timestamp, all after it that of the next. It
 *   is off, too, until the first instruction behind a TRACE_ON (decode/point.h).
 * - Records of software trace (`steps`) have the time of the timestamp before them.
 *
 * Times are ticks of tl_flow_now.axis. Not thread-safe.
 */
#ifndef TL_SHARD_TIMEKNOTS_H
#define TL_SHARD_TIMEKNOTS_H

#include "base/state.h"
#include "flow/item.h"
#include "setup/format.h"

#define TL_TIME_KNOTS 4096

struct tl_time_point {
    uint64_t position;
    uint64_t time;
};

struct tl_time_knots {
    struct tl_time_point *points; /* before the end: cycles since the begin instead of times */
    size_t n, cap;
    uint64_t begin;  /* time */
    uint64_t counts; /* of cycles; those that are multiples of `stride` are points, and the last */
    uint64_t stride;
    size_t quick; /* while there are fewer points, a count is one more: tl_time_knots_quickly() */
    bool steps;   /* records of software trace */
    enum tl_protocol protocol;
    bool broken;
    uint8_t flags;    /* if broken: enum tl_bucket_flag of all gaps: tl_missing_kind(); else OFF if
                       * tracing was, until where the knots begin */
    uint64_t place;   /* if broken: position of the first one: points[1] before it, [2] behind it */
    uint64_t gaps;    /* if broken: their number; 0: tracing was only off */
    uint32_t reasons; /* … bit set of enum tl_gap */
};

/* Prepare knots that are all zero for a stream of this protocol. */
void tl_time_knots_init(struct tl_time_knots *k, enum tl_protocol protocol);
void tl_time_knots_fini(struct tl_time_knots *k);
/* Begin at a timestamp; memory is kept. TL_NOMEM. */
TL_MUST_USE int tl_time_knots_begin(struct tl_time_knots *k, uint64_t position, uint64_t time);
/* An item that is no timestamp; most kinds change nothing. TL_NOMEM. */
TL_MUST_USE int tl_time_knots_item(struct tl_time_knots *k, uint64_t position,
                                   const struct tl_item *item);
/* The same for a count of cycles, as most of them are; false: call tl_time_knots_item(). */
static inline bool tl_time_knots_quickly(struct tl_time_knots *k, uint64_t position,
                                         uint64_t cycles);
/* The next timestamp, not before the first in position or time: completes the points. TL_NOMEM. */
TL_MUST_USE int tl_time_knots_end(struct tl_time_knots *k, uint64_t position, uint64_t time);
/* Save the state between begin and end, or load it. */
void tl_time_knots_state(struct tl_time_knots *k, struct tl_state *state);

static inline bool tl_time_knots_quickly(struct tl_time_knots *k, uint64_t position,
                                         uint64_t cycles)
{
    if (k->n >= k->quick || position == k->points[0].position || cycles >> 32 != 0)
        return false;
    struct tl_time_point *const next = &k->points[k->n++];
    *next = (struct tl_time_point){position, next[-1].time + cycles};
    k->counts++;
    return true;
}

/* From a point to the one behind it. */
struct tl_time_segment {
    uint64_t begin, end; /* positions; the end itself is in a later segment */
    uint64_t time, span; /* of the begin, and from there to the end */
};

/* The floor of a * b / c, for c > 0 and a <= c. */
static inline uint64_t tl_time_share(uint64_t a, uint64_t b, uint64_t c)
{
    return (b | c) >> 32 == 0 ? a * b / c : (uint64_t)((unsigned __int128)a * b / c);
}

static inline struct tl_time_segment tl_time_segment(const struct tl_time_point *point)
{
    return (struct tl_time_segment){point->position, point[1].position, point->time,
                                    point[1].time - point->time};
}

/* The time of a position in a segment: at least its begin, and less than its end. */
static inline uint64_t tl_time_in(const struct tl_time_segment *s, uint64_t position)
{
    return s->time + tl_time_share(position - s->begin, s->span, s->end - s->begin);
}

#endif
