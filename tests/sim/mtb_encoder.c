/* SPDX-License-Identifier: MIT */
/*
 * Executes a program step by step and writes a record for each change of flow. The truth is cut at
 * both ends afterwards, since only then is known which record is the oldest.
 */
#include "sim/mtb_encoder.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 48, RECORD = 8, WRAP = 4 };
#define EXC_RETURN 0xfffffff8u

struct call {
    uint32_t insn; /* to return to */
    bool exception;
};

struct encoder {
    const struct tl_arm32_program *program;
    const struct tl_sim_mtb_options *o;
    struct tl_sim_rng rng;
    struct tl_sim_mtb *out;
    struct tl_buf text;
    size_t *marks; /* by slot of the buffer: length of the text at the record's destination */
    size_t last;   /* the same before the last record's successor */
    int rc;
    uint32_t at; /* next instruction */
    struct call calls[DEPTH];
    size_t n_calls;
    uint64_t records;
    bool starts;   /* the next record is the first one of a trace */
    bool straight; /* no branch ran since the last record */
};

static uint32_t slots(const struct encoder *e)
{
    return 2u << e->o->mask;
}

#define SAY(e, ...)                                                                                \
    do {                                                                                           \
        if ((e)->rc >= 0)                                                                          \
            (e)->rc = tl_buf_printf(&(e)->text, __VA_ARGS__);                                      \
    } while (0)

static uint32_t address_of(const struct encoder *e, uint32_t insn)
{
    return e->program->insns[insn].address;
}

static void record(struct encoder *e, uint32_t source, uint32_t destination)
{
    const uint32_t slot = (uint32_t)(e->records++ % slots(e));
    uint8_t *const p = e->out->ram.p + e->o->front + slot * RECORD;
    tl_put_le32(p, source);
    tl_put_le32(p + 4, destination | e->starts);
    e->starts = false;
    e->straight = true;
}

/* The text that follows is behind the record written last. */
static void mark(struct encoder *e)
{
    e->marks[(e->records - 1) % slots(e)] = e->text.n;
    e->last = e->text.n;
}

static void enter(struct encoder *e)
{
    e->at = e->program->handler;
    mark(e);
}

static void interrupt(struct encoder *e)
{
    SAY(e, "X %u %016x\n", TL_SIM_MTB_VECTOR, address_of(e, e->at));
    record(e, address_of(e, e->at) | 1, address_of(e, e->program->handler));
    e->calls[e->n_calls++] = (struct call){e->at, true};
    enter(e);
}

/* The handler returns, or the next one follows at once. */
static void leave(struct encoder *e, uint32_t from)
{
    record(e, from, EXC_RETURN);
    mark(e);
    if (tl_sim_below(&e->rng, 4) == 0) {
        SAY(e, "X %u -\n", TL_SIM_MTB_VECTOR);
        record(e, EXC_RETURN | 1, address_of(e, e->program->handler));
        enter(e);
        return;
    }
    SAY(e, "R\n");
    e->at = e->calls[--e->n_calls].insn;
    record(e, EXC_RETURN | 1, address_of(e, e->at));
    mark(e);
}

static uint32_t later_function(struct encoder *e)
{
    uint32_t f = 0;
    while (f + 1 < TL_ARM32_FUNCTIONS && e->program->functions[f + 1] <= e->at)
        f++;
    return e->program->functions[tl_sim_between(&e->rng, f + 1, TL_ARM32_FUNCTIONS - 1)];
}

static void step(struct encoder *e)
{
    const struct tl_arm32_insn *const i = &e->program->insns[e->at];
    uint32_t next = e->at + 1;
    bool taken = i->kind != TL_ARM32_PLAIN && i->kind != TL_ARM32_MAYBE &&
                 i->kind != TL_ARM32_BARRIER && i->kind != TL_ARM32_DMB && i->kind != TL_ARM32_SVC;
    SAY(e, "I %016x %0*x\n", i->address, i->size * 2, i->encoding);
    e->straight &= i->kind == TL_ARM32_PLAIN;
    switch (i->kind) {
    case TL_ARM32_BRANCH:
        taken = !i->conditional || tl_sim_below(&e->rng, 2);
        next = taken ? i->target : next;
        break;
    case TL_ARM32_CALL:
    case TL_ARM32_INDIRECT:
        next = i->kind == TL_ARM32_CALL ? i->target : later_function(e);
        e->calls[e->n_calls++] = (struct call){e->at + 1, false};
        break;
    case TL_ARM32_RETURN:
        next = e->calls[--e->n_calls].insn;
        break;
    case TL_ARM32_LEAVE:
        leave(e, i->address);
        return;
    default:
        break;
    }
    e->at = next;
    if (!taken)
        return;
    record(e, i->address, address_of(e, next));
    mark(e);
}

