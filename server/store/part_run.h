/* SPDX-License-Identifier: MIT */
/*
 * Instructions of one bucket of the timeline that are not in it yet. They are counted at places,
 * each a function in a page, which have numbers; functions and pages are summed up where the bucket
 * ends. Not thread-safe.
 */
#ifndef TL_STORE_PART_RUN_H
#define TL_STORE_PART_RUN_H

#include "base/state.h"
#include "store/bucket.h"
#include "store/tally.h"

#define TL_RUN_PLACES 1024u /* functions, pages, or both, that have a number at the same time */

/* Numbers, in the order in which the names came. */
struct tl_run_names {
    uint32_t n;
    uint16_t slots[2 * TL_RUN_PLACES]; /* number + 1, by hash of the name; 0: none */
    uint64_t names[TL_RUN_PLACES];
};

struct tl_part_run {
    uint64_t position; /* behind all that was counted, here and in buckets */
    uint64_t n;        /* of all; if 0, and it has items, it is of the bucket of `position` */
    bool items;        /* it has some */
    uint64_t events;   /* as of a bucket */
    uint16_t event_mask;
    uint8_t flags;
    uint64_t taken; /* branches */
    uint64_t privilege[4];
    uint32_t depth_min, depth_max;
    /* Of each place instructions, and in the upper half calls: those of this bucket, and of all in
     * front of it. */
    uint64_t counts[TL_RUN_PLACES], before[TL_RUN_PLACES];
    struct tl_run_names places; /* function's number << 16 | page's */
    struct tl_run_names functions, pages;
    /* The place that was asked for last. */
    uint64_t last_page;
    uint32_t last_function, last_place;
    uint64_t sums[2][TL_RUN_PLACES]; /* of functions and pages while a bucket ends; else 0 */
};

/* Of a zeroed one. */
void tl_part_run_init(struct tl_part_run *run, uint64_t position);

/* The place's number; -1: there is none left (tl_part_run_forget()). */
int tl_part_run_place(struct tl_part_run *run, uint32_t function, uint64_t page);
/* Is that this place's number? */
static inline bool tl_part_run_is(const struct tl_part_run *run, uint32_t place, uint32_t function,
                                  uint64_t page)
{
    if (place >= run->places.n)
        return false;
    const uint64_t name = run->places.names[place];
    return run->functions.names[name >> 16] == function &&
           run->pages.names[name & UINT16_MAX] == page;
}
/* Tell of each place's function, instructions and calls in all buckets that have ended; of an empty
 * run. A result < 0 ends it and is returned. */
TL_MUST_USE int tl_part_run_tell(const struct tl_part_run *run, struct tl_tallying *tallying);
/* Give all numbers back, of an empty run, and forget what was counted. */
void tl_part_run_forget(struct tl_part_run *run);

/* Instructions up to the end of the run's bucket. */
static inline uint64_t tl_part_run_room(const struct tl_part_run *run)
{
    const uint64_t width = UINT64_C(1) << 2 * TL_LEVEL_STORED;
    return run->n > 0 && run->position % width == 0 ? 0 : width - run->position % width;
}

/* `n` instructions more of its bucket. `privilege` > 3: not known. */
static inline void tl_part_run_more(struct tl_part_run *run, uint64_t n, unsigned privilege)
{
    run->n += n;
    run->position += n;
    if (privilege < 4)
        run->privilege[privilege] += n;
}

/* They were at this depth of the call stack. */
static inline void tl_part_run_depth(struct tl_part_run *run, uint32_t depth)
{
    run->depth_min = depth < run->depth_min ? depth : run->depth_min;
    run->depth_max = depth > run->depth_max ? depth : run->depth_max;
}

/* What an item counts for, beside that there is one. */
static inline void tl_part_run_item(struct tl_part_run *run, const struct tl_item *item)
{
    run->taken += item->kind == TL_ITEM_BRANCH;
    run->events += tl_item_is_event(item);
    run->event_mask |= tl_bucket_mask(item);
    run->flags |= tl_bucket_flags(item);
}

/* A position in the bucket that the run is of. */
static inline uint64_t tl_part_run_bucket(const struct tl_part_run *run)
{
    return run->position - (run->n > 0);
}

/* Into bytes or, of a new one, from them. */
void tl_part_run_state(struct tl_part_run *run, struct tl_state *state);

/* Add the run to `bucket`; `ends`: and empty it. */
void tl_part_run_settle(struct tl_part_run *run, struct tl_bucket *bucket, bool ends);

#endif
