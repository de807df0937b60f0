/* SPDX-License-Identifier: MIT */
/*
 * In two passes. The first one goes over all blocks, and finds those at which anything changes but
 * the number of instructions: the function, the page, or the frame. Their predecessors know it.
 * About every fourth does, and which ones nobody can predict: so each is written down, and the next
 * one over it unless it counts. The second pass follows the calls and counts what lies between.
 */
#include "store/count.h"

#define EVENTS 1024 /* at most in one go: as many as a bucket has instructions */

/* Each by itself in its array: the next one is written at every step. */
struct events {
    size_t n;
    uintptr_t step[EVENTS + 1]; /* where it changes */
    uintptr_t from[EVENTS + 1]; /* the step in front of it; 0: none is known */
    uint32_t at[EVENTS + 1];    /* instructions in front of it; behind the last: all there are */
};

/* The first pass. */
struct scan {
    struct events *events;
    uint64_t room; /* instructions that may be counted */
    uint64_t n;    /* … that were */
    uint64_t taken;
    uintptr_t from; /* the last step; 0: none yet */
    uint8_t isa;
};

/* Is `step` known to be like the one in front of it, which need not be of the same path? */
static inline unsigned is_alike(uintptr_t from, uintptr_t step)
{
    const struct tl_block *const a = tl_path_block(from), *const b = tl_path_block(step);
    return from && a->alike >> (1 + (from & 1)) & 1 && a->function == b->function &&
           (a->pc ^ b->pc) >> 12 == 0;
}

/*
 * Go over the steps [i, n), of one path; returns the first that is not counted. `fits`: there is
 * room for all.
 */
static inline __attribute__((always_inline)) size_t
scan_steps(struct scan *scan, const uintptr_t *path, size_t i, size_t n, bool fits)
{
    const uint64_t room = scan->room;
    struct events *const events = scan->events;
    size_t k = events->n;
    uint64_t at = scan->n, taken = scan->taken;
    uintptr_t from = scan->from;
    unsigned alike = is_alike(from, path[i]); /* bit 0: it is like the one before */
    for (; i < n; i++) {
        const uintptr_t step = path[i];
        const struct tl_block *const block = tl_path_block(step);
        const unsigned own = block->alike;
        if (!fits && block->n > room - at)
            break;
        events->step[k] = step;
        events->from[k] = from;
        events->at[k] = (uint32_t)at;
        k += ~(alike & own) & 1;
        alike = own >> (1 + (step & 1));
        taken += step & 1;
        at += block->n;
        from = step;
    }
    events->n = k;
    scan->n = at;
    scan->taken = taken;
    scan->from = from;
    return i;
}

static size_t scan_path(struct scan *s, const uintptr_t *path, size_t i, size_t n, uint64_t insns)
{
    const size_t limit = EVENTS - s->events->n;
    if (tl_path_block(path[i])->isa != s->isa)
        return i;
    if (insns <= s->room - s->n && n - i <= limit)
        return scan_steps(s, path, i, n, true);
    return scan_steps(s, path, i, n - i <= limit ? n : i + limit, false);
}

/* As many whole blocks as can be. */
static void scan_items(struct scan *s, const struct tl_item *items, size_t n, struct tl_count *c)
{
    size_t i = c->steps, k = 0;
    for (; k < n; k++) {
        const struct tl_item *const item = &items[k];
        const uintptr_t one = (uintptr_t)item->block | (item->flags & TL_ITEM_TAKEN);
        const bool path = item->kind == TL_ITEM_PATH;
        if (!path && (item->kind != TL_ITEM_BLOCK || item->n != item->block->n || item->n == 0))
            break;
        const uint64_t before = s->n;
        const size_t steps = path ? item->n : 1;
        i = path ? scan_path(s, item->path, i, steps, item->value)
                 : scan_path(s, &one, i, 1, item->n);
        c->within = s->n - before;
        if (s->n > before)
            c->offset = item->offset;
        if (i < steps)
            break;
        i = 0;
        c->within = 0;
    }
    c->items = k;
    c->steps = i;
    c->n = s->n;
}

/* An event that is not a call, its return, or another page, or whose slots are another's. */
__attribute__((noinline)) static int look_closer(struct tl_part *part, struct tl_callstack *calls,
                                                 uintptr_t from, const struct tl_block *block,
                                                 uint64_t insn)
{
    if (from)
        tl_callstack_leave(calls, tl_path_block(from), tl_path_taken(from), insn);
    int r = tl_callstack_arrive(calls, block, insn);
    if (r >= 0)
        r = tl_part_slots(part, block->function, block->pc >> 12);
    if (!(block->alike & TL_ALIKE_WITHIN))
        tl_page_set_add(&part->pages, block->pc, block->size);
    return r;
}

/* The second pass: count all that the scan found. */
static int count_spans(struct tl_part *part, struct tl_callstack *calls, uint64_t position,
                       const struct events *events)
{
    struct tl_part_run *const run = &part->run;
    uint8_t how = calls->how;
    uint64_t next_pc = calls->next_pc;
    uint64_t used = run->used;
    uint32_t low = run->n > 0 ? run->depth_min : UINT32_MAX;
    uint32_t high = run->n > 0 ? run->depth_max : 0;
    for (size_t k = 0; k < events->n; k++) {
        const struct tl_block *const block = tl_path_block(events->step[k]);
        const uintptr_t step = events->from[k];
        const uint64_t insn = position + events->at[k];
        const uint64_t page = block->pc >> 12;
        const size_t f = block->function % TL_PART_SLOTS, p = page % TL_PART_PAGE_SLOTS;
        bool known = block->alike & TL_ALIKE_WITHIN;
        if (step) {
            const struct tl_block *const from = tl_path_block(step);
            how = from->leave & (uint8_t) - (unsigned)tl_path_taken(step);
            next_pc = from->pc + from->size;
            known &= from->alike & TL_ALIKE_WITHIN;
        }
        if (!known || run->functions[f].function != block->function || run->pages[p].page != page ||
            !tl_callstack_follow(calls, how, next_pc, block, insn)) {
            const int r = look_closer(part, calls, step, block, insn);
            if (r < 0)
                return r;
        }
        const uint32_t n = events->at[k + 1] - events->at[k];
        used |= UINT64_C(1) << f;
        run->functions[f].n += n;
        run->pages[p].n += n;
        const uint32_t depth = tl_callstack_depth(calls);
        low = depth < low ? depth : low;
        high = depth > high ? depth : high;
    }
    run->used = used;
    run->depth_min = low;
    run->depth_max = high;
    return TL_OK;
}

int tl_count_blocks(struct tl_part *part, struct tl_callstack *calls, const struct tl_item *items,
                    size_t n, struct tl_count *count)
{
    struct events events;
    struct scan scan = {.events = &events, .room = count->room, .isa = count->isa};
    struct tl_part_run *const run = &part->run;
    events.n = 0;
    scan_items(&scan, items, n, count);
    if (scan.n == 0)
        return TL_OK;
    events.at[events.n] = (uint32_t)scan.n;
    int r = run->n > 0 && run->privilege != count->privilege ? tl_part_settle(part) : TL_OK;
    if (r < 0)
        return r;
    r = count_spans(part, calls, count->position, &events);
    tl_callstack_leave(calls, tl_path_block(scan.from), tl_path_taken(scan.from),
                       count->position + scan.n);
    run->n += scan.n;
    run->taken += scan.taken;
    run->privilege = count->privilege;
    return r;
}
