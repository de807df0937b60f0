/* SPDX-License-Identifier: MIT */
/*
 * Up to 64 steps at a time, in two passes. The first one goes over all of them, and only finds out
 * how many instructions are in front of each. The second one goes over those at which anything
 * changes but that number: the function, the page, or the frame. Their predecessors say so in a
 * flag of the step, so these are the bits of a word: about every fourth step is one, and which ones
 * no processor can foresee. What lies between two of them is one addition.
 */
#include "store/count.h"

#include <assert.h>
#include <limits.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define STEPS 64

struct batch {
    const uintptr_t *steps;
    uint32_t n;
    /* A bit for each step: the one in front does not lead to it; and nobody knows how the flow came
     * there. */
    uint64_t apart, lost;
    uint64_t alike, taken, always; /* … its flags */
    uint32_t at[STEPS + 1];        /* instructions of the batch in front of it */
    bool ends_apart, ends_lost;    /* the same of what comes next */
    /* The item that the first step is of, and how many of its steps are in front of that. */
    const struct tl_item *item;
    size_t step;
};

/* Where the counting stands. */
struct counting {
    struct tl_part *part;
    struct tl_callstack *calls;
    uint64_t position; /* of instruction 0 */
    unsigned privilege;
    uint64_t n;     /* instructions that were counted */
    uintptr_t from; /* the last step; 0: none yet */
    /* The stretch that has not been added yet: where it is, and the number of its first
     * instruction, less calls << 32. */
    uint32_t place;
    uint64_t begin;
};

static inline uint64_t low_bits(uint32_t n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* In place: where a processor need not have an instruction for it, compilers call a function. */
static unsigned count_bits(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    return (unsigned)(((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* ---- the first pass ------------------------------------------------------------------------- */

/* The chunk, or the run, has not had this block yet. False: there is no number left for its
 * place. */
static __attribute__((noinline)) bool meet(struct tl_part *part, uintptr_t step)
{
    struct tl_block *const block = (struct tl_block *)(step & ~(uintptr_t)TL_STEP_FLAGS);
    struct tl_part_run *const run = &part->run;
    const uint64_t page = block->pc >> 12;
    /* Nearly always it is still the number that it had in the last chunk. */
    if (!tl_part_run_is(run, block->name, block->function, page)) {
        const int place = tl_part_run_place(run, block->function, page);
        if (place < 0)
            return false;
        block->name = (uint16_t)place;
    }
    tl_code_set_add(&part->code, block->pc, block->size);
    block->met = part->stamp;
    return true;
}

/* The same of several, as far as there are numbers. */
static __attribute__((noinline)) bool meet_all(struct tl_part *part, const uintptr_t *steps,
                                               uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (tl_path_block(steps[i])->met != part->stamp && !meet(part, steps[i]))
            return false;
    return true;
}

/* Flags of steps, a bit each. */
struct flags {
    uint64_t alike, taken, always;
};

static inline void gather_one(struct flags *flags, const uintptr_t *steps, uint32_t i)
{
    flags->taken |= (uint64_t)(steps[i] & TL_STEP_TAKEN) << i;
    flags->alike |= (uint64_t)(steps[i] / TL_STEP_ALIKE & 1) << i;
    flags->always |= (uint64_t)(steps[i] / TL_STEP_ALWAYS & 1) << i;
}

/* Of steps [i, i + 16). */
static inline void gather_16(struct flags *flags, const uintptr_t *steps, uint32_t i)
{
#ifdef __SSE2__
    static_assert(TL_STEP_TAKEN == 1 && TL_STEP_ALIKE == 2 && TL_STEP_ALWAYS == 4, "shifts");
    static_assert(sizeof(uintptr_t) == 8, "two of them in a vector");
    const __m128i mask = _mm_set1_epi32(TL_STEP_FLAGS);
    const uintptr_t *const p = steps + i;
    __m128i four[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m128 two = _mm_loadu_ps((const float *)&p[4 * k]);
        const __m128 more = _mm_loadu_ps((const float *)&p[4 * k + 2]);
        four[k] = _mm_and_si128(
            mask, _mm_castps_si128(_mm_shuffle_ps(two, more, _MM_SHUFFLE(2, 0, 2, 0))));
    }
    const __m128i all =
        _mm_packs_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3]));
    flags->taken |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_slli_epi16(all, 7)) << i;
    flags->alike |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_slli_epi16(all, 6)) << i;
    flags->always |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_slli_epi16(all, 5)) << i;
