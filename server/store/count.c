/* SPDX-License-Identifier: MIT */
/*
 * Steps are counted in batches that end where an offset may have to be noted, and so with each
 * bucket of the timeline, in two passes. The first one goes over all of them, and only finds out
 * how many instructions are in front of each. The second one goes over those at which anything
 * changes but that number: the function, the page, or the frame. Their predecessors say so in a
 * flag of the step, so these are the bits of words: about every fourth step is one, and which ones
 * no processor can foresee. What lies between two of them is one addition.
 */
#include "store/count.h"

#include <assert.h>
#include <limits.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define STEPS 256 /* of a batch, at most */
#define WORDS (STEPS / 64)

struct batch {
    const uintptr_t *steps;
    uint32_t n;
    /* A bit for each step: the one in front does not lead to it; and nobody knows how the flow came
     * there. */
    uint64_t apart[WORDS], lost[WORDS];
    bool ends_apart, ends_lost; /* the same of what comes next */
    bool any_lost;
    /* What the first pass finds out. */
    uint64_t events[WORDS]; /* a bit for each step at which anything changes */
    uint32_t taken, always; /* steps with these flags */
    uint32_t at[STEPS + 1]; /* instructions of the batch in front of each */
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

static inline uint32_t lowest(uint64_t bits)
{
    return (uint32_t)__builtin_ctzll(bits);
}

/* ---- the first pass ------------------------------------------------------------------------- */

/* The chunk, or the run, has not had this block yet. There is a number left for its place. */
static __attribute__((noinline)) void meet(struct tl_part *part, uintptr_t step)
{
    struct tl_block *const block = (struct tl_block *)(step & ~(uintptr_t)TL_STEP_FLAGS);
    struct tl_part_run *const run = &part->run;
    const uint64_t page = block->pc >> 12;
    /* Nearly always it is still the number that it had in the last chunk. */
    if (!tl_part_run_is(run, block->name, block->function, page))
        block->name = (uint16_t)tl_part_run_place(run, block->function, page);
    tl_code_set_add(&part->code, block->pc, block->size);
    block->met = part->stamp;
}

/* The same of several. */
static __attribute__((noinline)) void meet_all(struct tl_part *part, const uintptr_t *steps,
                                               uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (tl_path_block(steps[i])->met != part->stamp)
            meet(part, steps[i]);
}

#ifdef __SSE2__
/* Flags of 16 steps, a byte each. */
static inline __m128i flags_of(const uintptr_t *steps)
{
    static_assert(sizeof(uintptr_t) == 8, "two of them in a vector");
    const __m128i mask = _mm_set1_epi32(TL_STEP_FLAGS);
    __m128i four[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const __m128 two = _mm_loadu_ps((const float *)&steps[4 * k]);
        const __m128 more = _mm_loadu_ps((const float *)&steps[4 * k + 2]);
        four[k] = _mm_and_si128(
            mask, _mm_castps_si128(_mm_shuffle_ps(two, more, _MM_SHUFFLE(2, 0, 2, 0))));
    }
    return _mm_packs_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3]));
}

/* The sum of bytes. */
static inline uint32_t sum_of(__m128i bytes)
{
    const __m128i sums = _mm_sad_epu8(bytes, _mm_setzero_si128());
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums)));
}

/* Sums of flags, a byte for every 16th step. */
struct sums {
    __m128i taken, always;
};

/* Add the flags of 16 steps. Returns a bit for each that has TL_STEP_ALIKE. */
static inline uint64_t add_flags(struct sums *sums, __m128i flags)
{
    static_assert(TL_STEP_ALIKE == 2, "the bit that is moved up");
    static_assert((STEPS / 16 + 1) * TL_STEP_ALWAYS < 256, "sums fit");
    sums->taken = _mm_add_epi8(sums->taken, _mm_and_si128(flags, _mm_set1_epi8(TL_STEP_TAKEN)));
    sums->always = _mm_add_epi8(sums->always, _mm_and_si128(flags, _mm_set1_epi8(TL_STEP_ALWAYS)));
    return (unsigned)_mm_movemask_epi8(_mm_slli_epi16(flags, 6));
}

