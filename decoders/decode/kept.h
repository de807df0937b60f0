/* SPDX-License-Identifier: MIT */
/*
 * Items and losses of one part of a stream, kept in order until they can be delivered: either whole
 * batches in the decoder's own buffers (blocks that the items point to must live until then), or
 * the digests the sink made of them. Not thread-safe.
 */
#ifndef TL_DECODE_KEPT_H
#define TL_DECODE_KEPT_H

#include "decode/ops.h"
#include "flow/batch.h"

/* A loss, to be delivered before batch or digest number `before`. */
struct tl_kept_loss {
    const char *reason; /* static storage */
    uint64_t offset, bytes;
    size_t before;
};

struct tl_kept {
    struct tl_item_buffer *first, **end; /* batches; empty if there are digests */
    struct tl_buf *digests;              /* digests: one, plus one after each loss */
    size_t cap_digests;
    size_t n;     /* batches or digests */
    size_t bytes; /* memory they use */
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

/* A position in what is kept, to drop everything kept after it. */
struct tl_kept_mark {
    struct tl_item_buffer **end;
    size_t n, n_losses, bytes;
};

void tl_kept_init(struct tl_kept *kept);
/* All item buffers must have been taken back first (tl_kept_reset()). */
void tl_kept_fini(struct tl_kept *kept);

/* Keep the batch of `n` items in `buffer`; takes ownership of `buffer`. */
void tl_kept_batch(struct tl_kept *kept, struct tl_item_buffer *buffer, size_t n);
/* Keep the sink's digest of a batch. Returns what `digest` returned, or TL_NOMEM. */
TL_MUST_USE int tl_kept_digest(struct tl_kept *kept, const struct tl_stream_sink *sink,
                               const struct tl_item *items, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

struct tl_kept_mark tl_kept_mark(const struct tl_kept *kept);
/* Drop the batches kept since `mark`; their buffers are prepended to the list `buffers`. Returns
 * how many. Not for digests. */
size_t tl_kept_cut(struct tl_kept *kept, const struct tl_kept_mark *mark,
                   struct tl_item_buffer **buffers);
/* Drop everything; otherwise as tl_kept_cut(). */
size_t tl_kept_reset(struct tl_kept *kept, struct tl_item_buffer **buffers);

/* Deliver everything in order. PATH items are expanded unless the sink accepts them. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
