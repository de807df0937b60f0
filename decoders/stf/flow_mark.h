/* SPDX-License-Identifier: MIT */
/*
 * Marks: positions in STF records where control passes from one block to the next. The compressor
 * uses them to find earlier occurrences of the same sequence. Only hints; the same items give the
 * same marks.
 */
#ifndef TL_STF_FLOW_MARK_H
#define TL_STF_FLOW_MARK_H

#include "base/buf.h"

struct tl_stf_mark {
    uint32_t at; /* offset of the block's last instruction: its INST_PC_TARGET or closing records */
    uint32_t turn;  /* hash of source and destination address */
    uint32_t entry; /* hash of the destination address */
};

/*
 * Mark at offset `at` for control passing from the instruction that ends at address `from` to `to`.
 */
static inline struct tl_stf_mark tl_stf_mark(uint32_t at, uint64_t from, uint64_t to)
{
    const uint64_t entry = to * 0x9e3779b97f4a7c15u;
    return (struct tl_stf_mark){
        .at = at,
        .turn = (uint32_t)((entry + from * 0xd6e8feb86659fd93u) >> 32),
        .entry = (uint32_t)(entry >> 32),
    };
}

/* Records with their marks. */
struct tl_stf_piece {
    struct tl_buf stf;
    struct tl_stf_mark *marks;
    size_t n_marks, cap_marks;
    size_t head; /* bytes at the beginning that are compressed separately: see store/pack.h */
};

#endif
