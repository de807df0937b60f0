/* SPDX-License-Identifier: MIT */
/*
 * What ETMv3 and PTM have in common on the way from packets to flow: places, modes, exceptions,
 * times and beginnings. The walker follows the program; only the meaning of an outcome differs
 * between the formats.
 */
#include "etm3/flow.h"

#include "flow/m_exception.h"

#define RETURN_STACK 32 /* entries, more than any trace unit has */

int tl_etm3_flow_init(struct tl_etm3_flow *f, const struct tl_etm3_config *config,
                      const struct tl_image *image, struct tl_item_batch *out)
{
    const struct tl_walker_config walker = {
        .image = image,
        .isa = {.arch_major = 7,
                .profile = config->m_profile ? 'M' : 'A',
                .barriers = config->ptm && config->barrier_waypoints},
        .bits = config->ptm ? TL_WALKER_WAYPOINTS : TL_WALKER_STEPS,
        .predicts_returns = config->return_stack,
        .predicts_all = true,
        .returns = RETURN_STACK,
        .since = config->since,
        .keeps_time = config->other_clock,
    };
    *f = (struct tl_etm3_flow){.config = *config, .out = out};
    return tl_walker_init(&f->walker, &walker, out);
}

void tl_etm3_flow_fini(struct tl_etm3_flow *f)
{
    tl_walker_fini(&f->walker);
}

static void forget_held(struct tl_etm3_flow *f)
{
    f->begun = f->returning = f->passed = f->half = false;
    f->told = TL_ETM3_UNTOLD;
    f->held = 0;
    f->held_offset = f->cycles = 0;
    f->n_behind = 0;
    f->access = (struct tl_access){0};
    f->apart = false;
    f->is_pending = 0;
    f->next_address = 0;
    f->has_next = false;
    memset(f->pending, 0, sizeof f->pending);
}

void tl_etm3_flow_reset(struct tl_etm3_flow *f)
{
    forget_held(f);
    tl_walker_begin(&f->walker);
}

void tl_etm3_flow_lose(struct tl_etm3_flow *f)
{
    tl_etm3_release(f, f->held_offset);
    forget_held(f);
    tl_walker_reset(&f->walker);
}

static void aside_state(struct tl_etm3_aside *a, struct tl_state *s)
{
    tl_state_u8(s, &a->type, TL_ETM3_DATA);
    tl_state_u8(s, &a->data, TL_ETM3_NOT_TRACED);
    tl_state_u8(s, &a->tag, 3);
    tl_state_u8(s, &a->size, 4);
    tl_state_bool(s, &a->has_address);
    tl_state_bool(s, &a->has_value);
    tl_state_u32(s, &a->address);
    tl_state_u64(s, &a->value);
    tl_state_u64(s, &a->offset);
}

void tl_etm3_flow_state(struct tl_etm3_flow *f, struct tl_state *s)
{
    struct tl_walker *const w = &f->walker;
    struct tl_image_context ids = w->context;
    tl_state_bool(s, &f->begun);
    tl_state_bool(s, &f->returning);
    tl_state_u8(s, &f->told, TL_ETM3_TOLD_ON);
    tl_state_u32(s, &f->held);
    tl_state_bool(s, &f->passed);
    tl_state_bool(s, &f->half);
    tl_state_u64(s, &f->held_offset);
    tl_state_u64(s, &f->cycles);
    tl_state_u8(s, &f->n_behind, TL_ETM3_BEHIND);
    for (unsigned i = 0; i < f->n_behind; i++) {
        aside_state(&f->behind[i], s);
    }
    tl_state_u8(s, &f->access.kind, TL_STORES);
    tl_state_u8(s, &f->access.size, sizeof(uint32_t));
    tl_state_bool(s, &f->apart);
    tl_state_u32(s, &f->next_address);
    tl_state_bool(s, &f->has_next);
    tl_state_u8(s, &f->is_pending, 0xf);
    for (unsigned i = 0; i < 4; i++)
        tl_state_u32(s, &f->pending[i]);
    tl_walker_place_state(w, s);
    tl_walker_rest_state(w, s);
    tl_state_bool(s, &ids.has_context_id);
    tl_state_u64(s, &ids.context_id);
    tl_state_bool(s, &ids.has_vmid);
    tl_state_u64(s, &ids.vmid);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(w, &ids);
}

/* ---- beside the flow ------------------------------------------------------------------------- */

void tl_etm3_tell_cycles(struct tl_etm3_flow *f, uint64_t cycles, uint64_t offset)
{
    tl_item_batch_value(f->out, TL_ITEM_CYCLES, cycles, offset);
}

