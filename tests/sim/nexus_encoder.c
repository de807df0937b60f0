/* SPDX-License-Identifier: MIT */
#include "sim/nexus_encoder.h"

#include "base/err.h"

#include <inttypes.h>
#include <string.h>

#define STACK_MAX  1024u
#define REPEAT_MAX ((1u << 18) - 1) /* HREPEAT and B-CNT */

enum {
    OWNERSHIP = 2,
    DIRECT,
    INDIRECT,
    DATA = 7,
    ERROR,
    SYNC,
    DIRECT_SYNC = 11,
    INDIRECT_SYNC = 12,
    AUXILIARY = 24,
    FULL = 27,
    HIST,
    HIST_SYNC,
    REPEAT,
    CORRELATION = 33,
    CIRCUIT
};
enum { PERIODIC = 2, ENABLED = 5, EVENT = 6, OVERFLOW = 7, CONTENTION = 11, SAMPLE = 15 };

/* A message that tells of the program's flow. */
struct branch {
    uint8_t tcode, type;
    uint32_t icnt;
    uint64_t target, history;
};

struct encoder {
    const struct tl_sim_riscv_run *run;
    const struct tl_sim_nexus_options *o;
    struct tl_sim_rng rng;
    struct tl_buf *trace, *text;
    int rc;
    uint8_t byte, n_bits; /* the byte being filled */
    uint32_t icnt;        /* halfwords since the last I-CNT */
    bool ahead;           /* an I-CNT was sent whose outcomes were not */
    uint64_t history;     /* with its stop bit */
    uint64_t full;        /* a full history that was not sent yet; 0: none */
    uint32_t n_full;      /* how often */
    struct branch last;   /* last message, if it can be repeated */
    bool can_repeat;
    uint32_t repeats; /* of `last`, not told yet */
    uint64_t base, time;
    uint64_t stack[STACK_MAX];
    unsigned n_stack;
    unsigned messages;  /* since SYNC */
    bool upper_counted; /* the instruction in front was counted since the last message */
};

/* ---- bits ---------------------------------------------------------------------------------- */

static void put_byte(struct encoder *e, unsigned mseo)
{
    const uint8_t byte = (uint8_t)(e->byte << 2 | mseo);
    if (e->rc == TL_OK)
        e->rc = tl_buf_add(e->trace, &byte, 1);
    e->byte = e->n_bits = 0;
}

static void put_bit(struct encoder *e, unsigned bit)
{
    if (e->n_bits == 6)
        put_byte(e, 0);
    e->byte |= (uint8_t)(bit << e->n_bits++);
}

static void fixed(struct encoder *e, uint64_t value, unsigned bits)
{
    for (unsigned i = 0; i < bits; i++)
        put_bit(e, value >> i & 1);
}

/* Mark the end of a variable field at the last byte; it is sent with the next one. */
static void end_field(struct encoder *e)
{
    put_byte(e, 1);
}

static void variable(struct encoder *e, uint64_t value)
{
    if (e->n_bits == 6)
        put_byte(e, 0);
    const bool spare = e->n_bits > 0;
    if (value == 0 && !spare)
        put_bit(e, 0);
    for (; value; value >>= 1)
        put_bit(e, value & 1);
    for (unsigned n = e->o->padded ? tl_sim_below(&e->rng, 14) : 0; n > 0; n--)
        put_bit(e, 0);
    end_field(e);
}

