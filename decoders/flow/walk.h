/* SPDX-License-Identifier: MIT */
/*
 * The steps that walks consist of; private to the walker. Everything but what `out` is told is a
 * guess where the next block is found, kept in links.
 */
#ifndef TL_FLOW_WALK_H
#define TL_FLOW_WALK_H

#include "flow/walker_hot.h"

/* The block at pc has to be looked up. */
static inline void tl_walk_forget_block(struct tl_walker *w)
{
    w->block = NULL;
    w->link = NULL;
    w->from = NULL;
}

/* The block at pc; NULL only when out of memory. */
static inline struct tl_block *tl_walk_here(struct tl_walker *w)
{
    if (w->block)
        return w->block;
    struct tl_block *const b = tl_block_get(w->cache, w->space, w->isa, w->pc);
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

static inline bool tl_walk_turns(const struct tl_block *b)
{
    return b->last_kind == TL_INSN_BRANCH || b->last_kind == TL_INSN_INDIRECT ||
           b->last_kind == TL_INSN_RETURN_EX;
}

/* Entry `i` of the return stack without its block. */
void tl_walk_resolve_return(struct tl_walker *w, unsigned i);

/* The last instruction of `b`, which can change the flow, was executed. */
void tl_walk_leave(struct tl_walker *w, struct tl_block *b, bool taken, uint64_t offset);

/* Blocks that are too long are several: up to the last one. NULL: out of memory. */
struct tl_block *tl_walk_full(struct tl_walker *w, struct tl_block *b, uint64_t offset);

/* All of `b`, behind which the image ends. */
void tl_walk_off(struct tl_walker *w, const struct tl_block *b, uint64_t offset);

/* The image does not hold pc: as without one, at least where it went. */
void tl_walk_lose_image(struct tl_walker *w, uint64_t offset);

/* All of `b` and its last instruction, which can change the flow. */
static inline void tl_walk_block(struct tl_walker *w, struct tl_block *b, bool taken,
                                 uint64_t offset)
{
    tl_item_batch_whole(w->out, b, taken && tl_walk_turns(b), offset);
    tl_walk_leave(w, b, taken, offset);
}

#endif
