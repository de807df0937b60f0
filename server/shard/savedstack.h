/* SPDX-License-Identifier: MIT */
/*
 * Serialised call stack, so that every index chunk has the stack that is current at its begin. Pure
 * functions.
 */
#ifndef TL_SHARD_SAVEDSTACK_H
#define TL_SHARD_SAVEDSTACK_H

#include "flow/callstack.h"
#include "shard/walk.h"

/* Append a call stack. TL_NOMEM. */
TL_MUST_USE int tl_savedstack_encode(const struct tl_callstack *calls, struct tl_buf *out);
/* Set an initialised call stack from bytes; its image, sink and context are unchanged. TL_BAD. */
TL_MUST_USE int tl_savedstack_decode(struct tl_callstack *calls, struct tl_bytes bytes);

/* Set it to the stack at the begin of a walked chunk (shard/walk.h), if known. */
TL_MUST_USE int tl_walk_stack(const struct tl_walk *walk, struct tl_callstack *calls);
/* Push item `i` of a walk with TL_WALK_FLOW. Returns the result of the sink of `calls`. */
static inline int tl_walk_follow(const struct tl_walk *walk, struct tl_callstack *calls, size_t i)
{
    calls->insns = walk->positions[i];
    return tl_callstack_push(calls, &walk->items[i], 1);
}

#endif
