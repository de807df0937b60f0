/* SPDX-License-Identifier: MIT */
/*
 * Keeps the latest known values of registers. A table by register with the instruction that each
 * value belongs to, because operands may be in any order within a group and only their types tell
 * which is later.
 */
#include "stf/regstate.h"

#include "stf/stand.h"

#include <assert.h>
#include <stdlib.h>

#define VECTOR_MAX (65536 / 8) /* bytes: RISC-V "V" extension, VLEN is at most 2^16 bits */

/* Registers of each type, and their position in the table. */
enum { N_INT = 33, N_FP = 32, N_VECTOR = 32, N_CSR = 4096 };
enum { INT = 0, FP = INT + N_INT, VECTOR = FP + N_FP, CSR = VECTOR + N_VECTOR, END = CSR + N_CSR };

struct reg {
    uint8_t value[8];
    uint64_t insn;   /* it was reported last with */
    uint8_t operand; /* as */
    bool known;
};

struct tl_stf_regstate {
    struct reg regs[END];
    struct tl_buf vectors[N_VECTOR];
    uint64_t insn;
    bool any;
};

static_assert(sizeof(struct tl_stf_regstate) / 1024 <= 100, "as the manual says");

/* Registers that are bits of another one: RISC-V, "F" and "V" extensions. */
static const struct part {
    uint16_t number, whole;
    uint8_t shift, bits;
} parts[] = {
    {0x001, 0x003, 0, 5}, /* fflags in fcsr */
    {0x002, 0x003, 5, 3}, /* frm */
    {0x009, 0x00f, 0, 1}, /* vxsat in vcsr */
    {0x00a, 0x00f, 1, 2}, /* vxrm */
};

int tl_stf_regstate_new(struct tl_stf_regstate **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? TL_OK : TL_NOMEM;
}

void tl_stf_regstate_free(struct tl_stf_regstate *state)
{
    if (!state)
        return;
    for (size_t i = 0; i < N_VECTOR; i++)
        tl_buf_fini(&state->vectors[i]);
    free(state);
}

bool tl_stf_regstate_any(const struct tl_stf_regstate *state)
{
    return state->any;
}

/* Index in the table; END: no such register. */
static size_t index_of(uint8_t type, uint16_t number)
{
    switch (type) {
    case TL_STF_REG_INT:
        return number < N_INT ? (size_t)INT + number : END;
    case TL_STF_REG_FP:
        return number < N_FP ? (size_t)FP + number : END;
    case TL_STF_REG_VECTOR:
        return number < N_VECTOR ? (size_t)VECTOR + number : END;
    case TL_STF_REG_CSR:
        return number < N_CSR ? (size_t)CSR + number : END;
    default:
        return END;
    }
}

/* Is this value newer than that of register `i`? Within an instruction the operands' types say so:
 * state, source, destination. */
static bool is_newer(const struct tl_stf_regstate *state, size_t i, uint8_t operand)
{
    return state->regs[i].insn != state->insn || state->regs[i].operand <= operand;
}

static void set_value(struct tl_stf_regstate *state, size_t i, uint8_t operand, uint64_t value)
{
    tl_put_le64(state->regs[i].value, value);
    state->regs[i].insn = state->insn;
    state->regs[i].operand = operand;
}

static uint64_t mask_of(const struct part *p)
{
    return (UINT64_C(1) << p->bits) - 1;
}

/* Set the bits of the CSR `p->whole` that are the CSR `p->number`. */
static void put_part(struct tl_stf_regstate *state, const struct part *p)
{
    uint8_t *const whole = state->regs[CSR + p->whole].value;
    const uint64_t value = tl_le64(state->regs[CSR + p->number].value);
    tl_put_le64(whole, (tl_le64(whole) & ~(mask_of(p) << p->shift)) | value << p->shift);
}

/* A CSR has a new value: so have those that are bits of it, and the one that it is bits of. A part
 * has no other bits than the whole has of it: otherwise the state would depend on the order in
 * which both are reported again. */
