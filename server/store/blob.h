/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a shard in memory, shared by reference count: plain at first, packed by whoever gets
 * to it: a thread of a pool, or the one that wants to store it. What they hold never changes, and
 * neither does what they are packed to, whoever does it. Internally locked.
 */
#ifndef TL_STORE_BLOB_H
#define TL_STORE_BLOB_H

#include "stf/flow_writer.h"
#include "store/pack.h"

#include <stddef.h>

struct tl_blob;

/* A copy of plain bytes. NULL: no memory. */
struct tl_blob *tl_blob_new(struct tl_bytes bytes);
/* Plain bytes and their marks, taken from `piece`, which is empty then. NULL: no memory. */
struct tl_blob *tl_blob_take(struct tl_stf_piece *piece);
/* Plain bytes with their marks, packed at once; `head` as of tl_packer_stf(). NULL: no memory. */
struct tl_blob *tl_blob_pack(struct tl_packer *packer, struct tl_bytes plain, size_t head,
                             const struct tl_stf_mark *marks, size_t n);
/* A copy of bytes that are packed already: one zstd frame with its content size. NULL: no memory.
 */
struct tl_blob *tl_blob_of_packed(struct tl_bytes packed);
struct tl_blob *tl_blob_get(struct tl_blob *blob);
void tl_blob_put(struct tl_blob *blob); /* NULL is fine */

/* Append the plain bytes to `out`. TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_blob_plain(struct tl_blob *blob, struct tl_buf *out);

/*
 * The packed bytes, packed now if nobody has begun to, waited for if somebody has. They live as
 * long as the blob. TL_NOMEM.
 */
TL_MUST_USE int tl_blob_packed(struct tl_blob *blob, struct tl_packer *packer,
                               struct tl_bytes *out);

/* ---- packing by the threads of a crew ---------------------------------------------------------
 */

struct tl_packing;
struct tl_crew;

/* `crew` is borrowed, and has threads. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_packing_new(struct tl_packing **out, struct tl_crew *crew);
/* Blobs that are still in the queue stay plain. NULL is fine. */
void tl_packing_free(struct tl_packing *packing);
/*
 * Have a blob packed some time. Where the queue is full the caller does it, with `packer`: who
 * makes blobs faster than the threads pack them is held up. One that is too small to be any work is
 * packed when it is needed. TL_NOMEM.
 */
TL_MUST_USE int tl_packing_add(struct tl_packing *packing, struct tl_blob *blob,
                               struct tl_packer *packer);
/* An empty piece with the memory of one that has been packed, if there is any. */
void tl_packing_piece(struct tl_packing *packing, struct tl_stf_piece *out);

#endif