/* Sum up the batch's flags, if there are as many as go into a vector. Returns how many. */
static inline uint32_t gather_vectors(struct batch *b, uint64_t *alike)
{
    static const uint8_t last[32] = {[16] = 255, 255, 255, 255, 255, 255, 255, 255,
                                     255,        255, 255, 255, 255, 255, 255, 255};
    struct sums sums = {_mm_setzero_si128(), _mm_setzero_si128()};
    const uint32_t more = b->n % 16, whole = b->n - more;
    if (whole == 0)
        return 0;
    for (uint32_t i = 0; i < whole; i += 16)
        alike[i / 64] |= add_flags(&sums, flags_of(b->steps + i)) << i % 64;
    if (more > 0) { /* with some that have been added */
        const __m128i flags = _mm_and_si128(flags_of(b->steps + b->n - 16),
                                            _mm_loadu_si128((const __m128i *)(last + more)));
        alike[whole / 64] |= add_flags(&sums, flags) >> (16 - more) << whole % 64;
    }
    b->taken = sum_of(sums.taken);
    b->always = sum_of(sums.always) / TL_STEP_ALWAYS;
    return b->n;
}
#else
static inline uint32_t gather_vectors(struct batch *b, uint64_t *alike)
{
    return 0;
}
#endif

/* Sum up the flags of the batch's steps; `from`: the one in front. */
static inline void gather_flags(struct batch *b, uintptr_t from)
{
    uint64_t alike[WORDS] = {0};
    b->taken = b->always = 0;
    for (uint32_t i = gather_vectors(b, alike); i < b->n; i++) {
        const uintptr_t step = b->steps[i];
        b->taken += step & TL_STEP_TAKEN;
        b->always += step / TL_STEP_ALWAYS & 1;
        alike[i / 64] |= (uint64_t)(step / TL_STEP_ALIKE & 1) << i % 64;
    }
    uint64_t before = from / TL_STEP_ALIKE & 1;
    for (uint32_t w = 0; 64 * w < b->n; w++) {
        b->events[w] = ~(alike[w] << 1 | before) | b->apart[w];
        before = alike[w] >> 63;
    }
    if (b->n % 64 != 0)
        b->events[b->n / 64] &= low_bits(b->n % 64);
}

/*
 * Cuts the batch behind the step in which it ends: it has room for `room` instructions. `from`: the
 * step in front.
 */
static __attribute__((noinline)) void scan(struct tl_part *part, struct batch *b, uint64_t room,
                                           uintptr_t from)
{
    const uint32_t stamp = part->stamp;
    const uintptr_t *p = b->steps, *const end = p + b->n;
    uint32_t *ats = b->at;
    uint32_t at = 0;
    for (; p + 4 <= end && at < room; p += 4, ats += 4) {
        const struct tl_block *const first = tl_path_block(p[0]);
        const struct tl_block *const second = tl_path_block(p[1]);
        const struct tl_block *const third = tl_path_block(p[2]);
        const struct tl_block *const fourth = tl_path_block(p[3]);
        if (__builtin_expect(first->met != stamp || second->met != stamp || third->met != stamp ||
                                 fourth->met != stamp,
                             0))
            meet_all(part, p, 4);
        ats[0] = at;
        ats[1] = at += first->n;
        ats[2] = at += second->n;
        ats[3] = at += third->n;
        at += fourth->n;
    }
    for (; p < end && at < room; p++) {
        const struct tl_block *const block = tl_path_block(*p);
        if (block->met != stamp)
            meet(part, *p);
        *ats++ = at;
        at += block->n;
    }
    *ats = at;
    for (; ats[-1] >= room; ats--) /* of the last four there may be room for one */
        ;
    b->n = (uint32_t)(ats - b->at);
    gather_flags(b, from);
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
        if (b->lost[i / 64] >> i % 64 & 1)
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
    uint32_t place;    /* of the stretch; its counts lack the instructions in front of it */
    uint64_t leaves;   /* calls and returns that have not been tallied */
};

/* A stretch begins at `block`, being instruction `at` of the batch; it will end. */
static inline void begin_stretch(struct following *f, const struct tl_block *block, uint64_t at)
{
    f->place = block->name;
    f->part->run.counts[f->place] -= at - ((uint64_t)block->entry << 32);
}

/* The flow left `from`, and is at `block` now. */
static inline void go_on(struct following *f, const struct tl_block *from,
                         const struct tl_block *block, uint64_t at)
{
    f->part->tallying.left[from->left]++; /* as tl_tallying_left() */
    tl_part_run_add(&f->part->run, f->place, at);
    begin_stretch(f, block, at);
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
    tl_part_run_add(run, f->place, from);
    tl_part_run_add(run, callee->name, to - from + ((uint64_t)callee->entry << 32));
    begin_stretch(f, block, to);
    return true;
}

