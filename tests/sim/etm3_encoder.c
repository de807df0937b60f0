/* SPDX-License-Identifier: MIT */
/*
 * Executes a program step by step, and sends after each step what a trace unit would. The truth is
 * kept as lines that are not final until no packet can take them back: a cancelled instruction
 * (ETMv3), code behind the last waypoint (PTM).
 */
#include "sim/etm3_encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, STACK = 32, PERIODIC = 0, TRACE_ON = 1, OVERFLOWED = 2 };

struct call {
    uint32_t insn;  /* to return to */
    uint8_t number; /* of the exception; 0: a call */
};

/* An access whose value is sent later: the truth has a place for it, which is filled in with it. */
struct late {
    bool is;
    uint32_t step; /* when the access was */
    uint32_t address, width, access;
    uint32_t place;
};

/* The line at a place of the truth. */
struct place {
    char text[120];
};

struct encoder {
    const struct tl_arm32_program *program;
    const struct tl_sim_etm3_options *o;
    struct tl_sim_rng rng;
    struct tl_buf *trace, *truth;
    int rc;
    uint32_t at; /* next instruction */
    struct call calls[DEPTH];
    size_t n_calls;
    /* what packets are compressed against */
    uint32_t address;
    bool t32;
    uint64_t time, sent_time;
    bool whole_time;
    /* outcomes that were not sent yet: ETMv3 without cycles, PTM without cycles */
    uint32_t atoms, n_atoms;
    uint32_t cycles;       /* PTM: since the last count; ETMv3: since the last outcome */
    uint32_t data_address; /* sent last */
    struct late late[4];   /* accesses whose values are still to be sent, by tag */
    uint32_t steps;
    uint32_t predicted[STACK];
    size_t n_predicted;
    struct tl_buf pending; /* truth that is not final */
    struct tl_buf *places; /* struct place */
    bool open;             /* the last instruction's line is in `pending`, */
    size_t before_last;    /* from here on */
    bool moved;            /* PTM: instructions were executed since the last waypoint */
    uint32_t last;         /* the last instruction executed */
    size_t synced;         /* length of the trace at the last synchronisation */
};

/* ---- bytes and lines ------------------------------------------------------------------------- */

static void put(struct encoder *e, uint8_t b)
{
    if (e->rc >= 0)
        e->rc = tl_buf_add(e->trace, &b, 1);
}

static void settle(struct encoder *e)
{
    if (e->rc >= 0)
        e->rc = tl_buf_add(e->truth, e->pending.p, e->pending.n);
    e->pending.n = e->before_last = 0;
    e->open = false;
}

#define SAY(e, ...)                                                                                \
    do {                                                                                           \
        if ((e)->rc >= 0)                                                                          \
            (e)->rc = tl_buf_printf(&(e)->pending, __VA_ARGS__);                                   \
    } while (0)

static const struct tl_arm32_insn *insn_at(const struct encoder *e, uint32_t i)
{
    return &e->program->insns[i];
}

static void say_insn(struct encoder *e, const struct tl_arm32_insn *i)
{
    e->before_last = e->pending.n;
    e->open = true;
    SAY(e, "I %016x %0*x\n", i->address, i->size * 2, i->encoding);
}

static void put_groups(struct encoder *e, uint32_t value)
{
    for (; value > 0x7f; value >>= 7)
        put(e, (uint8_t)(value | 0x80));
    put(e, (uint8_t)value);
}

/* PTM: a count behind a packet, with the low bits of its first byte. */
static void put_count(struct encoder *e, uint8_t first)
{
    if (!e->o->cycle_accurate)
        return;
    const uint32_t rest = e->cycles >> 4;
    put(e, (uint8_t)(first | (e->cycles & 15) << 2 | (rest ? 0x40 : 0)));
    if (rest)
        put_groups(e, rest);
}

static void say_count(struct encoder *e)
{
    if (e->o->cycle_accurate)
        SAY(e, "Y %u\n", e->cycles);
    e->cycles = 0;
}

/* ---- atoms ----------------------------------------------------------------------------------- */