static bool is_inside(const struct encoder *e)
{
    return e->n_calls > 0 && e->calls[e->n_calls - 1].exception;
}

/* What runs up to the first record of the new trace is not traced either. */
static void start_again(struct encoder *e)
{
    const uint64_t records = e->records;
    const size_t text = e->text.n;
    e->starts = true;
    while (e->rc >= 0 && e->records == records)
        step(e);
    e->text.n = text;
    mark(e);
}

/* Some instructions run untraced. */
static void skip(struct encoder *e)
{
    struct tl_sim_mtb unseen = {0};
    struct encoder away = *e;
    away.text = (struct tl_buf){0};
    away.out = &unseen;
    away.marks = calloc(slots(e), sizeof *away.marks);
    away.rc = away.marks ? tl_buf_add(&unseen.ram, e->out->ram.p, e->out->ram.n) : TL_NOMEM;
    for (unsigned n = 1 + tl_sim_below(&e->rng, 30); away.rc >= 0 && n > 0; n--)
        step(&away);
    e->text.n = e->last; /* nothing tells what ran behind the last record */
    e->rc = away.rc;
    e->rng = away.rng;
    e->at = away.at;
    e->n_calls = away.n_calls;
    memcpy(e->calls, away.calls, sizeof e->calls);
    free(away.marks);
    tl_buf_fini(&away.text);
    tl_sim_mtb_fini(&unseen);
    start_again(e);
}

static void finish(struct encoder *e)
{
    const bool wrapped = e->records > slots(e);
    const uint32_t head = (uint32_t)(e->records % slots(e));
    const size_t from = e->marks[wrapped ? head : 0];
    e->out->position = (e->o->front + head * RECORD) | (wrapped ? WRAP : 0);
    e->out->has_pc = e->straight;
    e->out->pc = address_of(e, e->at);
    const size_t end = e->out->has_pc ? e->text.n : e->last;
    if (e->rc >= 0)
        e->rc = tl_buf_add(&e->out->truth, e->text.p + from, end - from);
}

int tl_sim_mtb_encode(const struct tl_arm32_program *program, const struct tl_sim_mtb_options *o,
                      struct tl_sim_mtb *out)
{
    struct encoder e = {
        .program = program, .o = o, .rng = {o->seed}, .out = out, .starts = true, .straight = true};
    const size_t size = o->front + (size_t)slots(&e) * RECORD;
    e.marks = calloc(slots(&e), sizeof *e.marks);
    e.rc = e.marks ? tl_buf_reserve(&out->ram, size) : TL_NOMEM;
    if (e.rc >= 0) {
        memset(out->ram.p, 0, size);
        out->ram.n = size;
        record(&e, 0, address_of(&e, 0));
        mark(&e);
    }
    for (uint32_t n = 0; e.rc >= 0 && n < o->insns; n++) {
        step(&e);
        const bool quiet = is_inside(&e) || e.n_calls > DEPTH / 2;
        if (!quiet && tl_sim_below(&e.rng, 40) == 0)
            interrupt(&e);
        else if (!quiet && o->gaps && tl_sim_below(&e.rng, 300) == 0)
            skip(&e);
    }
    if (e.rc >= 0)
        finish(&e);
    free(e.marks);
    tl_buf_fini(&e.text);
    return e.rc;
}

void tl_sim_mtb_fini(struct tl_sim_mtb *mtb)
{
    tl_buf_fini(&mtb->ram);
    tl_buf_fini(&mtb->truth);
}
