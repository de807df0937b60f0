/* SPDX-License-Identifier: MIT */
/*
 * Repeats: bytes of STF records that equal earlier ones of their chunk. A program's flow repeats
 * the same few thousand blocks, so its writer finds them by comparing steps instead of bytes
 * (stf/flow/flow_repeat.h), and the compressor encodes them.
 */
#ifndef TL_STF_FLOW_PIECE_H
#define TL_STF_FLOW_PIECE_H

#include "base/buf.h"

/* The `n` bytes at offset `at`, 3 or more, or 0, equal those `back` bytes before; `back` may be
 * less than `n`. */
struct tl_stf_repeat {
    uint32_t at, n, back;
};

/* Write repeated bytes that were left out. `repeats` are in order. */
void tl_stf_fill(uint8_t *stf, const struct tl_stf_repeat *repeats, size_t n);

/* Records with their repeats, which are in order and apart from each other. Repeated bytes may have
 * been left out: see tl_stf_fill(). */
struct tl_stf_piece {
    struct tl_buf stf;
    struct tl_stf_repeat *repeats;
    size_t n_repeats, cap_repeats;
    size_t head; /* bytes at the beginning that are compressed separately: see shard/pack.h */
};

#endif
