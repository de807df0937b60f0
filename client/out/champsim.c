/* SPDX-License-Identifier: MIT */
/*
 * Fills ChampSim's record of an instruction. ChampSim derives the kind of a branch from the
 * registers, so those that mark the kind are added even if the instruction does not name them.
 */
#include "out/champsim.h"

#include "stf/operands.h"

#include <assert.h>
#include <string.h>

enum { STACK_POINTER = 6, FLAGS = 25, INSTRUCTION_POINTER = 26 };
enum { INTEGER = 64, FLOATING = 128, VECTOR = 192, REGISTERS = 32 };
enum { DESTINATIONS = 2, SOURCES = 4, WRITES = 2, READS = 4 };

/* Offsets of the fields. */
enum { IS_BRANCH = 8, TAKEN = 9, DESTINATION = 10, SOURCE = 12, WRITTEN = 16, READ = 32 };
static_assert((int)DESTINATION + DESTINATIONS == SOURCE && (int)SOURCE + SOURCES == WRITTEN &&
                  (int)WRITTEN + 8 * WRITES == READ && (int)READ + 8 * READS == TL_CHAMPSIM_BYTES,
              "the fields follow each other and fill a record");

/* Add a register to a list of `most`, once, if there is space. */
static void add_register(uint8_t *list, int most, uint8_t number)
{
    for (int i = 0; i < most; i++) {
        if (list[i] == number)
            return;
        if (list[i] == 0) {
            list[i] = number;
            return;
        }
    }
}

static void add_address(uint8_t *list, int most, uint64_t address)
{
    for (int i = 0; i < most; i++)
        if (tl_le64(list + 8 * i) == 0) {
            tl_put_le64(list + 8 * i, address);
            return;
        }
}

/* ChampSim's number for a register, 0: none. x0 of RISC-V counts as none. */
static uint8_t number_of(const struct tl_stf_operand *operand, enum tl_isa isa)
{
    const bool riscv = isa == TL_ISA_RV32 || isa == TL_ISA_RV64;
    if (operand->number >= REGISTERS)
        return 0;
    switch (operand->type) {
    case TL_STF_REG_INT:
        return riscv && operand->number == 0 ? 0 : (uint8_t)(INTEGER + operand->number);
    case TL_STF_REG_FP:
        return (uint8_t)(FLOATING + operand->number);
    case TL_STF_REG_VECTOR:
        return (uint8_t)(VECTOR + operand->number);
    default:
        return 0;
    }
}

/* Add the registers by which ChampSim recognises kinds of branches, in addition to the program's
 * own sources if the flow depends on them: for indirect and conditional branches. */
static void report_branch(uint8_t *out, const struct tl_insn *insn)
{
    const bool indirect = insn->kind == TL_INSN_INDIRECT && !insn->is_return;
    const bool conditional = insn->conditional && insn->kind == TL_INSN_BRANCH;
    uint8_t own[SOURCES];
    memcpy(own, out + SOURCE, SOURCES);
    memset(out + DESTINATION, 0, DESTINATIONS);
    memset(out + SOURCE, 0, SOURCES);
    out[IS_BRANCH] = 1;
    add_register(out + DESTINATION, DESTINATIONS, INSTRUCTION_POINTER);
    if (insn->link || insn->is_return) {
        add_register(out + DESTINATION, DESTINATIONS, STACK_POINTER);
        add_register(out + SOURCE, SOURCES, STACK_POINTER);
    }
    if ((insn->link && !insn->is_return) || conditional)
        add_register(out + SOURCE, SOURCES, INSTRUCTION_POINTER);
    if (!indirect && !conditional)
        return;
    if (own[0] == 0) /* the trace does not record registers */
        own[0] = conditional ? FLAGS : INTEGER + 1;
    for (int i = 0; i < SOURCES && own[i]; i++)
        add_register(out + SOURCE, SOURCES, own[i]);
}

void tl_champsim_insn(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                      enum tl_isa isa, uint8_t out[static TL_CHAMPSIM_BYTES])
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct tl_stf_operand operand;
    struct tl_stf_access access;
    struct tl_insn decoded;
    uint8_t code[16];
    memset(out, 0, TL_CHAMPSIM_BYTES);
    tl_put_le64(out, insn->pc);
    if (insn->flags & TL_STF_OTHERS) {
        struct tl_stf_group group = tl_stf_insn_group(insns, insn);
        while (tl_stf_group_operand(&group, &operand) == TL_OK) {
            const uint8_t number = number_of(&operand, isa);
            if (number && operand.operand == TL_STF_OPERAND_SOURCE)
                add_register(out + SOURCE, SOURCES, number);
            else if (number && operand.operand == TL_STF_OPERAND_DEST)
                add_register(out + DESTINATION, DESTINATIONS, number);
        }
    }
    if (insn->flags & TL_STF_MEMORY) {
        struct tl_stf_group group = tl_stf_insn_group(insns, insn);
        while (tl_stf_group_access(&group, &access) == TL_OK) {
            if (!access.bus && access.type == TL_STF_WRITE)
                add_address(out + WRITTEN, WRITES, access.address);
            else if (!access.bus && access.type == TL_STF_READ)
                add_address(out + READ, READS, access.address);
        }
    }
    const uint32_t n = tl_stf_insn_bytes(insns, insn, code);
    if (tl_insn_decode(isa, &any_core, insn->pc, (struct tl_bytes){code, n}, &decoded) > 0 &&
        (decoded.kind == TL_INSN_BRANCH || decoded.kind == TL_INSN_INDIRECT)) {
        report_branch(out, &decoded);
        out[TAKEN] = (insn->flags & TL_STF_TAKEN) != 0;
    }
}
