/* SPDX-License-Identifier: MIT */
/*
 * Most calls from a path have the same destination as the previous one. So a path is looked up by
 * function only when it changes, and functions are summed up at the end.
 */
#include "builder/call_counter.h"

#include <stdlib.h>

/* Extend the counters to the tree's newest paths. */
static int know_paths(struct tl_call_counter *c)
{
    const size_t n = c->tree.n_nodes;
    const int r = tl_grow(&c->known, &c->cap_known, n, sizeof *c->known);
    for (; r >= 0 && c->n_known < n; c->n_known++)
        c->known[c->n_known] = (struct tl_call_path){.min = UINT64_MAX};
    return r;
}

static __attribute__((noinline)) int64_t find_path(struct tl_call_counter *c, uint32_t parent,
                                                   uint32_t function)
{
    const int64_t path = tl_calltree_path(&c->tree, parent, function);
    if (path < 0 || know_paths(c) < 0)
        return TL_NOMEM;
    if ((uint32_t)path != parent) { /* otherwise the tree is full */
        c->known[parent].callee = function;
        c->known[parent].child = (uint32_t)path;
    }
    return path;
}

/* The path of a call from path `parent`; `parent` itself if the tree is full. TL_NOMEM. */
static inline int64_t path_of(struct tl_call_counter *c, uint32_t parent, uint32_t function)
{
    const struct tl_call_path *const known = &c->known[parent];
    return known->callee == function && known->child != 0 ? known->child
                                                          : find_path(c, parent, function);
}

/* Add calls of a function directly to the tree. */
static int count_function(struct tl_call_counter *c, const struct tl_calltree_function *more)
{
    const int64_t place = tl_calltree_function(&c->tree, more->function);
    if (place < 0)
        return TL_NOMEM;
    tl_calltree_add_function(&c->tree.functions[place], more);
    return TL_OK;
}

/* If the tree is full a path also represents calls of other functions: begin such a call. */
static __attribute__((noinline)) int begin_other(struct tl_call_counter *c, uint32_t function)
{
    return count_function(
        c, &(struct tl_calltree_function){.function = function, .calls = 1, .min = UINT64_MAX});
}

/* End such a call. */
static __attribute__((noinline)) int end_other(struct tl_call_counter *c,
                                               const struct tl_frame *frame, uint64_t length)
{
    return count_function(c, &(struct tl_calltree_function){.function = frame->function,
                                                            .ended = 1,
                                                            .total = length,
                                                            .min = length,
                                                            .max = length,
                                                            .longest = frame->insn});
}

/* Count the instructions up to a position for the innermost frame, at `depth`. */
static inline void count_own(struct tl_call_counter *c, uint32_t depth, uint64_t position)
{
    if (position > c->since) {
        c->known[c->paths[depth]].self += position - c->since;
        c->since = position;
    }
}

static inline int begin_call(struct tl_call_counter *c, const struct tl_frame *frame,
                             uint32_t depth, uint64_t insn)
{
    const uint32_t parent = c->paths[depth];
    const int64_t path = path_of(c, parent, frame->function);
    if (path < 0)
        return TL_NOMEM;
    c->paths[depth + 1] = (uint32_t)path;
    if (!tl_frame_is_call(frame) || insn < c->from)
        return TL_OK;
    if ((uint32_t)path == parent)
        return begin_other(c, frame->function);
    c->known[path].calls++;
    return TL_OK;
}

/* Count a call of `length` instructions, from `begin` on, as ended. */
static inline void count_length(struct tl_call_path *known, uint64_t begin, uint64_t length)
{
    known->ended++;
    known->total += length;
    known->min = length < known->min ? length : known->min;
    if (length >= known->max && (length > known->max || begin < known->longest)) {
        known->max = length;
        known->longest = begin;
    }
}

static inline int end_call(struct tl_call_counter *c, const struct tl_frame *frame, uint32_t depth,
                           uint64_t insn)
{
    const uint32_t path = c->paths[depth + 1];
    const uint64_t length = insn - frame->insn;
    if (!tl_frame_is_call(frame) || insn < c->from)
        return TL_OK;
    if (path == c->paths[depth])
        return end_other(c, frame, length);
    count_length(&c->known[path], frame->insn, length);
    return TL_OK;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct tl_call_counter *const c = context;
    int r;
    if (change == TL_FRAME_PUSH) {
        count_own(c, depth, insn);
        r = begin_call(c, frame, depth, insn);
    } else {
        count_own(c, depth + 1, insn);
        r = end_call(c, frame, depth, insn);
    }
    if (r < 0)
        tl_call_counter_fini(c);
    return TL_OK;
}

static void on_leaf(void *context, uint32_t function, uint32_t depth, uint64_t begin, uint64_t end)
{
    struct tl_call_counter *const c = context;
    const uint32_t parent = c->paths[depth];
    const struct tl_call_path *const from = &c->known[parent];
    if (from->callee != function || from->child == 0 || begin < c->from) {
        const struct tl_frame frame = {.insn = begin, .function = function, .kind = TL_FRAME_CALL};
        (void)on_frame(c, TL_FRAME_PUSH, &frame, depth, begin);
        if (c->counting)
            (void)on_frame(c, TL_FRAME_POP, &frame, depth, end);
        return;
    }
    struct tl_call_path *const known = &c->known[from->child];
    count_own(c, depth, begin);
    known->calls++;
    known->self += end - begin;
    c->since = end;
    count_length(known, begin, end - begin);
}

void tl_call_counter_begin(struct tl_call_counter *c, struct tl_callstack *calls, uint64_t position,
                           uint64_t from)
{
    int64_t path = tl_calltree_root(&c->tree);
    if (path >= 0)
        path = know_paths(c);
    c->counting = true;
    c->calls = calls;
    calls->sink = on_frame;
    calls->leaf = on_leaf;
    calls->context = c;
    c->from = from;
    c->since = position > from ? position : from;
    c->paths[0] = 0;
    for (uint32_t i = 0; i < calls->depth && path >= 0; i++) {
        path = path_of(c, c->paths[i], calls->frames[i].function);
        c->paths[i + 1] = (uint32_t)path;
    }
    if (path < 0)
        tl_call_counter_fini(c);
}

/* Stop listening. */
static void leave(struct tl_call_counter *c)
{
    if (c->calls) {
        c->calls->sink = NULL;
        c->calls->leaf = NULL;
    }
    c->calls = NULL;
    free(c->known);
    c->known = NULL;
    c->n_known = c->cap_known = 0;
}

void tl_call_counter_end(struct tl_call_counter *c, uint64_t position)
{
    int r = TL_OK;
    if (c->calls)
        count_own(c, c->calls->depth, position);
    for (size_t i = 0; i < c->n_known && r >= 0; i++) {
        const struct tl_call_path *const known = &c->known[i];
        struct tl_calltree_node *const node = &c->tree.nodes[i];
        node->self = known->self;
        node->calls = known->calls;
        if (known->calls > 0 || known->ended > 0)
            r = count_function(c, &(struct tl_calltree_function){.function = node->function,
                                                                 .calls = known->calls,
                                                                 .ended = known->ended,
                                                                 .total = known->total,
                                                                 .min = known->min,
                                                                 .max = known->max,
                                                                 .longest = known->longest});
    }
    leave(c);
    if (r < 0)
        tl_call_counter_fini(c);
}

void tl_call_counter_fini(struct tl_call_counter *c)
{
    leave(c);
    tl_calltree_fini(&c->tree);
    c->counting = false;
}
