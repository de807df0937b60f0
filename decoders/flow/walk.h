/* SPDX-License-Identifier: MIT */
/*
 * The walker's elementary steps; private to the walker. Apart from what is written to `out`, they
 * only cache where the next block is likely to be, in the links of blocks.
 */
#ifndef TL_FLOW_WALK_H
#define TL_FLOW_WALK_H

#include "flow/walker_hot.h"

/* Make the next step look up the block at pc. */
static inline void tl_walk_forget_block(struct tl_walker *w)
{
    w->block = NULL;
    w->link = NULL;
    w->from = NULL;
}

/* Return the block at pc; NULL only if out of memory. */
static inline struct tl_block *tl_walk_here(struct tl_walker *w)
{
    if (w->block)
        return w->block;
    if (tl_walker_is_full(w)) /* one packet may lead through all of the image */
        tl_walker_trim(w);
    struct tl_block *const b = tl_block_get(w->cache, w->space, w->isa, w->pc);
    if (!b) {
        w->failed = true;
        return NULL;
    }
    if (b->n > 0) { /* the cache may drop entries of unmapped addresses */
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

/* Replace the block of return stack entry `i` by its address. */
void tl_walk_resolve_return(struct tl_walker *w, unsigned i);

/* The last instruction of `b`, which can change the flow, was executed: continue after it. */
void tl_walk_leave(struct tl_walker *w, struct tl_block *b, bool taken, uint64_t offset);

/* Execute all of `b`, after which the image ends. */
void tl_walk_off(struct tl_walker *w, const struct tl_block *b, uint64_t offset);

/* Continue as without an image, since pc is not mapped: at least report the address. */
void tl_walk_lose_image(struct tl_walker *w, uint64_t offset);

/* Execute all of `b`, including its last instruction, which can change the flow. */
static inline void tl_walk_block(struct tl_walker *w, struct tl_block *b, bool taken,
                                 uint64_t offset)
{
    tl_item_batch_whole(w->out, b, taken && tl_walk_turns(b), offset);
    tl_walk_leave(w, b, taken, offset);
}

#endif