#else
    for (uint32_t k = i; k < i + 16; k++)
        gather_one(flags, steps, k);
#endif
}

static inline void gather_flags(struct batch *b)
{
    const uintptr_t *const steps = b->steps;
    struct flags flags = {0};
    uint32_t i = 0;
    for (; i + 16 <= b->n; i += 16)
        gather_16(&flags, steps, i);
    if (i > 0 && i < b->n) /* some of them once more */
        gather_16(&flags, steps, b->n - 16);
    else
        for (; i < b->n; i++)
            gather_one(&flags, steps, i);
    b->taken = flags.taken;
    b->alike = flags.alike;
    b->always = flags.always;
}

/* Cuts the batch in front of the first step that has no place. */
static __attribute__((noinline)) void scan(struct tl_part *part, struct batch *b)
{
    const uint32_t stamp = part->stamp;
    const uintptr_t *p = b->steps, *const end = p + b->n;
    uint32_t *ats = b->at;
    uint32_t at = 0;
    for (; end - p >= 4; p += 4, ats += 4) {
        const struct tl_block *const first = tl_path_block(p[0]);
        const struct tl_block *const second = tl_path_block(p[1]);
        const struct tl_block *const third = tl_path_block(p[2]);
        const struct tl_block *const fourth = tl_path_block(p[3]);
        if (__builtin_expect(first->met != stamp || second->met != stamp || third->met != stamp ||
                                 fourth->met != stamp,
                             0) &&
            !meet_all(part, p, 4))
            break;
        ats[0] = at;
        ats[1] = at += first->n;
        ats[2] = at += second->n;
        ats[3] = at += third->n;
        at += fourth->n;
    }
    for (; p < end; p++) {
        const struct tl_block *const block = tl_path_block(*p);
        if (block->met != stamp && !meet(part, *p))
            break;
        *ats++ = at;
        at += block->n;
    }
    *ats = at;
    b->n = (uint32_t)(p - b->steps);
    gather_flags(b);
}

/* ---- the second pass ------------------------------------------------------------------------ */

/* Add the stretch up to instruction `end`; it goes on there. */
static inline void add_stretch(struct counting *c, uint64_t end)
{
    tl_part_run_add(&c->part->run, c->place, end - c->begin);
    c->begin = end;
}

/* The depth that there is now. */
static void note_depth(const struct counting *c)
{
    const uint32_t depth = tl_callstack_depth(c->calls);
    tl_part_run_depth(&c->part->run, depth, depth);
}

/* The flow arrives at step `i`, wherever from. */
static __attribute__((noinline)) int look_closer(struct counting *c, const struct batch *b,
                                                 uint32_t i)
{
    const struct tl_block *const block = tl_path_block(b->steps[i]);
    const uintptr_t from = i > 0 ? b->steps[i - 1] : c->from;
    const uint64_t insn = c->n + b->at[i];
    if (from) {
        add_stretch(c, insn);
        tl_tallying_left(&c->part->tallying, tl_path_block(from));
        tl_callstack_leave(c->calls, tl_path_block(from), tl_path_taken(from), c->position + insn);
        if (b->lost >> i & 1)
            c->calls->how = TL_LEAVE_LOST;
    }
    c->place = block->name;
    c->begin = insn - ((uint64_t)block->entry << 32);
    const int r = tl_callstack_arrive(c->calls, block, c->position + insn);
    note_depth(c);
    return r;
}

/* What follow() keeps at hand. */
struct following {
    struct tl_part *part;
    struct tl_callstack_top top;
    uint64_t position; /* of the batch's first instruction */
    uint32_t place;    /* as of counting, but that `begin` is counted from the batch's first */
    uint64_t begin;
    uint64_t leaves; /* calls and returns that have not been tallied */
};

/* The flow left `from`, and is at `block` now. */
static inline void go_on(struct following *f, const struct tl_block *from,
                         const struct tl_block *block, uint64_t at)
{
    f->part->tallying.left[from->left]++; /* as tl_tallying_left() */
    tl_part_run_add(&f->part->run, f->place, at - f->begin);
    f->place = block->name;
    f->begin = at - ((uint64_t)block->entry << 32);
}

