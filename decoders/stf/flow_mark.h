/* SPDX-License-Identifier: MIT */
/*
 * Marks: where in STF records the flow turns from one block to the next. Whoever compresses the
 * records finds with them what was said before. Only hints; the same items give the same marks.
 */
#ifndef TL_STF_FLOW_MARK_H
#define TL_STF_FLOW_MARK_H

#include "base/buf.h"

struct tl_stf_mark {
    uint32_t at;    /* of the block's last instruction: its INST_PC_TARGET or closing records */
    uint32_t turn;  /* hash of the place and where the flow goes on */
    uint32_t entry; /* hash of where it goes on */
};

/* The mark at `at` of the turn from the instruction in front of address `from` to `to`. */
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
    size_t head; /* bytes at the begin that are packed apart: see store/pack.h */
};

#endif
