/* SPDX-License-Identifier: MIT */
/*
 * Counts whole blocks into the part that is being built: by function, by page, and with the depth
 * of the call stack. It is done for every block that ran, so all that can wait until a bucket of
 * the timeline ends is left to tl_part_settle(). What stands between blocks in some traces at every
 * few instructions (times, cycle counts, gaps) is kept on the way. For build.c.
 */
#ifndef TL_STORE_COUNT_H
#define TL_STORE_COUNT_H

#include "flow/callstack.h"
#include "store/part.h"

struct tl_count {
    /* What holds for all of them. */
    uint64_t position;       /* of the first instruction */
    uint64_t room;           /* instructions that may be counted */
    uint32_t keeps;          /* kinds of items that are kept on the way: tl_count_keeps() */
    size_t log_room;         /* bytes of items that the chunk's log may have: it ends at as many */
    uint8_t isa;             /* enum tl_isa */
    struct tl_flow_now *now; /* goes on with what is kept */
    /* What was counted. */
    uint64_t n;      /* instructions */
    size_t items;    /* whole items */
    size_t steps;    /* … and of the one behind them, a PATH, so many steps */
    uint64_t within; /* … which are so many instructions */
    struct tl_part_items kept;
    bool full; /* that much is in the log now */
};

/* The kinds of a stream's items that take no position. */
uint32_t tl_count_keeps(enum tl_protocol protocol);

/*
 * Count the blocks of items[0..n), from step `count->steps` of the first on, and keep what stands
 * between them. Ends in front of the first that wants a closer look: a block that is not whole, or
 * of another instruction set, or that there is no room for, or anything else; and where the log is
 * full. TL_NOMEM.
 */
TL_MUST_USE int tl_count_items(struct tl_part *part, struct tl_callstack *calls,
                               const struct tl_item *items, size_t n, struct tl_count *count);

#endif
