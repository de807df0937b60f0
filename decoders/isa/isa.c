/* SPDX-License-Identifier: MIT */
/*
 * One entry point for all instruction sets, so that everything above it is independent of them. An
 * instruction set without a decoder has a result of its own, since its bytes may well be sound.
 */
#include "isa/isa.h"

#include "base/err.h"
#include "isa/isa_parts.h"

const char *tl_isa_name(enum tl_isa isa)
{
    static const char *const names[TL_ISA_COUNT] = {
        [TL_ISA_NONE] = "-",    [TL_ISA_A64] = "a64",   [TL_ISA_A32] = "a32", [TL_ISA_T32] = "t32",
        [TL_ISA_RV32] = "rv32", [TL_ISA_RV64] = "rv64", [TL_ISA_X16] = "x16", [TL_ISA_X32] = "x32",
        [TL_ISA_X64] = "x64",   [TL_ISA_OR1K] = "or1k",
    };
    return isa < TL_ISA_COUNT ? names[isa] : "-";
}

int tl_insn_decode(enum tl_isa isa, const struct tl_isa_options *options, uint64_t pc,
                   struct tl_bytes code, struct tl_insn *out)
{
    *out = (struct tl_insn){.next_isa = (uint8_t)isa};
    switch (isa) {
    case TL_ISA_A64:
        return tl_a64_decode(options, pc, code, out);
    case TL_ISA_A32:
        return tl_a32_decode(options, pc, code, out);
    case TL_ISA_T32:
        return tl_t32_decode(options, pc, code, out);
    case TL_ISA_RV32:
        return tl_riscv_decode(32, options, pc, code, out);
    case TL_ISA_RV64:
        return tl_riscv_decode(64, options, pc, code, out);
    case TL_ISA_X16:
    case TL_ISA_X32:
    case TL_ISA_X64:
        return tl_x86_insn_decode(isa, pc, code, out);
    default:
        out->size = 1;
        return TL_UNSUPPORTED;
    }
}