/* An address without bit 0; with `extends` its last bit sent is its sign. */
static void address(struct encoder *e, uint64_t value)
{
    const unsigned width = (e->o->address_bits ? e->o->address_bits : e->o->xlen) - 1;
    const uint64_t all = UINT64_MAX >> (64 - width);
    value = value >> 1 & all;
    const bool negative = e->o->extends && value >> (width - 1) & 1;
    if (!e->o->extends) {
        variable(e, value);
        return;
    }
    if (e->n_bits == 6)
        put_byte(e, 0);
    unsigned sent = 0;
    while (sent < width && ((value >> sent & (all >> sent)) != (negative ? all >> sent : 0)))
        put_bit(e, value >> sent++ & 1);
    do
        put_bit(e, negative);
    while (e->n_bits < 6);
    end_field(e);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void begin(struct encoder *e, unsigned tcode)
{
    fixed(e, tcode, 6);
    fixed(e, e->o->src, e->o->src_bits);
}

/* The end of a message, whose last byte was sent as the end of a field. */
static void end(struct encoder *e, bool absolute)
{
    if (e->o->times && (absolute || tl_sim_below(&e->rng, 8) > 0)) {
        const uint64_t then = e->time,
                       all = UINT64_MAX >> (e->o->time_bits ? 64 - e->o->time_bits : 0);
        e->time += tl_sim_below(&e->rng, 1000);
        variable(e, all & (absolute ? e->time : e->o->sifive ? e->time ^ then : e->time - then));
        if (e->rc == TL_OK)
            e->rc = tl_buf_printf(e->text, "T %" PRIu64 "\n", e->time);
    }
    if (e->rc == TL_OK)
        e->trace->p[e->trace->n - 1] |= 3;
    for (unsigned idle = tl_sim_below(&e->rng, 8) ? 0 : tl_sim_below(&e->rng, 5); idle > 0;
         idle--) {
        e->byte = 63;
        put_byte(e, 3);
    }
}

/* A message that decoders have to ignore. */
static void put_reserved(struct encoder *e)
{
    static const uint8_t codes[] = {1,  5,  6,  10, 13, 23, 25, 26, 31,
                                    32, 36, 55, 56, 57, 60, 62, 63};
    begin(e, codes[tl_sim_below(&e->rng, sizeof codes)]);
    fixed(e, tl_sim_below(&e->rng, 16), 4);
    for (unsigned n = 1 + tl_sim_below(&e->rng, tl_sim_below(&e->rng, 8) ? 3 : 80); n > 0; n--)
        variable(e, tl_sim_below(&e->rng, 1u << 30));
    if (e->rc == TL_OK)
        e->trace->p[e->trace->n - 1] |= 3;
}

/* A message of SiFive's that tells no flow; an in-circuit event changes the base of addresses. */
static void put_event(struct encoder *e, uint64_t pc)
{
    const unsigned kind = tl_sim_below(&e->rng, 3);
    static const uint8_t codes[] = {DATA, AUXILIARY, CIRCUIT};
    begin(e, codes[kind]);
    if (kind == 2) {
        fixed(e, tl_sim_below(&e->rng, 2) ? 8 : 14, 4);
        fixed(e, 0, 2);
        variable(e, ((pc ^ e->base) & (UINT64_MAX >> (64 - e->o->address_bits))) >> 1);
        e->base = pc;
    } else {
        variable(e, tl_sim_below(&e->rng, 128));
        variable(e, tl_sim_below(&e->rng, 1u << 30));
    }
    end(e, false);
}

static void flush_full(struct encoder *e)
{
    if (e->n_full == 0)
        return;
    const unsigned bits = 63 - (unsigned)__builtin_clzll(e->full);
    const uint64_t taken = e->full & ((UINT64_C(1) << bits) - 1);
    const bool same = taken == 0 || taken == (UINT64_C(1) << bits) - 1;
    begin(e, FULL);
    if (e->o->sifive && same) {
        fixed(e, taken ? 9 : 8, 4);
        variable(e, (uint64_t)bits * e->n_full);
    } else {
        fixed(e, e->n_full > 1 ? 2 : 1, 4);
        variable(e, e->full);
        if (e->n_full > 1)
            variable(e, e->n_full);
    }
    end(e, false);
    e->n_full = 0;
}

static void flush_repeats(struct encoder *e)
{
    if (e->repeats > 0) {
        begin(e, REPEAT);
        variable(e, e->repeats);
        end(e, false);
    }
    e->repeats = 0;
    e->can_repeat = false;
}

/* Before any message that is not counted as a repetition. */
static void flush(struct encoder *e)
{
    flush_repeats(e);
    flush_full(e);
}

static void own(struct encoder *e, const struct tl_sim_riscv_event *now)
{
    if (!e->o->contexts)
        return;
    flush(e);
    begin(e, OWNERSHIP);
    variable(e, 2 | now->privilege << 2 | (uint64_t)now->context << 5);
    end(e, false);
}

static void counted(struct encoder *e)
{
    e->icnt = 0;
    e->ahead = false;
    e->history = 1;
    e->upper_counted = false;
    e->messages++;
}

static void put_branch(struct encoder *e, const struct branch *b, unsigned sync)
{
    static const uint8_t synced[] = {
        [DIRECT] = DIRECT_SYNC, [INDIRECT] = INDIRECT_SYNC, [HIST] = HIST_SYNC, [SYNC] = SYNC};
    begin(e, sync ? synced[b->tcode] : b->tcode);
    if (sync)
        fixed(e, sync, 4);
    if (b->tcode == INDIRECT || b->tcode == HIST)
        fixed(e, b->type, 2);
    variable(e, b->icnt);
    if (sync)
        address(e, b->target);
    else if (b->tcode != DIRECT)
        address(e, b->target ^ e->base);
    if (b->tcode == HIST)
        variable(e, b->history);
    end(e, sync);
    if (sync || b->tcode != DIRECT)
        e->base = b->target;
}

/* Begin anew at `target`. */
static void after_sync(struct encoder *e, const struct tl_sim_riscv_event *next)
{
    e->n_stack = 0;
    e->messages = 0;
    own(e, next);
}

/* Why there is SYNC in passing: with SiFive's cores for other reasons, too. */
static unsigned reason_in_passing(struct encoder *e)
{
    static const uint8_t reasons[] = {PERIODIC, PERIODIC, EVENT, CONTENTION, SAMPLE};
    return e->o->sifive ? reasons[tl_sim_below(&e->rng, sizeof reasons)] : PERIODIC;
}

static void branch(struct encoder *e, bool direct, unsigned type,
                   const struct tl_sim_riscv_event *next)
{
    const uint64_t target = e->run->insns[next->at].pc;
    const struct branch b = {.tcode = direct                                      ? DIRECT
                                      : e->o->history && e->history > 1           ? HIST
                                      : e->o->history && tl_sim_below(&e->rng, 2) ? HIST
                                                                                  : INDIRECT,
                             .type = (uint8_t)type,
                             .icnt = e->icnt,
                             .target = target,
                             .history = e->history};
    const bool sync = e->messages >= e->o->sync_every && tl_sim_below(&e->rng, 2);
    const bool same = e->can_repeat && b.tcode == e->last.tcode && b.icnt == e->last.icnt &&
                      b.type == 0 && b.history == e->last.history && e->n_full == 0 &&
                      (direct || b.target == e->last.target);
    counted(e);
    if (e->o->repeats && same && !sync && e->repeats < REPEAT_MAX) {
        e->repeats++;
        return;
    }
    flush(e);
    put_branch(e, &b, sync ? reason_in_passing(e) : 0);
    e->last = b;
    e->can_repeat = !sync && type == 0;
    if (sync)
        after_sync(e, next);
}

/* SYNC on straight code. */
static void put_sync(struct encoder *e, unsigned reason, const struct tl_sim_riscv_event *next)
{
    const struct branch b = {.tcode = e->o->history && reason == PERIODIC ? HIST : SYNC,
                             .icnt = e->icnt,
                             .target = e->run->insns[next->at].pc,
                             .history = e->history};
    flush(e);
    put_branch(e, &b, reason);
    counted(e);
    after_sync(e, next);
}

static void stop(struct encoder *e)
{
    flush(e);
    begin(e, CORRELATION);
    fixed(e, 4, 4);
    fixed(e, e->o->history, 2);
    variable(e, e->icnt);
    if (e->o->history)
        variable(e, e->history);
    end(e, false);
    counted(e);
}

static void fail(struct encoder *e)
{
    begin(e, ERROR);
    fixed(e, 0, 4);
    variable(e, 4);
    end(e, false);
}

/* ---- what retires ---------------------------------------------------------------------------- */

static void push(struct encoder *e, uint64_t pc)
{
    if (e->n_stack == e->o->stack && e->n_stack > 0)
        memmove(e->stack, e->stack + 1, --e->n_stack * sizeof *e->stack);
    if (e->o->stack > 0)
        e->stack[e->n_stack++] = pc;
}

/* Is the jump's target, popped from the stack, the right one? */
static bool pop(struct encoder *e, uint64_t target)
{
    return e->n_stack > 0 && e->stack[--e->n_stack] == target;
}

static void outcome(struct encoder *e, bool taken)
{
    e->history = e->history << 1 | taken;
    if (e->history >> e->o->history_bits == 0)
        return;
    if (e->n_full > 0 && (e->full != e->history || !e->o->repeats || e->n_full == REPEAT_MAX))
        flush_full(e);
    flush_repeats(e);
    e->full = e->history;
    e->n_full++;
    e->history = 1;
    if (!e->o->repeats)
        flush_full(e);
}

static void count(struct encoder *e, unsigned halfwords)
{
    e->icnt += halfwords;
    if (e->icnt < e->o->icnt_max)
        return;
    flush(e);
    begin(e, FULL);
    fixed(e, 0, 4);
    variable(e, e->icnt);
    end(e, false);
    e->icnt = 0;
    e->ahead = true;
}

/* SiFive's branch messages leave out an indirect jump to the next instruction. */
static bool is_next(const struct encoder *e, const struct tl_sim_riscv_insn *insn, uint64_t target)
{
    const bool is_return = insn->kind == TL_SIM_RV_RETURN || insn->kind == TL_SIM_RV_SWAP;
    return e->o->sifive && !e->o->history && !is_return && insn->kind != TL_SIM_RV_MRET &&
           target == insn->pc + insn->size;
}

/* An indirect jump; a return's or a swap's target may be on the stack. */
static void jump_indirect(struct encoder *e, const struct tl_sim_riscv_insn *insn, bool upper,
                          const struct tl_sim_riscv_event *next)
{
    const uint64_t after = insn->pc + insn->size, target = e->run->insns[next->at].pc;
    const bool swap = insn->kind == TL_SIM_RV_SWAP;
    bool known = (swap || insn->kind == TL_SIM_RV_RETURN) && pop(e, target);
    if (swap || insn->link)
        push(e, after);
    known |= insn->kind == TL_SIM_RV_SEQUENCE && e->o->sequences && upper;
    known |= is_next(e, insn, target);
    if (!known)
        branch(e, false, 0, next);
}

static void direct(struct encoder *e, bool taken, const struct tl_sim_riscv_event *next)
{
    if (e->o->history)
        outcome(e, taken);
    else if (taken)
        branch(e, true, 0, next);
}

static void say(struct encoder *e, const struct tl_sim_riscv_insn *insn)
{
    if (e->rc == TL_OK)
        e->rc = tl_buf_printf(e->text, "I %016" PRIx64 " %0*" PRIx32 "\n", insn->pc, insn->size * 2,
                              insn->encoding);
    if (e->rc == TL_OK && insn->kind == TL_SIM_RV_MRET)
        e->rc = tl_buf_printf(e->text, "R\n");
}

/* SiFive's cores do not tell exceptions and interrupts apart, only hardware's events. */
static unsigned trap_type(struct encoder *e, const struct tl_sim_riscv_event *now)
{
    return e->o->sifive ? 1 + tl_sim_below(&e->rng, 2) : now->interrupt ? 3 : 2;
}

static void retire(struct encoder *e, const struct tl_sim_riscv_event *now)
{
    const struct tl_sim_riscv_insn *const insn = &e->run->insns[now->at];
    const struct tl_sim_riscv_event *const next = now + 1;
    if (now->trap) {
        if (e->rc == TL_OK)
            e->rc = tl_buf_printf(e->text, "X - %016" PRIx64 "\n", insn->pc);
        branch(e, false, trap_type(e, now), next);
        return;
    }
    const bool upper = e->upper_counted;
    say(e, insn);
    e->upper_counted = insn->kind == TL_SIM_RV_UPPER;
    count(e, insn->size / 2);
    switch (insn->kind) {
    case TL_SIM_RV_BRANCH:
        direct(e, now->taken, next);
        break;
    case TL_SIM_RV_CALL:
        push(e, insn->pc + insn->size);
        /* fallthrough */
    case TL_SIM_RV_JUMP:
        if (e->o->jumps)
            direct(e, true, next);
        break;
    case TL_SIM_RV_PLAIN:
    case TL_SIM_RV_UPPER:
        break;
    default:
        jump_indirect(e, insn, upper, next);
        break;
    }
}

int tl_sim_nexus_encode(const struct tl_sim_riscv_run *run,
                        const struct tl_sim_nexus_options *options, struct tl_buf *trace,
                        struct tl_buf *text)
{
    struct encoder e = {.run = run,
                        .o = options,
                        .rng = {options->seed},
                        .trace = trace,
                        .text = text,
                        .history = 1,
                        .time = options->time};
    const struct tl_sim_riscv_event *const events = run->events;
    put_sync(&e, ENABLED, events);
    for (uint32_t i = 0; i + 1 < run->n_events && e.rc == TL_OK; i++) {
        const struct tl_sim_riscv_event *const now = &events[i], *const next = now + 1;
        retire(&e, now);
        if (next->privilege != now->privilege || next->context != now->context)
            own(&e, next);
        if (e.o->reserved && tl_sim_below(&e.rng, 40) == 0)
            put_reserved(&e);
        if (e.o->events && tl_sim_below(&e.rng, 60) == 0) {
            flush(&e);
            put_event(&e, run->insns[next->at].pc);
        }
        if (e.messages > e.o->sync_every + 4)
            put_sync(&e, PERIODIC, next);
        const bool clean =
            e.icnt == 0 && !e.ahead && e.history == 1 && e.n_full == 0 && e.repeats == 0;
        if (!e.o->gaps || i + 64 > run->n_events || tl_sim_below(&e.rng, 300) > 0)
            continue;
        if (clean)
            fail(&e);
        else
            stop(&e);
        i += tl_sim_below(&e.rng, 50);
        counted(&e);
        e.can_repeat = false;
        put_sync(&e, clean ? OVERFLOW : ENABLED, &events[i + 1]);
    }
    if (e.rc == TL_OK)
        stop(&e);
    return e.rc;
}
