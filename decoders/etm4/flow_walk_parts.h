/* SPDX-License-Identifier: MIT */
/*
 * What the files of the walk share: where we are, where to go on, the return stack. Private to
 * flow_walk.c and flow_atoms.c; see flow_walk.h.
 */
#ifndef TL_ETM4_FLOW_WALK_PARTS_H
#define TL_ETM4_FLOW_WALK_PARTS_H

#include "etm4/flow_walk.h"

static inline void tl_walk_forget_place(struct tl_etm4_walk *w)
{
    w->block = NULL;
    w->link = NULL;
    w->from = NULL;
}

/* ---- place ------------------------------------------------------------------------------- */

static inline uint64_t tl_walk_wrap(const struct tl_etm4_walk *w, uint64_t pc)
{
    return w->isa == TL_ISA_A64 ? pc : (uint32_t)pc;
}

/* The block at pc; NULL only when out of memory. */
static inline struct tl_block *tl_walk_here(struct tl_etm4_walk *w)
{
    if (w->block)
        return w->block;
    struct tl_block *b = tl_block_get(w->cache, w->space, w->isa, w->pc);
    if (!b) {
        w->failed = true;
        return NULL;
    }
    if (b->n > 0) { /* what is not mapped is not kept by the cache */
        w->block = b;
        if (w->link)
            *w->link = b;
        if (w->from)
            w->from->go[1] = b;
    }
    w->link = NULL;
    w->from = NULL;
    return b;
}

/* Go on at pc, remembering the block there in *link. */
static inline void tl_walk_step(struct tl_etm4_walk *w, uint64_t pc, struct tl_block **link)
{
    w->pc = pc;
    w->by_address = false;
    w->block = *link;
    w->link = link;
}

static inline void tl_walk_note_caller(struct tl_etm4_walk *w, struct tl_block *b)
{
    const uint32_t top = ++w->callers.top & (TL_ETM4_CALLERS - 1);
    w->callers.v[top].block = b;
    w->callers.v[top].space = w->space;
}

/* Is this the way back from the last call? Then the link behind the call knows the block. */
static inline bool tl_walk_step_back(struct tl_etm4_walk *w, uint64_t pc, enum tl_isa isa)
{
    const uint32_t top = w->callers.top & (TL_ETM4_CALLERS - 1);
    struct tl_block *const caller = w->callers.v[top].block;
    if (!caller || caller->pc + caller->size != pc || caller->isa != isa ||
        w->callers.v[top].space != w->space)
        return false;
    w->callers.v[top].block = NULL;
    w->callers.top--;
    w->isa = (uint8_t)isa;
    tl_walk_step(w, pc, &caller->go[0]);
    return true;
}

/* Go on at an address that the trace gave. */
static inline void tl_walk_jump(struct tl_etm4_walk *w, uint64_t pc, enum tl_isa isa)
{
    const bool was_known = !w->need_address;
    w->need_address = false;
    w->told = false;
    if (was_known && w->pc == pc && w->isa == isa) {
        w->by_address = true;
        return; /* branch broadcasting tells what we know */
    }
    if (was_known)
        w->out->run = 0; /* the steps do not lead here */
    if (w->from && w->from->is_return && tl_walk_step_back(w, pc, isa)) {
        w->from = NULL;
        w->by_address = true;
        return;
    }
    struct tl_block *const guess = w->from ? w->from->go[1] : NULL;
    w->block = guess && guess->pc == pc && guess->isa == isa ? guess : NULL;
    if (w->block)
        w->from = NULL;
    w->link = NULL;
    w->pc = pc;
    w->by_address = true;
    w->isa = (uint8_t)isa;
}

static inline void tl_walk_lose(struct tl_etm4_walk *w, enum tl_gap gap, uint64_t offset)
{
    w->need_address = true;
    w->told = true;
    tl_walk_forget_place(w);
    tl_item_batch_gap(w->out, gap, offset);
}

/* ---- mode -------------------------------------------------------------------------------- */

static inline void tl_walk_tell_mode(struct tl_etm4_walk *w, uint64_t mode, uint64_t offset)
{
    if (mode == w->mode)
        return;
    w->mode = mode;
    tl_item_batch_value(w->out, TL_ITEM_MODE, mode, offset);
}

