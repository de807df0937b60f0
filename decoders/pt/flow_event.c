/* SPDX-License-Identifier: MIT */
/*
 * Carries out the effect of each event on the flow. An event takes place at an instruction that is
 * found by walking to it, as the trace gives no address for most.
 */
#include "flow/walker_hot.h"
#include "pt/binding.h"
#include "pt/event_text.h"
#include "pt/flow.h"

#include <string.h>

#define SKL014_BRANCHES (1u << 16) /* maximum number of branches between two packets */

/* Kinds of events that bind to an instruction, each at most once. */
enum { PAGING = 1, VMCS = 2, PTWRITE = 4, IRET = 8, VMENTRY = 16, UIRET = 32 };

/*
 * ---- calls of the walker ----------------------------------------------------------------------
 */

/* Set the mode for `ip`. The trace does not contain the privilege level; systems use the upper half
 * of 64-bit addresses for the kernel. */
static void set_mode(struct tl_pt_flow *f, uint64_t ip, uint64_t offset)
{
    f->upper = ip >> 63;
    const unsigned ring = f->isa != TL_ISA_X64 ? 15 : ip >> 63 ? 0 : 3;
    const uint64_t mode = tl_mode(TL_ARCH_X86, ring, TL_SEC_NONE, (enum tl_isa)f->isa);
    if (mode != f->walker.mode && f->isa != TL_ISA_NONE)
        tl_walker_mode(&f->walker, mode, offset);
}

static inline void jump(struct tl_pt_flow *f, uint64_t ip, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    if (!tl_pt_flow_keeps_mode(f, ip))
        set_mode(f, ip, offset);
    if (f->isa == TL_ISA_NONE && w->cache && !w->need_mode) { /* an invalid MODE.Exec */
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
        return;
    }
    tl_walker_jump_hot(w, ip, (enum tl_isa)f->isa, offset);
}

/* Drop outcomes waiting for a TIP that does not come. */
static void drop_outcomes(struct tl_pt_flow *f, uint64_t offset)
{
    if (f->n_outcomes > 0)
        tl_walker_lose(&f->walker, TL_GAP_NO_PATH, offset);
    f->n_outcomes = 0;
}

static void walk(struct tl_pt_flow *f, uint64_t bits, unsigned n, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    const unsigned used = tl_walker_conditions(w, bits, n, offset);
    f->n_outcomes = 0;
    if (used == n || w->need_address || !w->cache || w->need_mode)
        return;
    /*
     * Stopped at an indirect branch, whose TIP may follow. A return whose call was not followed was
     * executed if its outcome says so; the other outcomes belong to where it went.
     */
    if (w->block && w->block->is_return) {
        if (bits >> used & 1)
            tl_walker_take_choice(w, true, offset);
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
        return;
    }
    f->outcomes = bits >> used;
    f->n_outcomes = (uint8_t)(n - used);
}

/* Queue more outcomes after the same branch. */
static void wait_on(struct tl_pt_flow *f, uint64_t bits, unsigned n)
{
    f->outcomes |= bits << f->n_outcomes;
    f->n_outcomes += (uint8_t)n;
}

void tl_pt_flow_outcomes(struct tl_pt_flow *f, uint64_t bits, unsigned n, uint64_t offset)
{
    if (f->has_time)
        tl_pt_flow_report_time(f, offset);
    f->postponed = f->strayed = false;
    if (f->n_outcomes == 0)
        walk(f, bits, n, offset);
    else if (f->n_outcomes + n > 64)
        drop_outcomes(f, offset);
    else
        wait_on(f, bits, n);
}

void tl_pt_flow_tip(struct tl_pt_flow *f, uint64_t ip, uint64_t offset)
{
    if (f->has_time)
        tl_pt_flow_report_time(f, offset);
    f->postponed = f->strayed = false;
    if (!f->walker.need_address)
        tl_walker_to_indirect(&f->walker, offset);
    tl_item_batch_pause(&f->out);
    jump(f, ip, offset);
    if (f->n_outcomes > 0)
        walk(f, f->outcomes, f->n_outcomes, offset);
}

/* ---- instructions that events bind to -------------------------------------------------------- */

/* Is the instruction at the start of `code` one that satisfies the predicate? */
#define SUITS(NAME, PREDICATE)                                                                     \
    static bool NAME(enum tl_isa isa, struct tl_bytes code)                                        \
    {                                                                                              \
        struct tl_x86_insn x;                                                                      \
        return tl_x86_decode(isa, code, &x) > 0 && PREDICATE(&x);                                  \
    }
