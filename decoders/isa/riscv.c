/* SPDX-License-Identifier: MIT */
/*
 * RISC-V, with the C extension: lengths and changes of flow.
 *
 * Source: RISC-V Unprivileged ISA 20191213 chapters 1.5, 2.5, 16; Privileged ISA 20211203 3.3.2;
 * code size reduction 1.0 (Zcmp, Zcmt).
 */
#include "base/err.h"
#include "isa/isa_parts.h"

#define RA 1u
#define T0 5u

enum {
    ECALL = 0x00000073,
    EBREAK = 0x00100073,
    URET = 0x00200073,
    SRET = 0x10200073,
    MRET = 0x30200073,
    MNRET = 0x70200073,
    DRET = 0x7b200073,
};

static bool is_link(uint32_t reg)
{
    return reg == RA || reg == T0;
}

static uint64_t wrap_address(unsigned xlen, uint64_t address)
{
    return xlen == 32 ? (uint32_t)address : address;
}

/* Indirect jump: call and return hints as in table 2.1 of the unprivileged ISA. */
static void set_indirect(struct tl_insn *out, uint32_t rd, uint32_t rs1)
{
    out->kind = TL_INSN_INDIRECT;
    out->link = is_link(rd);
    out->is_return = is_link(rs1) && rd != rs1;
}

static void set_branch(struct tl_insn *out, uint64_t target, bool conditional)
{
    out->kind = TL_INSN_BRANCH;
    out->target = target;
    out->conditional = conditional;
}

/* Returns that also restore registers, and jumps by a table in memory: `table` is the number of the
 * entry plus 1. */
static void decode_zcm(uint32_t op, struct tl_insn *out)
{
    const uint32_t index = tl_bits(op, 9, 2);
    if (tl_bits(op, 15, 10) == 0x28) { /* CM.JT, CM.JALT */
        out->kind = TL_INSN_INDIRECT;
        out->link = index >= 32;
        out->table = (uint16_t)(index + 1);
    } else if (tl_bits(op, 15, 8) == 0xbc ||
               tl_bits(op, 15, 8) == 0xbe) { /* CM.POPRETZ, CM.POPRET */
        out->kind = TL_INSN_INDIRECT;
        out->is_return = true;
    }
}

static void decode_compressed(unsigned xlen, bool has_zcm, uint64_t pc, uint32_t op,
                              struct tl_insn *out)
{
    const uint32_t funct3 = tl_bits(op, 15, 13);
    if ((op & 3) == 1 && (funct3 == 5 || (funct3 == 1 && xlen == 32))) { /* C.J, C.JAL */
        const uint32_t imm = tl_bits(op, 12, 12) << 11 | tl_bits(op, 8, 8) << 10 |
                             tl_bits(op, 10, 9) << 8 | tl_bits(op, 6, 6) << 7 |
                             tl_bits(op, 7, 7) << 6 | tl_bits(op, 2, 2) << 5 |
                             tl_bits(op, 11, 11) << 4 | tl_bits(op, 5, 3) << 1;
        set_branch(out, wrap_address(xlen, pc + (uint64_t)tl_signed(imm, 12)), false);
        out->link = funct3 == 1;
    } else if ((op & 3) == 1 && funct3 >= 6) { /* C.BEQZ, C.BNEZ */
        const uint32_t imm = tl_bits(op, 12, 12) << 8 | tl_bits(op, 6, 5) << 6 |
                             tl_bits(op, 2, 2) << 5 | tl_bits(op, 11, 10) << 3 |
                             tl_bits(op, 4, 3) << 1;
        set_branch(out, wrap_address(xlen, pc + (uint64_t)tl_signed(imm, 9)), true);
    } else if ((op & 0xe07f) == 0x8002) { /* C.JR, C.JALR, C.EBREAK */
        const uint32_t rs1 = tl_bits(op, 11, 7);
        if (rs1)
            set_indirect(out, op >> 12 & 1 ? RA : 0, rs1);
        else if (op >> 12 & 1)
            out->kind = TL_INSN_TRAP;
    } else if (has_zcm && (op & 3) == 2 && funct3 == 5) {
        decode_zcm(op, out);
    }
}