/* A call, its return, or a jump, from `step` to `block`. False: it is something else. */
static inline __attribute__((always_inline)) bool
follow_step(struct following *f, uintptr_t step, const struct tl_block *block, uint64_t at)
{
    const struct tl_block *const from = tl_path_block(step);
    if (!tl_callstack_follow(&f->top, from, tl_path_taken(step), block, f->position, at))
        return false;
    go_on(f, from, block, at);
    return true;
}

/* Behind `step` the flow was lost; it goes on at `block` in the same function. False: it is
 * something else. */
static inline bool follow_lost(struct following *f, uintptr_t step, const struct tl_block *block,
                               uint64_t at)
{
    const struct tl_block *const from = tl_path_block(step);
    if (!tl_callstack_known(from) ||
        !tl_callstack_stays(f->top.first, f->top.end, block->pc, block->function))
        return false;
    go_on(f, from, block, at);
    return true;
}

/*
 * A call at step `i` whose function calls nobody: at step `j` it has returned, and in between
 * nothing changed. Most calls are such, and that it is one can be foreseen better than what comes
 * next. False: it is something else.
 */
static inline __attribute__((always_inline)) bool
follow_leaf(struct following *f, const uintptr_t *steps, const uint32_t *ats, size_t i, size_t j)
{
    const uintptr_t begin = steps[i - 1], end = steps[j - 1];
    const struct tl_block *const call = tl_path_block(begin), *const last = tl_path_block(end),
                                 *const block = tl_path_block(steps[j]);
    if (last->left != 1 + TL_LEAVE_RETURN || !(begin & end & TL_STEP_TAKEN) ||
        block->pc != call->pc + call->size || !tl_callstack_leaf(&f->top, block))
        return false;
    const struct tl_block *const callee = tl_path_block(steps[i]);
    const uint64_t from = ats[i], to = ats[j];
    struct tl_part_run *const run = &f->part->run;
    f->leaves++;
    tl_part_run_add(run, f->place, from - f->begin);
    tl_part_run_add(run, callee->name, to - from + ((uint64_t)callee->entry << 32));
    f->place = block->name;
    f->begin = to - ((uint64_t)block->entry << 32);
    return true;
}

/* Calls, their returns, and jumps at the steps `events`, a bit each. Returns those from the first
 * on that is something else. */
static inline __attribute__((always_inline)) uint64_t
follow_known(struct following *f, const struct batch *b, uintptr_t before, uint64_t events)
{
    const uintptr_t *const steps = b->steps;
    /* In front of the batch's first step is another path's. */
    if (events & 1 && !follow_step(f, before, tl_path_block(steps[0]), 0))
        return events;
    for (events &= ~UINT64_C(1); events != 0; events &= events - 1) {
        const size_t i = (size_t)__builtin_ctzll(events);
        const uint64_t rest = events & (events - 1);
        const uintptr_t step = steps[i - 1];
        if (tl_path_block(step)->left == 1 + TL_LEAVE_CALL && rest != 0 &&
            follow_leaf(f, steps, b->at, i, (size_t)__builtin_ctzll(rest)))
            events = rest;
        else if (!follow_step(f, step, tl_path_block(steps[i]), b->at[i]))
            break;
    }
    return events;
}

/* The same, and where the flow was `lost`. The bucket has the depth that there is. */
static inline __attribute__((always_inline)) uint64_t
follow_all(struct counting *c, const struct batch *b, uint64_t events, uint64_t lost)
{
    const uintptr_t *const steps = b->steps;
    struct following f = {.part = c->part,
                          .top = tl_callstack_take(c->calls),
                          .position = c->position + c->n,
                          .place = c->place,
                          .begin = c->begin - c->n};
    while (lost != 0) {
        const uint64_t known = events & ((lost & (0 - lost)) - 1); /* in front of the first */
        const uint64_t other = follow_known(&f, b, c->from, known);
        const size_t i = (size_t)__builtin_ctzll(lost);
        events ^= known ^ other;
        if (other != 0 ||
            !follow_lost(&f, i > 0 ? steps[i - 1] : c->from, tl_path_block(steps[i]), b->at[i]))
            break;
        events &= events - 1;
        lost &= lost - 1;
    }
    if (lost == 0)
        events = follow_known(&f, b, c->from, events);
    c->part->tallying.left[1 + TL_LEAVE_CALL] += f.leaves;
    c->part->tallying.left[1 + TL_LEAVE_RETURN] += f.leaves;
    c->place = f.place;
    c->begin = f.begin + c->n;
    tl_callstack_give(c->calls, &f.top);
    tl_part_run_depth(&c->part->run, (uint32_t)(f.top.low - f.top.first),
                      (uint32_t)(f.top.high - f.top.first));
    return events;
}