SUITS(suits_pip, tl_pt_binds_pip)
SUITS(suits_vmcs, tl_pt_binds_vmcs)
SUITS(suits_ptwrite, tl_pt_is_ptwrite)
SUITS(suits_iret, tl_pt_is_iret)
SUITS(suits_vmentry, tl_pt_is_vmentry)
SUITS(suits_uiret, tl_pt_is_uiret)
SUITS(suits_cr3, tl_pt_changes_cr3)

static bool suits_any(enum tl_isa isa, struct tl_bytes code)
{
    (void)isa;
    (void)code;
    return true;
}

static const struct binding {
    uint8_t flag;
    bool by_ip;
    tl_walker_suits *suits;
} bindings[TL_PT_EV_IGNORED + 1] = {
    [TL_PT_EV_PAGING] = {PAGING, false, suits_pip},
    [TL_PT_EV_VMCS] = {VMCS, false, suits_vmcs},
    [TL_PT_EV_PTWRITE] = {PTWRITE, true, suits_ptwrite},
    [TL_PT_EV_IRET] = {IRET, true, suits_iret},
    [TL_PT_EV_VMENTRY] = {VMENTRY, true, suits_vmentry},
    [TL_PT_EV_UIRET] = {UIRET, true, suits_uiret},
};

/* Image contents at `ip` in the current view. */
static struct tl_bytes bytes_at(const struct tl_pt_flow *f, uint64_t ip)
{
    return f->walker.image ? tl_image_view_at(f->walker.image, f->walker.view, TL_SPACE_ANY, ip)
                           : (struct tl_bytes){0};
}

/* Execute up to and including an instruction that suits. False: none is reached, which is a gap. */
static bool go_to_insn(struct tl_pt_flow *f, tl_walker_suits *suits, uint64_t offset)
{
    const enum tl_walker_end end = tl_walker_to_insn(&f->walker, suits, offset);
    if (end == TL_WALKER_CHOICE)
        tl_walker_lose(&f->walker, TL_GAP_NO_PATH, offset);
    return end == TL_WALKER_REACHED;
}

/* Execute the instruction that the event binds to, unless the previous event already did. */
static void bind(struct tl_pt_flow *f, const struct tl_pt_event *event,
                 const struct binding *binding, uint64_t offset)
{
    const bool by_ip = binding->by_ip && !event->ip_suppressed;
    if (f->postponed && !(f->bound & binding->flag) && !by_ip) {
        f->bound |= binding->flag;
        return;
    }
    f->postponed = false;
    bool reached = true;
    if (by_ip && f->walker.need_address)
        jump(f, event->ip, offset);
    else if (by_ip)
        reached = tl_walker_to(&f->walker, event->ip, false, offset);
    f->strayed |= !by_ip;
    if (!reached || !go_to_insn(f, by_ip ? suits_any : binding->suits, offset))
        return;
    /* Further events can bind to the same instruction only if it waits for an address. */
    f->postponed = f->walker.need_address && !f->walker.gap_reported;
    f->bound = binding->flag;
}

/*
 * ---- where tracing is disabled -----------------------------------------------------------------
 */

/* Can the flow leave the traced range at this instruction (erratum SKL014)? */
static bool suits_skl014(enum tl_isa isa, struct tl_bytes code)
{
    struct tl_x86_insn x;
    return tl_x86_decode(isa, code, &x) > 0 && (tl_pt_changes_cr3(&x) || tl_pt_is_unreported(&x));
}

static enum tl_walker_end to_skl014(struct tl_pt_flow *f, uint64_t offset)
{
    for (unsigned branches = 0; branches < SKL014_BRANCHES; branches++) {
        const enum tl_walker_end end = tl_walker_to_insn(&f->walker, suits_skl014, offset);
        if (end != TL_WALKER_REACHED || !tl_pt_config_traces(f->config, f->walker.pc))
            return end;
    }
    tl_walker_lose(&f->walker, TL_GAP_NO_PATH, offset);
    return TL_WALKER_LOST;
}

/* Execute up to where tracing was disabled: the IP, an instruction that causes it, or any branch
 * for which there would have been a packet. */
static void go_to_disabled(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    if (f->postponed || w->need_address)
        return;
    const enum tl_walker_end end = !event->ip_suppressed ? tl_walker_to_ip(w, event->ip, offset)
                                   : f->config->errata.skl014 && tl_pt_config_filters(f->config)
                                       ? to_skl014(f, offset)
                                       : tl_walker_to_insn(w, suits_cr3, offset);
    if (end == TL_WALKER_CHOICE) {
        const struct tl_block *const b = w->block;
        const bool falls = b && !event->ip_suppressed && event->ip == b->pc + b->size;
        tl_walker_take_choice(w, !falls, offset);
    }
}

