/* SPDX-License-Identifier: MIT */
/*
 * Walks for traces that report only conditional and indirect branches (TL_WALKER_CONDITIONS). Every
 * other branch on the way is followed in the program, without a word from the trace.
 */
#include "flow/walk.h"

/* Is the successor of `b` determined by the program alone? */
static inline bool goes_by_itself(const struct tl_block *b)
{
    return b->waits == TL_WAITS_NOTHING ||
           (b->waits == TL_WAITS_OTHER && b->last_kind == TL_INSN_BRANCH && !b->conditional);
}

static inline bool has_outcome(const struct tl_block *b)
{
    return b->last_kind == TL_INSN_BRANCH && b->conditional;
}

/*
 * What was executed since the last outcome or address. It must not be an endless loop (Brent: each
 * block is compared with one that is remembered, and replaced after twice the distance), nor longer
 * than any program goes on without a condition.
 */
struct alone {
    uint64_t mark; /* address of the remembered block */
    uint8_t isa;   /* of it; TL_ISA_NONE: there is none yet */
    uint64_t steps, next;
    uint64_t insns;
};

/* Must the walk end before it executes `b`? */
static inline bool goes_too_far(struct alone *a, const struct tl_block *b)
{
    a->insns += b->n;
    if ((b->pc == a->mark && b->isa == a->isa) || a->insns > TL_WALKER_STRAIGHT_MAX)
        return true;
    if (a->steps++ == a->next) {
        a->mark = b->pc;
        a->isa = b->isa;
        a->next = a->next * 2 + 1;
    }
    return false;
}

/*
 * Continue to the next block whose last instruction needs an outcome or address. NULL: the program
 * cannot be followed that far, which was reported, or the sink failed.
 */
static struct tl_block *walk_to_choice(struct tl_walker *w, struct alone *alone, uint64_t offset)
{
    for (;;) {
        struct tl_block *const b = w->out->rc < 0 ? NULL : tl_walker_here(w, offset);
        if (!b)
            return NULL;
        const bool full = b->end == TL_BLOCK_FULL;
        if (b->end == TL_BLOCK_UNMAPPED)
            tl_walk_off(w, b, offset);
        else if (!full && !goes_by_itself(b))
            return b;
        else if (goes_too_far(alone, b))
            tl_walker_lose(w, TL_GAP_NO_PATH, offset);
        else if (full)
            tl_walker_pass(w, b, false, offset);
        else
            tl_walk_block(w, b, true, offset);
    }
}

/* ---- outcome bits ---------------------------------------------------------------------------- */

/* Input and result of a walk along known blocks. */
struct known {
    uint64_t bits;
    unsigned n;     /* bits left */
    bool address;   /* continue to an indirect branch after the bits */
    bool arrived;   /* that branch was reached and taken */
    uint64_t insns; /* number of instructions in the steps */
    size_t decided; /* steps up to the last one that an outcome decided */
    struct alone alone;
};

/*
 * Follow known blocks while there are bits, or to an indirect branch, and space for steps. Returns
 * the number of steps. The innermost loop.
 */
static inline __attribute__((always_inline)) size_t
walk_known(struct tl_walker *w, struct known *known, uintptr_t *steps, size_t room)
{
    struct tl_block *b = w->block;
    const bool address = known->address;
    uint64_t bits = known->bits, sum = 0;
    unsigned n = known->n;
    size_t k = 0, decided = 0;
    bool taken;
    while (k < room && (n > 0 || address)) {
        struct tl_block *next = NULL;
        bool awaits = false;
        switch (b->waits) {
        case TL_WAITS_OUTCOME:
            if (n == 0)
                goto out;
            taken = bits & 1;
            next = b->go[taken];
            bits >>= 1;
            n--;
            decided = k + 1;
            break;
        case TL_WAITS_NOTHING:
            taken = true;
            next = b->go[1];
            if ((b->turn[1] & ~TL_STEP_BITS) == TL_TURN_CALL)
                tl_walker_push_return(w, b);
            break;
        case TL_WAITS_STRAIGHT:
            taken = false;
            next = b->go[0];
            break;
        case TL_WAITS_RETURN:
            taken = true;
            awaits = n == 0;
            if (awaits)
                break;
            next = bits & 1 ? tl_walker_return_known(w) : NULL;
            if (!next)
                goto out;
            bits >>= 1;
            n--;
            decided = k + 1;
            break;
        case TL_WAITS_ADDRESS:
            if (n > 0)
                goto out;
            taken = awaits = true;
            if (b->link)
                tl_walker_push_return(w, b);
            break;
        default:
            goto out;
        }
        const unsigned turn = b->turn[taken];
        steps[k++] = (uintptr_t)b | (turn & TL_STEP_BITS) | (awaits ? TL_STEP_BITS : 0);
        sum += b->n;
        if (awaits) {
            w->pc = b->pc;
            tl_walker_await_address(w, b);
            w->returns.pending = TL_PENDING_NONE;
            known->arrived = true;
            goto done;
        }
        if (!next) {
            const bool turns = turn >= TL_TURN_BRANCH && turn < TL_TURN_OTHER;
            tl_walker_continue(w, turns ? b->target : tl_block_after(b), &b->go[taken]);
            goto done;
        }
        b = next;
    }
out:
    w->pc = b->pc;
    w->block = b;
done:
    known->bits = bits;
    known->n = n;
    known->insns = sum;
    known->decided = decided;
    return k;
}