/* Calls, their returns, and jumps at `events`, a bit for each step from `steps` on, where something
 * is in front of the first; with `gaps`, where the flow was `lost`, too. Returns those from the
 * first on that is something else. */
static inline __attribute__((always_inline)) uint64_t
follow_word(struct following *f, const uintptr_t *steps, const uint32_t *ats, uint64_t events,
            uint64_t lost, bool gaps)
{
    for (; events != 0; events &= events - 1) {
        const size_t i = lowest(events);
        const uint64_t rest = events & (events - 1);
        const uintptr_t step = steps[i - 1];
        const struct tl_block *const block = tl_path_block(steps[i]);
        if (gaps && lost >> i & 1) {
            if (!follow_lost(f, step, block, ats[i]))
                break;
        } else if (tl_path_block(step)->left == 1 + TL_LEAVE_CALL && rest != 0 &&
                   !(gaps && lost >> lowest(rest) & 1) &&
                   follow_leaf(f, steps, ats, i, lowest(rest))) {
            events = rest;
        } else if (!follow_step(f, step, block, ats[i])) {
            break;
        }
    }
    return events;
}

/* In front of the batch's first step is another path's. */
static inline __attribute__((always_inline)) bool
follow_first(struct following *f, const struct batch *b, uintptr_t before, bool gaps)
{
    const struct tl_block *const block = tl_path_block(b->steps[0]);
    return gaps && b->lost[0] & 1 ? follow_lost(f, before, block, 0)
                                  : follow_step(f, before, block, 0);
}

/* Calls, their returns, and jumps from step `from` on, and with `gaps` where the flow was lost.
 * Returns the first step at which it is something else. The bucket has the depth that there is. */
static inline __attribute__((always_inline)) uint32_t
follow_all(struct counting *c, const struct batch *b, uint32_t from, bool gaps)
{
    struct following f = {.part = c->part,
                          .top = tl_callstack_take(c->calls),
                          .position = c->position + c->n,
                          .place = c->place};
    struct tl_part_run *const run = &c->part->run;
    run->counts[c->place] -= c->begin - c->n;
    uint32_t w = from / 64, end = b->n;
    uint64_t events = b->events[w] & ~low_bits(from % 64);
    if (from == 0 && events & 1) {
        if (follow_first(&f, b, c->from, gaps))
            events ^= 1;
        else
            end = 0;
    }
    while (from < end) {
        const uint64_t rest =
            follow_word(&f, b->steps + 64 * w, b->at + 64 * w, events, b->lost[w], gaps);
        if (rest != 0) {
            end = 64 * w + lowest(rest);
            break;
        }
        from = 64 * ++w;
        events = w < WORDS ? b->events[w] : 0;
    }
    c->part->tallying.left[1 + TL_LEAVE_CALL] += f.leaves;
    c->part->tallying.left[1 + TL_LEAVE_RETURN] += f.leaves;
    tl_part_run_add(run, f.place, b->at[end]);
    c->place = f.place;
    c->begin = c->n + b->at[end];
    tl_callstack_give(c->calls, &f.top);
    tl_part_run_depth(run, (uint32_t)(f.top.low - f.top.first),
                      (uint32_t)(f.top.high - f.top.first));
    return end;
}

static __attribute__((noinline)) uint32_t follow_gaps(struct counting *c, const struct batch *b,
                                                      uint32_t from)
{
    return follow_all(c, b, from, true);
}

/* In most traces there are none: for these it is made by itself. */
static __attribute__((noinline)) uint32_t follow(struct counting *c, const struct batch *b,
                                                 uint32_t from)
{
    return follow_all(c, b, from, false);
}

/* The first of the steps from `from` on at which anything changes; the batch's end: none. */
static inline uint32_t next_event(const struct batch *b, uint32_t from)
{
    for (uint32_t w = from / 64; from < b->n; from = 64 * ++w) {
        const uint64_t events = b->events[w] & ~low_bits(from % 64);
        if (events != 0)
            return 64 * w + lowest(events);
    }
    return b->n;
}

/* Count up to the last step at which anything changes. `fresh`: with the first one, which is one of
 * these, the bucket begins. */
