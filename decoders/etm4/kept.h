/* SPDX-License-Identifier: MIT */
/*
 * Items and losses of a part of a stream, kept in order until their turn to be delivered: whole
 * batches, as the decoder made them, where it made them. Blocks that items point to must live
 * until then. Not thread-safe.
 */
#ifndef TL_ETM4_KEPT_H
#define TL_ETM4_KEPT_H

#include "decode/ops.h"
#include "flow/batch.h"

/* A loss stands in front of batch `before`. */
struct tl_kept_loss {
    const char *reason; /* static storage */
    uint64_t offset, bytes;
    size_t before;
};

struct tl_kept_batch {
    struct tl_item_room *room; /* NULL: none yet */
    size_t n;                  /* items */
};

struct tl_kept {
    struct tl_kept_batch *batches; /* [most] */
    size_t n, most;
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

/* Up to `most` (> 0) batches. TL_NOMEM. */
TL_MUST_USE int tl_kept_init(struct tl_kept *kept, size_t most);
/* Fine if zeroed. All rooms must have been given back. */
void tl_kept_fini(struct tl_kept *kept);
/* Forget all; the rooms stay. */
void tl_kept_reset(struct tl_kept *kept);

/* Where the next batch is made, NULL if it has no room yet: then give one. */
struct tl_item_room **tl_kept_room(struct tl_kept *kept);
/* Give all rooms to a list. */
void tl_kept_release(struct tl_kept *kept, struct tl_item_room **rooms);
/* The batch made there has `n` items. TL_LIMIT: it is the last one there was room for. */
TL_MUST_USE int tl_kept_items(struct tl_kept *kept, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

/* Deliver all, as it was kept: PATH items only where the sink takes them. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
