/* SPDX-License-Identifier: MIT */
/*
 * Items and losses of a part of a stream, kept in order until their turn to be delivered: whole
 * batches, as the decoder made them, where it made them, and blocks that items point to must live
 * until then; or what the sink makes of them. Not thread-safe.
 */
#ifndef TL_DECODE_KEPT_H
#define TL_DECODE_KEPT_H

#include "decode/ops.h"
#include "flow/batch.h"

/* A loss stands in front of batch or digest `before`. */
struct tl_kept_loss {
    const char *reason; /* static storage */
    uint64_t offset, bytes;
    size_t before;
};

struct tl_kept {
    struct tl_item_room *first, **end; /* the batches, or else … */
    struct tl_buf *digests;            /* … digests: one, and one more behind each loss */
    size_t cap_digests;
    size_t n;     /* batches or digests */
    size_t bytes; /* that they take */
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

/* How much is kept: what came later can be dropped. */
struct tl_kept_mark {
    struct tl_item_room **end;
    size_t n, n_losses, bytes;
};

void tl_kept_init(struct tl_kept *kept);
/* All rooms must have been taken back. */
void tl_kept_fini(struct tl_kept *kept);

/* Keep the batch of `n` items in `room`, which belongs to `kept` from now on. */
void tl_kept_batch(struct tl_kept *kept, struct tl_item_room *room, size_t n);
/* Keep what `sink` makes of a batch. What it returns, and TL_NOMEM. */
TL_MUST_USE int tl_kept_digest(struct tl_kept *kept, const struct tl_stream_sink *sink,
                               const struct tl_item *items, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

struct tl_kept_mark tl_kept_mark(const struct tl_kept *kept);
/* Forget what was kept since the mark, of batches; their rooms go to the front of a list. Returns
 * how many. */
size_t tl_kept_cut(struct tl_kept *kept, const struct tl_kept_mark *mark,
                   struct tl_item_room **rooms);
/* Forget all. */
size_t tl_kept_reset(struct tl_kept *kept, struct tl_item_room **rooms);

/* Deliver all, as it was kept: PATH items only where the sink takes them. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
