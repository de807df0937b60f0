/* SPDX-License-Identifier: MIT */
/*
 * Counts instructions of the open timeline bucket by place, and sums them up by function and page
 * when it ends. A place is one increment per block, where two frequency tables would have to be
 * searched each time.
 */
#include "builder/open_bucket.h"

#include <limits.h>
#include <string.h>

/* A function or page with less than one in FEW of the instructions cannot be among the most
 * frequent ones that are kept. */
#define FEW 32u

/* The key's number, assigned if new. TL_LIMIT: none left; TL_NOMEM. */
static int number_of(struct tl_numbers *t, uint64_t key)
{
    const uint32_t number = tl_numbers_find(t, key);
    if (number != TL_NO_NUMBER)
        return (int)number;
    if (t->n == TL_OPEN_PLACES)
        return TL_LIMIT;
    const int r = tl_numbers_add(t, key);
    return r < 0 ? r : (int)t->n - 1;
}

static void empty(struct tl_open_bucket *open)
{
    open->n = open->taken = open->events = 0;
    open->event_mask = open->flags = 0;
    open->items = false;
    memset(open->privilege, 0, sizeof(open->privilege));
    open->depth_min = UINT32_MAX;
    open->depth_max = 0;
}

void tl_open_bucket_init(struct tl_open_bucket *open, uint64_t position)
{
    open->position = position;
    open->last_page = UINT64_MAX; /* not a valid page */
    empty(open);
}

void tl_open_bucket_fini(struct tl_open_bucket *open)
{
    tl_numbers_fini(&open->places);
    tl_numbers_fini(&open->functions);
    tl_numbers_fini(&open->pages);
}

int tl_open_bucket_place(struct tl_open_bucket *open, uint32_t function, uint64_t page)
{
    if (open->last_page == page && open->last_function == function)
        return (int)open->last_place;
    const int f = number_of(&open->functions, function), p = number_of(&open->pages, page);
    const int place = f < 0   ? f
                      : p < 0 ? p
                              : number_of(&open->places, (uint64_t)f << 16 | (unsigned)p);
    if (place >= 0) {
        open->last_function = function;
        open->last_page = page;
        open->last_place = (uint32_t)place;
    }
    return place;
}

void tl_open_bucket_forget(struct tl_open_bucket *open)
{
    tl_numbers_reset(&open->places);
    tl_numbers_reset(&open->functions);
    tl_numbers_reset(&open->pages);
    memset(open->counts, 0, sizeof(open->counts));
    memset(open->before, 0, sizeof(open->before));
    open->last_page = UINT64_MAX;
}

static void names_state(struct tl_numbers *t, struct tl_state *s)
{
    size_t n = t->n;
    tl_state_size(s, &n, TL_OPEN_PLACES);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t name = tl_state_loads(s) ? 0 : t->keys[i];
        tl_state_u64(s, &name);
        const int number = number_of(t, name);
        if (number == TL_NOMEM)
            tl_state_fail(s, TL_NOMEM);
        tl_state_check(s, number == (int)i); /* otherwise there is a duplicate */
    }
}

void tl_open_bucket_state(struct tl_open_bucket *open, struct tl_state *s)
{
    tl_state_u64(s, &open->position);
    tl_state_u64(s, &open->n);
    tl_state_u64(s, &open->taken);
    tl_state_bool(s, &open->items);
    tl_state_u64(s, &open->events);
    tl_state_u16(s, &open->event_mask);
    tl_state_u8(s, &open->flags, UINT8_MAX);
    for (size_t i = 0; i < 4; i++)
        tl_state_u64(s, &open->privilege[i]);
    tl_state_u32(s, &open->depth_min);
    tl_state_u32(s, &open->depth_max);
    names_state(&open->functions, s);
    names_state(&open->pages, s);
    names_state(&open->places, s);
    for (uint32_t i = 0; i < open->places.n; i++) {
        const uint64_t name = open->places.keys[i];
        tl_state_check(s, name >> 16 < open->functions.n && (name & UINT16_MAX) < open->pages.n);
        tl_state_u64(s, &open->counts[i]);
        tl_state_u64(s, &open->before[i]);
    }
    for (uint32_t i = 0; i < open->functions.n; i++)
        tl_state_u64(s, &open->wide[i]);
    tl_state_u64(s, &open->last_page);
    tl_state_u32(s, &open->last_function);
    tl_state_u32(s, &open->last_place);
    tl_state_check(s, open->last_place < TL_OPEN_PLACES);
}

