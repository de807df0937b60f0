/* SPDX-License-Identifier: MIT */
/*
 * Walks through blocks that the program went through before, by their links. Most packets have
 * outcomes for several blocks, in which nothing but the last one or two can end the walk, so the
 * others are passed without asking for each. Private to the walk, and to the flow, of whose packets
 * without options it is most of the work.
 */
#ifndef TL_RISCV_ETRACE_WALK_KNOWN_H
#define TL_RISCV_ETRACE_WALK_KNOWN_H

#include "riscv/etrace_walk_parts.h"
#include "riscv/table_jump.h"

#define KNOWN 64u                /* blocks passed at once, about */
#define ROOM  (KNOWN + 32u + 2u) /* … at most: those of a map, and the last ones */

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

/* PLAIN: no option is on, returns are not inferred, and the packet says nothing but where the walk
 * ends. PREDICTED: there is a predictor, so outcomes may be more than a map of them. */
enum trace { PLAIN, BY_MAP, PREDICTED };

/* The walk stands in front of a block. */
struct stand {
    struct tl_block *b, *before; /* that block; the one passed last, NULL: none */
    uint64_t waiting;            /* outcomes */
    uintptr_t *at;               /* behind the steps so far */
    uint64_t insns;
};

/*
 * Does the walk end in or behind the block it stands in front of, as most do: at the branch with
 * the last outcome, or behind an uninferable jump? Behind that it stands in front of its target.
 */
static inline __attribute__((always_inline)) enum tl_etrace_arrival
find_end(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, enum trace trace,
         struct stand *s)
{
    struct tl_block *const b = s->b;
    if (goal->last_branch)
        return s->waiting == 1 && b->waits == TL_WAITS_OUTCOME && s->before ? TL_ETRACE_REACHED
                                                                            : TL_ETRACE_GO_ON;
    const bool is_jump = b->waits == TL_WAITS_ADDRESS ||
                         (b->waits == TL_WAITS_RETURN &&
                          (trace == PLAIN || b->link || !tl_etrace_infers_returns(w)));
    const bool asks_more =
        trace != PLAIN &&
        (goal->only_jump || w->options & (TL_ETRACE_IRETS | TL_ETRACE_SEQUENTIAL));
    if (s->waiting > 1 || !is_jump || b->last_kind != TL_INSN_INDIRECT || asks_more ||
        goal->address - b->pc < b->size || tl_etrace_is_absolute(b) || tl_riscv_lacks_table(b))
        return TL_ETRACE_GO_ON;
    const uint64_t to = goal->address;
    struct tl_block *next = b->go[1];
    if (!next || next->pc != to) {
        next = tl_etrace_block_at(w, to);
        if (!next)
            return TL_ETRACE_GO_ON; /* it will be reported */
        b->go[1] = next;
    }
    const bool at_branch = next->n == 1 && next->end == TL_BLOCK_WAYPOINT && next->conditional;
    if (s->waiting == 1 && ((trace != PLAIN && goal->sync) || !at_branch))
        return TL_ETRACE_GO_ON;
    if (trace != PLAIN && b->link && !b->is_return)
        tl_returns_push(&w->returns, tl_etrace_wrap(w, b->pc + b->size));
    *s->at++ = tl_path_step(b, true);
    s->insns += b->n;
    s->before = b;
    s->b = next;
    return TL_ETRACE_JUMPED;
}

