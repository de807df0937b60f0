/* SPDX-License-Identifier: MIT */
/*
 * The timeline bucket being filled, before it is added to the index. Instructions are counted at
 * places, each a combination of function and code page, which have numbers; totals of functions and
 * pages are computed only when the bucket ends, and those with less than 1/32 of its instructions
 * are dropped. Numbers are kept from bucket to bucket. Not thread-safe.
 */
#ifndef TL_BUILDER_OPEN_BUCKET_H
#define TL_BUILDER_OPEN_BUCKET_H

#include "base/numbers.h"
#include "base/state.h"
#include "shard/function_counts.h"
#include "shard/shard_stats.h"

#define TL_OPEN_PLACES 1024u /* maximum numbered functions, pages, and places */

struct tl_open_bucket {
    uint64_t position; /* after everything counted, here and in earlier buckets */
    uint64_t n;      /* instructions; if 0 and there are items, the bucket is the one that contains
                        `position` */
    bool items;      /* has items */
    uint64_t events; /* as in struct tl_bucket */
    uint16_t event_mask;
    uint8_t flags;
    uint64_t taken; /* taken branches */
    uint64_t privilege[4];
    uint32_t depth_min, depth_max;
    /* By place: instructions, and calls in the upper half; of this bucket, and of all earlier
     * ones. */
    uint64_t counts[TL_OPEN_PLACES], before[TL_OPEN_PLACES];
    struct tl_numbers places; /* function number << 16 | page number */
    struct tl_numbers functions, pages;
    /* The place looked up last. */
    uint64_t last_page;
    uint32_t last_function, last_place;
    uint64_t sums[2][TL_OPEN_PLACES]; /* of functions and pages while a bucket is being closed;
                                         otherwise 0 */
    uint64_t wide[TL_OPEN_PLACES]; /* of functions in the open bucket of TL_COUNTS_LEVEL, up to the
                                      last completed bucket */
};

/* Initialise a zeroed bucket. */
void tl_open_bucket_init(struct tl_open_bucket *open, uint64_t position);

void tl_open_bucket_fini(struct tl_open_bucket *open);

/* The place's number. TL_LIMIT: none left (tl_open_bucket_forget()); TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_place(struct tl_open_bucket *open, uint32_t function, uint64_t page);
/* Add each place's function, instructions and calls in all completed buckets to the statistics.
 * TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_report(const struct tl_open_bucket *open,
                                      struct tl_stats_counter *counter);
/* Add the functions of an empty bucket's open one of TL_COUNTS_LEVEL to `counts`, and begin the
 * next part of it. TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_flush(struct tl_open_bucket *open, struct tl_time_pyramid *counts);
/* Release all numbers of an empty bucket that is flushed, and clear the counts of earlier ones. */
void tl_open_bucket_forget(struct tl_open_bucket *open);

/* Instructions until the bucket's end; 0: it is full, and must be settled before anything is
 * added. */
static inline uint64_t tl_open_bucket_room(const struct tl_open_bucket *open)
{
    const uint64_t width = UINT64_C(1) << 2 * TL_LEVEL_STORED;
    return open->n > 0 && open->position % width == 0 ? 0 : width - open->position % width;
}

/* Add `n` instructions to the bucket. `privilege` > 3: not known. */
static inline void tl_open_bucket_more(struct tl_open_bucket *open, uint64_t n, unsigned privilege)
{
    open->n += n;
    open->position += n;
    if (privilege < 4)
        open->privilege[privilege] += n;
}

/* Record the call stack depth of its instructions. */
static inline void tl_open_bucket_depth(struct tl_open_bucket *open, uint32_t depth)
{
    open->depth_min = depth < open->depth_min ? depth : open->depth_min;
    open->depth_max = depth > open->depth_max ? depth : open->depth_max;
}

/* Record an item's branch, event and flag bits; that there is an item is recorded separately. */
static inline void tl_open_bucket_item(struct tl_open_bucket *open, const struct tl_item *item)
{
    open->taken += tl_item_is_branch(item);
    open->events += tl_item_is_event(item);
    open->event_mask |= tl_bucket_mask(item);
    open->flags |= tl_bucket_flags(item);
}

/* A position inside the bucket. */
static inline uint64_t tl_open_bucket_position(const struct tl_open_bucket *open)
{
    return open->position - (open->n > 0);
}

/* Save to bytes, or load into a new object. */
void tl_open_bucket_state(struct tl_open_bucket *open, struct tl_state *state);

/* Add the counts to `bucket`, and those of functions to `counts`; `ends`: also begin the next one.
 * TL_NOMEM. */
TL_MUST_USE int tl_open_bucket_settle(struct tl_open_bucket *open, struct tl_bucket *bucket,
                                      struct tl_time_pyramid *counts, bool ends);

#endif
