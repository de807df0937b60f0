/* SPDX-License-Identifier: MIT */
/*
 * A call stack as bytes, so that every index chunk knows the one that is in force where it
 * begins. Pure functions.
 */
#ifndef TL_STORE_STACKMARK_H
#define TL_STORE_STACKMARK_H

#include "flow/callstack.h"

/* Append it. TL_NOMEM. */
TL_MUST_USE int tl_stackmark_encode(const struct tl_callstack *calls, struct tl_buf *out);
/* Set an initialised call stack to what the bytes say; its image, sink and context stay. TL_BAD. */
TL_MUST_USE int tl_stackmark_decode(struct tl_callstack *calls, struct tl_bytes bytes);

#endif