static void decode_full(unsigned xlen, uint64_t pc, uint32_t op, struct tl_insn *out)
{
    const uint32_t rd = tl_bits(op, 11, 7);
    switch (op & 0x7f) {
    case 0x6f: { /* JAL */
        const uint32_t imm = tl_bits(op, 31, 31) << 20 | tl_bits(op, 19, 12) << 12 |
                             tl_bits(op, 20, 20) << 11 | tl_bits(op, 30, 21) << 1;
        set_branch(out, wrap_address(xlen, pc + (uint64_t)tl_signed(imm, 21)), false);
        out->link = is_link(rd);
        break;
    }
    case 0x67: /* JALR */
        if (tl_bits(op, 14, 12) == 0)
            set_indirect(out, rd, tl_bits(op, 19, 15));
        break;
    case 0x63: { /* conditional branches; funct3 2 and 3 are reserved */
        const uint32_t imm = tl_bits(op, 31, 31) << 12 | tl_bits(op, 7, 7) << 11 |
                             tl_bits(op, 30, 25) << 5 | tl_bits(op, 11, 8) << 1;
        if ((tl_bits(op, 14, 12) & 6) != 2)
            set_branch(out, wrap_address(xlen, pc + (uint64_t)tl_signed(imm, 13)), true);
        break;
    }
    case 0x73: /* SYSTEM */
        if (op == ECALL || op == EBREAK)
            out->kind = TL_INSN_TRAP;
        else if (op == MRET || op == SRET || op == URET || op == DRET || op == MNRET)
            out->kind = TL_INSN_RETURN_EX;
        break;
    default:
        break;
    }
}

/* Length in bytes of the instruction whose first 16 bits are `parcel`; 0: reserved. */
static unsigned length_of(uint32_t parcel)
{
    if ((parcel & 3) != 3)
        return 2;
    if ((parcel & 0x1c) != 0x1c)
        return 4;
    if ((parcel & 0x3f) == 0x1f)
        return 6;
    if ((parcel & 0x7f) == 0x3f)
        return 8;
    const unsigned n = tl_bits(parcel, 14, 12);
    return n < 3 ? 10 + 2 * n : 0; /* longer ones exceed the bytes available */
}

int tl_riscv_decode(unsigned xlen, const struct tl_isa_options *options, uint64_t pc,
                    struct tl_bytes code, struct tl_insn *out)
{
    out->size = 2;
    if (code.n < 2)
        return TL_AGAIN;
    const uint32_t parcel = tl_le16(code.p);
    out->encoding = parcel;
    const unsigned size = length_of(parcel);
    if (size == 0 || parcel == 0)
        return TL_BAD;
    out->size = (uint8_t)size;
    if (code.n < size)
        return TL_AGAIN;
    if (size == 2) {
        decode_compressed(xlen, options && options->zcm, pc, parcel, out);
    } else {
        out->encoding = tl_le32(code.p);
        if (size == 4)
            decode_full(xlen, pc, out->encoding, out);
    }
    return (int)size;
}

/* Is it LUI, C.LUI or AUIPC? Then what it puts into which register. */
static bool loads_upper(uint64_t pc, uint32_t op, uint32_t *rd, uint64_t *value)
{
    *rd = tl_bits(op, 11, 7);
    if ((op & 0x7f) == 0x37 || (op & 0x7f) == 0x17) {
        *value = (uint64_t)tl_signed(op & 0xfffff000, 32) + ((op & 0x7f) == 0x17 ? pc : 0);
        return *rd != 0;
    }
    const uint32_t imm = tl_bits(op, 12, 12) << 5 | tl_bits(op, 6, 2);
    *value = (uint64_t)tl_signed(imm, 6) << 12;
    return (op & 0xffff) == op && (op & 0xe003) == 0x6001 && *rd != 0 && *rd != 2 && imm != 0;
}

unsigned tl_insn_companions(enum tl_isa isa, uint64_t pc, const struct tl_insn *insn)
{
    uint32_t rd;
    uint64_t value;
    return isa == TL_ISA_RV32 || isa == TL_ISA_RV64 ? loads_upper(pc, insn->encoding, &rd, &value)
                                                    : insn->it_length;
}

/* Is it JALR, C.JR or C.JALR? Then its base register and offset. */
static bool jumps_by_register(uint32_t op, uint32_t *rs1, int64_t *offset)
{
    *offset = 0;
    *rs1 = tl_bits(op, 11, 7);
    if ((op & 3) != 3)
        return (op & 0xe07f) == 0x8002 && *rs1 != 0;
    *rs1 = tl_bits(op, 19, 15);
    *offset = tl_signed(tl_bits(op, 31, 20), 12);
    return (op & 0x707f) == 0x67;
}

bool tl_riscv_sequential_jump(unsigned xlen, uint64_t pc, uint32_t before, uint32_t jump,
                              uint64_t *target)
{
    uint32_t rd, rs1;
    uint64_t value;
    int64_t offset;
    if (!loads_upper(pc, before, &rd, &value) || !jumps_by_register(jump, &rs1, &offset) ||
        rd != rs1)
        return false;
    *target = wrap_address(xlen, (value + (uint64_t)offset) & ~UINT64_C(1));
    return true;
}
