/* SPDX-License-Identifier: MIT */
/*
 * A call stack as bytes, so that every index chunk knows the one that is in force where it
 * begins. Pure functions.
 */
#ifndef TL_STORE_STACKMARK_H
#define TL_STORE_STACKMARK_H

#include "flow/callstack.h"
#include "store/walk.h"

/* Append it. TL_NOMEM. */
TL_MUST_USE int tl_stackmark_encode(const struct tl_callstack *calls, struct tl_buf *out);
/* Set an initialised call stack to what the bytes say; its image, sink and context stay. TL_BAD. */
TL_MUST_USE int tl_stackmark_decode(struct tl_callstack *calls, struct tl_bytes bytes);

/* The same to where a chunk begins that was walked (store/walk.h), as far as it tells. */
TL_MUST_USE int tl_walk_stack(const struct tl_walk *walk, struct tl_callstack *calls);
/* Take item `i` of a walk of TL_WALK_FLOW. Returns what the sink of `calls` did. */
static inline int tl_walk_follow(const struct tl_walk *walk, struct tl_callstack *calls, size_t i)
{
    calls->insns = walk->positions[i];
    return tl_callstack_push(calls, &walk->items[i], 1);
}

#endif