static __attribute__((noinline)) uint64_t follow_gaps(struct counting *c, const struct batch *b,
                                                      uint64_t events)
{
    return follow_all(c, b, events, b->lost & events);
}

/* In most traces there are none: for these it is made by itself. */
static __attribute__((noinline)) uint64_t follow(struct counting *c, const struct batch *b,
                                                 uint64_t events)
{
    return b->lost & events ? follow_gaps(c, b, events) : follow_all(c, b, events, 0);
}

/* Count up to the last of the steps at which anything changes: `events`, a bit each. `fresh`: with
 * the first one the bucket begins. */
static inline int count_events(struct counting *c, const struct batch *b, uint64_t events,
                               bool fresh)
{
    fresh |= c->from == 0;
    while (events != 0) {
        if (!fresh && c->calls->deeper == 0 && c->calls->depth > 0)
            events = follow(c, b, events);
        if (events == 0)
            break;
        const int r = look_closer(c, b, (uint32_t)__builtin_ctzll(events));
        if (r < 0)
            return r;
        events &= events - 1;
        fresh = false;
    }
    return TL_OK;
}

/* The run's bucket has instructions up to `end`, more than before. */
static void count_span(struct counting *c, uint64_t end)
{
    struct tl_part_run *const run = &c->part->run;
    add_stretch(c, end);
    tl_part_run_more(run, c->position + end - run->position, c->privilege);
}

/* The first step that begins at instruction `at` of the batch, or behind it. */
static uint32_t step_at(const struct batch *b, uint64_t at)
{
    uint32_t i = 0;
    for (uint32_t half = STEPS; half > 0; half /= 2)
        i += i + half <= b->n && b->at[i + half - 1] < at ? half : 0;
    return i;
}

/* The raw byte offset that step `i` was told at. */
static uint64_t offset_of(const struct batch *b, size_t i)
{
    const struct tl_item *item = b->item;
    for (i += b->step;; item++) {
        const size_t n = item->kind == TL_ITEM_PATH ? item->n : item->kind == TL_ITEM_BLOCK ? 1 : 0;
        if (i < n)
            return item->offset;
        i -= n;
    }
}

static int count_batch(struct counting *c, const struct batch *b)
{
    struct tl_part *const part = c->part;
    struct tl_part_run *const run = &part->run;
    const uint64_t first = c->n;
    const uint64_t alike = b->alike << 1 | (c->from & TL_STEP_ALIKE) / TL_STEP_ALIKE;
    /* Steps at which anything changes. */
    const uint64_t events = (~alike | b->apart) & low_bits(b->n);
    uint32_t i = 0, ended = 0; /* the next step that begins, and that ends */
    do {
        int r = tl_part_run_room(run) == 0 ? tl_part_settle(part) : TL_OK;
        if (r < 0)
            return r;
        const uint64_t room = tl_part_run_room(run), done = run->position - c->position - first,
                       all = b->at[b->n] - done;
        const uint64_t end = done + (all < room ? all : room);
        const uint32_t next = all <= room ? b->n : step_at(b, end);
        if (next > i && tl_part_offset_due(part, c->position + first + b->at[i]))
            r = tl_part_offset_at(part, c->position + first + b->at[i], offset_of(b, i));
        if (r < 0)
            return r;
        bool fresh = run->n == 0;
        if (fresh && (next == i || b->at[i] > done || !(events >> i & 1))) {
            note_depth(c);
            fresh = false;
        }
        r = count_events(c, b, events & low_bits(next) & ~low_bits(i), fresh);
        if (r < 0)
            return r;
        count_span(c, first + end);
        i = next;
        const uint32_t whole = next > 0 && b->at[next] > end ? next - 1 : next;
        run->taken += count_bits(b->taken & low_bits(whole) & ~low_bits(ended));
        ended = whole;
    } while (ended < b->n);
    part->tallying.always += count_bits(b->always);
    part->tallying.steps += b->n;
    c->n = first + b->at[b->n];
    c->from = b->steps[b->n - 1];
    return TL_OK;
}

