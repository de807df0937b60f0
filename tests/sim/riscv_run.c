/* SPDX-License-Identifier: MIT */
#include "sim/riscv_run.h"

#include "base/bytes.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 24, LENGTH = 28, HANDLERS = 2, STACK = 64, NESTED = 3 };
enum { ENTRIES = 256, CALLS = 32 /* the first entry for CM.JALT */, JVT = 64 /* its alignment */ };

/* Zcmt's table: indices of instructions. */
struct table {
    uint32_t to[ENTRIES];
    uint32_t jumps, calls; /* how many of each */
};

#define RA 1u
#define T0 5u
#define T1 6u
#define A0 10u

/* ---- the program ------------------------------------------------------------------------ */

/* Function 0 and 1 are the handlers of exceptions and interrupts. */
static void choose(struct tl_sim_riscv_insn *insn, uint32_t f, uint32_t i, struct tl_sim_rng *rng)
{
    const uint32_t dice = tl_sim_below(rng, 40);
    const bool handler = f < HANDLERS;
    const uint32_t callee = f + 1 + tl_sim_below(rng, 6);
    const uint32_t inside = f * LENGTH;
    insn->kind = TL_SIM_RV_PLAIN;
    if (i == LENGTH - 1) {
        insn->kind = handler ? TL_SIM_RV_MRET : TL_SIM_RV_RETURN;
    } else if (dice < 7) {
        insn->kind = TL_SIM_RV_BRANCH;
        insn->to = inside + tl_sim_below(rng, LENGTH);
    } else if (dice == 7) {
        insn->kind = TL_SIM_RV_JUMP;
        insn->to = inside + i + 1 + tl_sim_below(rng, LENGTH - 1 - i);
    } else if (handler) {
        insn->kind = dice == 8 && i > 3 ? TL_SIM_RV_MRET : TL_SIM_RV_PLAIN;
    } else if (dice < 11 && callee < FUNCTIONS) {
        insn->kind = TL_SIM_RV_CALL;
        insn->link = true;
        insn->to = callee * LENGTH;
    } else if (dice == 11 && i + 2 < LENGTH) {
        insn->kind = TL_SIM_RV_UPPER;
    } else if (dice == 12) {
        insn->kind = TL_SIM_RV_INDIRECT;
    } else if (dice == 13) {
        insn->kind = TL_SIM_RV_ICALL;
        insn->link = true;
    } else if (dice == 14 && tl_sim_below(rng, 4) == 0) {
        insn->kind = TL_SIM_RV_SWAP;
    } else if (dice == 15) {
        insn->kind = TL_SIM_RV_RETURN;
    }
}

/* Where the target of a jump behind AUIPC may be: later, so that runs without branches end. */
static void choose_sequence(struct tl_sim_riscv_insn *insn, uint32_t f, uint32_t i,
                            struct tl_sim_rng *rng)
{
    const uint32_t callee = f + 1 + tl_sim_below(rng, 6);
    insn->kind = TL_SIM_RV_SEQUENCE;
    insn->link = tl_sim_below(rng, 2) && callee < FUNCTIONS;
    insn->to =
        insn->link ? callee * LENGTH : f * LENGTH + i + 1 + tl_sim_below(rng, LENGTH - 1 - i);
}