/* ---- the end of a bucket ------------------------------------------------------------------- */

/* Numbers of functions, or of pages, that have instructions in the bucket. */
struct some {
    uint32_t n;
    uint16_t numbers[TL_OPEN_PLACES + 1];
};

static inline void add_some(struct some *some, uint64_t *sums, uint32_t number, uint32_t n)
{
    some->numbers[some->n] = (uint16_t)number;
    some->n += sums[number] == 0;
    sums[number] += n;
}

static void sum_up(struct tl_open_bucket *open, bool ends, struct some *functions,
                   struct some *pages)
{
    for (uint32_t i = 0; i < open->places.n; i++) {
        const uint64_t name = open->places.keys[i];
        const uint32_t n = (uint32_t)open->counts[i];
        if (n == 0)
            continue;
        add_some(functions, open->sums[0], (uint32_t)(name >> 16), n);
        add_some(pages, open->sums[1], (uint32_t)(name & UINT16_MAX), n);
        if (ends) {
            open->before[i] += open->counts[i];
            open->counts[i] = 0;
        }
    }
}

static uint64_t function_id(uint32_t function)
{
    return function == TL_NO_FUNCTION ? 0 : (uint64_t)function + 1;
}

static bool has_function(const struct tl_bucket *b, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (b->functions[i].id == id)
            return true;
    return false;
}

/* Minimum count to be included; the most frequent entry always is. */
static uint64_t min_of(const struct tl_open_bucket *open, const struct some *some,
                       const uint64_t *sums)
{
    uint64_t min = (open->n + FEW - 1) / FEW, most = 0;
    if (some->n < FEW) /* so at least one reaches the minimum */
        return min;
    for (uint32_t i = 0; i < some->n; i++)
        most = sums[some->numbers[i]] > most ? sums[some->numbers[i]] : most;
    return most < min ? most : min;
}

/* The most frequent ones are kept, as they are: a counter taken over with what it had would make
 * one of many alike seem to be more than it is. */
static void keep_function(struct tl_bucket *b, const struct tl_top *one)
{
    struct tl_top *least = b->functions;
    for (size_t i = 1; i < TL_BUCKET_FUNCTIONS; i++)
        if (b->functions[i].n < least->n)
            least = &b->functions[i];
    if (one->n > least->n)
        *least = *one;
}

/* Functions are distinct: new ones are only compared with those already in the bucket. */
static void settle_functions(struct tl_open_bucket *open, struct tl_bucket *b,
                             const struct some *functions)
{
    uint64_t *const sums = open->sums[0];
    const uint64_t min = min_of(open, functions, sums);
    unsigned distinct = b->distinct;
    size_t known = 0;
    while (known < TL_BUCKET_FUNCTIONS && b->functions[known].n > 0)
        known++;
    size_t end = known;
    for (uint32_t i = 0; i < functions->n; i++) {
        const uint32_t f = functions->numbers[i];
        const uint64_t n = sums[f];
        sums[f] = 0;
        distinct++;
        if (n < min)
            continue;
        const struct tl_top one = {function_id((uint32_t)open->functions.keys[f]), n};
        if (one.id == 0 || has_function(b, known, one.id))
            distinct -= !tl_bucket_function(b, one.id, n);
        else if (end < TL_BUCKET_FUNCTIONS)
            b->functions[end++] = one;
        else
            keep_function(b, &one);
    }
    b->distinct = distinct < 255 ? (uint8_t)distinct : 255;
}