/* Count them all. */
static int count_all(struct counting *c, struct batch *b)
{
    uint32_t left = b->n;
    for (;;) {
        b->n = left;
        scan(c->part, b);
        const int r = b->n > 0 ? count_batch(c, b) : tl_part_renew(c->part);
        if (r < 0)
            return r;
        left -= b->n;
        if (left == 0)
            return TL_OK;
        /* After that the stretch's number is another one's: the next step begins a new one. */
        if (b->n == 0)
            c->from &= ~(uintptr_t)TL_STEP_ALIKE;
        b->steps += b->n;
        b->step += b->n;
        b->apart = b->n < STEPS ? b->apart >> b->n : 0;
        b->lost = b->n < STEPS ? b->lost >> b->n : 0;
    }
}

/* ---- items ---------------------------------------------------------------------------------- */

/* The flow has been followed up to here. */
static void end_flow(struct counting *c)
{
    const struct tl_block *const from = tl_path_block(c->from);
    if (c->from == 0)
        return;
    tl_tallying_left(&c->part->tallying, from);
    tl_callstack_leave(c->calls, from, tl_path_taken(c->from), c->position + c->n);
    c->from = 0;
}

/* A branch, or a gap: it ends the flow, or begins it. */
static int follow_item(struct counting *c, const struct tl_item *item, struct tl_count *count)
{
    end_flow(c);
    c->calls->insns = c->position + c->n;
    const int r = tl_callstack_push(c->calls, item, 1);
    count->now->depth = tl_callstack_depth(c->calls);
    return r;
}

/* Keep the holes that items[0..n) begin with, in front of instruction `insn`. Returns how many
 * items they are, or < 0. */
static inline int log_holes(struct counting *c, const struct tl_item *items, size_t n,
                            uint64_t insn, struct tl_count *count)
{
    n = n < INT_MAX ? n : INT_MAX;
    const int r =
        tl_part_keep_holes(c->part, c->position + insn, items, &n, count->log_room, &count->kept);
    return r < 0 ? r : (int)n;
}

/* The same here. Millions of them may stand one behind another: those behind the first change no
 * call stack. */
static int keep_holes(struct counting *c, const struct tl_item *items, size_t n,
                      struct tl_count *count)
{
    const int kept = log_holes(c, items, n, c->n, count);
    int r = kept;
    for (int i = 0; i < kept && i < 2 && r >= 0; i++)
        r = follow_item(c, &items[i], count);
    if (kept > 0)
        count->now->offset = items[kept - 1].offset;
    return r < 0 ? r : kept;
}

/* The flow goes on behind these as if they were not there. */
#define PASSED (1u << TL_ITEM_TIME | 1u << TL_ITEM_CYCLES | 1u << TL_ITEM_EVENT)
#define HOLES  (1u << TL_ITEM_BRANCH | 1u << TL_ITEM_GAP)

/* What stands between blocks, in front of instruction `insn`. */
static inline int keep(struct counting *c, const struct tl_item *item, uint64_t insn,
                       struct tl_count *count)
{
    tl_flow_now_pass(count->now, item);
    return tl_part_keep(c->part, c->position + insn, count->now, item, &count->kept);
}

/* The same here, of any item that is kept. */
static int keep_item(struct counting *c, const struct tl_item *item, struct tl_count *count)
{
    int r = TL_OK;
    if (item->kind == TL_ITEM_MODE || item->kind == TL_ITEM_CONTEXT)
        end_flow(c); /* other code may be at the same addresses */
    else if (!(PASSED >> item->kind & 1))
        r = follow_item(c, item, count);
    if (r < 0)
        return r;
    tl_flow_now_item(count->now, item);
    c->privilege = tl_flow_now_privilege(count->now);
    r = tl_part_keep(c->part, c->position + c->n, count->now, item, &count->kept);
    count->full = tl_part_logged(c->part) >= count->log_room;
    return r;
}

