/* SPDX-License-Identifier: MIT */
/*
 * The bucket of the timeline that instructions are counted in, before they are in the index. They
 * are counted at places, each a function in a page of code, which have numbers; functions and pages
 * are summed up only where the bucket ends, and those with less than one in 32 of its instructions
 * are left out. Numbers stay from bucket to bucket. Not thread-safe.
 */
#ifndef TL_STORE_OPEN_BUCKET_H
#define TL_STORE_OPEN_BUCKET_H

#include "base/numbers.h"
#include "base/state.h"
#include "store/bucket.h"
#include "store/shard_stats.h"

#define TL_OPEN_PLACES 1024u /* functions, pages, or both, that have a number at the same time */

struct tl_open_bucket {
    uint64_t position; /* behind all that was counted, here and in buckets */
    uint64_t n;        /* instructions; if 0, and it has items, it is the bucket of `position` */
    bool items;        /* it has some */
    uint64_t events;   /* as of a bucket */
    uint16_t event_mask;
    uint8_t flags;
    uint64_t taken; /* branches */
    uint64_t privilege[4];
    uint32_t depth_min, depth_max;
    /* Of each place instructions, and in the upper half calls: those of this bucket, and of all in
     * front of it. */
    uint64_t counts[TL_OPEN_PLACES], before[TL_OPEN_PLACES];
    struct tl_numbers places; /* of function's number << 16 | page's */
    struct tl_numbers functions, pages;
    /* The place that was asked for last. */
    uint64_t last_page;
    uint32_t last_function, last_place;
    uint64_t sums[2][TL_OPEN_PLACES]; /* of functions and pages while a bucket ends; else 0 */
};

/* Of a zeroed one. */
void tl_open_bucket_init(struct tl_open_bucket *open, uint64_t position);

void tl_open_bucket_fini(struct tl_open_bucket *open);

/* The place's number. TL_LIMIT: there is none left (tl_open_bucket_forget()); TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_place(struct tl_open_bucket *open, uint32_t function, uint64_t page);
/* Add each place's function, instructions and calls in all buckets that have ended to the
 * statistics. TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_tell(const struct tl_open_bucket *open,
                                    struct tl_stats_counter *counter);
/* Give all numbers back, of an empty bucket, and forget what was counted in those before. */
void tl_open_bucket_forget(struct tl_open_bucket *open);

/* Instructions up to the bucket's end; 0: it has ended, and is to be settled before anything more.
 */
static inline uint64_t tl_open_bucket_room(const struct tl_open_bucket *open)
{
    const uint64_t width = UINT64_C(1) << 2 * TL_LEVEL_STORED;
    return open->n > 0 && open->position % width == 0 ? 0 : width - open->position % width;
}

/* `n` instructions more of its bucket. `privilege` > 3: not known. */
static inline void tl_open_bucket_more(struct tl_open_bucket *open, uint64_t n, unsigned privilege)
{
    open->n += n;
    open->position += n;
    if (privilege < 4)
        open->privilege[privilege] += n;
}

/* They were at this depth of the call stack. */
static inline void tl_open_bucket_depth(struct tl_open_bucket *open, uint32_t depth)
{
    open->depth_min = depth < open->depth_min ? depth : open->depth_min;
    open->depth_max = depth > open->depth_max ? depth : open->depth_max;
}

/* What an item counts for, beside that there is one. */
static inline void tl_open_bucket_item(struct tl_open_bucket *open, const struct tl_item *item)
{
    open->taken += tl_item_is_branch(item);
    open->events += tl_item_is_event(item);
    open->event_mask |= tl_bucket_mask(item);
    open->flags |= tl_bucket_flags(item);
}

/* A position in it. */
static inline uint64_t tl_open_bucket_position(const struct tl_open_bucket *open)
{
    return open->position - (open->n > 0);
}

/* Into bytes or, of a new one, from them. */
void tl_open_bucket_state(struct tl_open_bucket *open, struct tl_state *state);

/* Add it to `bucket`; `ends`: and begin the next one. */
void tl_open_bucket_settle(struct tl_open_bucket *open, struct tl_bucket *bucket, bool ends);

#endif
