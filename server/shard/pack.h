/* SPDX-License-Identifier: MIT */
/*
 * Compression of shard contents. A packer keeps its contexts and tables, so that a frame has no
 * set-up cost. Not thread-safe: use one per thread. The output depends only on the arguments, never
 * on what was packed before.
 *
 * In STF of a program's flow, repeats are known from the writer (stf/flow/flow_repeat.h), and
 * hardly anything is searched byte by byte (shard/search.h); zstd encodes these sequences as its
 * own.
 */
#ifndef TL_SHARD_PACK_H
#define TL_SHARD_PACK_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "stf/flow/flow_piece.h"

struct tl_packer;

TL_MUST_USE int tl_packer_new(struct tl_packer **out);
void tl_packer_free(struct tl_packer *packer); /* accepts NULL */

/*
 * Append the bytes of `piece` as one zstd frame with their content size; without repeats they are
 * packed like arbitrary bytes. Repeated bytes that were left out are written if they are needed.
 * TL_NOMEM.
 *
 * The first piece->head bytes (at most TL_PACK_HEAD, 0: none) are stored uncompressed, in a block
 * of their own that later blocks do not refer to: they can be exchanged, see tl_pack_reheaded().
 */
#define TL_PACK_HEAD 4096
TL_MUST_USE int tl_packer_stf(struct tl_packer *packer, const struct tl_stf_piece *piece,
                              struct tl_buf *out);
/* The same into newly allocated memory of exactly the needed size, to be freed by the caller. */
TL_MUST_USE int tl_packer_stf_new(struct tl_packer *packer, const struct tl_stf_piece *piece,
                                  uint8_t **out, size_t *size);

/* The uncompressed head of a frame made by tl_packer_stf(), from the frame's first
 * TL_PACK_HEAD_READ bytes, or all if it is shorter. n == 0: its head was 0, or too long. */
#define TL_PACK_HEAD_READ (TL_PACK_HEAD + 32)
struct tl_bytes tl_pack_head(struct tl_bytes frame);
/* Size of the result of tl_pack_reheaded(), by those of the frame, its head and the new head. */
size_t tl_pack_reheaded_size(size_t frame, size_t old_head, size_t new_head);
/* Append `frame` with its head, which it must have, replaced by `head`, of at most TL_PACK_HEAD
 * bytes. TL_NOMEM. */
TL_MUST_USE int tl_pack_reheaded(struct tl_bytes frame, struct tl_bytes head, struct tl_buf *out);
/* Append only the begin of the result, which differs from the frame's. `plain`: uncompressed size
 * with the new head. It is followed by the frame's bytes from tl_pack_rest() on, by the size of the
 * frame's own head. TL_NOMEM. */
TL_MUST_USE int tl_pack_rehead(struct tl_bytes head, size_t plain, struct tl_buf *out);
size_t tl_pack_rest(size_t old_head);
/* Inputs shorter than this, mostly small numbers, hardly compress: they are stored uncompressed, in
 * a valid frame. */
#define TL_PACK_SMALL 1024
/* Append arbitrary bytes as one zstd frame with its content size. TL_NOMEM. */
TL_MUST_USE int tl_packer_bytes(struct tl_packer *packer, struct tl_bytes plain,
                                struct tl_buf *out);
/*
 * The same preceded by the frame's CRC32C as a u32: a self-contained object, for
 * tl_unpack_checked().
 */
TL_MUST_USE int tl_packer_checked(struct tl_packer *packer, struct tl_bytes plain,
                                  struct tl_buf *out);

/*
 * As tl_packer_bytes(), for bytes written in place, between tl_packer_begin() and tl_packer_end(),
 * whose `begin` is the size of `out` before. Up to 64 KiB are neither compressed nor copied: a
 * shard's index is that long, and compressing it to half would take 1 % of the time spent on the
 * shard. TL_NOMEM.
 */
TL_MUST_USE int tl_packer_begin(struct tl_buf *out);
TL_MUST_USE int tl_packer_end(struct tl_packer *packer, size_t begin, struct tl_buf *out);

#endif