/* ---- steps of many items --------------------------------------------------------------------- */

static inline bool is_whole_block(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BLOCK && item->n == item->block->n && item->n > 0;
}

/* How many of the `n` steps there is room for. */
static size_t steps_for(const uintptr_t *steps, size_t n, uint64_t room)
{
    size_t i = 0;
    for (; i < n && tl_path_block(steps[i])->n <= room; i++)
        room -= tl_path_block(steps[i])->n;
    return i;
}

/* Where the counting stands in the items. */
struct place {
    size_t item, step;
    uint64_t begin; /* instructions in front of that item */
};

/* So few items cannot fill the log: one has less than half of this, and so have notes beside it. */
#define SPARE 256u
static_assert(2 * TL_ITEMLOG_ENTRY < SPARE, "room for both");

/* May a BRANCH behind this block be passed? Not if its address tells how it was left. */
static inline bool may_branch(const struct tl_block *from, bool taken)
{
    return !taken || tl_callstack_known(from);
}

/* Can the counting go on with step `step` of this item? */
static inline bool can_begin(const struct counting *c, const struct tl_item *item, size_t step,
                             const struct tl_count *count)
{
    if (item->kind == TL_ITEM_PATH ? step >= item->n : !is_whole_block(item))
        return false;
    const struct tl_block *const block =
        item->kind == TL_ITEM_PATH ? tl_path_block(item->path[step]) : item->block;
    return block->isa == count->isa && block->n <= count->room - c->n;
}

/*
 * Keep the first of items[0..n), and holes that it may begin, in front of instruction `insn`.
 * Returns how many items they are, or < 0.
 */
static __attribute__((noinline)) int keep_some(struct counting *c, const struct tl_item *items,
                                               size_t n, uint64_t insn, struct tl_count *count)
{
    int r = items->kind == TL_ITEM_BRANCH ? log_holes(c, items, n, insn, count) : 0;
    if (r != 0)
        return r;
    r = keep(c, items, insn, count);
    return r < 0 ? r : 1;
}

/*
 * The steps from `at` on that are gone over together, at least one, up to where that is then: those
 * of paths where they lie, as long as they lie one behind another; of blocks, in `own`. What stands
 * between them is kept: it lies in front of instruction `bucket`.
 */
static __attribute__((noinline)) int gather(struct counting *c, const struct tl_item *items,
                                            size_t n, struct tl_count *count, uint64_t bucket,
                                            struct place *at, uintptr_t *own, struct batch *b)
{
    struct tl_part *const part = c->part;
    const struct tl_item *item = items + at->item, *const end = items + n;
    const uintptr_t *const steps = item->kind == TL_ITEM_PATH ? item->path + at->step : own,
                           *next = steps, *const limit = steps + STEPS;
    const struct tl_block *from = tl_path_block(c->from);
    const uint32_t keeps = count->keeps & (PASSED | HOLES);
    uint64_t insns = c->n, begin = at->begin, ways = 0, losses = 0, apart = 0, lost = 0, cycles = 0;
    size_t step = at->step;
    bool turned = tl_path_taken(c->from);
    while (item < end) {
        const bool path = item->kind == TL_ITEM_PATH;
        if (!path && keeps >> item->kind & 1) {
            int kept = 1;
            if (insns >= bucket)
                break;
            if (item->kind == TL_ITEM_CYCLES) {
                kept = tl_itemlog_add(&part->log, c->position - part->open.first + insns, item);
                kept = kept < 0 ? kept : 1;
                cycles++;
            } else {
                if (lost == 0 && item->kind == TL_ITEM_BRANCH && !may_branch(from, turned))
                    break;
                apart |= HOLES >> item->kind & 1;
                kept = keep_some(c, item, (size_t)(end - item), insns, count);
                lost |= kept > 1 || item->kind == TL_ITEM_GAP;
            }
            if (kept < 0)
                return kept;
            item += kept;
            continue;
        }
        if (next == limit || (path ? item->path + step != next : steps != own))
            break;
        uint64_t more = item->value - (insns - begin);
        size_t all = item->n - step;
        if (!path) {
            if (!is_whole_block(item))
                break;
            own[next - own] = tl_path_step(item->block, (item->flags & TL_ITEM_TAKEN) != 0);
            more = item->n;
            all = 1;
        }
        const struct tl_block *const block = tl_path_block(*next);
        if (block->isa != count->isa)
            break;
        size_t taken = all < (size_t)(limit - next) ? all : (size_t)(limit - next);
        if (more > count->room - insns)
            taken = steps_for(next, taken, count->room - insns);
        if (taken == 0)
            break;
        if (from)
            apart |= block->pc != (turned ? from->target : from->pc + from->size);
        ways |= apart << (next - steps);
        losses |= lost << (next - steps);
        apart = lost = 0;
        next += taken;
        if (taken < all) {
            step += taken;
            break;
        }
        insns += more;
        begin = insns;
        step = 0;
        from = tl_path_block(next[-1]);
        turned = tl_path_taken(next[-1]);
        item++;
    }
    part->tallying.tally.kinds[TL_ITEM_CYCLES] += cycles;
    if (cycles > 0)
        count->kept.kinds |= 1u << TL_ITEM_CYCLES;
    b->steps = steps;
    b->n = (uint32_t)(next - steps);
    b->apart = ways;
    b->lost = losses;
    b->ends_apart = apart;
    b->ends_lost = lost;
    b->item = items + at->item;
    b->step = at->step;
    *at = (struct place){(size_t)(item - items), step, begin};
    return TL_OK;
}

