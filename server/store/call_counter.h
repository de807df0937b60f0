/* SPDX-License-Identifier: MIT */
/*
 * Counts the calls of a piece of a stream into a call tree: of a shard while it is built
 * (build.c), or of what somebody asks for (lake/calltree.h). It listens to the call stack that is
 * followed there. Not thread-safe.
 */
#ifndef TL_STORE_CALL_COUNTER_H
#define TL_STORE_CALL_COUNTER_H

#include "flow/callstack.h"
#include "store/calltree.h"

/* What is counted of a path: of its last function, as in struct tl_calltree_function. */
struct tl_call_path {
    uint64_t self, calls;
    uint64_t ended, total, min, max, longest;
    uint32_t callee, child; /* the last function called from it, and that one's path; 0: none yet */
};

struct tl_call_counter {
    bool counting; /* false: it has not begun, or there was no memory */
    struct tl_calltree tree;
    uint64_t from;              /* what is before this position does not count */
    uint64_t since;             /* instructions from here on are not counted yet */
    struct tl_callstack *calls; /* NULL: it does not listen */
    struct tl_call_path *known; /* of the tree's paths, which have no counts yet */
    size_t n_known, cap_known;
    uint32_t paths[TL_CALLSTACK_MAX + 1]; /* of the frames, from the outermost on; [0]: nobody's */
};

/* Count into a zeroed counter, from `position` on, where the stack's frames are there, but nothing
 * in front of `from`. The stack's sink is the counter's until it ends. */
void tl_call_counter_begin(struct tl_call_counter *c, struct tl_callstack *calls, uint64_t position,
                           uint64_t from);
/* The piece ends at a position. What was counted is c->tree, if c->counting still holds. */
void tl_call_counter_end(struct tl_call_counter *c, uint64_t position);
/* Free what it has; it counts nothing any more. So it ends where there is no memory. */
void tl_call_counter_fini(struct tl_call_counter *c);

#endif
