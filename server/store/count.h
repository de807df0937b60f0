/* SPDX-License-Identifier: MIT */
/*
 * Counts whole blocks into the part that is being built: by function, by page, and with the depth
 * of the call stack. It is done for every block that ran, so all that can wait until a bucket of
 * the timeline ends is left to tl_part_settle(). For build.c.
 */
#ifndef TL_STORE_COUNT_H
#define TL_STORE_COUNT_H

#include "flow/callstack.h"
#include "store/part.h"

struct tl_count {
    /* What holds for all of them. */
    uint64_t position;  /* of the first instruction */
    uint64_t room;      /* instructions that may be counted */
    unsigned privilege; /* > 3: not known */
    uint8_t isa;        /* enum tl_isa */
    /* What was counted. */
    uint64_t n;      /* instructions */
    size_t items;    /* whole items */
    size_t steps;    /* … and of the one behind them, a PATH, so many steps */
    uint64_t within; /* … which are so many instructions */
    uint64_t offset; /* raw byte offset of the last that was counted */
};

/*
 * Count the blocks of items[0..n), BLOCK and PATH items, from step `count->steps` of the first on.
 * Ends in front of the first that wants a closer look: it is not whole, or of another instruction
 * set, there is no room for it, or it is no block. TL_NOMEM.
 */
TL_MUST_USE int tl_count_blocks(struct tl_part *part, struct tl_callstack *calls,
                                const struct tl_item *items, size_t n, struct tl_count *count);

#endif
