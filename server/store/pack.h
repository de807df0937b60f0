/* SPDX-License-Identifier: MIT */
/*
 * Compression of what goes into shards. A packer keeps its contexts and tables, so that a frame
 * costs no set-up. Not thread-safe: one for each thread. What it makes depends on its arguments
 * alone, never on what it packed before.
 *
 * In STF of a program's flow what was said before is found by who wrote it, not byte by byte
 * (store/search.h); zstd then codes these sequences as it codes its own.
 */
#ifndef TL_STORE_PACK_H
#define TL_STORE_PACK_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "stf/flow_mark.h"

struct tl_packer;

TL_MUST_USE int tl_packer_new(struct tl_packer **out);
void tl_packer_free(struct tl_packer *packer); /* NULL is fine */

/*
 * Append `stf` as one zstd frame with its content size. `marks` are hints: rising places in it;
 * wrong ones cost space, nothing else. Without any it is packed as any bytes are. TL_NOMEM.
 *
 * The first `head` bytes, at most TL_PACK_HEAD, 0: none, are stored as they are, in a block of
 * their own to which nothing behind it refers: they can be exchanged, see tl_pack_reheaded().
 */
#define TL_PACK_HEAD 4096
TL_MUST_USE int tl_packer_stf(struct tl_packer *packer, struct tl_bytes stf, size_t head,
                              const struct tl_stf_mark *marks, size_t n, struct tl_buf *out);
/* The same in memory of its own that is just large enough, to be freed by the caller. */
TL_MUST_USE int tl_packer_stf_new(struct tl_packer *packer, struct tl_bytes stf, size_t head,
                                  const struct tl_stf_mark *marks, size_t n, uint8_t **out,
                                  size_t *size);

/* The bytes that a frame of tl_packer_stf() has in front, by its first TL_PACK_HEAD_READ bytes, or
 * all if it has fewer. n == 0: its head was 0, or too long. */
#define TL_PACK_HEAD_READ (TL_PACK_HEAD + 32)
struct tl_bytes tl_pack_head(struct tl_bytes frame);
/* What tl_pack_reheaded() makes of a frame of `size` bytes. */
size_t tl_pack_reheaded_size(struct tl_bytes head, size_t size, size_t n);
/* Append `frame` with `head`, of at most TL_PACK_HEAD bytes, in place of its own, of which it must
 * have one. TL_NOMEM. */
TL_MUST_USE int tl_pack_reheaded(struct tl_bytes frame, struct tl_bytes head, struct tl_buf *out);
/* Of fewer bytes, mostly numbers that have been made short, zstd takes off next to nothing: they
 * are stored as they are, in a frame all the same. */
#define TL_PACK_SMALL 1024
/* Append any bytes as one zstd frame with its content size. TL_NOMEM. */
TL_MUST_USE int tl_packer_bytes(struct tl_packer *packer, struct tl_bytes plain,
                                struct tl_buf *out);
/* The same behind a u32, the CRC32C of the frame: an object by itself, for tl_unpack_checked(). */
TL_MUST_USE int tl_packer_checked(struct tl_packer *packer, struct tl_bytes plain,
                                  struct tl_buf *out);

/*
 * As tl_packer_bytes(), of bytes that are made where they go, between tl_packer_begin() and
 * tl_packer_end(), which gets the size that `out` had before. Of up to 64 KiB nothing is
 * compressed, nor copied: the index of a shard is as long, half of which zstd would take off in a
 * hundredth of the time that the shard took. TL_NOMEM.
 */
TL_MUST_USE int tl_packer_begin(struct tl_buf *out);
TL_MUST_USE int tl_packer_end(struct tl_packer *packer, size_t begin, struct tl_buf *out);

#endif
