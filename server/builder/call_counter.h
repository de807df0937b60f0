/* SPDX-License-Identifier: MIT */
/*
 * Counts the calls in a section of a stream into a call tree: of a shard while it is built
 * (build.c), or of a queried range (query/calltree.h). It is driven by the call stack maintained
 * there. Not thread-safe.
 */
#ifndef TL_BUILDER_CALL_COUNTER_H
#define TL_BUILDER_CALL_COUNTER_H

#include "flow/callstack.h"
#include "shard/calltree.h"

/* Counts of a path, for its last function, as in struct tl_calltree_function. */
struct tl_call_path {
    uint64_t self, calls;
    uint64_t ended, total, min, max, longest;
    uint32_t callee,
        child; /* the function most recently called from it, and its path; 0: none yet */
};

struct tl_call_counter {
    bool counting; /* false: not begun, or out of memory */
    struct tl_calltree tree;
    uint64_t from;              /* positions before this are not counted */
    uint64_t since;             /* instructions from here on are not counted yet */
    struct tl_callstack *calls; /* NULL: not attached */
    struct tl_call_path *known; /* of the tree's paths, whose own counts are not used yet */
    size_t n_known, cap_known;
    uint32_t paths[TL_CALLSTACK_MAX + 1]; /* paths of the frames, outermost first; [0]: no caller */
};

/* Start counting into a zeroed counter at `position`, where the stack's frames are current; nothing
 * before `from` is counted. The stack's sink belongs to the counter until it ends. */
void tl_call_counter_begin(struct tl_call_counter *c, struct tl_callstack *calls, uint64_t position,
                           uint64_t from);
/* End at `position`. The result is c->tree, if c->counting is still true. */
void tl_call_counter_end(struct tl_call_counter *c, uint64_t position);
/* Free the contents and stop counting. Also called when memory runs out. */
void tl_call_counter_fini(struct tl_call_counter *c);

#endif