static uint32_t b_type(uint32_t offset)
{
    return (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25 | A0 << 15 |
           (offset >> 1 & 15) << 8 | (offset >> 11 & 1) << 7 | 0x63;
}

static uint32_t j_type(uint32_t offset, uint32_t rd)
{
    return (offset >> 20 & 1) << 31 | (offset >> 1 & 1023) << 21 | (offset >> 11 & 1) << 20 |
           (offset >> 12 & 255) << 12 | rd << 7 | 0x6f;
}

static uint32_t jalr(uint32_t rd, uint32_t rs1, uint32_t offset)
{
    return offset << 20 | rs1 << 15 | rd << 7 | 0x67;
}

static uint32_t c_jr(bool link, uint32_t rs1)
{
    return 0x8002u | (uint32_t)link << 12 | rs1 << 7;
}

static uint32_t encode(const struct tl_sim_riscv_insn *insn, uint64_t to, struct tl_sim_rng *rng)
{
    const uint32_t offset = (uint32_t)(to - insn->pc);
    const bool is_short = insn->size == 2;
    const uint32_t link = tl_sim_below(rng, 4) ? RA : T0;
    switch (insn->kind) {
    case TL_SIM_RV_UPPER:
        return T1 << 7 | 0x17; /* AUIPC t1, 0 */
    case TL_SIM_RV_BRANCH:
        return b_type(offset);
    case TL_SIM_RV_JUMP:
        return j_type(offset, 0);
    case TL_SIM_RV_CALL:
        return j_type(offset, link);
    case TL_SIM_RV_SEQUENCE: /* relative to the instruction in front */
        return jalr(insn->link ? link : 0, T1, offset + 4);
    case TL_SIM_RV_INDIRECT:
        return is_short ? c_jr(false, A0) : jalr(0, A0, 8);
    case TL_SIM_RV_ICALL:
        return is_short ? c_jr(true, A0) : jalr(link, A0, 0);
    case TL_SIM_RV_SWAP:
        return is_short ? c_jr(true, T0) : jalr(T0, RA, 0);
    case TL_SIM_RV_RETURN:
        return is_short ? c_jr(false, link) : jalr(0, link, 0);
    case TL_SIM_RV_MRET:
        return 0x30200073;
    default:
        return is_short ? 0x0001 : 0x00000013;
    }
}

/* CM.JT or CM.JALT by a new entry of the table; 0: it has no room. */
static uint32_t cm_jump(struct table *t, const struct tl_sim_riscv_insn *insn)
{
    const bool full = insn->link ? t->calls == ENTRIES - CALLS : t->jumps == CALLS;
    const uint32_t entry = insn->link ? CALLS + t->calls : t->jumps;
    if (full)
        return 0;
    t->to[entry] = insn->to;
    t->calls += insn->link;
    t->jumps += !insn->link;
    return 0xa002u | entry << 2;
}

/* Append the table to the code. */
static int add_table(struct tl_sim_riscv_run *r, const struct tl_sim_riscv_options *o,
                     const struct table *t)
{
    static const uint8_t zeros[JVT];
    const unsigned size = o->xlen / 8;
    int rc = tl_buf_add(&r->code, zeros, (JVT - r->code.n % JVT) % JVT);
    r->jvt = o->base + r->code.n;
    for (uint32_t i = 0; i < CALLS + t->calls && rc == TL_OK; i++) {
        uint8_t bytes[8];
        tl_put_le64(bytes, r->insns[t->to[i]].pc);
        rc = tl_buf_add(&r->code, bytes, size);
    }
    return rc;
}

static bool may_be_short(uint8_t kind)
{
    return kind == TL_SIM_RV_PLAIN || kind == TL_SIM_RV_RETURN || kind == TL_SIM_RV_INDIRECT ||
           kind == TL_SIM_RV_ICALL || kind == TL_SIM_RV_SWAP;
}

static int make_program(struct tl_sim_riscv_run *r, const struct tl_sim_riscv_options *o,
                        struct tl_sim_rng *rng)
{
    uint64_t pc = o->base;
    struct table table = {.jumps = 0};
    r->n_insns = FUNCTIONS * LENGTH;
    r->insns = calloc(r->n_insns, sizeof *r->insns);
    if (!r->insns)
        return TL_NOMEM;
    for (uint32_t i = 0; i < r->n_insns; i++) {
        struct tl_sim_riscv_insn *const insn = &r->insns[i];
        if (i > 0 && insn[-1].kind == TL_SIM_RV_UPPER)
            choose_sequence(insn, i / LENGTH, i % LENGTH, rng);
        else
            choose(insn, i / LENGTH, i % LENGTH, rng);
        insn->pc = pc;
        insn->size = o->compressed && may_be_short(insn->kind) && tl_sim_below(rng, 2) ? 2 : 4;
        const bool is_direct = insn->kind == TL_SIM_RV_JUMP || insn->kind == TL_SIM_RV_CALL;
        if (o->tables && o->compressed && is_direct && tl_sim_below(rng, 2) &&
            (insn->encoding = cm_jump(&table, insn)) != 0)
            insn->size = 2;
        pc += insn->size;
    }
    for (uint32_t i = 0; i < r->n_insns; i++) {
        struct tl_sim_riscv_insn *const insn = &r->insns[i];
        uint8_t bytes[4];
        if (insn->encoding == 0)
            insn->encoding = encode(insn, r->insns[insn->to].pc, rng);
        tl_put_le32(bytes, insn->encoding);
        const int rc = tl_buf_add(&r->code, bytes, insn->size);
        if (rc < 0)
            return rc;
    }
    return o->tables ? add_table(r, o, &table) : TL_OK;
}

/* ---- execution -------------------------------------------------------------------------- */

struct core {
    uint32_t at;
    uint8_t privilege;
    uint32_t context;
    uint32_t n_stack, stack[STACK];
    uint32_t n_traps;
    struct {
        uint32_t at; /* where execution continues */
        uint8_t privilege;
    } traps[NESTED];
};

/* Any place that is not in a handler. */
static uint32_t anywhere(const struct tl_sim_riscv_run *r, struct tl_sim_rng *rng)
{
    const uint32_t first = HANDLERS * LENGTH;
    return first + tl_sim_below(rng, r->n_insns - first);
}

/* An exception's instruction is skipped. */
static void trap(const struct tl_sim_riscv_run *r, const struct tl_sim_riscv_options *o,
                 struct core *c, struct tl_sim_riscv_event *e, struct tl_sim_rng *rng)
{
    e->trap = true;
    e->interrupt = tl_sim_below(rng, 2);
    e->cause = e->interrupt ? 7 : 2;
    c->traps[c->n_traps].at = c->at + (!e->interrupt && c->at + 1 < r->n_insns);
    c->traps[c->n_traps++].privilege = c->privilege;
    c->privilege = 3;
    c->at = e->interrupt && !o->one_handler ? LENGTH : 0;
}

static void execute(const struct tl_sim_riscv_run *r, const struct tl_sim_riscv_options *o,
                    struct core *c, struct tl_sim_riscv_event *e, struct tl_sim_rng *rng)
{
    const struct tl_sim_riscv_insn *const insn = &r->insns[c->at];
    const uint32_t after = c->at + 1;
    c->at = after;
    switch (insn->kind) {
    case TL_SIM_RV_BRANCH: /* with habits, for the predictor */
        e->taken =
            tl_sim_below(rng, 16) ? insn->pc >> 2 & 1 && insn->to > after : tl_sim_below(rng, 2);
        c->at = e->taken ? insn->to : after;
        break;
    case TL_SIM_RV_JUMP:
    case TL_SIM_RV_CALL:
    case TL_SIM_RV_SEQUENCE:
        c->at = insn->to;
        break;
    case TL_SIM_RV_INDIRECT:
    case TL_SIM_RV_SWAP: /* few targets, for the cache */
        c->at = tl_sim_below(rng, 4) ? HANDLERS * LENGTH + LENGTH * tl_sim_below(rng, 5)
                                     : anywhere(r, rng);
        break;
    case TL_SIM_RV_ICALL:
        c->at = LENGTH * tl_sim_between(rng, HANDLERS, FUNCTIONS - 1);
        break;
    case TL_SIM_RV_RETURN:
        c->at = c->n_stack > 0 ? c->stack[--c->n_stack] : anywhere(r, rng);
        if (!o->true_returns && tl_sim_below(rng, 20) == 0)
            c->at = anywhere(r, rng);
        break;
    case TL_SIM_RV_MRET:
        c->n_traps--;
        c->at = c->traps[c->n_traps].at;
        c->privilege = c->traps[c->n_traps].privilege;
        break;
    default:
        break;
    }
    const bool is_indirect = insn->kind == TL_SIM_RV_INDIRECT || insn->kind == TL_SIM_RV_ICALL;
    if (o->next_per_mille && is_indirect && after < r->n_insns &&
        tl_sim_below(rng, 1000) < o->next_per_mille)
        c->at = after;
    if (insn->link && c->n_stack == STACK)
        memmove(c->stack, c->stack + 1, --c->n_stack * sizeof *c->stack);
    if (insn->link)
        c->stack[c->n_stack++] = after;
}

int tl_sim_riscv_run(struct tl_sim_riscv_run *r, const struct tl_sim_riscv_options *o)
{
    struct tl_sim_rng rng = {o->seed};
    *r = (struct tl_sim_riscv_run){0};
    int rc = make_program(r, o, &rng);
    r->events = calloc(o->events, sizeof *r->events);
    if (rc == TL_OK && !r->events)
        rc = TL_NOMEM;
    struct core c = {.at = HANDLERS * LENGTH};
    for (uint32_t i = 0; rc == TL_OK && i < o->events; i++) {
        struct tl_sim_riscv_event *const e = &r->events[i];
        const uint8_t kind = r->insns[c.at].kind;
        if (tl_sim_below(&rng, 1000) < o->context_per_mille && kind == TL_SIM_RV_PLAIN)
            c.context = tl_sim_below(&rng, 1000);
        *e =
            (struct tl_sim_riscv_event){.at = c.at, .privilege = c.privilege, .context = c.context};
        /* Behind a trap another one is likely, to have some on a handler's first instruction. */
        const bool again = i > 0 && e[-1].trap && tl_sim_below(&rng, 6) == 0;
        const bool may = c.n_traps < NESTED && kind != TL_SIM_RV_MRET && i > 0;
        if (may && o->trap_per_mille && (again || tl_sim_below(&rng, 1000) < o->trap_per_mille))
            trap(r, o, &c, e, &rng);
        else
            execute(r, o, &c, e, &rng);
    }
    r->n_events = o->events;
    return rc;
}

void tl_sim_riscv_run_fini(struct tl_sim_riscv_run *r)
{
    free(r->insns);
    free(r->events);
    tl_buf_fini(&r->code);
}
