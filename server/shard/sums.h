/* SPDX-License-Identifier: MIT */
/*
 * Data that allows a shard's private index to be rebuilt from the rest of the shard: checksums of
 * all its blocks, stored separately from the index, which has them too, and in each item log the
 * begin of its chunk. Pure functions.
 *
 * The sums directly follow the chunk index of the .zstf:
 *
 *     "TLSUMS01", u32 frames of the .zstf, u32 item blocks, u32 size of the body frame,
 *     u32 crc32c of it, {u32 size, u32 crc32c} of each frame and of each item block,
 *     u32 crc32c of all before
 *
 * The item blocks and the body follow in this order, so that their positions are known. Shards of
 * older versions have no sums.
 */
#ifndef TL_SHARD_SUMS_H
#define TL_SHARD_SUMS_H

#include "shard/shard.h"

struct tl_sum {
    uint32_t size, crc;
};

struct tl_sums {
    size_t at, size; /* of the sums, in the file */
    struct tl_sum body;
    uint32_t n_frames, n_blocks;
    struct tl_sum *sums; /* of the frames, then of the blocks */
};

void tl_sums_fini(struct tl_sums *sums);

/* Size of the sums for an index. */
size_t tl_sums_size(const struct tl_shard_index *index);
/* Write the sums: tl_sums_size() bytes. */
void tl_sums_put(const struct tl_shard_index *index, const struct tl_shard_footer *footer,
                 uint8_t *out);
/* Find intact sums in a file that may be damaged anywhere. TL_NOTFOUND, TL_NOMEM. */
TL_MUST_USE int tl_sums_find(struct tl_bytes file, struct tl_sums *out);

/* Encode the begin of a chunk: `first`, `marker`, `stf` and `at`. TL_NOMEM. */
TL_MUST_USE int tl_chunk_head_encode(const struct tl_chunk *chunk, struct tl_buf *out);
/* Decode it; all other members of the chunk become 0. TL_BAD. */
TL_MUST_USE int tl_chunk_head_decode(struct tl_chunk *chunk, struct tl_bytes bytes);

#endif
