/* SPDX-License-Identifier: MIT */
/*
 * What an instruction read and wrote: memory accesses with their data, registers with their
 * values. Walks a group's records (tl_stf_insn_group()); nothing is copied. Pure functions.
 */
#ifndef TL_STF_OPERANDS_H
#define TL_STF_OPERANDS_H

#include "stf/insns.h"

TL_C_BEGIN

/* One INST_MEM_ACCESS or BUS_MASTER_ACCESS with what follows it. */
struct tl_stf_access {
    uint64_t address;
    uint16_t size;         /* as written: bytes by the specification, bits by some producers */
    uint8_t type;          /* TL_STF_READ, TL_STF_WRITE; others are reserved */
    bool bus;              /* by a bus master, not by the core */
    uint8_t master, index; /* which: type and number */
    uint32_t attr;
    uint32_t n_data;     /* contents; normally 1, more if it is wider than 8 bytes */
    const uint8_t *data; /* for tl_stf_access_data(); valid as long as the group */
};

/* The i-th content, the access's data from its address + 8 * i on, right-justified. */
static inline uint64_t tl_stf_access_data(const struct tl_stf_access *access, uint32_t i)
{
    return tl_le64(access->data + TL_STF_CONTENT_BYTES * (size_t)i + 1);
}

/*
 * The group's next access: TL_OK, or TL_EOF if there is no further one. A content without an access
 * in front is skipped.
 */
int tl_stf_group_access(struct tl_stf_group *group, struct tl_stf_access *access);

/* One INST_REG. */
struct tl_stf_operand {
    uint16_t number;
    uint8_t type;          /* TL_STF_REG_INT …; others are reserved */
    uint8_t operand;       /* TL_STF_OPERAND_STATE, _SOURCE, _DEST; 0 is reserved */
    struct tl_bytes value; /* little-endian words: tl_stf_word(); one if scalar */
};

/* The group's next register: TL_OK, or TL_EOF if there is no further one. */
int tl_stf_group_operand(struct tl_stf_group *group, struct tl_stf_operand *operand);

TL_C_END

#endif
