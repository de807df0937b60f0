/* SPDX-License-Identifier: MIT */
/*
 * Zcmt's jumps by a table. Trace units take the table as constant and say nothing about where such
 * a jump goes; block caches make direct ones of those whose table they have.
 *
 * Source: RISC-V code size reduction 1.0, Zcmt.
 */
#ifndef TL_RISCV_TABLE_JUMP_H
#define TL_RISCV_TABLE_JUMP_H

#include "flow/block.h"

/* What is told of such a jump, once for each stream. */
#define TL_RISCV_NO_TABLE                                                                          \
    "CM.JT without its jump table: add jvt=ADDRESS to the source, and the table to the image"

/* Does the block end with CM.JT or CM.JALT whose table is missing? */
static inline bool tl_riscv_lacks_table(const struct tl_block *b)
{
    struct tl_insn insn;
    if (b->last_kind != TL_INSN_INDIRECT || b->last_size != 2)
        return false;
    tl_block_insn(b, b->size - b->last_size, &insn);
    return (insn.encoding & 0xfc03) == 0xa002;
}

#endif
