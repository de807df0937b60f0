/* SPDX-License-Identifier: MIT */
/*
 * Walks through blocks that the program went through before, by their links. Most packets have
 * outcomes for several blocks, in which nothing but the last one or two can end the walk, so the
 * others are passed without asking for each.
 */
#include "riscv/etrace_walk_parts.h"

#define KNOWN 64u /* blocks passed at once, at most */

/* The block that a return is inferred to lead to, if it was there before; NULL: not known. */
static struct tl_block *known_return(struct tl_etrace_walk *w, const struct tl_block *b,
                                     uint64_t waiting, const struct tl_etrace_goal *goal)
{
    uint64_t to = tl_returns_top(&w->returns);
    struct tl_block *const next = b->go[1];
    if (b->link || !tl_etrace_infers_returns(w) || w->options & TL_ETRACE_SEQUENTIAL ||
        (goal->irreport && (waiting <= 1 || goal->only_jump)) || !next || next->pc != to)
        return NULL;
    (void)tl_returns_pop(&w->returns, &to);
    return next;
}

/* At most one outcome waits: does the walk pass all of this block? */
static inline bool is_passed(const struct tl_block *b, const struct tl_etrace_goal *goal,
                             uint64_t waiting, bool counts)
{
    const bool branches = b->waits == TL_WAITS_OUTCOME;
    if ((branches && waiting == 0) || (goal->irreport && counts))
        return false;
    return goal->last_branch ? !branches : goal->only_jump || goal->address - b->pc >= b->size;
}

/* `learns`: there is a predictor, so outcomes may be more than a map of them. Inline, since without
 * one each step takes a few instructions. */
static inline __attribute__((always_inline)) bool step_known(struct tl_etrace_walk *w,
                                                             const struct tl_etrace_goal *goal,
                                                             bool learns, bool *any,
                                                             uint64_t offset)
{
    struct tl_etrace_outcomes *const o = &w->outcomes;
    struct tl_item_batch *const out = w->walker.out;
    struct tl_block *b = w->block, *before = NULL;
    const uint64_t before_waiting = learns ? tl_etrace_outcomes_waiting(o) : o->n;
    uint64_t map = o->map, insns = 0, waiting = before_waiting;
    uint32_t n = 0;
    const bool counts = w->options & TL_ETRACE_IRETS;
    if (!out->paths || !b || w->reported)
        return false;
    uintptr_t *const steps = tl_item_batch_steps(out, KNOWN);
    while (n < KNOWN && (waiting > 1 || is_passed(b, goal, waiting, counts))) {
        struct tl_block *next = NULL;
        unsigned taken = 1, used = 0;
        switch (b->waits) {
        case TL_WAITS_OUTCOME:
            taken = learns ? tl_etrace_outcomes_next(o, tl_etrace_last_of(w, b)) : ~map & 1;
            next = b->go[taken];
            used = 1;
            break;
        case TL_WAITS_NOTHING:
            next = b->last_kind == TL_INSN_BRANCH ? b->go[1] : NULL;
            if (next && b->link)
                tl_returns_push(&w->returns, tl_etrace_wrap(w, b->pc + b->size));
            break;
        case TL_WAITS_STRAIGHT:
            taken = 0;
            next = b->go[0];
            break;
        case TL_WAITS_RETURN:
            next = known_return(w, b, waiting, goal);
            break;
        default:
            break;
        }
        if (!next)
            break;
        if (used && learns)
            (void)tl_etrace_outcomes_take(o, tl_etrace_last_of(w, b));
        map >>= used;
        waiting -= used;
        steps[n++] = tl_path_step(b, taken);
        insns += b->n;
        before = b;
        b = next;
    }
    if (n == 0)
        return false;
    tl_item_batch_path(out, n, insns, w->offset);
    *any = waiting < (learns ? before_waiting : o->n);
    w->irets = *any ? 0 : w->irets;
    if (!learns) {
        o->untrained &= !*any;
        o->map = map;
        o->n = (uint32_t)waiting;
    }
    w->before = tl_etrace_last_of(w, before);
    w->has_before = true;
    w->from_return = w->before_lost = w->unmapped = w->given = false;
    w->start = w->pc = b->pc;
    w->n = 1;
    w->block = b;
    w->offset = offset;
    return true;
}

static __attribute__((noinline)) bool
step_by_map(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, bool *any, uint64_t offset)
{
    return step_known(w, goal, false, any, offset);
}

static __attribute__((noinline)) bool step_by_prediction(struct tl_etrace_walk *w,
                                                         const struct tl_etrace_goal *goal,
                                                         bool *any, uint64_t offset)
{
    return step_known(w, goal, true, any, offset);
}

bool tl_etrace_step_known(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, bool *any,
                          uint64_t offset)
{
    return w->outcomes.size > 0 ? step_by_prediction(w, goal, any, offset)
                                : step_by_map(w, goal, any, offset);
}