/* Follow known blocks. Returns the number of steps to deliver; `*lost`: the walk went too far after
 * them. The same for any state of the block cache: else the output would depend on it. */
static size_t follow(struct tl_walker *w, struct known *known, uintptr_t *steps, size_t room,
                     bool *lost)
{
    const size_t k = walk_known(w, known, steps, room);
    if (known->decided > 0)
        known->alone = (struct alone){0};
    for (size_t i = known->arrived ? k : known->decided; i < k; i++) {
        if (!goes_too_far(&known->alone, tl_path_block(steps[i])))
            continue;
        for (size_t after = i; after < k; after++)
            known->insns -= tl_path_block(steps[after])->n;
        *lost = true;
        return i;
    }
    return k;
}

/* Returns false if the walk went too far, which was reported. */
static bool walk_on(struct tl_walker *w, struct known *known, uint64_t offset)
{
    enum { ROOM = 256 };
    bool lost = false;
    if (w->out->paths) {
        const size_t k = follow(w, known, tl_item_batch_steps(w->out, ROOM), ROOM, &lost);
        if (k > 0)
            tl_item_batch_path(w->out, k, known->insns, offset);
    } else {
        uintptr_t steps[ROOM];
        const size_t k = follow(w, known, steps, ROOM, &lost);
        for (size_t i = 0; i < k; i++) {
            const struct tl_block *const b = tl_path_block(steps[i]);
            tl_item_batch_block(w->out, b, b->n, tl_path_taken(steps[i]), offset);
        }
    }
    if (lost)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
    return !lost;
}

/* Consume the bits of `known`, except those for which no block is found. */
static void walk_bits(struct tl_walker *w, struct known *known, uint64_t offset)
{
    while (known->n > 0) {
        const unsigned before = known->n;
        if (w->block && !walk_on(w, known, offset))
            break;
        if (known->n < before)
            continue;
        struct tl_block *const b = walk_to_choice(w, &known->alone, offset);
        if (!b)
            break;
        const bool taken = known->bits & 1;
        const bool predicted = b->is_return && taken && w->returns.n > 0;
        if (!has_outcome(b) && !predicted)
            break;
        tl_walk_block(w, b, taken, offset);
        if (predicted) {
            w->returns.pending = TL_PENDING_TOP;
            tl_walker_pop_return(w, offset);
        }
        known->bits >>= 1;
        known->n--;
        known->alone = (struct alone){0};
    }
}

unsigned tl_walker_conditions(struct tl_walker *w, uint64_t bits, unsigned n, uint64_t offset)
{
    struct known known = {.bits = bits, .n = n};
    if (!w->cache || w->need_mode)
        return 0;
    walk_bits(w, &known, offset);
    return n - known.n;
}

bool tl_walker_to_indirect(struct tl_walker *w, uint64_t offset)
{
    struct known known = {.address = true};
    if (!w->cache || w->need_mode)
        return false;
    if (w->block && !walk_on(w, &known, offset))
        return false;
    if (known.arrived)
        return true;
    struct tl_block *const b = walk_to_choice(w, &known.alone, offset);
    if (!b)
        return false;
    if (has_outcome(b)) {
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
        return false;
    }
    tl_walker_take_choice(w, true, offset);
    return true;
}

/*
 * ---- without outcome bits ----------------------------------------------------------------------
 */