static inline int count_events(struct counting *c, const struct batch *b, bool fresh)
{
    fresh |= c->from == 0;
    for (uint32_t at = next_event(b, 0); at < b->n; at = next_event(b, at)) {
        if (!fresh && c->calls->deeper == 0 && c->calls->depth > 0)
            at = b->any_lost ? follow_gaps(c, b, at) : follow(c, b, at);
        if (at == b->n)
            break;
        const int r = look_closer(c, b, at++);
        if (r < 0)
            return r;
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

/* Count a batch. The bucket, which has room for `room` instructions, may end in its last step. */
static int count_batch(struct counting *c, const struct batch *b, uint64_t room)
{
    struct tl_part *const part = c->part;
    struct tl_part_run *const run = &part->run;
    const uint64_t first = c->n, all = b->at[b->n];
    const uintptr_t last = b->steps[b->n - 1];
    bool fresh = run->n == 0;
    if (fresh && !(b->events[0] & 1)) {
        note_depth(c);
        fresh = false;
    }
    int r = count_events(c, b, fresh);
    part->tallying.always += b->always;
    part->tallying.steps += b->n;
    run->taken += b->taken;
    c->from = last;
    if (all > room)
        run->taken -= tl_path_taken(last);
    for (uint64_t end = room; end < all && r >= 0; end += tl_part_run_room(run)) {
        count_span(c, first + end);
        r = tl_part_settle(part);
        note_depth(c);
    }
    count_span(c, first + all);
    if (all > room)
        run->taken += tl_path_taken(last);
    c->n = first + all;
    return r;
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
    c->part->log.turned = tl_path_taken(c->from);
    c->from = 0;
}

/* A branch, or a gap, where the flow has ended, or begins. */
static int follow_item(struct counting *c, const struct tl_item *item, struct tl_count *count)
{
    c->calls->insns = c->position + c->n;
    const int r = tl_callstack_push(c->calls, item, 1);
    count->now->depth = tl_callstack_depth(c->calls);
    return r;
}

/* Keep the holes that items[0..n) begin with here; returns how many items they are, or < 0.
 * Millions of them may stand one behind another: those behind the first change no call stack. */
static int keep_holes(struct counting *c, const struct tl_item *items, size_t n,
                      struct tl_count *count)
{
    struct tl_part_gaps gaps = {0};
    n = n < INT_MAX ? n : INT_MAX;
    end_flow(c);
    int r = tl_part_log_gaps(c->part, c->position + c->n, items, &n, count->log_room, &gaps);
    if (r >= 0)
        r = tl_part_keep_gaps(c->part, &gaps, &count->kept);
    for (size_t i = 0; i < n && i < 2 && r >= 0; i++)
        r = follow_item(c, &items[i], count);
    if (n > 0)
        count->now->offset = items[n - 1].offset;
    return r < 0 ? r : (int)n;
}

/* The flow goes on behind these as if they were not there. */
#define PASSED (1u << TL_ITEM_TIME | 1u << TL_ITEM_CYCLES | 1u << TL_ITEM_EVENT)
#define HOLES  (1u << TL_ITEM_BRANCH | 1u << TL_ITEM_GAP)

/* Keep what stands between blocks here. */
static int keep_item(struct counting *c, const struct tl_item *item, struct tl_count *count)
{
    int r = TL_OK;
    if (!(PASSED >> item->kind & 1)) {
        end_flow(c);
        /* These only end it: other code may be at the same addresses. */
        if (item->kind != TL_ITEM_MODE && item->kind != TL_ITEM_CONTEXT)
            r = follow_item(c, item, count);
    }
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

/* Keep the first of items[0..*n), and more of them if they are gaps, in front of instruction
 * `insn`. Sets `*n`, and `*lost` if they are. */
static inline int keep_some(struct counting *c, const struct tl_item *items, size_t *n,
                            uint64_t insn, struct tl_count *count, struct tl_part_gaps *gaps,
                            uint64_t *lost)
{
    const uint64_t position = c->position + insn;
    if (HOLES >> items->kind & 1) {
        /* Where branches are instructions holes are not kept here. */
        size_t some = count->keeps >> TL_ITEM_BRANCH & 1 ? *n : 1;
        const int r = tl_part_log_gaps(c->part, position, items, &some, count->log_room, gaps);
        if (r < 0)
            return r;
        if (some > 0) {
            *n = some;
            *lost = 1;
            return TL_OK;
        }
    }
    *n = 1;
    tl_flow_now_pass(count->now, items);
    return tl_part_keep(c->part, position, count->now, items, &count->kept);
}

/*
 * The steps from `at` on that are gone over together, at least one, up to where that is then: those
 * of paths where they lie, as long as they lie one behind another; of blocks, in `own`. What stands
 * between them is kept. Nothing is taken behind instruction `most` but the rest of a path.
 */
static __attribute__((noinline)) int gather(struct counting *c, const struct tl_item *items,
                                            size_t n, struct tl_count *count, uint64_t most,
                                            struct place *at, uintptr_t *own, struct batch *b)
{
    struct tl_part *const part = c->part;
    const struct tl_item *item = items + at->item, *const end = items + n;
    const uintptr_t *const steps = item->kind == TL_ITEM_PATH ? item->path + at->step : own,
                           *next = steps, *const limit = steps + STEPS;
    const struct tl_block *from = tl_path_block(c->from);
    const uint32_t keeps = count->keeps & (PASSED | HOLES);
    uint64_t insns = c->n, cycles = 0, apart = 0, lost = 0, any_lost = 0;
    size_t step = at->step;
    uint64_t within = c->n - at->begin; /* instructions of the item in front of that step */
    bool turned = tl_path_taken(c->from);
    struct tl_part_gaps gaps = {0};
    memset(b->apart, 0, sizeof(b->apart));
    memset(b->lost, 0, sizeof(b->lost));
    while (item < end && insns < most) {
        const bool path = item->kind == TL_ITEM_PATH;
        if (!path && keeps >> item->kind & 1) {
            size_t kept = 1;
            int r;
            if (item->kind == TL_ITEM_CYCLES) {
                r = tl_itemlog_add(&part->log, c->position - part->open.first + insns, item);
                cycles++;
            } else {
                if (lost == 0 && item->kind == TL_ITEM_BRANCH && !may_branch(from, turned))
                    break;
                if (from)
                    part->log.turned = turned;
                apart |= HOLES >> item->kind & 1;
                kept = (size_t)(end - item);
                r = keep_some(c, item, &kept, insns, count, &gaps, &lost);
            }
            if (r < 0)
                return r;
            item += kept;
            continue;
        }
        if (next == limit || (path ? item->path + step != next : steps != own))
            break;
        uint64_t more = item->value - within;
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
        const size_t at_step = (size_t)(next - steps);
        b->apart[at_step / 64] |= apart << at_step % 64;
        b->lost[at_step / 64] |= lost << at_step % 64;
        any_lost |= lost;
        apart = lost = 0;
        next += taken;
        if (taken < all) {
            step += taken;
            break;
        }
        insns += more;
        within = step = 0;
        from = tl_path_block(next[-1]);
        turned = tl_path_taken(next[-1]);
        item++;
    }
    part->tallying.tally.kinds[TL_ITEM_CYCLES] += cycles;
    if (cycles > 0)
        count->kept.kinds |= 1u << TL_ITEM_CYCLES;
    b->steps = steps;
    b->n = (uint32_t)(next - steps);
    b->any_lost = any_lost;
    b->ends_apart = apart;
    b->ends_lost = lost;
    *at = (struct place){(size_t)(item - items), step, insns - within};
    return tl_part_keep_gaps(part, &gaps, &count->kept);
}

/* The last `n` steps were not counted: they are of one path. */
static void give_back(struct place *at, const struct tl_item *items, size_t n)
{
    if (n > 0 && at->step == 0) {
        const struct tl_item *const item = &items[--at->item];
        at->step = item->n;
        at->begin -= item->value;
    }
    at->step -= n;
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
    if (part->run.places.n > TL_RUN_PLACES - STEPS) {
        /* Then the stretch's number is another one's: the next step begins a new one. */
        c->from &= ~(uintptr_t)TL_STEP_ALIKE;
        r = tl_part_renew(part);
        if (r < 0)
            return r;
    }
    const size_t left = n - at->item, some = most > 0 ? most : 1;
    static_assert(2 * TL_LEVEL_STORED >= TL_PART_OFFSETS, "one is due where a bucket ends");
    const uint64_t end = tl_part_offset_room(c->position + c->n);
    r = gather(c, items, at->item + (left < some ? left : some), count, c->n + end, at, own, &b);
    if (r < 0)
        return r;
    const uint32_t gathered = b.n;
    scan(part, &b, end, c->from);
    r = count_batch(c, &b, tl_part_run_room(&part->run));
    if (r < 0)
        return r;
    give_back(at, items, gathered - b.n);
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
