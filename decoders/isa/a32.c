/* SPDX-License-Identifier: MIT */
/*
 * A32: which instructions can change the flow.
 *
 * Source: Arm DDI0406C section A5 and DDI0487 section F4.1 (encodings); IHI0064H section 2.3.
 */
#include "base/err.h"
#include "isa/isa_parts.h"

#define PC 15u
#define SP 13u

static void unconditional_space(uint32_t op, uint64_t pc, struct tl_insn *out)
{
    if ((op & 0xfe000000) == 0xfa000000) { /* BLX label: to T32, bit 24 selects the halfword */
        out->kind = TL_INSN_BRANCH;
        out->link = true;
        out->next_isa = TL_ISA_T32;
        out->target = (uint32_t)(pc + 8 + (uint64_t)(tl_signed(op, 24) * 4) + (op >> 23 & 2));
    } else if ((op & 0xfe500000) == 0xf8100000) { /* RFE */
        out->kind = TL_INSN_RETURN_EX;
    } else if ((op & 0xfffffff0) == 0xf57ff060) { /* ISB */
        out->kind = TL_INSN_SYNC;
    }
}

/* Bits 27:23 = 00010: MRS, MSR, BX, BLX, BXJ, CLZ, ERET, HVC, SMC, BKPT, saturating arithmetic. */
static void miscellaneous(uint32_t op, struct tl_insn *out)
{
    if ((op & 0x0ff000f0) == 0x01200010 || (op & 0x0ff000f0) == 0x01200020) { /* BX, BXJ */
        out->kind = TL_INSN_INDIRECT;
        out->is_return = (op & 0xff) == 0x1e;
    } else if ((op & 0x0ff000f0) == 0x01200030) { /* BLX register */
        out->kind = TL_INSN_INDIRECT;
        out->link = true;
    } else if ((op & 0x0fffffff) == 0x0160006e) { /* ERET */
        out->kind = TL_INSN_RETURN_EX;
    } else if ((op & 0x0f9000f0) == 0x01000070) { /* HVC, SMC, BKPT, HLT */
        out->kind = TL_INSN_TRAP;
    }
}

/* Data processing with Rd = PC. */
static void data_to_pc(uint32_t op, struct tl_insn *out)
{
    const uint32_t opcode = tl_bits(op, 24, 21);
    if (tl_bits(op, 15, 12) != PC || (opcode >= 8 && opcode <= 11)) /* TST, TEQ, CMP, CMN: no Rd */
        return;
    const bool sets_flags = op >> 20 & 1; /* from the SPSR if Rd is the PC */
    out->kind = sets_flags ? TL_INSN_RETURN_EX : TL_INSN_INDIRECT;
    out->is_return = (op & 0x0fffffff) == 0x01a0f00e; /* MOV PC, LR */
}

static void data_processing(uint32_t op, struct tl_insn *out)
{
    if (op >> 25 & 1) { /* immediate */
        if ((op & 0x0fffffff) == 0x0320f002 || (op & 0x0fffffff) == 0x0320f003)
            out->kind = TL_INSN_WAIT;             /* WFE, WFI */
        else if ((op & 0x01900000) != 0x01000000) /* except MOVW, MOVT, MSR and hints */
            data_to_pc(op, out);
    } else if ((op & 0x90) == 0x90) {
        /* multiplies and extra loads: none can write the PC */
    } else if ((op & 0x01900000) == 0x01000000) {
        if (!(op & 0x80)) /* else halfword multiplies */
            miscellaneous(op, out);
    } else {
        data_to_pc(op, out);
    }
}

static void load_store(uint32_t op, struct tl_insn *out)
{
    if ((op >> 25 & 1) && (op >> 4 & 1)) { /* media instructions; UDF */
        if ((op & 0x0ff000f0) == 0x07f000f0)
            out->kind = TL_INSN_TRAP;
        return;
    }
    if ((op & 0x00500000) != 0x00100000 || tl_bits(op, 15, 12) != PC)
        return; /* not a word load to the PC */
    out->kind = TL_INSN_INDIRECT;
    out->is_return = (op & 0x03ff0000) == 0x009d0000; /* LDR PC, [SP], #n */
}

/* DMB, DSB, and as the CP15 writes of Armv6 */
static bool is_barrier(uint32_t op)
{
    return (op & 0xffffffe0) == 0xf57ff040 || (op & 0x0fff0fdf) == 0x0e070f9a;
}

int tl_a32_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out)
{
    out->size = 4;
    if (code.n < 4)
        return TL_AGAIN;
    const uint32_t op = tl_le32(code.p);
    out->encoding = op;
    if (options->barriers && is_barrier(op))
        out->kind = TL_INSN_SYNC;
    if (op >> 28 == 15) {
        unconditional_space(op, pc, out);
        return 4;
    }
    out->conditional = op >> 28 != 14;
    switch (tl_bits(op, 27, 25)) {
    case 0:
    case 1:
        data_processing(op, out);
        break;
    case 2:
    case 3:
        load_store(op, out);
        break;
    case 4: /* LDM with the PC in its list */
        if ((op & 0x00108000) == 0x00108000) {
            out->kind = op & 0x00400000 ? TL_INSN_RETURN_EX : TL_INSN_INDIRECT;
            out->is_return = (op & 0x01ff0000) == 0x00bd0000; /* POP */
        }
        break;
    case 5: /* B, BL */
        out->kind = TL_INSN_BRANCH;
        out->link = op >> 24 & 1;
        out->target = (uint32_t)(pc + 8 + (uint64_t)(tl_signed(op, 24) * 4));
        break;
    case 7:
        if (op >> 24 & 1)
            out->kind = TL_INSN_TRAP; /* SVC */
        else if ((op & 0x0fff0fff) == 0x0e070f95)
            out->kind = TL_INSN_SYNC; /* ISB as the CP15 write of Armv6 */
        break;
    default:
        break;
    }
    if (out->kind == TL_INSN_WAIT && !options->wfx_branch)
        out->kind = TL_INSN_PLAIN;
    return 4;
}