/* Number of instructions of `b` executed up to the goal; 0: the goal is not in `b`. */
typedef uint32_t find_goal(const struct tl_block *b, const void *goal);

static uint32_t find_ip(const struct tl_block *b, const void *goal)
{
    const uint64_t ip = *(const uint64_t *)goal;
    const bool falls_through = b->end != TL_BLOCK_WAYPOINT;
    const int64_t n = ip - b->pc < b->size + (uint64_t)falls_through ? tl_block_count_to(b, ip) : 0;
    return n > 0 ? (uint32_t)n : 0;
}

static uint32_t find_insn(const struct tl_block *b, const void *goal)
{
    tl_walker_suits *const suits = *(tl_walker_suits *const *)goal;
    uint32_t i = 0, at = 0;
    while (!suits((enum tl_isa)b->isa, (struct tl_bytes){b->code + at, b->size - at})) {
        if (++i == b->n)
            return 0;
        if (b->binds) {
            struct tl_insn insn;
            tl_block_insn(b, at, &insn);
            at += insn.size;
        } else {
            i = b->n - 1;
            at = b->size - b->last_size;
        }
    }
    return i + 1;
}

/* The goal is reached after the first `n` instructions of `b`. */
static void end_within(struct tl_walker *w, struct tl_block *b, uint32_t n, uint64_t offset)
{
    if (n == b->n && b->end == TL_BLOCK_WAYPOINT && goes_by_itself(b)) {
        tl_walk_block(w, b, true, offset);
        return;
    }
    tl_item_batch_block(w->out, b, n, false, offset);
    w->pc = tl_isa_wrap(w->isa, b->pc + tl_block_bytes(b, n));
    w->by_address = false;
    tl_walk_forget_block(w);
}

static enum tl_walker_end walk_to(struct tl_walker *w, find_goal *find, const void *goal,
                                  const uint64_t *ip, uint64_t offset)
{
    struct alone alone = {0};
    if (!w->cache || w->need_mode)
        return TL_WALKER_LOST;
    for (;;) {
        if (w->out->rc < 0 || !tl_walker_is_known(w, offset))
            return TL_WALKER_LOST;
        if (ip && w->pc == *ip)
            return TL_WALKER_REACHED;
        struct tl_block *const b = tl_walker_here(w, offset);
        if (!b)
            return TL_WALKER_LOST;
        const uint32_t n = find(b, goal);
        const bool waits = b->end == TL_BLOCK_WAYPOINT && !goes_by_itself(b);
        if (n > 0 && n == b->n && waits) {
            tl_walker_take_choice(w, true, offset);
            if (has_outcome(b))
                tl_walker_lose(w, TL_GAP_NO_PATH, offset);
            return TL_WALKER_REACHED;
        }
        if (n > 0) {
            end_within(w, b, n, offset);
            return TL_WALKER_REACHED;
        }
        if (waits)
            return TL_WALKER_CHOICE;
        if (goes_too_far(&alone, b)) {
            tl_walker_lose(w, TL_GAP_NO_PATH, offset);
            return TL_WALKER_LOST;
        }
        if (b->end == TL_BLOCK_WAYPOINT) {
            tl_walk_block(w, b, true, offset);
        } else if (b->end == TL_BLOCK_UNMAPPED) {
            tl_walk_off(w, b, offset);
            return TL_WALKER_LOST;
        } else {
            tl_item_batch_whole(w->out, b, false, offset);
            tl_walker_continue(w, tl_block_after(b), &b->go[0]);
        }
    }
}

enum tl_walker_end tl_walker_to_ip(struct tl_walker *w, uint64_t ip, uint64_t offset)
{
    return walk_to(w, find_ip, &ip, &ip, offset);
}

enum tl_walker_end tl_walker_to_insn(struct tl_walker *w, tl_walker_suits *suits, uint64_t offset)
{
    return walk_to(w, find_insn, &suits, NULL, offset);
}

void tl_walker_take_choice(struct tl_walker *w, bool taken, uint64_t offset)
{
    struct tl_block *const b = w->block;
    if (!b)
        return;
    tl_walk_block(w, b, taken, offset);
    if (has_outcome(b)) {
        tl_walker_await(w, true);
        return;
    }
    tl_walker_await_address(w, b); /* also after a trap */
    w->returns.pending = TL_PENDING_NONE;
}
