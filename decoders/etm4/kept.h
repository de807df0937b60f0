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
    struct tl_item_room *room; /* NULL: not needed so far */
    size_t n;                  /* items */
};

struct tl_kept {
    struct tl_kept_batch *batches; /* [most] */
    size_t n, most;
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

/* Room for `most` (> 0) batches; it takes memory only once it is used. TL_NOMEM. */
TL_MUST_USE int tl_kept_init(struct tl_kept *kept, size_t most);
/* Fine if zeroed. */
void tl_kept_fini(struct tl_kept *kept);
/* Forget all; the memory stays. */
void tl_kept_reset(struct tl_kept *kept);

/* Where the next batch is to be made. NULL: out of memory. */
struct tl_item_room *tl_kept_room(struct tl_kept *kept);
/* The batch made there has `n` items. TL_LIMIT: it is the last one there was room for. */
TL_MUST_USE int tl_kept_items(struct tl_kept *kept, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

/* Deliver all. PATH items become BLOCK items if the sink does not take them. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