/* Count a batch, and keep what is passed in it. False: there is none. */
static int count_some(struct counting *c, const struct tl_item *items, size_t n,
                      struct tl_count *count, struct place *at, uintptr_t *own)
{
    struct tl_part *const part = c->part;
    struct batch b;
    const size_t logged = tl_part_logged(part), room = count->log_room,
                 most = logged < room ? (room - logged) / SPARE : 0;
    if (!can_begin(c, &items[at->item], at->step, count))
        return 0;
    int r = tl_part_run_room(&part->run) == 0 ? tl_part_settle(part) : TL_OK;
    if (r >= 0 && tl_part_offset_due(part, c->position + c->n))
        r = tl_part_offset_at(part, c->position + c->n, items[at->item].offset);
    if (r < 0)
        return r;
    const size_t left = n - at->item, some = most > 0 ? most : 1;
    r = gather(c, items, at->item + (left < some ? left : some), count,
               c->n + tl_part_run_room(&part->run), at, own, &b);
    if (r >= 0)
        r = count_all(c, &b);
    if (r < 0)
        return r;
    if (b.ends_apart)
        c->from &= ~(uintptr_t)TL_STEP_ALIKE;
    if (b.ends_lost) {
        end_flow(c);
        c->calls->how = TL_LEAVE_LOST;
    }
    count->now->offset = items[at->step > 0 ? at->item : at->item - 1].offset;
    return 1;
}

uint32_t tl_count_keeps(enum tl_protocol protocol)
{
    uint32_t keeps = 0;
    for (unsigned kind = 0; kind < TL_ITEM_KINDS; kind++)
        if (kind != TL_ITEM_BLOCK && kind != TL_ITEM_PATH && !tl_item_is_point(protocol, kind))
            keeps |= 1u << kind;
    return keeps;
}

int tl_count_items(struct tl_part *part, struct tl_callstack *calls, const struct tl_item *items,
                   size_t n, struct tl_count *count)
{
    struct counting c = {.part = part,
                         .calls = calls,
                         .position = count->position,
                         .privilege = tl_flow_now_privilege(count->now)};
    struct place at = {.step = count->steps};
    uintptr_t own[STEPS];
    while (at.item < n && !count->full) {
        const struct tl_item *const item = &items[at.item];
        int r = 0;
        if (count->keeps >> item->kind & 1) {
            if (item->kind == TL_ITEM_BRANCH)
                r = keep_holes(&c, item, n - at.item, count);
            if (r == 0)
                r = keep_item(&c, item, count);
            if (r < 0)
                return r;
            at.item += r > 0 ? (size_t)r : 1;
            continue;
        }
        r = count_some(&c, items, n, count, &at, own);
        if (r < 0)
            return r;
        if (r == 0)
            break;
    }
    end_flow(&c);
    count->items = at.item;
    count->steps = at.step;
    count->n = c.n;
    count->within = c.n - at.begin;
    return TL_OK;
}
