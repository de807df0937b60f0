/* SPDX-License-Identifier: MIT */
/*
 * Marks: bytes of STF records that repeat earlier ones of their chunk. A program's flow repeats the
 * same few thousand blocks, so its writer finds them by comparing steps instead of bytes
 * (stf/flow/flow_repeat.h), and the compressor encodes them.
 */
#ifndef TL_STF_FLOW_MARK_H
#define TL_STF_FLOW_MARK_H

#include "base/buf.h"

/* The `n` bytes at offset `at`, 3 or more, or 0, equal those `back` bytes before; `back` may be
 * less than `n`. */
struct tl_stf_mark {
    uint32_t at, n, back;
};

/* Write marked bytes that were left out. `marks` are in order. */
void tl_stf_fill(uint8_t *stf, const struct tl_stf_mark *marks, size_t n);

/* Records with their marks, which are in order and apart from each other. Marked bytes may have
 * been left out: see tl_stf_fill(). */
struct tl_stf_piece {
    struct tl_buf stf;
    struct tl_stf_mark *marks;
    size_t n_marks, cap_marks;
    size_t head; /* bytes at the beginning that are compressed separately: see shard/pack.h */
};

#endif
