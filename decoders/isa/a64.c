/* SPDX-License-Identifier: MIT */
/*
 * A64: which instructions can change the flow.
 *
 * Independent of the architecture version: encodings of later extensions are undefined on earlier
 * cores, and therefore not executed there.
 *
 * Source: Arm DDI0487 section C4.1 (encodings); D6 and IHI0064H section 2.3 (P0 instructions).
 */
#include "base/err.h"
#include "isa/isa_parts.h"

enum {
    MASK_COND = 0xff000000, /* B.cond and BC.cond: bit 4 */
    OP_COND = 0x54000000,
    MASK_IMM26 = 0x7c000000, /* B, BL */
    OP_IMM26 = 0x14000000,
    MASK_CBZ = 0x7e000000, /* CBZ, CBNZ */
    OP_CBZ = 0x34000000,
    MASK_TBZ = 0x7e000000, /* TBZ, TBNZ */
    OP_TBZ = 0x36000000,
    MASK_CMPBR = 0x7e000000, /* CB<cc>, CBB<cc>, CBH<cc>: registers and immediates */
    OP_CMPBR = 0x74000000,
};

static const struct {
    uint32_t mask;
    uint32_t value;
    uint8_t kind;
    bool link;
    bool is_return;
} table[] = {
    {0xfffffc1f, 0xd61f0000, TL_INSN_INDIRECT, false, false},  /* BR */
    {0xfffffc1f, 0xd63f0000, TL_INSN_INDIRECT, true, false},   /* BLR */
    {0xfffffc1f, 0xd65f0000, TL_INSN_INDIRECT, false, true},   /* RET */
    {0xfffff81f, 0xd61f081f, TL_INSN_INDIRECT, false, false},  /* BRAAZ, BRABZ */
    {0xfffff81f, 0xd63f081f, TL_INSN_INDIRECT, true, false},   /* BLRAAZ, BLRABZ */
    {0xfffff800, 0xd71f0800, TL_INSN_INDIRECT, false, false},  /* BRAA, BRAB */
    {0xfffff800, 0xd73f0800, TL_INSN_INDIRECT, true, false},   /* BLRAA, BLRAB */
    {0xfffffbe0, 0xd65f0be0, TL_INSN_INDIRECT, false, true},   /* RETAA, RETAASPPCR, and B */
    {0xffc0001f, 0x5500001f, TL_INSN_INDIRECT, false, true},   /* RETAASPPC, RETABSPPC */
    {0xffffffff, 0xd69f03e0, TL_INSN_RETURN_EX, false, false}, /* ERET */
    {0xfffffbff, 0xd69f0bff, TL_INSN_RETURN_EX, false, false}, /* ERETAA, ERETAB */
    {0xfffffbff, 0xd6ff03e0, TL_INSN_RETURN_EX, false, false}, /* TEXIT: like an exception return */
    {0xfffff0ff, 0xd50330df, TL_INSN_SYNC, false, false},      /* ISB */
    {0xffffffdf, 0xd503205f, TL_INSN_WAIT, false, false},      /* WFE, WFI */
    {0xffffffc0, 0xd5031000, TL_INSN_WAIT, false, false},      /* WFET, WFIT */
    {0xffffffe0, 0xd5233060, TL_INSN_TRANSACT, false, false},  /* TSTART */
    {0xff000000, 0xd4000000, TL_INSN_TRAP, false, false},      /* SVC, HVC, SMC, BRK, HLT … */
};

static void direct(struct tl_insn *out, uint64_t pc, int64_t words)
{
    out->kind = TL_INSN_BRANCH;
    out->target = pc + (uint64_t)words * 4;
}

int tl_a64_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out)
{
    out->size = 4;
    if (code.n < 4)
        return TL_AGAIN;
    const uint32_t op = tl_le32(code.p);
    out->encoding = op;

    if ((op & MASK_IMM26) == OP_IMM26) {
        direct(out, pc, tl_signed(op, 26));
        out->link = op >> 31;
    } else if ((op & MASK_COND) == OP_COND) {
        direct(out, pc, tl_signed(op >> 5, 19));
        out->conditional = (op & 0xe) != 0xe; /* AL and NV always branch */
    } else if ((op & MASK_CBZ) == OP_CBZ) {
        direct(out, pc, tl_signed(op >> 5, 19));
        out->conditional = true;
    } else if ((op & MASK_TBZ) == OP_TBZ) {
        direct(out, pc, tl_signed(op >> 5, 14));
        out->conditional = true;
    } else if ((op & MASK_CMPBR) == OP_CMPBR) {
        direct(out, pc, tl_signed(op >> 5, 9));
        out->conditional = true;
    } else if ((op & 0xc0000000) != 0x80000000) { /* else load, data processing, … */
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
            if ((op & table[i].mask) != table[i].value)
                continue;
            out->kind = table[i].kind;
            out->link = table[i].link;
            out->is_return = table[i].is_return;
            if (out->kind == TL_INSN_WAIT && !options->wfx_branch)
                out->kind = TL_INSN_PLAIN;
            break;
        }
    }
    return 4;
}