static void flush_ptm(struct encoder *e)
{
    static const uint8_t heads[] = {0, 0x84, 0x88, 0x90, 0xa0, 0xc0};
    uint32_t b = heads[e->n_atoms];
    for (uint32_t i = 0; i < e->n_atoms; i++)
        b |= (e->atoms >> i & 1 ? 0u : 1u) << (e->n_atoms - i);
    put(e, (uint8_t)b);
    e->atoms = e->n_atoms = 0;
}

/* One packet with the oldest outcomes. */
static void flush_some_etm(struct encoder *e)
{
    uint32_t run = 0;
    while (run < e->n_atoms && run < 15 && e->atoms >> run & 1)
        run++;
    const bool failed = run < e->n_atoms && !(e->atoms >> run & 1);
    uint32_t done = run + failed;
    if (e->n_atoms >= 2 && tl_sim_below(&e->rng, 3) == 0) {
        put(e, (uint8_t)(0x82 | (e->atoms & 1 ? 0 : 8) | (e->atoms & 2 ? 0 : 4)));
        done = 2;
    } else {
        put(e, (uint8_t)(0x80 | run << 2 | (failed ? 0x40 : 0)));
    }
    e->atoms >>= done;
    e->n_atoms -= done;
}

static void flush_atoms(struct encoder *e)
{
    while (e->n_atoms > 0)
        if (e->o->ptm)
            flush_ptm(e);
        else
            flush_some_etm(e);
}

/* ETMv3 with cycles: `cycles` of them, then an outcome. */
static void put_etm_cycles(struct encoder *e, bool passed)
{
    uint32_t w = e->cycles;
    if (w > 0)
        SAY(e, "Y %u\n", w);
    for (; w > 1; w -= w > 9 ? 8 : w - 1)
        put(e, (uint8_t)(0xa0 | ((w > 9 ? 8 : w - 1) - 1) << 2));
    if (w == 0)
        put(e, passed ? 0x92 : 0x96);
    else if (passed && tl_sim_below(&e->rng, 2))
        put(e, 0xe0); /* a cycle, then E */
    else
        put(e, passed ? 0x84 : 0xc0);
    e->cycles = 0;
}

static void add_atom(struct encoder *e, bool passed)
{
    e->atoms |= (uint32_t)passed << e->n_atoms++;
    if (e->n_atoms == (e->o->ptm ? 5 : 16) || tl_sim_below(&e->rng, 6) == 0)
        flush_atoms(e);
}

/* ---- branches -------------------------------------------------------------------------------- */

struct exception {
    uint16_t number; /* as traced; 0: none */
    bool cancels;
};

static void put_exception(struct encoder *e, const struct exception *x)
{
    const bool more = x->number > 15 || (x->number && e->o->m_profile && tl_sim_below(&e->rng, 2));
    put(e, (uint8_t)((x->number & 15) << 1 | (x->cancels ? 0x20 : 0) | (more ? 0x80 : 0)));
    if (!more)
        return;
    const bool resumes = !e->o->ptm && e->o->m_profile && tl_sim_below(&e->rng, 2);
    if (x->number <= 15 && resumes) {
        put(e, 0x43);
        return;
    }
    put(e, (uint8_t)(x->number >> 4 | (resumes ? 0x80 : 0)));
    if (resumes)
        put(e, 0x45);
}

/* The address bytes of a branch to `to`, without the exception's. */
static void put_address(struct encoder *e, const struct tl_arm32_insn *to, bool exception,
                        bool alternative)
{
    const unsigned low = to->t32 ? 1 : 2;
    const uint32_t field = to->address >> low, changed = (to->address ^ e->address) >> low;
    unsigned n = 1;
    while (n < 5 && changed >> (n == 1 ? 6 : alternative ? 7 * n - 2 : 7 * n - 1))
        n++;
    if (n < 5 && tl_sim_below(&e->rng, 8) == 0)
        n++;
    if (to->t32 != e->t32 || (exception && (!alternative)))
        n = 5;
    if (exception && n < 2)
        n = 2;
    put(e, (uint8_t)(1 | (field & 0x3f) << 1 | (n > 1 ? 0x80 : 0)));
    for (unsigned i = 1; i < n && i < 4; i++) {
        const bool last = i + 1 == n;
        const uint32_t group = field >> (7 * i - 1);
        put(e,
            (uint8_t)(last ? (alternative ? (group & 0x3f) | (exception ? 0x40 : 0) : group & 0x7f)
                           : group | 0x80));
    }
    if (n == 5)
        put(e, (uint8_t)((to->t32 ? 0x10 | to->address >> 28 : 0x08 | to->address >> 29) |
                         (exception ? 0x40 : 0)));
    e->address = to->address;
    e->t32 = to->t32;
}