static void set_csr(struct tl_stf_regstate *state, uint16_t number, uint8_t operand, uint64_t value)
{
    set_value(state, (size_t)CSR + number, operand, value);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct part *const p = &parts[i];
        const size_t part = (size_t)CSR + p->number;
        if (number == p->number)
            set_value(state, part, operand, value & mask_of(p));
        else if (number == p->whole && is_newer(state, part, operand))
            set_value(state, part, operand, value >> p->shift & mask_of(p));
        if (number == p->whole || number == p->number)
            put_part(state, p);
    }
}

void tl_stf_regstate_close(struct tl_stf_regstate *state)
{
    state->insn++;
}

int tl_stf_regstate_add(struct tl_stf_regstate *state, const struct tl_stf_record *record)
{
    if (record->type != TL_STF_INST_REG || record->reg.value.n > VECTOR_MAX)
        return TL_OK;
    const uint8_t type = record->reg.meta & 15, operand = record->reg.meta >> 4 & 3;
    const size_t i = index_of(type, record->reg.number);
    if (i == END)
        return TL_OK;
    state->regs[i].known = state->any = true;
    if (!is_newer(state, i, operand))
        return TL_OK;
    const uint64_t value = tl_le64(record->reg.value.p);
    if (type == TL_STF_REG_CSR)
        set_csr(state, record->reg.number, operand, value);
    else
        set_value(state, i, operand, value);
    if (type != TL_STF_REG_VECTOR)
        return TL_OK;
    struct tl_buf *const vector = &state->vectors[i - VECTOR];
    tl_buf_reset(vector);
    return tl_buf_add(vector, record->reg.value.p, record->reg.value.n);
}

int tl_stf_regstate_next(const struct tl_stf_regstate *state, size_t *at,
                         struct tl_stf_record *record)
{
    size_t i = *at;
    while (i < END && !state->regs[i].known)
        i++;
    *at = i + 1;
    if (i >= END)
        return TL_EOF;
    uint8_t type = TL_STF_REG_INT;
    size_t first = INT;
    struct tl_bytes value = {state->regs[i].value, sizeof state->regs[i].value};
    if (i >= CSR) {
        type = TL_STF_REG_CSR;
        first = CSR;
    } else if (i >= VECTOR) {
        type = TL_STF_REG_VECTOR;
        first = VECTOR;
        value = (struct tl_bytes){state->vectors[i - VECTOR].p, state->vectors[i - VECTOR].n};
    } else if (i >= FP) {
        type = TL_STF_REG_FP;
        first = FP;
    }
    *record = (struct tl_stf_record){
        .type = TL_STF_INST_REG,
        .reg = {(uint16_t)(i - first), (uint8_t)(type | TL_STF_OPERAND_STATE << 4), value}};
    return TL_OK;
}

void tl_stf_regstate_state(struct tl_stf_regstate *regs, struct tl_state *s)
{
    struct tl_stf_record record;
    size_t at = 0;
    tl_stf_regstate_close(regs);
    for (;;) {
        bool more = !tl_state_loads(s) && tl_stf_regstate_next(regs, &at, &record) == TL_OK;
        tl_state_bool(s, &more);
        if (!more || s->rc < 0)
            return;
        struct tl_buf value = {0};
        if (!tl_state_loads(s))
            value =
                (struct tl_buf){(uint8_t *)(uintptr_t)record.reg.value.p, record.reg.value.n, 0};
        else
            record = (struct tl_stf_record){.type = TL_STF_INST_REG};
        tl_state_u16(s, &record.reg.number);
        tl_state_u8(s, &record.reg.meta, UINT8_MAX);
        tl_state_buf(s, &value, VECTOR_MAX);
        if (!tl_state_loads(s))
            continue;
        tl_state_check(s, value.n >= 8);
        record.reg.value = (struct tl_bytes){value.p, value.n};
        if (s->rc >= 0)
            tl_state_fail(s, tl_stf_regstate_add(regs, &record));
        tl_buf_fini(&value);
    }
}
