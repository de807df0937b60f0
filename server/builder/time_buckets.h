/* SPDX-License-Identifier: MIT */
/*
 * Counts a stream's spans in time into buckets of all levels (shard/timebucket.h), shard by shard:
 *
 *     tl_time_buckets_init(&tb, &axis);
 *     as the flow continues: tl_time_buckets_item() for what is not an instruction, and, when their
 *     time is known, tl_time_buckets_span() for spans, in order
 *     at a shard's end:  tl_time_buckets_take(&tb, &pyramid);
 *     at the stream's:   tl_time_buckets_finish(&tb, position); then take the last shard's
 *
 * Times of a shard's last instructions may become known in the next shard: they are counted there.
 *
 * A shard's finest level is the finest of which it has at most one bucket for each
 * TL_TIME_POSITIONS positions (and a few more): it is counted as if all were wanted, and levels
 * that become too large are dropped. If memory runs out the shard has no buckets. Not thread-safe.
 */
#ifndef TL_BUILDER_TIME_BUCKETS_H
#define TL_BUILDER_TIME_BUCKETS_H

#include "base/numbers.h"
#include "base/state.h"
#include "flow/item.h"
#include "shard/timebucket.h"

#define TL_TIME_POSITIONS 8192 /* positions per bucket of a shard's finest level, at least */
#define TL_TIME_EVENTS    1024 /* places of items whose time is not known yet, at most */

/* The open bucket of a level; each function is counted. */
struct tl_time_open {
    bool any;
    struct tl_time_bucket sums; /* without functions */
    uint64_t *ticks;            /* by function's number */
    size_t cap_ticks;
    uint32_t *used; /* numbers of functions with ticks */
    size_t n_used, cap_used;
};

/* Items at a position whose time is not known yet. */
struct tl_time_event {
    uint64_t position;
    uint64_t n;    /* events */
    uint16_t mask; /* enum tl_bucket_event */
    uint8_t flags; /* enum tl_bucket_flag */
};

struct tl_time_buckets {
    struct tl_axis axis;
    unsigned finest;
    bool alone;        /* the finest level is the only one, and has any number of buckets: of */
    uint64_t from, to; /* these ticks */
    bool failed;       /* no memory: nothing is counted until the shard ends */
    bool timed;        /* there has been a span */
    uint8_t missing;   /* flags of trace that is missing in the current span */
    uint64_t time;     /* after the last span */
    uint64_t limit;    /* tick at which the finest open bucket ends */
    uint64_t position; /* positions before it are counted */
    uint64_t first;    /* the shard's first position */
    struct tl_numbers functions; /* symbol index + 1 */
    uint32_t last_function, last_number;
    struct tl_time_open open[TL_TIME_LEVELS];
    struct tl_time_level closed[TL_TIME_LEVELS];
    struct tl_time_event events[TL_TIME_EVENTS];
    size_t n_events;
};

/* Initialise zeroed memory. */
void tl_time_buckets_init(struct tl_time_buckets *tb, const struct tl_axis *axis);
/* The same for one level alone, of which only ticks [from, to) are counted. The spans begin with
 * the stream's first, or with one that begins before the range. */
void tl_time_buckets_init_range(struct tl_time_buckets *tb, const struct tl_axis *axis,
                                unsigned level, uint64_t from, uint64_t to);
void tl_time_buckets_fini(struct tl_time_buckets *tb);

/* Count a span that begins where the one before it ended. It does not fail: see above. */
void tl_time_buckets_span(struct tl_time_buckets *tb, const struct tl_timed_span *span);
/* Count an item that precedes `position`; never before spans that end there or later. */
void tl_time_buckets_item(struct tl_time_buckets *tb, uint64_t position,
                          const struct tl_item *item);
/* The stream ends at `position`: what has no time yet is counted at the last time. */
void tl_time_buckets_finish(struct tl_time_buckets *tb, uint64_t position);
/* Move the shard's buckets into `out`, which is empty; it stays empty if there is no time, or there
 * was no memory. */
void tl_time_buckets_take(struct tl_time_buckets *tb, struct tl_time_pyramid *out);
/* A copy of what tl_time_buckets_take() would give now. TL_NOMEM. */
TL_MUST_USE int tl_time_buckets_snapshot(struct tl_time_buckets *tb, struct tl_time_pyramid *out);

/* Save to bytes, or load into a new object with the same axis. */
void tl_time_buckets_state(struct tl_time_buckets *tb, struct tl_state *state);

#endif