static void apply_aside(struct tl_etm3_flow *f, const struct tl_etm3_aside *a)
{
    struct tl_image_context ids = f->walker.context;
    switch (a->type) {
    case TL_ETM3_TIMESTAMP:
        tl_walker_time(&f->walker, a->value, a->offset);
        return;
    case TL_ETM3_CYCLES:
        tl_etm3_tell_cycles(f, a->value, a->offset);
        return;
    case TL_ETM3_DATA:
        tl_etm3_tell_data(f, a);
        return;
    case TL_ETM3_CONTEXT:
        ids.context_id = a->value;
        ids.has_context_id = true;
        break;
    case TL_ETM3_VMID:
        ids.vmid = a->value;
        ids.has_vmid = true;
        break;
    default:
        return;
    }
    tl_walker_context(&f->walker, &ids, a->offset);
}

void tl_etm3_tell_aside(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    struct tl_etm3_aside a = {.type = p->type, .offset = p->offset};
    switch (p->type) {
    case TL_ETM3_TIMESTAMP:
        if (!p->has_time)
            return;
        a.value = p->time;
        break;
    case TL_ETM3_CYCLES:
        a.value = p->cycles;
        break;
    case TL_ETM3_CONTEXT:
        if (!p->has_context)
            return;
        a.value = p->context;
        break;
    case TL_ETM3_VMID:
        a.value = p->context;
        break;
    case TL_ETM3_DATA:
        a.data = p->data;
        a.tag = p->tag;
        a.size = p->value_size;
        a.has_value = p->has_value;
        tl_etm3_find_address(f, p, &a);
        a.value = p->value;
        break;
    default:
        return;
    }
    if (f->n_behind == TL_ETM3_BEHIND)
        tl_etm3_release(f, p->offset);
    if (f->held > 0)
        f->behind[f->n_behind++] = a;
    else
        apply_aside(f, &a);
}

static void report_held(struct tl_etm3_flow *f, struct tl_block *b, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    if (f->held < b->n) {
        (void)tl_walker_execute_part(w, b, tl_block_bytes(b, f->held), f->held_offset);
        return;
    }
    const bool impossible = !f->passed && tl_block_turns_always(b);
    tl_walker_pass(w, b, f->passed, f->held_offset);
    if (impossible) /* the program that ran had another instruction there */
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
}

