/* SPDX-License-Identifier: MIT */
/*
 * Operands of an instruction: memory accesses with their data, registers with their values.
 * Iterates over a group's records (tl_stf_insn_group()) without copying. Pure functions.
 *
 * Groups of the usual shape (stf/group.h), which are nearly all, are handled inline.
 */
#ifndef TL_STF_OPERANDS_H
#define TL_STF_OPERANDS_H

#include "stf/insns.h"

TL_C_BEGIN

/* An INST_MEM_ACCESS or BUS_MASTER_ACCESS with its contents. */
struct tl_stf_access {
    uint64_t address;
    uint16_t size; /* as written: bytes according to the specification, bits from some producers */
    uint8_t type;  /* TL_STF_READ, TL_STF_WRITE; others are reserved */
    bool bus;      /* by a bus master instead of the core */
    uint8_t master, index; /* type and number of the bus master */
    uint32_t attr;
    uint32_t n_data;     /* number of contents; normally 1, more for accesses wider than 8 bytes */
    const uint8_t *data; /* for tl_stf_access_data(); valid as long as the group */
};

/* The i-th content: the data at address + 8 * i, right-justified. */
static inline uint64_t tl_stf_access_data(const struct tl_stf_access *access, uint32_t i)
{
    return tl_le64(access->data + TL_STF_CONTENT_BYTES * (size_t)i + 1);
}

/* Read the access record at `p`, without its contents. Private. */
static inline void tl_stf_set_access(struct tl_stf_access *access, const uint8_t *p)
{
    access->address = tl_le64(p + 1);
    access->size = tl_le16(p + 9);
    access->attr = tl_le16(p + 11);
    access->type = p[13];
    access->bus = false;
    access->master = access->index = 0;
    access->n_data = 0;
    access->data = p + TL_STF_ACCESS_BYTES;
}

/* tl_stf_group_access() for arbitrary groups. Private. */
int tl_stf_group_access_any(struct tl_stf_group *group, struct tl_stf_access *access);

/*
 * Get the group's next access. Returns TL_OK, or TL_EOF if there is none. A content without a
 * preceding access is skipped.
 */
static inline int tl_stf_group_access(struct tl_stf_group *group, struct tl_stf_access *access)
{
    if (group->shape) {
        const uint8_t *p = group->rest.p;
        const unsigned shape = group->shape;
        group->shape = 0;
        group->rest.n = 0;
        if (!(shape & TL_STF_SHAPE_ACCESS))
            return TL_EOF;
        p += *p == TL_STF_INST_PC_TARGET ? TL_STF_TARGET_BYTES : 0;
        tl_stf_set_access(access, p + (shape & TL_STF_SHAPE_REGISTERS) * TL_STF_SCALAR_BYTES);
        access->n_data = 1;
        return TL_OK;
    }
    if (group->rest.n == 0)
        return TL_EOF;
    /* Copies allow the caller's objects to stay in registers. */
    struct tl_stf_group rest = *group;
    struct tl_stf_access any;
    const int result = tl_stf_group_access_any(&rest, &any);
    *group = rest;
    *access = any;
    return result;
}

/* An INST_REG. */
struct tl_stf_operand {
    uint16_t number;
    uint8_t type;          /* TL_STF_REG_INT …; others are reserved */
    uint8_t operand;       /* TL_STF_OPERAND_STATE, _SOURCE, _DEST; 0 is reserved */
    struct tl_bytes value; /* little-endian words: tl_stf_word(); one if scalar */
};

/* tl_stf_group_operand() for arbitrary groups. Private. */
int tl_stf_group_operand_any(struct tl_stf_group *group, struct tl_stf_operand *operand);

/* Read the register record, of 12 bytes, at `p`. Private. */
static inline void tl_stf_set_operand(struct tl_stf_operand *operand, const uint8_t *p)
{
    operand->number = tl_le16(p + 1);
    operand->type = p[3] & 15;
    operand->operand = p[3] >> 4 & 3;
    operand->value.p = p + 4;
    operand->value.n = 8;
}

/* Get the group's next register. Returns TL_OK, or TL_EOF if there is none. */
static inline int tl_stf_group_operand(struct tl_stf_group *group, struct tl_stf_operand *operand)
{
    if (group->shape) {
        const uint8_t *p = group->rest.p;
        const uint8_t *const end = p + group->rest.n;
        if (!(group->shape & TL_STF_SHAPE_REGISTERS)) {
            group->shape = 0;
            group->rest.n = 0;
            return TL_EOF;
        }
        p += *p == TL_STF_INST_PC_TARGET ? TL_STF_TARGET_BYTES : 0;
        tl_stf_set_operand(operand, p);
        group->rest.p = p + TL_STF_SCALAR_BYTES;
        group->rest.n = (size_t)(end - group->rest.p);
        group->shape--;
        return TL_OK;
    }
    if (group->rest.n == 0)
        return TL_EOF;
    /* Copies allow the caller's objects to stay in registers. */
    struct tl_stf_group rest = *group;
    struct tl_stf_operand any;
    const int result = tl_stf_group_operand_any(&rest, &any);
    *group = rest;
    *operand = any;
    return result;
}

TL_C_END

#endif
