/* SPDX-License-Identifier: MIT */
/*
 * Lengths of the most frequent x86 instructions that do not change the flow, by one table and
 * without a branch on the opcode. The next instruction cannot be found before the length of this
 * one is known, so that this sets the speed of decoding; what is unusual is left to the complete
 * decoder.
 */
#include "isa/x86.h"

#include "base/bytes.h"

/* Operands of an opcode handled here; 0: not handled. */
enum {
    KNOWN = 1 << 0,
    MODRM = 1 << 1,
    IMM8 = 1 << 2,
    IMM_Z = 1 << 3, /* 32 bits, or 16 with an operand size prefix and without REX.W */
    IMM_V = 1 << 4, /* as IMM_Z, but 64 bits with REX.W */
    TEST = 1 << 5,  /* the immediate is present for /0 and /1 only */
    ZERO = 1 << 6,  /* handled for /0 only */

    _ = 0,
    N = KNOWN,
    B = KNOWN | IMM8,
    Z = KNOWN | IMM_Z,
    V = KNOWN | IMM_V,
    M = KNOWN | MODRM,
    MB = M | IMM8,
    MZ = M | IMM_Z,
    TB = MB | TEST,
    TZ = MZ | TEST,
    CZ = MZ | ZERO
};

/* Opcodes that neither affect the flow nor have tl_insn.binds: the one-byte map, then the 0F map.
 */
/* clang-format off */
static const uint8_t needs[512] = {
    /* 00 */ M, M, M, M, B, Z, _, _, M, M, M, M, B, Z, _, _,
    /* 10 */ M, M, M, M, B, Z, _, _, M, M, M, M, B, Z, _, _,
    /* 20 */ M, M, M, M, B, Z, _, _, M, M, M, M, B, Z, _, _,
    /* 30 */ M, M, M, M, B, Z, _, _, M, M, M, M, B, Z, _, _,
    /* 40 REX */ _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _,
    /* 50 */ N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
    /* 60 */ _, _, _, M, _, _, _, _, Z, MZ, B, MB, N, N, N, N,
    /* 70 Jcc */ _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _,
    /* 80 */ MB, MZ, MB, MB, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 90 */ N, N, N, N, N, N, N, N, N, N, _, N, N, N, N, N,
    /* a0 */ _, _, _, _, N, N, N, N, B, Z, N, N, N, N, N, N,
    /* b0 */ B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
    /* c0 */ MB, MB, _, _, _, _, MB, CZ, _, N, _, _, _, _, _, _,
    /* d0 */ M, M, M, M, _, _, _, N, M, M, M, M, M, M, M, M,
    /* e0 */ _, _, _, _, B, B, B, B, _, _, _, _, N, N, N, N,
    /* f0 */ _, _, _, _, _, N, TB, TZ, N, N, N, N, N, N, M, _,
    /* 0f 00 */ M, _, M, M, _, _, _, _, _, _, _, _, _, M, N, MB,
    /* 0f 10 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f 20 */ _, _, _, _, _, _, _, _, M, M, M, M, M, M, M, M,
    /* 0f 30 */ N, N, N, N, _, _, _, _, _, _, _, _, _, _, _, _,
    /* 0f 40 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f 50 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f 60 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f 70 */ MB, MB, MB, MB, M, M, M, N, _, M, M, M, M, M, M, M,
    /* 0f 80 Jcc */ _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _,
    /* 0f 90 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f a0 */ N, N, N, M, MB, M, M, M, N, N, N, M, MB, M, _, M,
    /* 0f b0 */ M, M, M, M, M, M, M, M, M, M, MB, M, M, M, M, M,
    /* 0f c0 */ M, M, MB, M, MB, MB, MB, _, N, N, N, N, N, N, N, N,
    /* 0f d0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f e0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
    /* 0f f0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
};
/* clang-format on */

/* A legacy prefix without effect on the length, or the operand size prefix. */
static bool passes(uint8_t byte)
{
    return byte == 0x66 || byte == 0xf3 || byte == 0xf2 || byte == 0xf0 || (byte & 0xfe) == 0x64;
}

/* Size of ModRM, SIB and displacement; `bytes` begins with the first two. */
static inline unsigned operand_bytes(unsigned bytes)
{
    static const uint8_t sizes[32] = {1, 1, 1, 1, 2, 5, 1, 1, 2, 2, 2, 2, 3, 2, 2, 2,
                                      5, 5, 5, 5, 6, 5, 5, 5, 1, 1, 1, 1, 1, 1, 1, 1};
    const bool no_base = (bytes & 0x7c7) == 0x504; /* SIB with a displacement instead of a base */
    return sizes[(bytes >> 3 & 0x18) | (bytes & 7)] + (no_base ? 4 : 0);
}

/* All in one register, since each step depends on the previous one. */
unsigned tl_x86_quick(enum tl_isa isa, const uint8_t code[static TL_X86_MAX + 1])
{
    uint64_t w = tl_le64(code);
    const bool prefix = passes((uint8_t)w); /* rare: a branch, so that nothing depends on it */
    const bool short_operands = prefix && (w & 0xff) == 0x66;
    if (__builtin_expect(prefix, 0))
        w >>= 8;
    const bool rex = isa == TL_ISA_X64 && (w & 0xf0) == 0x40;
    const bool wide = rex && (w & 8);
    w >>= 8 * rex;
    const bool escaped = (w & 0xff) == 0x0f;
    w >>= 8 * escaped;
    const uint8_t need = needs[(unsigned)escaped << 8 | (w & 0xff)];
    const unsigned after = (unsigned)(w >> 8), reg = after >> 3 & 7;
    if (!(need & KNOWN) || isa == TL_ISA_X16 || ((need & ZERO) && reg != 0))
        return 0;
    const unsigned z = short_operands && !wide ? 2 : 4;
    const unsigned immediate =
        (need & IMM8 ? 1 : 0) + (need & IMM_Z ? z : 0) + (need & IMM_V ? (wide ? 8 : z) : 0);
    const unsigned operands = need & MODRM ? operand_bytes(after) : 0;
    return prefix + rex + escaped + 1u + operands + ((need & TEST) && reg >= 2 ? 0 : immediate);
}
