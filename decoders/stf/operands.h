/* SPDX-License-Identifier: MIT */
/*
 * What an instruction read and wrote: memory accesses with their data, registers with their
 * values. Walks a group's records (tl_stf_insn_group()); nothing is copied. Pure functions.
 *
 * Groups of the usual shape (stf/group.h), which nearly all are, are looked at in line.
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

/* The access whose record is at `p`, without its contents. Private. */
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

/* The function below, for whatever records. */
int tl_stf_group_access_any(struct tl_stf_group *group, struct tl_stf_access *access);

/*
 * The group's next access: TL_OK, or TL_EOF if there is no further one. A content without an access
 * in front is skipped.
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
    /* By copies, so that the caller's objects can stay in registers. */
    struct tl_stf_group rest = *group;
    struct tl_stf_access any;
    const int result = tl_stf_group_access_any(&rest, &any);
    *group = rest;
    *access = any;
    return result;
}

/* One INST_REG. */
struct tl_stf_operand {
    uint16_t number;
    uint8_t type;          /* TL_STF_REG_INT …; others are reserved */
    uint8_t operand;       /* TL_STF_OPERAND_STATE, _SOURCE, _DEST; 0 is reserved */
    struct tl_bytes value; /* little-endian words: tl_stf_word(); one if scalar */
};

/* The function below, for whatever records. */
int tl_stf_group_operand_any(struct tl_stf_group *group, struct tl_stf_operand *operand);

/* The register whose record, of 12 bytes, is at `p`. Private. */
static inline void tl_stf_set_operand(struct tl_stf_operand *operand, const uint8_t *p)
{
    operand->number = tl_le16(p + 1);
    operand->type = p[3] & 15;
    operand->operand = p[3] >> 4 & 3;
    operand->value.p = p + 4;
    operand->value.n = 8;
}

/* The group's next register: TL_OK, or TL_EOF if there is no further one. */
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
    /* By copies, so that the caller's objects can stay in registers. */
    struct tl_stf_group rest = *group;
    struct tl_stf_operand any;
    const int result = tl_stf_group_operand_any(&rest, &any);
    *group = rest;
    *operand = any;
    return result;
}

TL_C_END

#endif
