/* SPDX-License-Identifier: MIT */
/*
 * T32 of the A, R and M profiles: which instructions can change the flow.
 *
 * The branch future instructions of Armv8.1-M (BF, BFX, BFL, BFLX, BFCSEL) are plain: they only
 * announce a branch, which the branch instruction itself still performs.
 *
 * Source: Arm DDI0487 section F3.1 (encodings); DDI0553 section C2.4 (Armv8.1-M loops); IHI0064H
 * section 2.3.
 */
#include "base/err.h"
#include "isa/isa_parts.h"

#define PC 15u

static void direct(struct tl_insn *out, uint64_t base, int64_t offset)
{
    out->kind = TL_INSN_BRANCH;
    out->target = (uint32_t)(base + (uint64_t)offset);
}

static void narrow_miscellaneous(uint32_t op, uint64_t pc, struct tl_insn *out)
{
    if ((op & 0xf500) == 0xb100) { /* CBZ, CBNZ: forward only */
        direct(out, pc + 4, tl_bits(op, 9, 9) << 6 | tl_bits(op, 7, 3) << 1);
        out->conditional = true;
    } else if ((op & 0xff00) == 0xbd00) { /* POP {…, PC} */
        out->kind = TL_INSN_INDIRECT;
        out->is_return = true;
    } else if ((op & 0xff00) == 0xbe00 || (op & 0xffc0) == 0xba80) { /* BKPT, HLT */
        out->kind = TL_INSN_TRAP;
    } else if ((op & 0xff00) == 0xbf00 && (op & 0xf)) { /* IT: lowest set bit ends the mask */
        out->it_length = (uint8_t)(4 - __builtin_ctz(op & 0xf));
    } else if ((op & 0xffef) == 0xbf20) { /* WFE, WFI */
        out->kind = TL_INSN_WAIT;
    }
}

static void narrow(uint32_t op, uint64_t pc, struct tl_insn *out)
{
    const uint32_t cond = tl_bits(op, 11, 8);
    switch (op >> 12) {
    case 4:
        if ((op & 0xff00) == 0x4700) { /* BX, BLX, BXNS, BLXNS */
            out->kind = TL_INSN_INDIRECT;
            out->link = op >> 7 & 1;
            out->is_return = (op & 0xf8) == 0x70; /* LR */
        } else if ((op & 0xfd87) == 0x4487) {     /* ADD PC, MOV PC */
            out->kind = TL_INSN_INDIRECT;
            out->is_return = op == 0x46f7; /* MOV PC, LR */
        }
        break;
    case 11:
        narrow_miscellaneous(op, pc, out);
        break;
    case 13:
        if (cond >= 14) { /* UDF, SVC */
            out->kind = TL_INSN_TRAP;
        } else {
            direct(out, pc + 4, tl_signed(op, 8) * 2);
            out->conditional = true;
        }
        break;
    case 14: /* 11100: B; the rest of 111 is wide */
        direct(out, pc + 4, tl_signed(op, 11) * 2);
        break;
    default:
        break;
    }
}

/* B.W, BL, BLX: S:I1:I2:imm10:imm11, where I = NOT(J EOR S). */
static int64_t wide_offset(uint32_t op)
{
    const uint32_t s = op >> 26 & 1;
    const uint32_t i1 = ~(op >> 13 ^ s) & 1, i2 = ~(op >> 11 ^ s) & 1;
    return tl_signed(
        s << 24 | i1 << 23 | i2 << 22 | tl_bits(op, 25, 16) << 12 | tl_bits(op, 10, 0) << 1, 25);
}

/* Armv8.1-M low overhead loops: 1111 0000 0.xx Rn, 1100 immL imm10 1. */
static bool low_overhead_loop(uint32_t op, uint64_t pc, struct tl_insn *out)
{
    if ((op & 0xff80f001) != 0xf000c001)
        return false;
    const uint32_t form = tl_bits(op, 22, 20), rn = tl_bits(op, 19, 16);
    const int64_t offset = tl_bits(op, 10, 1) << 2 | tl_bits(op, 11, 11) << 1;
    if (form < 4 && rn == PC) { /* LE LR (0), LETP (1), LE (2): back to the start */
        if (form == 3)
            return false;
        direct(out, pc + 4, -offset);
        out->conditional = form != 2;
    } else if (form <= 4) { /* WLSTP by element size (0..3), WLS (4): over the loop */
        direct(out, pc + 4, offset);
        out->conditional = true;
    } else {
        return false;
    }
    return true;
}