/* Privilege and security stay; the instruction set may be another than last told. */
static inline void tl_walk_tell_isa(struct tl_etm4_walk *w, uint64_t offset)
{
    if (w->mode != UINT64_MAX)
        tl_walk_tell_mode(w, (w->mode & ~0xffULL) | w->isa, offset);
}

/* ---- return stack ------------------------------------------------------------------------ */

static inline void tl_walk_push_return(struct tl_etm4_walk *w, uint64_t pc)
{
    struct tl_etm4_return_stack *s = &w->stack;
    if (!s->active || s->wait_address)
        return;
    s->top = (s->top + 1) & (TL_ETM4_RETURN_STACK - 1);
    s->v[s->top].pc = pc;
    s->v[s->top].isa = w->isa;
    if (s->n < TL_ETM4_RETURN_STACK)
        s->n++; /* else the oldest one is gone */
}

/* A P0 element without an address behind a taken indirect branch: the stack has it. */
static inline void tl_walk_pop_pending(struct tl_etm4_walk *w, uint64_t offset)
{
    struct tl_etm4_return_stack *s = &w->stack;
    if (!s->pending)
        return;
    s->pending = false;
    if (s->n == 0)
        return;
    const uint64_t pc = s->v[s->top].pc;
    const enum tl_isa isa = s->v[s->top].isa;
    s->top = (s->top - 1) & (TL_ETM4_RETURN_STACK - 1);
    s->n--;
    tl_walk_jump(w, pc, isa);
    tl_walk_tell_isa(w, offset);
}

/* Can the program be followed from here? Reports the gap if it can not, once. */
static inline bool tl_walk_is_known(struct tl_etm4_walk *w, uint64_t offset)
{
    if (!w->cache || w->need_context)
        return false;
    if (w->need_address && !w->told)
        tl_walk_lose(w, TL_GAP_NO_PATH, offset);
    return !w->need_address;
}
/* A branch of which nothing but its target is known. */
static inline void tl_walk_tell_branch(struct tl_etm4_walk *w, uint64_t to, uint64_t offset)
{
    tl_item_batch_value(w->out, TL_ITEM_BRANCH, to, offset);
}

/* ---- instructions ------------------------------------------------------------------------ */

static inline uint64_t tl_walk_next_pc(const struct tl_etm4_walk *w, const struct tl_block *b)
{
    return tl_walk_wrap(w, b->pc + b->size);
}

/* An indirect branch, that of `b`, was taken: only the trace or its return stack knows where to. */
static inline void tl_walk_await_address(struct tl_etm4_walk *w, struct tl_block *b)
{
    w->stack.pending = w->stack.active;
    w->need_address = true;
    w->told = false;
    w->block = NULL;
    w->link = NULL;
    w->from = b;
}

/* The waypoint that ends `b` was executed. */
static inline void tl_walk_leave(struct tl_etm4_walk *w, struct tl_block *b, bool taken,
                                 uint64_t offset)
{
    const uint64_t next = tl_walk_next_pc(w, b);
    if (!taken) {
        tl_walk_step(w, next, &b->go[0]);
        return;
    }
    switch (b->last_kind) {
    case TL_INSN_BRANCH:
        if (b->link) {
            tl_walk_push_return(w, next);
            tl_walk_note_caller(w, b);
        }
        if (b->target_isa != w->isa) {
            w->isa = b->target_isa;
            w->is1 = w->isa == TL_ISA_T32;
            tl_walk_step(w, b->target, &b->go[1]);
            tl_walk_tell_isa(w, offset);
        } else {
            tl_walk_step(w, b->target, &b->go[1]);
        }
        break;
    case TL_INSN_INDIRECT:
    case TL_INSN_RETURN_EX:
        if (b->link) {
            tl_walk_push_return(w, next);
            tl_walk_note_caller(w, b);
        }
        tl_walk_await_address(w, b);
        if (w->ete && b->last_kind == TL_INSN_RETURN_EX) /* ETE has no packet for it */
            tl_item_batch_add(w->out, TL_ITEM_ERET, offset);
        break;
    default:
        tl_walk_step(w, next, &b->go[1]);
        break;
    }
}

static inline bool tl_walk_turns(const struct tl_block *b)
{
    return b->last_kind == TL_INSN_BRANCH || b->last_kind == TL_INSN_INDIRECT ||
           b->last_kind == TL_INSN_RETURN_EX;
}

#endif
