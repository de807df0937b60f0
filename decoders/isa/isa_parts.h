/* SPDX-License-Identifier: MIT */
/* One function per instruction set; private to this folder. Contracts as tl_insn_decode(). */
#ifndef TL_ISA_ISA_PARTS_H
#define TL_ISA_ISA_PARTS_H

#include "isa/isa.h"

/* `code` and `out` as in tl_insn_decode(); `out` is zeroed except next_isa. */
int tl_a64_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out);
int tl_a32_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out);
int tl_t32_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out);
int tl_riscv_decode(unsigned xlen, const struct tl_isa_options *options, uint64_t pc,
                    struct tl_bytes code, struct tl_insn *out);
int tl_x86_insn_decode(enum tl_isa isa, uint64_t pc, struct tl_bytes code, struct tl_insn *out);

/* Bits high..low of a word. */
static inline uint32_t tl_bits(uint32_t word, unsigned high, unsigned low)
{
    return word >> low & (0xffffffffu >> (31 - (high - low)));
}

/* The low `width` (1..32) bits of `value`, sign-extended. */
static inline int64_t tl_signed(uint32_t value, unsigned width)
{
    const uint64_t sign = 1ULL << (width - 1);
    return (int64_t)(((uint64_t)value & (2 * sign - 1)) ^ sign) - (int64_t)sign;
}

#endif