/* Branches and miscellaneous control: 11110… with bit 15 of the second halfword set. */
static void control(uint32_t op, uint64_t pc, struct tl_insn *out)
{
    if (low_overhead_loop(op, pc, out))
        return;
    switch (op & 0x5000) {
    case 0x0000:
        if ((op & 0x03800000) != 0x03800000) { /* B<c>.W: S:J2:J1:imm6:imm11 */
            const uint32_t imm = tl_bits(op, 26, 26) << 20 | tl_bits(op, 11, 11) << 19 |
                                 tl_bits(op, 13, 13) << 18 | tl_bits(op, 21, 16) << 12 |
                                 tl_bits(op, 10, 0) << 1;
            direct(out, pc + 4, tl_signed(imm, 21));
            out->conditional = true;
        } else if ((op & 0xfff0d000) == 0xf3c08000) { /* BXJ */
            out->kind = TL_INSN_INDIRECT;
        } else if ((op & 0xfff0d000) == 0xf3d08000) { /* SUBS PC, LR; ERET */
            out->kind = TL_INSN_RETURN_EX;
        } else if ((op & 0xfffffff0) == 0xf3bf8f60) { /* ISB */
            out->kind = TL_INSN_SYNC;
        } else if ((op & 0xfffffffe) == 0xf3af8002) { /* WFE.W, WFI.W */
            out->kind = TL_INSN_WAIT;
        } else if ((op & 0xffe0d000) == 0xf7e08000) { /* HVC, SMC */
            out->kind = TL_INSN_TRAP;
        }
        break;
    case 0x1000: /* B.W */
        direct(out, pc + 4, wide_offset(op));
        break;
    case 0x5000: /* BL */
        direct(out, pc + 4, wide_offset(op));
        out->link = true;
        break;
    case 0x4000: /* BLX label: to A32; with bit 0 set it is a branch future */
        if (!(op & 1)) {
            direct(out, (pc + 4) & ~3ULL, wide_offset(op) & ~3LL);
            out->link = true;
            out->next_isa = TL_ISA_A32;
        }
        break;
    default:
        break;
    }
}

/* Loads to the PC, table branches and exception returns: 11101…, 11111…. */
static void loads(uint32_t op, struct tl_insn *out)
{
    if ((op & 0xfff0ffe0) == 0xe8d0f000) { /* TBB, TBH */
        out->kind = TL_INSN_INDIRECT;
    } else if ((op & 0xffd00000) == 0xe8100000 || (op & 0xffd00000) == 0xe9900000) { /* RFE */
        out->kind = TL_INSN_RETURN_EX;
    } else if ((op & 0xffff0000) == 0xe89f0000) {
        /* CLRM of Armv8.1-M, elsewhere LDM from the PC: bit 15 represents the APSR */
    } else if ((op & 0xfe508000) == 0xe8108000) { /* LDM {…, PC} */
        out->kind = TL_INSN_INDIRECT;
        out->is_return = (op & 0xffff0000) == 0xe8bd0000; /* POP.W */
    } else if ((op & 0xfff0f000) == 0xf8d0f000 || (op & 0xff7ff000) == 0xf85ff000 ||
               (op & 0xfff0ffc0) == 0xf850f000) { /* LDR PC: immediate, literal, register */
        out->kind = TL_INSN_INDIRECT;
    } else if ((op & 0xfff0f800) == 0xf850f800) { /* LDR PC with write-back or 8-bit offset */
        out->kind = TL_INSN_INDIRECT;
        out->is_return = (op & 0x000f0f00) == 0x000d0b00; /* LDR PC, [SP], #n */
    } else if ((op & 0xefff0fff) == 0xee070f95) {         /* ISB as the CP15 write of Armv6 */
        out->kind = TL_INSN_SYNC;
    }
}

/* DMB, DSB, and as the CP15 writes of Armv6 */
static bool is_barrier(uint32_t op)
{
    return (op & 0xffffffe0) == 0xf3bf8f40 || (op & 0xefff0fdf) == 0xee070f9a;
}

int tl_t32_decode(const struct tl_isa_options *options, uint64_t pc, struct tl_bytes code,
                  struct tl_insn *out)
{
    out->size = 2;
    if (code.n < 2)
        return TL_AGAIN;
    const uint16_t first = tl_le16(code.p);
    out->size = (uint8_t)tl_t32_size(first);
    if (out->size == 2) {
        out->encoding = first;
        narrow(first, pc, out);
    } else {
        if (code.n < 4)
            return TL_AGAIN;
        const uint32_t op = (uint32_t)first << 16 | tl_le16(code.p + 2);
        out->encoding = op;
        if ((op & 0xf8008000) == 0xf0008000)
            control(op, pc, out);
        else
            loads(op, out);
    }
    if (options->barriers && is_barrier(out->encoding))
        out->kind = TL_INSN_SYNC;
    if (out->kind == TL_INSN_WAIT && !options->wfx_branch)
        out->kind = TL_INSN_PLAIN;
    return out->size;
}