static void switch_off(struct tl_pt_flow *f, uint64_t offset)
{
    f->enabled = false;
    tl_walker_off(&f->walker, offset);
}

/* Erratum SKD022: a failing VM entry disables tracing synchronously. */
static bool is_skd022(const struct tl_pt_flow *f, uint64_t ip)
{
    return f->config->errata.skd022 && suits_vmentry((enum tl_isa)f->isa, bytes_at(f, ip));
}

static void on_async_disabled(struct tl_pt_flow *f, const struct tl_pt_event *event,
                              uint64_t offset)
{
    if (tl_walker_to(&f->walker, event->from, false, offset) && is_skd022(f, event->from))
        go_to_insn(f, suits_any, offset);
    switch_off(f, offset);
}

/* Tracing starts: what was executed in front of it does not lead here. */
static void start(struct tl_pt_flow *f, uint64_t offset)
{
    tl_walker_await(&f->walker, true);
    tl_item_batch_add(&f->out, TL_ITEM_TRACE_ON, offset);
}

static void on_enabled(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    f->strayed = false;
    if (event->ip_suppressed)
        return;
    if (event->status && f->enabled && !f->walker.need_address) {
        /* The trace repeats the current IP: the walk must reach it. */
        tl_walker_to(&f->walker, event->ip, false, offset);
        jump(f, event->ip, offset);
        return;
    }
    if (!event->status || !f->enabled)
        start(f, offset);
    f->enabled = true;
    jump(f, event->ip, offset);
}

/*
 * ---- other events ------------------------------------------------------------------------------
 */

static void report(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    char text[TL_PT_EVENT_TEXT];
    const size_t size = strlen(tl_pt_event_text(event, false, text)) + 1;
    char *const kept = tl_item_batch_store(&f->out, size);
    memcpy(kept, text, size);
    tl_item_batch_add(&f->out, TL_ITEM_NOTE, offset)->text = kept;
}

static void on_branch(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    tl_walker_to(&f->walker, event->from, false, offset);
    struct tl_item *const item = tl_item_batch_add(&f->out, TL_ITEM_EXCEPTION, offset);
    item->flags = TL_ITEM_HAS_PC;
    item->sub = TL_EXCEPTION_UNKNOWN;
    item->pc = event->from;
    item->text = "interrupt";
    tl_walker_await(&f->walker, true);
    if (!event->ip_suppressed)
        jump(f, event->ip, offset);
}

void tl_pt_flow_host(struct tl_pt_flow *f, const struct tl_image_context *host, uint64_t offset)
{
    const struct tl_image_context guest = {.vmid = host->context_id,
                                           .has_vmid = true,
                                           .context_id = host->vmid,
                                           .has_context_id = host->has_vmid};
    const struct tl_image_context own = {.context_id = host->context_id,
                                         .has_context_id = host->has_context_id};
    f->host = *host;
    tl_walker_hide(&f->walker, f->is_guest);
    tl_walker_context(&f->walker, f->is_guest ? &guest : &own, offset);
}

static void set_guest(struct tl_pt_flow *f, bool is_guest, uint64_t offset)
{
    if (is_guest == f->is_guest)
        return;
    f->is_guest = is_guest;
    tl_pt_flow_host(f, &f->host, offset);
}

static void set_context(struct tl_pt_flow *f, const struct tl_pt_packet *packet, uint64_t offset)
{
    struct tl_image_context context = f->walker.context;
    if (f->context_reported) {
        if (packet->kind == TL_PT_PIP)
            set_guest(f, packet->pip.nr, offset);
        return;
    }
    f->is_guest = packet->kind == TL_PT_PIP ? packet->pip.nr : f->is_guest;
    if (packet->kind == TL_PT_VMCS) {
        context.vmid = packet->vmcs;
        context.has_vmid = true;
    } else {
        context.context_id = packet->pip.cr3;
        context.has_context_id = true;
    }
    tl_walker_context(&f->walker, &context, offset);
}

static void on_overflow(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    tl_walker_lose(&f->walker, TL_GAP_OVERFLOW, offset);
    f->enabled = !event->ip_suppressed;
    if (f->enabled)
        jump(f, event->ip, offset);
}

static void on_tsx(struct tl_pt_flow *f, const struct tl_pt_packet *packet, uint64_t offset)
{
    tl_item_batch_note(&f->out,
                       packet->tsx.abrt   ? "transaction fail"
                       : packet->tsx.intx ? "transaction start"
                                          : "transaction commit",
                       offset);
}