static void put_branch(struct encoder *e, uint32_t to, const struct exception *x)
{
    flush_atoms(e);
    put_address(e, insn_at(e, to), x->number, e->o->ptm || e->o->alternative_branch);
    if (x->number)
        put_exception(e, x);
    if (e->o->ptm)
        put_count(e, 0);
}

/* ---- synchronisation and time ---------------------------------------------------------------- */

static void put_time(struct encoder *e)
{
    const unsigned bits = e->o->wide_time ? 64 : 48, most = e->o->wide_time ? 9 : 7;
    e->time += 1 + tl_sim_below(&e->rng, e->o->time_step ? e->o->time_step : 5000);
    const uint64_t sent = (e->o->gray ? e->time ^ e->time >> 1 : e->time),
                   changed = sent ^ e->sent_time;
    unsigned n = most;
    while (e->whole_time && n > 1 && !(changed >> (7 * (n - 1))))
        n--;
    flush_atoms(e);
    put(e, tl_sim_below(&e->rng, 2) ? 0x42 : 0x46);
    for (unsigned i = 0; i < n; i++) {
        const uint8_t part = (uint8_t)(sent >> 7 * i);
        put(e, i + 1 == most ? (uint8_t)(bits == 64 ? part : part & 0x3f)
                             : (uint8_t)((part & 0x7f) | (i + 1 < n ? 0x80 : 0)));
    }
    e->sent_time = sent;
    e->whole_time = true;
    SAY(e, "T %llu\n", (unsigned long long)e->time);
    if (e->o->ptm) {
        put_count(e, 0);
        say_count(e);
        settle(e);
    }
}

static void put_info(struct encoder *e, unsigned reason)
{
    put(e, (uint8_t)(1 | 8 | reason << 5));
}

static void put_context(struct encoder *e)
{
    for (unsigned i = 0; i < e->o->context_bytes; i++)
        put(e, (uint8_t)(0x21 + i));
}

static void put_place(struct encoder *e)
{
    const struct tl_arm32_insn *const i = insn_at(e, e->at);
    for (unsigned b = 0; b < 4; b++)
        put(e, (uint8_t)((i->address | i->t32) >> 8 * b));
    e->address = i->address;
    e->t32 = i->t32;
}

