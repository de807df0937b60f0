/* SPDX-License-Identifier: MIT */
/*
 * Gives the blocks of a walk their functions. Looked up by address in a small cache, which changes
 * of mode, context or program memory invalidate, since an address can then be other code.
 */
#include "shard/walk.h"

/* Blocks are executed repeatedly: the function at the begin of a block is cached by address, as
 * long as the memory view is the same. */
#define MEMO 512

void tl_walk_functions(struct tl_walk *w, const struct tl_image *image)
{
    struct {
        uint64_t pc;
        uint32_t function, sight;
    } memo[MEMO] = {{0}};
    struct tl_flow_now now = w->now;
    struct tl_block *b = w->blocks;
    uint32_t sight = 1;
    uint64_t changed = image ? tl_image_last_change(image, now.time) : 0;
    for (size_t i = 0; image && i < w->n; i++) {
        const unsigned kind = w->items[i].kind;
        if (kind != TL_ITEM_BLOCK) {
            tl_flow_now_item(&now, &w->items[i]);
            const uint64_t before = changed;
            if (kind == TL_ITEM_TIME)
                changed = tl_image_last_change(image, now.time);
            sight += kind == TL_ITEM_MODE || kind == TL_ITEM_CONTEXT || changed != before;
            continue;
        }
        const size_t slot = (b->pc >> 1 ^ b->pc >> 11) % MEMO;
        if (memo[slot].pc != b->pc || memo[slot].sight != sight) {
            memo[slot].function = tl_flow_now_function(&now, image, b->pc);
            memo[slot].pc = b->pc;
            memo[slot].sight = sight;
        }
        b->function = memo[slot].function;
        b++;
    }
}