static void on_mode(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    const uint64_t ip = event->ip_suppressed ? w->pc : event->ip;
    const uint8_t isa = tl_pt_exec_isa(&event->packet);
    if (isa == f->isa)
        return;
    f->isa = isa;
    set_mode(f, ip, offset);
    if (f->enabled && !event->ip_suppressed)
        jump(f, ip, offset);
}

/* Is it an event of PSB+ that only repeats the state, except after a loss? */
static bool is_known(const struct tl_pt_event *event)
{
    return event->status && (event->kind == TL_PT_EV_CBR || event->kind == TL_PT_EV_TSX ||
                             event->kind == TL_PT_EV_IFLAGS);
}

/* A TRIG without an IP occurred a given number of instructions after the last IP packet: execute
 * them. */
static void go_after(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    const bool counts =
        event->packet.trig.icntv && event->ip == 0 && !event->ip_suppressed && !f->strayed;
    f->strayed &= event->ip_suppressed;
    for (unsigned n = counts ? event->packet.trig.icnt : 0; n > 0 && f->enabled; n--)
        if (!go_to_insn(f, suits_any, offset))
            break;
}

/* Execute up to the IP of an event. BDM64: the branch before an abort may have been wrong, so the
 * IP may be unreachable. */
static void go_to(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    struct tl_walker *const w = &f->walker;
    if (!f->enabled || event->ip_suppressed || event->ip == 0)
        return;
    f->strayed = false;
    if (w->need_address || !tl_walker_to(w, event->ip, false, offset))
        jump(f, event->ip, offset);
}

void tl_pt_flow_event(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset)
{
    const struct binding *const binding = &bindings[event->kind];
    if (event->kind == TL_PT_EV_TNT) {
        const unsigned n = event->packet.tnt.n;
        f->has_time = true;
        tl_pt_flow_outcomes(f, tl_pt_oldest_first(event->packet.tnt.bits, n), n, f->anchor);
        return;
    }
    f->anchor = offset;
    tl_pt_flow_report_time(f, offset);
    if (event->kind == TL_PT_EV_TIP) {
        if (!event->ip_suppressed)
            tl_pt_flow_tip(f, event->ip, offset);
        else
            tl_walker_lose(&f->walker, TL_GAP_NO_PATH, offset);
        return;
    }
    if (event->status)
        f->out.run = 0; /* runs begin where decoding can begin */
    if (is_known(event))
        return;
    drop_outcomes(f, offset);
    if (event->status) /* compressed returns never return from calls before a PSB */
        tl_walker_forget(&f->walker);
    if (binding->flag && f->enabled)
        bind(f, event, binding, offset);
    else if (event->kind != TL_PT_EV_DISABLED)
        f->postponed = false;
    switch (event->kind) {
    case TL_PT_EV_ENABLED:
        on_enabled(f, event, offset);
        break;
    case TL_PT_EV_DISABLED:
        if (event->status && !f->enabled)
            break;
        if (!event->status)
            go_to_disabled(f, event, offset);
        f->postponed = false;
        switch_off(f, offset);
        break;
    case TL_PT_EV_ASYNC_DISABLED:
        on_async_disabled(f, event, offset);
        break;
    case TL_PT_EV_ASYNC_BRANCH:
        on_branch(f, event, offset);
        break;
    case TL_PT_EV_OVERFLOW:
        on_overflow(f, event, offset);
        break;
    case TL_PT_EV_PAGING:
    case TL_PT_EV_VMCS:
        set_context(f, &event->packet, offset);
        break;
    case TL_PT_EV_ASYNC_PAGING:
    case TL_PT_EV_ASYNC_VMCS:
        go_to(f, event, offset);
        set_context(f, &event->packet, offset);
        break;
    case TL_PT_EV_EXEC_MODE:
        if (f->isa != TL_ISA_NONE)
            go_to(f, event, offset);
        on_mode(f, event, offset);
        break;
    case TL_PT_EV_TSX:
        go_to(f, event, offset);
        on_tsx(f, &event->packet, offset);
        break;
    case TL_PT_EV_PTWRITE:
        tl_item_batch_software(&f->out, "ptwrite", 0, event->packet.ptw.payload,
                               event->packet.ptw.plc ? 8 : 4, offset);
        break;
    default:
        if (!binding->flag)
            go_to(f, event, offset);
        if (event->kind == TL_PT_EV_TRIG)
            go_after(f, event, offset);
        report(f, event, offset);
        break;
    }
}
