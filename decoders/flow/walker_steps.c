/* SPDX-License-Identifier: MIT */
/*
 * Walks that the format directs block by block. Formats that report waypoints, and not outcomes of
 * branches, need to see each block before they know how far to go.
 */
#include "flow/walk.h"

struct tl_block *tl_walker_here(struct tl_walker *w, uint64_t offset)
{
    if (!tl_walker_is_known(w, offset))
        return NULL;
    struct tl_block *const b = tl_walk_here(w);
    if (b && b->n == 0) {
        tl_walk_lose_image(w, offset);
        return NULL;
    }
    return b;
}

void tl_walker_pass(struct tl_walker *w, struct tl_block *b, bool taken, uint64_t offset)
{
    if (b->end == TL_BLOCK_WAYPOINT) {
        tl_walk_block(w, b, taken && tl_walk_turns(b), offset);
    } else if (b->end == TL_BLOCK_FULL) {
        tl_item_batch_whole(w->out, b, false, offset);
        tl_walker_continue(w, tl_block_after(b), &b->go[0]);
    } else {
        tl_walk_off(w, b, offset);
    }
}

bool tl_walker_execute_part(struct tl_walker *w, struct tl_block *b, uint32_t bytes,
                            uint64_t offset)
{
    const int64_t n = tl_block_count_to(b, b->pc + bytes);
    if (n < 0)
        return false;
    if (n > 0)
        tl_item_batch_block(w->out, b, (uint32_t)n, false, offset);
    w->pc = tl_isa_wrap(w->isa, b->pc + bytes);
    w->by_address = false;
    tl_block_cache_begun(w->cache, b, (uint32_t)n, bytes);
    tl_walk_forget_block(w);
    return true;
}

void tl_walker_infer(struct tl_walker *w, uint64_t pc)
{
    tl_walker_jump_on(w, tl_isa_wrap(w->isa, pc), (enum tl_isa)w->isa, 0);
    w->by_address = false;
}