/* Inline, since most steps take a few instructions only. */
static inline __attribute__((always_inline)) enum tl_etrace_arrival
step_known(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, enum trace trace, bool *any,
           bool *steps_there, uint64_t offset)
{
    const bool learns = trace == PREDICTED, plain = trace == PLAIN;
    struct tl_etrace_outcomes *const o = &w->outcomes;
    struct tl_item_batch *const out = w->walker.out;
    struct tl_block *b = w->block, *before = NULL;
    const uint64_t before_waiting = learns ? tl_etrace_outcomes_waiting(o) : o->n;
    uint64_t map = o->map, insns = 0, waiting = before_waiting;
    /* With one outcome left, or none: whether blocks are passed depends on where the walk ends. */
    const bool anywhere = goal->last_branch || (!plain && goal->only_jump);
    const bool stops = !plain && goal->irreport && w->options & TL_ETRACE_IRETS;
    const uint64_t address = goal->address, kept = goal->last_branch;
    *steps_there = false;
    if (!out->paths || !b || w->reported)
        return TL_ETRACE_GO_ON;
    uintptr_t *const steps = tl_item_batch_steps(out, ROOM), *at = steps;
    while (at < steps + KNOWN) {
        struct tl_block *next = NULL;
        unsigned taken = 1;
        while (!learns && waiting > 1 && b->waits == TL_WAITS_OUTCOME &&
               (next = b->go[~map & 1]) != NULL) {
            *at++ = tl_path_step(b, ~map & 1);
            map >>= 1;
            waiting--;
            insns += b->n;
            before = b;
            b = next;
        }
        if (waiting <= 1 && (stops || (!anywhere && address - b->pc < b->size)))
            break;
        if (b->waits == TL_WAITS_OUTCOME) {
            if (waiting <= 1 && waiting <= kept)
                break;
            taken = learns ? tl_etrace_outcomes_next(o, tl_etrace_last_of(w, b)) : ~map & 1;
            next = b->go[taken];
            if (!next)
                break;
            if (learns)
                (void)tl_etrace_outcomes_take(o, tl_etrace_last_of(w, b));
            map >>= 1;
            waiting--;
        } else if (b->waits == TL_WAITS_NOTHING) {
            next = b->last_kind == TL_INSN_BRANCH ? b->go[1] : NULL;
            if (!next)
                break;
            if (!plain && b->link)
                tl_returns_push(&w->returns, tl_etrace_wrap(w, b->pc + b->size));
        } else {
            taken = b->waits != TL_WAITS_STRAIGHT;
            next = b->waits == TL_WAITS_STRAIGHT           ? b->go[0]
                   : !plain && b->waits == TL_WAITS_RETURN ? known_return(w, b, waiting, goal)
                                                           : NULL;
            if (!next)
                break;
        }
        *at++ = tl_path_step(b, taken);
        insns += b->n;
        before = b;
        b = next;
    }
    struct stand stand = {b, before, waiting, at, insns};
    const enum tl_etrace_arrival end = find_end(w, goal, trace, &stand);
    const uint32_t n = (uint32_t)(stand.at - steps);
    if (n == 0)
        return TL_ETRACE_GO_ON;
    tl_item_batch_path(out, n, stand.insns, w->offset);
    *steps_there = true;
    *any = waiting < (learns ? before_waiting : o->n);
    if (!plain)
        w->irets = *any ? 0 : w->irets;
    if (!learns) {
        if (!plain)
            o->untrained &= !*any;
        o->map = map;
        o->n = (uint32_t)waiting;
    }
    w->before = tl_etrace_last_of(w, stand.before);
    w->has_before = true;
    w->was_predicted = false;
    w->from_return = w->by_return = w->before_lost = w->unmapped = w->given = false;
    w->start = w->pc = stand.b->pc;
    w->n = 1;
    if (end == TL_ETRACE_REACHED) {
        w->n = b->n;
        w->pc = tl_etrace_last_of(w, b);
    }
    w->block = stand.b;
    w->offset = offset;
    return end;
}

/* As tl_etrace_step_by_map(), for a trace without options, and a goal that has only `address`,
 * `last_branch` and `by_jump`. */
static inline __attribute__((always_inline)) enum tl_etrace_arrival
tl_etrace_step_plain(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, bool *steps,
                     uint64_t offset)
{
    bool any;
    return step_known(w, goal, PLAIN, &any, steps, offset);
}

#endif
