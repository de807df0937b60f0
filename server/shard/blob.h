/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a shard in memory, reference-counted: plain at first, later packed by a thread of a pool
 * or by whoever needs to store them. Neither the content nor its packed form ever changes, whoever
 * packs it. Internally locked.
 */
#ifndef TL_SHARD_BLOB_H
#define TL_SHARD_BLOB_H

#include "shard/pack.h"
#include "stf/flow/flow_writer.h"

#include <stddef.h>

struct tl_blob;

/* Copy plain bytes. NULL: out of memory. */
struct tl_blob *tl_blob_new(struct tl_bytes bytes);
/* Take the plain bytes and repeats out of `piece`, which becomes empty. NULL: out of memory. */
struct tl_blob *tl_blob_take(struct tl_stf_piece *piece);
/* Pack a piece immediately: see tl_packer_stf(). NULL: out of memory. */
struct tl_blob *tl_blob_pack(struct tl_packer *packer, const struct tl_stf_piece *piece);
/* Copy bytes that are already packed: one zstd frame with its content size. NULL: out of memory. */
struct tl_blob *tl_blob_of_packed(struct tl_bytes packed);
struct tl_blob *tl_blob_get(struct tl_blob *blob);
void tl_blob_put(struct tl_blob *blob); /* accepts NULL */

/* Append the plain bytes to `out`. TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_blob_plain(struct tl_blob *blob, struct tl_buf *out);

/*
 * Get the packed bytes: pack them now, or wait if another thread is packing them. They are valid as
 * long as the blob. TL_NOMEM.
 */
TL_MUST_USE int tl_blob_packed(struct tl_blob *blob, struct tl_packer *packer,
                               struct tl_bytes *out);

/* ---- packing by the threads of a crew -------------------------------------------------------- */

struct tl_packing;
struct tl_crew;

/* `crew` is borrowed, and must have threads. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_packing_new(struct tl_packing **out, struct tl_crew *crew);
/* Blobs still in the queue stay plain. Accepts NULL. */
void tl_packing_free(struct tl_packing *packing);
/*
 * Queue a blob for packing. If the queue is full the caller packs it itself, with `packer`: a
 * producer faster than the threads is slowed down. A blob too small to be worth queueing is packed
 * when needed. TL_NOMEM.
 */
TL_MUST_USE int tl_packing_add(struct tl_packing *packing, struct tl_blob *blob,
                               struct tl_packer *packer);
/* Return an empty piece, reusing the memory of a packed one if available. */
void tl_packing_piece(struct tl_packing *packing, struct tl_stf_piece *out);

#endif
