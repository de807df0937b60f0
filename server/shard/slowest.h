/* SPDX-License-Identifier: MIT */
/*
 * The longest calls of a function, exactly: at most TL_SLOWEST, those of equal length by position.
 * All zero: empty. Not thread-safe.
 */
#ifndef TL_SHARD_SLOWEST_H
#define TL_SHARD_SLOWEST_H

#include "base/buf.h"
#include "shard/varint.h"

#define TL_SLOWEST 32

struct tl_slow_call {
    uint64_t position; /* where it began */
    uint64_t length;   /* instructions, or ticks */
};

/* Is `a` replaced before `b`? */
static inline bool tl_slow_call_is_less(const struct tl_slow_call *a, const struct tl_slow_call *b)
{
    return a->length != b->length ? a->length < b->length : a->position > b->position;
}

struct tl_slowest {
    struct tl_slow_call *p; /* a heap: the first one is that which the next longer one replaces */
    uint32_t n;
    struct tl_slow_call least; /* a copy of the first one, if they are TL_SLOWEST */
};

void tl_slowest_fini(struct tl_slowest *slowest);
/* For tl_slowest_add(). TL_NOMEM. */
TL_MUST_USE int tl_slowest_take(struct tl_slowest *slowest, uint64_t position, uint64_t length);

/* Add a call, if it is one of the longest. TL_NOMEM. */
TL_MUST_USE static inline int tl_slowest_add(struct tl_slowest *slowest, uint64_t position,
                                             uint64_t length)
{
    const struct tl_slow_call *const least = &slowest->least;
    return length < least->length || (length == least->length && position >= least->position &&
                                      slowest->n == TL_SLOWEST)
               ? TL_OK
               : tl_slowest_take(slowest, position, length);
}

/* Add those of `from`, which are other calls. TL_NOMEM. */
TL_MUST_USE int tl_slowest_merge(struct tl_slowest *into, const struct tl_slowest *from);
/* Sort, the longest first. Nothing can be added afterwards. */
void tl_slowest_sort(struct tl_slowest *slowest);

/* Append the encoding. TL_NOMEM. */
TL_MUST_USE int tl_slowest_encode(const struct tl_slowest *slowest, struct tl_buf *out);
/* Read what tl_slowest_encode() wrote, adding it. Sets in->bad if it is damaged. TL_NOMEM. */
TL_MUST_USE int tl_slowest_read(struct tl_slowest *slowest, struct tl_varint_reader *in);

#endif