static void put_sync(struct encoder *e, unsigned reason)
{
    flush_atoms(e);
    for (unsigned i = tl_sim_between(&e->rng, 5, 7); i > 0; i--)
        put(e, 0);
    put(e, 0x80);
    const bool counts = e->o->cycle_accurate && reason != PERIODIC;
    if (e->o->ptm) {
        put(e, 0x08);
        put_place(e);
        put_info(e, reason);
        if (counts)
            put_count(e, 0);
        put_context(e);
        if (counts)
            say_count(e);
    } else {
        put(e, counts ? 0x70 : 0x08);
        if (counts) {
            put_groups(e, 77);
            SAY(e, "Y 77\n");
        }
        put_context(e);
        put_info(e, reason);
        put_place(e);
    }
    settle(e);
    e->n_predicted = 0;
    e->synced = e->trace->n;
    if (e->o->timestamps) {
        e->whole_time = e->whole_time && reason == PERIODIC && tl_sim_below(&e->rng, 2);
        put_time(e);
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_waypoint(const struct encoder *e, const struct tl_arm32_insn *i)
{
    switch (i->kind) {
    case TL_ARM32_PLAIN:
    case TL_ARM32_MAYBE:
    case TL_ARM32_SVC:
        return false;
    case TL_ARM32_DMB:
        return e->o->barriers;
    default:
        return true;
    }
}

static void predict(struct encoder *e, uint32_t insn)
{
    if (!e->o->stack)
        return;
    if (e->n_predicted == e->o->stack)
        memmove(e->predicted, e->predicted + 1, --e->n_predicted * sizeof *e->predicted);
    e->predicted[e->n_predicted++] = insn;
}

/* One outcome of ETMv3 or PTM with what counts of cycles belong to it. */
static void tell_outcome(struct encoder *e, bool passed)
{
    if (!e->o->cycle_accurate) {
        add_atom(e, passed);
    } else { /* PTM: ETMv3 tells cycles before the instruction */
        put_count(e, (uint8_t)(0x80 | (passed ? 0 : 2)));
        say_count(e);
    }
}

static void tell_ptm(struct encoder *e, const struct tl_arm32_insn *i, bool taken, bool indirect,
                     uint32_t next)
{
    e->moved = true;
    if (!is_waypoint(e, i))
        return;
    e->moved = false;
    const bool known = indirect && e->n_predicted > 0 && e->predicted[e->n_predicted - 1] == next;
    if (known)
        e->n_predicted--;
    if (indirect && !known) {
        put_branch(e, next, &(struct exception){0});
        say_count(e);
    } else {
        tell_outcome(e, taken);
    }
    if (i->kind == TL_ARM32_CALL || i->kind == TL_ARM32_INDIRECT)
        predict(e, e->last + 1);
    settle(e);
}

/* The first instruction of a function behind the one that executes: calls end. */
static uint32_t later_function(struct encoder *e)
{
    uint32_t f = 0;
    while (f + 1 < TL_ARM32_FUNCTIONS && e->program->functions[f + 1] <= e->at)
        f++;
    return e->program->functions[tl_sim_between(&e->rng, f + 1, TL_ARM32_FUNCTIONS - 1)];
}

/* Now and then a call through a register, or an exception return, goes where the return stack
 * predicts: to a place that is to be returned to anyway. Else to `other`. */
static uint32_t sometimes_predicted(struct encoder *e, uint32_t other)
{
    enum { CALLS = 20 };
    if (e->n_predicted == 0 || e->n_calls > CALLS || tl_sim_below(&e->rng, 4) > 0)
        return other;
    const uint32_t to = e->predicted[e->n_predicted - 1];
    for (size_t i = 0; i < e->n_calls; i++)
        if (e->calls[i].insn == to)
            return to;
    return other;
}

/* ---- data trace ------------------------------------------------------------------------------ */

static bool traces_data(const struct encoder *e)
{
    return !e->o->ptm && (e->o->data_addresses || e->o->data_values);
}

static void put_data_address(struct encoder *e, uint32_t address)
{
    const uint32_t changed = address ^ e->data_address;
    unsigned n = 1;
    while (n < 5 && changed >> 7 * n)
        n++;
    for (unsigned i = 0; i < n; i++)
        put(e, i == 4 ? (uint8_t)(address >> 28)
                      : (uint8_t)((address >> 7 * i & 0x7f) | (i + 1 < n ? 0x80 : 0)));
    e->data_address = address;
}

/* The size code of a value, whose bytes follow. */
static unsigned code_of(uint32_t value)
{
    return value == 0 ? 0 : value < 0x100 ? 1 : value < 0x10000 ? 2 : 3;
}

static void put_value(struct encoder *e, uint32_t value)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    for (unsigned i = 0; i < sizes[code_of(value)]; i++)
        put(e, (uint8_t)(value >> 8 * i));
}

static uint32_t some_value(struct encoder *e, unsigned width)
{
    const uint32_t value =
        tl_sim_below(&e->rng, 0x10000) << tl_sim_below(&e->rng, 17) >> tl_sim_below(&e->rng, 17);
    return width == 4 ? value : value & ((1u << 8 * width) - 1);
}

static struct place *place(struct encoder *e, uint32_t i)
{
    return (struct place *)e->places->p + i;
}

/* The value of an access before: not of every one right away, and of few only after this many
 * instructions. */
static void put_late(struct encoder *e)
{
    enum { STEPS = 4 };
    const unsigned tag = 1 + tl_sim_below(&e->rng, 3);
    struct late *const l = &e->late[tag];
    if (!l->is || (tl_sim_below(&e->rng, 3) > 0 && e->steps - l->step < STEPS))
        return;
    l->is = false;
    if (e->steps - l->step > 2 * STEPS)
        return; /* never */
    const uint32_t value = some_value(e, l->width);
    put(e, (uint8_t)(tag << 5 | code_of(value) << 2));
    put_value(e, value);
    struct place *const at = place(e, l->place);
    if (e->o->data_addresses)
        snprintf(at->text, sizeof at->text,
                 "A INST_MEM_ACCESS addr=0x%x size=%u attr=0x0 access=%u\nA INST_MEM_CONTENT "
                 "data=0x%x\n",
                 l->address, l->width, l->access, value);
    else
        snprintf(at->text, sizeof at->text, "A data %s value=0x%x\n",
                 l->access == 1 ? "read" : "write", value);
}

static bool put_pending(struct encoder *e, const struct tl_arm32_insn *i, uint32_t address,
                        bool first)
{
    const char *const verb = i->access == 1 ? "read" : "write";
    const unsigned tag = 1 + tl_sim_below(&e->rng, 3);
    if (!e->o->data_values || e->late[tag].is || tl_sim_below(&e->rng, 4) > 0)
        return false;
    put(e, (uint8_t)(0x50 | tag << 2 | (first ? 0x20 : 0)));
    if (first && e->o->data_addresses)
        put_data_address(e, address);
    struct place line = {""};
    if (e->o->data_addresses)
        snprintf(line.text, sizeof line.text, "A data %s addr=0x%x pending=%u\n", verb, address,
                 tag);
    else
        snprintf(line.text, sizeof line.text, "A data %s pending=%u\n", verb, tag);
    const uint32_t n = (uint32_t)(e->places->n / sizeof line);
    if (e->rc >= 0)
        e->rc = tl_buf_add(e->places, &line, sizeof line);
    SAY(e, "A @%u\n", n);
    e->late[tag] = (struct late){true, e->steps, address, i->width, i->access, n};
    return true;
}

/* Put the lines into their places. */
static int fill_places(const struct tl_buf *said, const struct tl_buf *places, struct tl_buf *truth)
{
    const char *p = (const char *)said->p, *const end = p + said->n;
    int r = TL_OK;
    while (p < end && r >= 0) {
        const char *const stop = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
        if (p[0] == 'A' && p[2] == '@')
            r = tl_buf_printf(truth, "%s",
                              ((const struct place *)places->p)[strtoul(p + 3, NULL, 10)].text);
        else
            r = tl_buf_add(truth, p, (size_t)(stop - p));
        p = stop;
    }
    return r;
}

static void put_normal(struct encoder *e, const struct tl_arm32_insn *i, uint32_t address,
                       bool first)
{
    const char *const verb = i->access == 1 ? "read" : "write";
    const uint32_t value = some_value(e, i->width);
    const bool values = e->o->data_values;
    put(e, (uint8_t)(0x02 | (first ? 0x20 : 0) | (values ? code_of(value) << 2 : 0)));
    if (first && e->o->data_addresses)
        put_data_address(e, address);
    if (values)
        put_value(e, value);
    if (values && e->o->data_addresses)
        SAY(e,
            "A INST_MEM_ACCESS addr=0x%x size=%u attr=0x0 access=%u\nA INST_MEM_CONTENT "
            "data=0x%x\n",
            address, i->width, i->access, value);
    else if (values)
        SAY(e, "A data %s value=0x%x\n", verb, value);
    else
        SAY(e, "A data %s addr=0x%x\n", verb, address);
}

/* All that is sent of the accesses of the instruction executed last. */
static void tell_data(struct encoder *e, const struct tl_arm32_insn *i)
{
    uint32_t address = tl_sim_below(&e->rng, 4) ? e->data_address + 4 * tl_sim_below(&e->rng, 100)
                                                : tl_sim_below(&e->rng, UINT32_MAX);
    flush_atoms(e);
    if (tl_sim_below(&e->rng, 20) == 0) {
        put(e, 0x62);
        SAY(e, "A data suppressed\n");
        return;
    }
    for (unsigned n = 0; n < i->transfers; n++, address += 4)
        if (!put_pending(e, i, address, n == 0))
            put_normal(e, i, address, n == 0);
    if (i->access == 2 && tl_sim_below(&e->rng, 10) == 0) {
        put(e, 0x50);
        SAY(e, "A data store-failed\n");
    }
}

/* Execute the instruction at e->at. */
static void step(struct encoder *e)
{
    const struct tl_arm32_insn *const i = insn_at(e, e->at);
    bool passed = true, indirect = false;
    uint32_t next = e->at + 1;
    e->last = e->at;
    e->steps++;
    e->cycles += e->o->cycle_accurate ? tl_sim_below(&e->rng, 3) * tl_sim_below(&e->rng, 12) : 0;
    switch (i->kind) {
    case TL_ARM32_MAYBE:
        passed = tl_sim_below(&e->rng, 2);
        break;
    case TL_ARM32_BRANCH:
        passed = !i->conditional || tl_sim_below(&e->rng, 2);
        next = passed ? i->target : next;
        break;
    case TL_ARM32_CALL:
        e->calls[e->n_calls++] = (struct call){e->at + 1, 0};
        next = i->target;
        break;
    case TL_ARM32_INDIRECT:
        next = sometimes_predicted(e, later_function(e));
        e->calls[e->n_calls++] = (struct call){e->at + 1, 0};
        indirect = true;
        break;
    case TL_ARM32_RETURN:
    case TL_ARM32_LEAVE:
        next = e->calls[--e->n_calls].insn;
        if (i->kind == TL_ARM32_LEAVE)
            next = sometimes_predicted(e, next);
        indirect = true;
        break;
    default:
        break;
    }
    if (!e->o->ptm) {
        settle(e);
        if (e->o->cycle_accurate)
            put_etm_cycles(e, passed);
    }
    say_insn(e, i);
    const bool halves = e->o->halves && i->t32 && i->size == 4 && i->kind == TL_ARM32_CALL;
    if (!e->o->ptm && !e->o->cycle_accurate)
        add_atom(e, passed);
    if (halves && e->o->cycle_accurate)
        put_etm_cycles(e, passed);
    else if (halves)
        add_atom(e, passed);
    if (traces_data(e) && i->access)
        tell_data(e, i);
    if (traces_data(e))
        put_late(e);
    const bool leaves = i->kind == TL_ARM32_LEAVE && e->o->exit_packets;
    if (e->o->ptm) {
        tell_ptm(e, i, passed, indirect, next);
    } else if (indirect) {
        flush_atoms(e);
        if (leaves)
            put(e, 0x76);
        if (leaves)
            SAY(e, "R\n");
        put_branch(e, next, &(struct exception){0});
    }
    if (leaves && e->o->ptm) {
        put(e, 0x76);
        SAY(e, "R\n");
        settle(e);
    }
    e->at = next;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

/* Traced number and exception number of some M-profile exceptions. */
static const uint8_t numbers_m[][2] = {{1, 17},  {7, 23}, {8, 16},  {9, 6},  {11, 11},
                                       {15, 15}, {19, 3}, {24, 24}, {40, 40}};
static const uint8_t numbers_a[] = {4, 9, 10, 11, 12, 14, 15};

static void enter(struct encoder *e, const struct exception *x, unsigned number, bool known)
{
    const struct tl_arm32_insn *const back = insn_at(e, e->at);
    if (known)
        SAY(e, "X %u %016x\n", number, back->address);
    else
        SAY(e, "X %u -\n", number);
    put_branch(e, e->program->handler, x);
    if (e->o->ptm) {
        say_count(e);
        settle(e);
    }
    e->calls[e->n_calls++] = (struct call){e->at, 1};
    e->at = e->program->handler;
    e->moved = false;
}

/* PTM: instructions behind the last waypoint are told by the address of the last of them. */
static void put_waypoint(struct encoder *e)
{
    if (!e->moved)
        return;
    flush_atoms(e);
    put(e, 0x72);
    put_address(e, insn_at(e, e->last), false, true);
    settle(e);
}

/* The last instruction's line goes, with its accesses; what else was said behind it stays. */
static void take_back(struct encoder *e)
{
    for (size_t at = e->before_last; at < e->pending.n;) {
        uint8_t *const line = e->pending.p + at;
        const size_t left = e->pending.n - at;
        const size_t n = (size_t)((uint8_t *)memchr(line, '\n', left) - line) + 1;
        const bool goes = *line == 'I' || *line == 'A';
        if (!goes) {
            at += n;
            continue;
        }
        memmove(line, line + n, left - n);
        e->pending.n -= n;
    }
    e->at = e->last;
}

static void interrupt(struct encoder *e)
{
    struct exception x = {0};
    unsigned number, n = 0;
    while (n < sizeof e->o->exceptions && e->o->exceptions[n] > 0)
        n++;
    if (n > 0) {
        number = x.number = e->o->exceptions[tl_sim_below(&e->rng, n)];
    } else if (e->o->m_profile) {
        const uint8_t *const pair = numbers_m[tl_sim_below(&e->rng, sizeof numbers_m / 2)];
        x.number = pair[0];
        number = pair[1];
    } else {
        number = x.number = numbers_a[tl_sim_below(&e->rng, sizeof numbers_a)];
    }
    const struct tl_arm32_insn *const last = insn_at(e, e->last);
    /* The instruction traced last is taken back, and is executed again. */
    x.cancels = !e->o->ptm && last->kind <= TL_ARM32_MAYBE && e->at == e->last + 1 && e->open &&
                tl_sim_below(&e->rng, 2);
    if (x.cancels)
        take_back(e);
    if (e->o->ptm)
        put_waypoint(e);
    enter(e, &x, number, true);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Some instructions are executed untraced. */
static void skip(struct encoder *e)
{
    if (e->o->ptm)
        e->pending.n = 0; /* nothing tells of those behind the last waypoint */
    settle(e);
    flush_atoms(e);
    struct tl_buf trace = {0}, truth = {0};
    memset(e->late, 0, sizeof e->late); /* values that were to come are lost */
    struct encoder away = *e;
    away.trace = &trace;
    away.truth = &truth;
    away.pending = (struct tl_buf){0};
    for (unsigned n = tl_sim_below(&e->rng, 30); n > 0 && away.n_calls < DEPTH - 1; n--)
        step(&away);
    e->at = away.at;
    e->n_calls = away.n_calls;
    memcpy(e->calls, away.calls, sizeof e->calls);
    tl_buf_fini(&trace);
    tl_buf_fini(&truth);
    tl_buf_fini(&away.pending);
    e->moved = false;
    e->cycles = 0;
    put_sync(e, tl_sim_below(&e->rng, 2) ? TRACE_ON : OVERFLOWED);
}

int tl_sim_etm3_encode(const struct tl_arm32_program *program, const struct tl_sim_etm3_options *o,
                       struct tl_buf *trace, struct tl_buf *truth)
{
    struct tl_buf said = {0}, places = {0};
    struct encoder e = {.program = program,
                        .o = o,
                        .rng = {o->seed},
                        .trace = trace,
                        .truth = &said,
                        .places = &places};
    e.time = o->time ? o->time : UINT64_C(0x3123456789);
    put_sync(&e, TRACE_ON);
    bool inside = false; /* a handler: it is not interrupted */
    for (uint32_t n = 0; e.rc >= 0 && n < o->insns; n++) {
        const bool leaves = insn_at(&e, e.at)->kind == TL_ARM32_LEAVE;
        step(&e);
        inside = inside && !leaves;
        const bool quiet = o->ptm && e.moved; /* PTM synchronises behind waypoints */
        if (!quiet && trace->n - e.synced > o->sync_every)
            put_sync(&e, PERIODIC);
        else if (!quiet && o->timestamps && tl_sim_below(&e.rng, 60) == 0)
            put_time(&e);
        if (!inside && e.n_calls < DEPTH - 20 && tl_sim_below(&e.rng, 50) == 0) {
            interrupt(&e);
            inside = true;
        }
        if (o->gaps && !inside && tl_sim_below(&e.rng, 400) == 0)
            skip(&e);
    }
    if (o->ptm)
        e.pending.n = 0;
    settle(&e);
    flush_atoms(&e);
    tl_buf_fini(&e.pending);
    if (e.rc >= 0)
        e.rc = fill_places(&said, &places, truth);
    tl_buf_fini(&said);
    tl_buf_fini(&places);
    return e.rc;
}
