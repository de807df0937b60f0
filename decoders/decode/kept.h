/* SPDX-License-Identifier: MIT */
/*
 * Items and losses of one part of a stream, kept in order until they can be delivered: either
 * copies of batches (blocks that the items point to must live until then), or the digests the sink
 * made of them. Not thread-safe.
 *
 * Batches are copied rather than kept where the decoder wrote them, because they are delivered by
 * another thread. A decoder that always writes to the same buffer does so in its processor's cache;
 * each line of a buffer that another processor has read would first have to be fetched from there.
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

/* Memory for the items of one part. */
struct tl_kept_room {
    struct tl_kept_room *next; /* for the owner's lists */
    size_t half;               /* bytes */
    /* The first half is for items, the second for what they point to, so that each is read in one
     * sweep. */
    _Alignas(16) uint8_t bytes[];
};

struct tl_kept {
    struct tl_kept_room *room; /* borrowed; NULL: digests are kept */
    struct tl_buf *digests;    /* digests: one, plus one after each loss */
    size_t cap_digests;
    struct tl_buf counts; /* items of each batch, uint16_t */
    size_t n;             /* batches or digests */
    size_t items;         /* bytes: of items, */
    size_t bytes;         /* and of what they point to, or of digests */
    struct tl_kept_loss *losses;
    size_t n_losses, cap_losses;
};

/* A position in what is kept, to drop everything kept after it. */
struct tl_kept_mark {
    size_t n, n_losses, items, bytes;
};

/* Returns NULL if out of memory. */
struct tl_kept_room *tl_kept_room_new(size_t size);
void tl_kept_rooms_free(struct tl_kept_room *rooms); /* a list */

/* All zero: empty, without a room. Does not free the room. */
void tl_kept_fini(struct tl_kept *kept);

/* Keep a copy of the `n` items that `batch` is delivering, which are changed. Returns TL_LIMIT: the
 * room is full; TL_NOMEM. */
TL_MUST_USE int tl_kept_batch(struct tl_kept *kept, struct tl_item_batch *batch, size_t n);
/* Keep the sink's digest of a batch. Returns what `digest` returned, or TL_NOMEM. */
TL_MUST_USE int tl_kept_digest(struct tl_kept *kept, const struct tl_stream_sink *sink,
                               const struct tl_item *items, size_t n);
TL_MUST_USE int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset,
                             uint64_t bytes);

/* Bytes of memory needed for what is kept. */
size_t tl_kept_size(const struct tl_kept *kept);

struct tl_kept_mark tl_kept_mark(const struct tl_kept *kept);
/* Drop the items kept since `mark`. Not for digests. */
void tl_kept_cut(struct tl_kept *kept, const struct tl_kept_mark *mark);
/* Drop everything. */
void tl_kept_reset(struct tl_kept *kept);

/* Deliver everything in order. */
TL_MUST_USE int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink);

#endif