void tl_etm3_release(struct tl_etm3_flow *f, uint64_t offset)
{
    struct tl_block *b = f->held > 0 ? tl_walker_here(&f->walker, offset) : NULL;
    if (b && tl_etm3_traces_data(&f->config))
        b = tl_etm3_place_data(f, b, offset);
    if (b)
        report_held(f, b, offset);
    if (f->held > 0) {
        f->held = 0;
        f->held_offset = 0;
        f->passed = false;
    }
    for (unsigned i = 0; i < f->n_behind; i++)
        apply_aside(f, &f->behind[i]);
    f->n_behind = 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void set_mode(struct tl_etm3_flow *f, const struct tl_etm3_packet *p, enum tl_isa isa)
{
    enum { UNKNOWN = 15, HYP = 2 };
    const enum tl_security security = p->ns ? TL_SEC_NS : TL_SEC_S;
    const unsigned privilege = p->hyp ? HYP : UNKNOWN;
    tl_walker_mode(
        &f->walker,
        tl_mode(TL_ARCH_ARM, privilege, f->config.m_profile ? TL_SEC_NONE : security, isa),
        p->offset);
}

/* Code that cannot be followed: Jazelle's bytecodes, ThumbEE. */
static void pass_over(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    tl_item_batch_note(f->out, p->isa == TL_ETM3_JAZELLE ? "jazelle" : "thumbee", p->offset);
    tl_walker_lose(&f->walker, TL_GAP_NO_PATH, p->offset);
}

void tl_etm3_go_to(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    const enum tl_isa isa = p->isa == TL_ETM3_ARM ? TL_ISA_A32 : TL_ISA_T32;
    if (p->isa > TL_ETM3_THUMB) {
        pass_over(f, p);
        return;
    }
    if (f->walker.need_address) {
        set_mode(f, p, isa);
        tl_walker_jump(&f->walker, p->address, isa, p->offset);
    } else {
        tl_walker_jump(&f->walker, p->address, isa, p->offset);
        set_mode(f, p, isa);
    }
}

void tl_etm3_execute_one(struct tl_etm3_flow *f, uint64_t offset)
{
    struct tl_block *const b = tl_walker_here(&f->walker, offset);
    if (!b)
        return;
    if (tl_etm3_traces_data(&f->config))
        (void)tl_etm3_note_access(f, b, 1);
    if (b->n == 1)
        tl_walker_pass(&f->walker, b, true, offset);
    else
        (void)tl_walker_execute_part(&f->walker, b, tl_block_bytes(b, 1), offset);
}

/* ---- exceptions ------------------------------------------------------------------------------ */

/* The exception number of what an ARMv7-M ETM traces. Source: Cortex-M3 TRM, "ETM exception
 * numbers". */
static unsigned number_m(unsigned traced)
{
    enum { IRQ1 = 17, IRQ0 = 16, LOW_END = 24 };
    static const uint8_t numbers[LOW_END] = {
        [8] = IRQ0, [9] = 6,  [10] = 2,  [11] = 11, [12] = 12, [13] = 4, [14] = 14, [15] = 15,
        [16] = 8,   [17] = 1, [18] = 10, [19] = 3,  [20] = 9,  [21] = 5, [22] = 7,  [23] = 13,
    };
    if (traced >= LOW_END)
        return traced;
    return traced >= 1 && traced <= 7 ? traced - 1 + IRQ1 : numbers[traced];
}

static const char *const names[16] = {
    [1] = "debug-halt",  [2] = "smc",      [3] = "hyp",
    [4] = "async-abort", [5] = "thumbee",  [8] = "pe-reset",
    [9] = "undefined",   [10] = "svc",     [11] = "prefetch-abort",
    [12] = "data-abort", [13] = "generic", [14] = "irq",
    [15] = "fiq",
};

static struct tl_item *add_exception(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (f->config.m_profile)
        return tl_add_m_exception(f->out, f->walker.image, number_m(p->exception), p->offset);
    struct tl_item *const item = tl_item_batch_add(f->out, TL_ITEM_EXCEPTION, p->offset);
    item->sub = p->exception;
    item->text = p->exception < sizeof names / sizeof *names ? names[p->exception] : NULL;
    return item;
}

void tl_etm3_tell_exception(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    const struct tl_walker *const w = &f->walker;
    const bool stands = w->cache && !w->need_mode && !w->need_address;
    struct tl_item *const item = add_exception(f, p);
    item->pc = stands ? w->pc : 0;
    item->flags = stands ? TL_ITEM_HAS_PC : 0;
    tl_walker_await(&f->walker, true); /* the handler's address follows */
}

/* ---- I-sync ---------------------------------------------------------------------------------- */

static void tell_ids(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (p->has_context)
        apply_aside(f, &(struct tl_etm3_aside){TL_ETM3_CONTEXT, p->context, p->offset});
}

static void begin_anew(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (p->reason == TL_ETM3_OVERFLOWED)
        tl_item_batch_gap(f->out, TL_GAP_OVERFLOW, p->offset);
    else if (f->begun)
        tl_item_batch_gap(f->out, TL_GAP_OFF, p->offset);
    if (p->has_cycles)
        tl_etm3_tell_cycles(f, p->cycles, p->offset);
    tl_walker_forget(&f->walker);
    tl_walker_await(&f->walker, true);
    tl_item_batch_add(f->out, TL_ITEM_TRACE_ON, p->offset);
    f->begun = true;
}

void tl_etm3_start(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    tl_etm3_release(f, p->offset);
    f->half = false;
    if (f->returning) {
        tl_item_batch_add(f->out, TL_ITEM_ERET, p->offset);
        f->returning = false;
    }
    if (!f->begun || p->reason != TL_ETM3_PERIODIC)
        begin_anew(f, p);
    if (!f->config.ptm)
        f->told = f->walker.need_address ? TL_ETM3_TOLD_FIRST : TL_ETM3_TOLD_ON;
    f->out->run = 0;
    tl_walker_forget(&f->walker); /* the trace unit's stack is empty here, too */
    tell_ids(f, p);
    if (f->config.data_only)
        return;
    if (p->has_load) {
        struct tl_etm3_packet at_load = *p;
        at_load.address = p->load;
        tl_etm3_go_to(f, &at_load);
        tl_etm3_execute_one(f, p->offset);
        tl_walker_await(&f->walker, true);
    }
    tl_etm3_go_to(f, p);
}

void tl_etm3_flow_packet(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (!f->begun && p->type != TL_ETM3_ISYNC && p->type != TL_ETM3_TIMESTAMP &&
        p->type != TL_ETM3_CYCLES && p->type != TL_ETM3_ATOMS)
        return;
    if (f->config.ptm)
        tl_etm3_follow_ptm(f, p);
    else
        tl_etm3_follow_etm(f, p);
}

void tl_etm3_flow_finish(struct tl_etm3_flow *f, bool in_branch, uint64_t offset)
{
    if (in_branch && !f->config.ptm)
        tl_etm3_take_back(f);
    tl_etm3_release(f, offset);
    if (f->cycles > 0)
        tl_etm3_tell_cycles(f, f->cycles, offset);
    f->cycles = 0;
}
