/* SPDX-License-Identifier: MIT */
#include "store/part_run.h"

#include <limits.h>
#include <string.h>

/* A function or page that has less than one in so many of a run's instructions is none of the few
 * most frequent ones that are kept. */
#define FEW 32u

/* ---- names --------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct tl_run_names *t, uint64_t name)
{
    const uint32_t mask = 2 * TL_RUN_PLACES - 1;
    uint32_t i = (uint32_t)(name * 0x9e3779b97f4a7c15u >> 40) & mask;
    while (t->slots[i] != 0 && t->names[t->slots[i] - 1] != name)
        i = (i + 1) & mask;
    return i;
}

/* The name's number, new if need be; -1: there is none left. */
static int number_of(struct tl_run_names *t, uint64_t name)
{
    const uint32_t i = slot_of(t, name);
    if (t->slots[i] == 0) {
        if (t->n == TL_RUN_PLACES)
            return -1;
        t->names[t->n++] = name;
        t->slots[i] = (uint16_t)t->n;
    }
    return t->slots[i] - 1;
}

static void forget_names(struct tl_run_names *t)
{
    t->n = 0;
    memset(t->slots, 0, sizeof(t->slots));
}

static void empty(struct tl_part_run *run)
{
    run->n = run->taken = run->events = 0;
    run->event_mask = run->flags = 0;
    run->items = false;
    memset(run->privilege, 0, sizeof(run->privilege));
    run->depth_min = UINT32_MAX;
    run->depth_max = 0;
}

void tl_part_run_init(struct tl_part_run *run, uint64_t position)
{
    run->position = position;
    run->last_page = UINT64_MAX; /* no address has it */
    empty(run);
}

int tl_part_run_place(struct tl_part_run *run, uint32_t function, uint64_t page)
{
    if (run->last_page == page && run->last_function == function)
        return (int)run->last_place;
    const int f = number_of(&run->functions, function), p = number_of(&run->pages, page);
    const int place =
        f < 0 || p < 0 ? -1 : number_of(&run->places, (uint64_t)f << 16 | (unsigned)p);
    if (place >= 0) {
        run->last_function = function;
        run->last_page = page;
        run->last_place = (uint32_t)place;
    }
    return place;
}

void tl_part_run_forget(struct tl_part_run *run)
{
    forget_names(&run->places);
    forget_names(&run->functions);
    forget_names(&run->pages);
    memset(run->counts, 0, sizeof(run->counts));
    memset(run->before, 0, sizeof(run->before));
    run->last_page = UINT64_MAX;
}

static void names_state(struct tl_run_names *t, struct tl_state *s)
{
    size_t n = t->n;
    tl_state_size(s, &n, TL_RUN_PLACES);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t name = t->names[i];
        tl_state_u64(s, &name);
        tl_state_check(s, number_of(t, name) == (int)i); /* else it came twice */
    }
}

void tl_part_run_state(struct tl_part_run *run, struct tl_state *s)
{
    tl_state_u64(s, &run->position);
    tl_state_u64(s, &run->n);
    tl_state_u64(s, &run->taken);
    tl_state_bool(s, &run->items);
    tl_state_u64(s, &run->events);
    tl_state_u16(s, &run->event_mask);
    tl_state_u8(s, &run->flags, UINT8_MAX);
    for (size_t i = 0; i < 4; i++)
        tl_state_u64(s, &run->privilege[i]);
    tl_state_u32(s, &run->depth_min);
    tl_state_u32(s, &run->depth_max);
    names_state(&run->functions, s);
    names_state(&run->pages, s);
    names_state(&run->places, s);
    for (uint32_t i = 0; i < run->places.n; i++) {
        const uint64_t name = run->places.names[i];
        tl_state_check(s, name >> 16 < run->functions.n && (name & UINT16_MAX) < run->pages.n);
        tl_state_u64(s, &run->counts[i]);
        tl_state_u64(s, &run->before[i]);
    }
    tl_state_u64(s, &run->last_page);
    tl_state_u32(s, &run->last_function);
    tl_state_u32(s, &run->last_place);
    tl_state_check(s, run->last_place < TL_RUN_PLACES);
}

