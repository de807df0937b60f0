/* SPDX-License-Identifier: MIT */
/*
 * Items and losses of a part of a stream, kept in order until their turn to be delivered. Blocks
 * that items point to must live until then; all else is copied. Not thread-safe.
 */
#ifndef TL_ETM4_KEPT_H
#define TL_ETM4_KEPT_H

#include "decode/ops.h"

/* A loss stands in front of word `before`. */
struct tl_kept_loss {
    const char *reason; /* static storage */
    uint64_t offset, bytes;
    size_t before;
};

/*
 * Most items are whole blocks and paths; written short, because they go from one processor's
 * cache to another's:
 *
 *     block | taken, offset                     a whole block
 *     n << 8 | 2, offset, instructions          a path, its steps in `steps`
 *     4, the item itself[, its payload]         any other
 */
struct tl_kept {
    uint64_t *words;
    size_t n, cap;
    uintptr_t *steps;
    size_t n_steps, cap_steps;
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

void tl_kept_fini(struct tl_kept *kept);
/* Forget all, keep the memory unless it is more than `most` bytes. */
void tl_kept_reset(struct tl_kept *kept, size_t most);
/* Bytes in use. */
size_t tl_kept_bytes(const struct tl_kept *kept);

TL_MUST_USE int tl_kept_items(struct tl_kept *kept, const struct tl_item *items, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

/* Deliver all. PATH items become BLOCK items if the sink does not take them. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