static void settle_pages(struct tl_open_bucket *open, struct tl_bucket *b, const struct some *pages)
{
    uint64_t *const sums = open->sums[1];
    const uint64_t min = min_of(open, pages, sums);
    for (uint32_t i = 0; i < pages->n; i++) {
        const uint32_t p = pages->numbers[i];
        if (sums[p] >= min)
            tl_bucket_page(b, open->pages.keys[p], sums[p]);
        sums[p] = 0;
    }
}

/* Add these functions' counts, as far as there are any. */
static int add_counts(const struct tl_open_bucket *open, const uint64_t *values,
                      struct tl_time_pyramid *counts, unsigned level)
{
    struct tl_time_share shares[TL_OPEN_PLACES]; /* large: not cleared */
    size_t n = 0;
    for (uint32_t f = 0; f < open->functions.n; f++) {
        const uint64_t id = function_id((uint32_t)open->functions.keys[f]);
        if (values[f] > 0 && id > 0)
            shares[n++] = (struct tl_time_share){(uint32_t)id, values[f]};
    }
    return n == 0 ? TL_OK
                  : tl_function_counts_add(counts, level, (open->position - 1) >> 2 * level, shares,
                                           n);
}

int tl_open_bucket_flush(struct tl_open_bucket *open, struct tl_time_pyramid *counts)
{
    const int r = add_counts(open, open->wide, counts, TL_COUNTS_LEVEL);
    memset(open->wide, 0, open->functions.n * sizeof *open->wide);
    return r;
}

/* Count the functions that are summed up. */
static int settle_counts(struct tl_open_bucket *open, const struct some *functions,
                         struct tl_time_pyramid *counts, bool ends)
{
    const uint64_t *const sums = open->sums[0];
    const bool whole = open->n == UINT64_C(1) << 2 * TL_LEVEL_STORED,
               is_last = open->position % (UINT64_C(1) << 2 * TL_COUNTS_LEVEL) == 0;
    int r = whole ? TL_OK : add_counts(open, sums, counts, TL_LEVEL_STORED);
    for (uint32_t i = 0; i < functions->n; i++)
        open->wide[functions->numbers[i]] += sums[functions->numbers[i]];
    if (r >= 0 && ends && is_last)
        r = tl_open_bucket_flush(open, counts);
    if (r < 0 || ends)
        return r;
    r = add_counts(open, open->wide, counts, TL_COUNTS_LEVEL);
    for (uint32_t i = 0; i < functions->n; i++)
        open->wide[functions->numbers[i]] -= sums[functions->numbers[i]];
    return r;
}

static int settle_insns(struct tl_open_bucket *open, struct tl_bucket *b,
                        struct tl_time_pyramid *counts, bool ends)
{
    struct some functions, pages; /* large: not cleared */
    functions.n = pages.n = 0;
    sum_up(open, ends, &functions, &pages);
    const int r = settle_counts(open, &functions, counts, ends);
    settle_functions(open, b, &functions);
    settle_pages(open, b, &pages);
    tl_bucket_span(b, open->n, UINT_MAX, open->depth_min, open->depth_max);
    for (size_t i = 0; i < 4; i++)
        b->privilege[i] += open->privilege[i];
    return r;
}

int tl_open_bucket_settle(struct tl_open_bucket *open, struct tl_bucket *b,
                          struct tl_time_pyramid *counts, bool ends)
{
    const int r = open->n > 0 ? settle_insns(open, b, counts, ends) : TL_OK;
    b->branches += open->taken;
    b->events += open->events;
    b->event_mask |= open->event_mask;
    b->flags |= open->flags;
    if (ends)
        empty(open);
    return r;
}

int tl_open_bucket_report(const struct tl_open_bucket *open, struct tl_stats_counter *counter)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < open->places.n && r >= 0; i++) {
        const uint32_t function = (uint32_t)open->functions.keys[open->places.keys[i] >> 16];
        if (open->before[i] > 0)
            r = tl_stats_counter_function(counter, function, (uint32_t)open->before[i],
                                          open->before[i] >> 32);
    }
    return r;
}