/* ---- the end of a bucket ------------------------------------------------------------------- */

/* Numbers of functions, or of pages, that have any of the run's instructions. */
struct some {
    uint32_t n;
    uint16_t numbers[TL_RUN_PLACES + 1];
};

static inline void add_some(struct some *some, uint64_t *sums, uint32_t number, uint32_t n)
{
    some->numbers[some->n] = (uint16_t)number;
    some->n += sums[number] == 0;
    sums[number] += n;
}

static void sum_up(struct tl_part_run *run, bool ends, struct some *functions, struct some *pages)
{
    for (uint32_t i = 0; i < run->places.n; i++) {
        const uint64_t name = run->places.names[i];
        const uint32_t n = (uint32_t)run->counts[i];
        if (n == 0)
            continue;
        add_some(functions, run->sums[0], (uint32_t)(name >> 16), n);
        add_some(pages, run->sums[1], (uint32_t)(name & UINT16_MAX), n);
        if (ends) {
            run->before[i] += run->counts[i];
            run->counts[i] = 0;
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

/* What has fewer of the run's instructions is not counted; that which has the most always is. */
static uint64_t least_of(const struct tl_part_run *run, const struct some *some,
                         const uint64_t *sums)
{
    uint64_t least = (run->n + FEW - 1) / FEW, most = 0;
    if (some->n < FEW) /* so one has as many */
        return least;
    for (uint32_t i = 0; i < some->n; i++)
        most = sums[some->numbers[i]] > most ? sums[some->numbers[i]] : most;
    return most < least ? most : least;
}

/* The functions are different: what the bucket has not had before is only looked for there. */
static void settle_functions(struct tl_part_run *run, struct tl_bucket *b,
                             const struct some *functions)
{
    uint64_t *const sums = run->sums[0];
    const uint64_t least = least_of(run, functions, sums);
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
        if (n < least)
            continue;
        const uint64_t id = function_id((uint32_t)run->functions.names[f]);
        if (end == TL_BUCKET_FUNCTIONS || id == 0 || has_function(b, known, id))
            distinct -= !tl_bucket_function(b, id, n);
        else
            b->functions[end++] = (struct tl_top){id, n};
    }
    b->distinct = distinct < 255 ? (uint8_t)distinct : 255;
}

static void settle_pages(struct tl_part_run *run, struct tl_bucket *b, const struct some *pages)
{
    uint64_t *const sums = run->sums[1];
    const uint64_t least = least_of(run, pages, sums);
    for (uint32_t i = 0; i < pages->n; i++) {
        const uint32_t p = pages->numbers[i];
        if (sums[p] >= least)
            tl_bucket_page(b, run->pages.names[p], sums[p]);
        sums[p] = 0;
    }
}

static void settle_insns(struct tl_part_run *run, struct tl_bucket *b, bool ends)
{
    struct some functions, pages; /* large: not cleared */
    functions.n = pages.n = 0;
    sum_up(run, ends, &functions, &pages);
    settle_functions(run, b, &functions);
    settle_pages(run, b, &pages);
    tl_bucket_span(b, run->n, UINT_MAX, run->depth_min, run->depth_max);
    for (size_t i = 0; i < 4; i++)
        b->privilege[i] += run->privilege[i];
}

void tl_part_run_settle(struct tl_part_run *run, struct tl_bucket *b, bool ends)
{
    if (run->n > 0)
        settle_insns(run, b, ends);
    b->branches += run->taken;
    b->events += run->events;
    b->event_mask |= run->event_mask;
    b->flags |= run->flags;
    if (ends)
        empty(run);
}

int tl_part_run_tell(const struct tl_part_run *run, struct tl_tallying *tallying)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < run->places.n && r >= 0; i++) {
        const uint32_t function = (uint32_t)run->functions.names[run->places.names[i] >> 16];
        if (run->before[i] > 0)
            r = tl_tallying_function(tallying, function, (uint32_t)run->before[i],
                                     run->before[i] >> 32);
    }
    return r;
}
