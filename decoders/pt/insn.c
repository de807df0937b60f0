/* SPDX-License-Identifier: MIT */
/*
 * Decodes each instruction from the image again and keeps no blocks, because events may bind to any
 * instruction. Speed does not matter here, but the order of the reference decoder does: the fast
 * one is tested against it.
 */
#include "pt/insn.h"

#include "pt/binding.h"

#include <string.h>

#define RUN_MAX UINT16_MAX
/* Maximum instructions without an event; more means that it is unreachable. */
#define STEPS_MAX (1u << 20)

/* Erratum BDM64: maximum distance of an abort's event from a branch. */
#define BDM64_STEPS 256

enum { NOT_REACHED = 0, REACHED = 1 };

/* Kinds of events that bind to an instruction, each at most once. */
enum { PAGING = 1, VMCS = 2, PTWRITE = 4, IRET = 8, VMENTRY = 16, UIRET = 32 };

/* ---- instructions ---------------------------------------------------------------------------- */

/* How events of each kind bind to an instruction. */
static const struct binding {
    uint8_t flag;
    bool by_ip; /* the event has the IP of the instruction, unless it is suppressed */
    bool (*suits)(const struct tl_x86_insn *);
} bindings[TL_PT_EV_IGNORED + 1] = {
    [TL_PT_EV_PAGING] = {PAGING, false, tl_pt_binds_pip},
    [TL_PT_EV_VMCS] = {VMCS, false, tl_pt_binds_vmcs},
    [TL_PT_EV_PTWRITE] = {PTWRITE, true, tl_pt_is_ptwrite},
    [TL_PT_EV_IRET] = {IRET, true, tl_pt_is_iret},
    [TL_PT_EV_VMENTRY] = {VMENTRY, true, tl_pt_is_vmentry},
    [TL_PT_EV_UIRET] = {UIRET, true, tl_pt_is_uiret},
};

/* Read and decode the instruction at `ip`. It may span several regions. */
static int decode_at(const struct tl_pt_insns *d, uint64_t ip, struct tl_pt_insn *out)
{
    size_t n = 0;
    const uint8_t isa = d->isa == TL_ISA_NONE && d->options.unknown_as_16bit ? TL_ISA_X16 : d->isa;
    *out = (struct tl_pt_insn){.ip = ip, .isa = isa, .speculative = d->speculative};
    while (d->image && n < sizeof out->raw) {
        const struct tl_bytes at = tl_image_view_at(d->image, d->view, TL_SPACE_ANY, ip + n);
        const size_t some = at.n < sizeof out->raw - n ? at.n : sizeof out->raw - n;
        if (some == 0)
            break;
        memcpy(out->raw + n, at.p, some);
        n += some;
    }
    if (n == 0)
        return -TL_PT_NO_MAP;
    if (isa == TL_ISA_NONE ||
        tl_x86_decode((enum tl_isa)isa, (struct tl_bytes){out->raw, n}, &out->x86) < 0)
        return -TL_PT_BAD_INSN;
    return 0;
}

/* Address of the next instruction, if no packet is needed for it. */
static int next_ip(const struct tl_pt_insn *insn, uint64_t *ip)
{
    const struct tl_x86_insn *const x = &insn->x86;
    if (tl_pt_is_unreported(x))
        *ip = tl_x86_target((enum tl_isa)insn->isa, insn->ip, x);
    else if (x->class == TL_X86_OTHER || x->class == TL_X86_PTWRITE)
        *ip = insn->ip + x->size;
    else
        return -TL_PT_BAD_QUERY;
    return 0;
}

/* ---- the next event -------------------------------------------------------------------------- */

/* Does this event restart the instruction count for TRIG? */
static void set_anchor(struct tl_pt_insns *d, const struct tl_pt_event *event)
{
    switch (event->kind) {
    case TL_PT_EV_PAGING:
    case TL_PT_EV_SIPI:
    case TL_PT_EV_CBR:
    case TL_PT_EV_MNT:
    case TL_PT_EV_STOP:
    case TL_PT_EV_VMCS:
    case TL_PT_EV_MWAIT:
    case TL_PT_EV_PWRE:
    case TL_PT_EV_PWRX:
        return;
    case TL_PT_EV_DISABLED:
    case TL_PT_EV_ASYNC_DISABLED:
        d->counts = false;
        break;
    case TL_PT_EV_OVERFLOW:
        d->counts = !event->ip_suppressed;
        break;
    default:
        if (event->ip_suppressed)
            return;
        d->counts = true;
    }
    d->count = 0;
}

void tl_pt_insns_fetch(struct tl_pt_insns *d)
{
    d->taken++;
    d->steps = 0;
    d->tsc = d->event.tsc;
    set_anchor(d, &d->event);
    if (d->has_held) {
        d->event = d->held;
        d->has_held = false;
        return;
    }
    d->status = tl_pt_events_next(&d->events, &d->event);
}

static int status(const struct tl_pt_insns *d, int flags)
{
    if (!d->enabled)
        flags |= TL_PT_DISABLED;
    return d->status == TL_PT_EOS ? flags | TL_PT_END : flags;
}

int tl_pt_insns_pending(const struct tl_pt_insns *d)
{
    return status(d, TL_PT_EVENT_PENDING);
}

/* A TIP or TNT has been used up: report the new time, or fetch the next event. */
static void tick(struct tl_pt_insns *d, uint64_t ip)
{
    if (d->options.ticks && d->event.tsc != d->tsc) {
        d->event.kind = TL_PT_EV_TICK;
        d->event.ip = ip;
        d->event.ip_suppressed = false;
    } else {
        tl_pt_insns_fetch(d);
    }
}

/* Get the next TNT outcome; < 0: none. An exhausted TNT remains the event until found empty. */
static int next_outcome(struct tl_pt_insns *d)
{
    struct tl_pt_packet *const p = &d->event.packet;
    if (d->status != TL_PT_OK)
        return -TL_PT_BAD_QUERY;
    if (d->event.kind != TL_PT_EV_TNT || p->tnt.n == 0)
        return -TL_PT_BAD_QUERY;
    d->steps = 0;
    p->tnt.n--;
    return p->tnt.bits >> p->tnt.n & 1;
}

/* Follow an indirect branch. Its TIP may be deferred: it then comes after a TNT whose outcomes
 * belong to later branches. */
static int go_indirect(struct tl_pt_insns *d)
{
    if (d->status != TL_PT_OK)
        return d->status == TL_PT_EOS ? -TL_PT_EOS : -TL_PT_BAD_QUERY;
    if (d->event.kind == TL_PT_EV_TIP) {
        const uint64_t ip = d->ip;
        if (d->event.ip_suppressed)
            return -TL_PT_BAD_PACKET;
        d->ip = d->event.ip;
        tick(d, ip);
        return 0;
    }
    if (d->event.kind != TL_PT_EV_TNT || d->has_held)
        return -TL_PT_BAD_QUERY;
    const struct tl_pt_events before = d->events;
    struct tl_pt_event tip;
    if (tl_pt_events_next(&d->events, &tip) != TL_PT_OK || tip.kind != TL_PT_EV_TIP) {
        d->events = before;
        return -TL_PT_BAD_QUERY;
    }
    d->ip = tip.ip;
    return 0;
}

static void push_return(struct tl_pt_insns *d, uint64_t ip)
{
    d->returns.ip[d->returns.top++ % TL_PT_RETURNS] = ip;
    d->returns.n += d->returns.n < TL_PT_RETURNS;
}

static int pop_return(struct tl_pt_insns *d)
{
    if (d->returns.n == 0)
        return -TL_PT_NO_RETURN;
    d->returns.n--;
    d->ip = d->returns.ip[--d->returns.top % TL_PT_RETURNS];
    return 0;
}

/* Leave `insn` using the trace. */
static int leave_with_trace(struct tl_pt_insns *d, const struct tl_pt_insn *insn)
{
    const struct tl_x86_insn *const x = &insn->x86;
    if (x->class == TL_X86_COND) {
        const int taken = next_outcome(d);
        if (taken < 0)
            return d->status == TL_PT_EOS ? -TL_PT_EOS : taken;
        d->ip = taken ? tl_x86_target((enum tl_isa)insn->isa, insn->ip, x) : insn->ip + x->size;
        return 0;
    }
    if (x->class == TL_X86_RETURN) {
        const int taken = next_outcome(d);
        if (taken == 0)
            return -TL_PT_BAD_RETURN;
        if (taken > 0)
            return pop_return(d);
    }
    return go_indirect(d);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Add the instruction at `ip` to the run. NOT_REACHED: the run is full. */
static int add_insn(struct tl_pt_insns *d, struct tl_pt_insn *out)
{
    if (d->n == RUN_MAX)
        return NOT_REACHED;
    if (++d->steps > STEPS_MAX)
        return -TL_PT_BAD_QUERY;
    const int rc = decode_at(d, d->ip, out);
    if (rc < 0)
        return rc;
    const struct tl_x86_insn *const x = &out->x86;
    if (x->class == TL_X86_CALL && !(x->direct && x->displacement == 0))
        push_return(d, out->ip + x->size);
    d->n++;
    d->last = *out;
    d->count += d->counts;
    if (d->insn)
        d->insn(d->context, out);
    return REACHED;
}

static bool ends_run(const struct tl_pt_insns *d, const struct tl_pt_insn *insn)
{
    return (d->options.end_on_call && insn->x86.class == TL_X86_CALL) ||
           (d->options.end_on_jump && insn->x86.class == TL_X86_JUMP);
}

/* Execute up to and including an instruction that suits. -TL_PT_BAD_QUERY: an earlier one, `insn`,
 * needs the trace; `ip` is its address then. */
static int to_insn(struct tl_pt_insns *d, struct tl_pt_insn *insn,
                   bool (*suits)(const struct tl_x86_insn *))
{
    for (;;) {
        int rc = add_insn(d, insn);
        if (rc != REACHED || (suits && suits(&insn->x86)))
            return rc;
        rc = next_ip(insn, &d->ip);
        if (rc < 0)
            return rc;
        if (ends_run(d, insn))
            return NOT_REACHED;
    }
}

/* Execute up to the instruction at `ip`, excluding it. */
static int to_ip(struct tl_pt_insns *d, struct tl_pt_insn *insn, uint64_t ip)
{
    while (d->ip != ip) {
        int rc = add_insn(d, insn);
        if (rc != REACHED)
            return rc;
        rc = next_ip(insn, &d->ip);
        if (rc < 0)
            return rc;
        if (ends_run(d, insn))
            return d->ip == ip ? REACHED : NOT_REACHED;
    }
    return REACHED;
}

static bool suits_skl014(const struct tl_x86_insn *x)
{
    return tl_pt_is_unreported(x) || tl_pt_changes_cr3(x);
}

/* Erratum SKL014: a direct branch out of the address filter may also have a suppressed IP. */
static int to_skl014(struct tl_pt_insns *d, struct tl_pt_insn *insn)
{
    for (;;) {
        uint64_t ip;
        int rc = to_insn(d, insn, suits_skl014);
        if (rc != REACHED || tl_pt_changes_cr3(&insn->x86))
            return rc;
        rc = next_ip(insn, &ip);
        if (rc < 0)
            return rc;
        if (!tl_pt_config_traces(d->events.config, ip))
            return REACHED;
        d->ip = ip;
        if (ends_run(d, insn))
            return NOT_REACHED;
    }
}

static int to_disabled(struct tl_pt_insns *d, struct tl_pt_insn *insn)
{
    const struct tl_pt_config *const config = d->events.config;
    if (!d->event.ip_suppressed)
        return to_ip(d, insn, d->event.ip);
    return config->errata.skl014 && tl_pt_config_filters(config)
               ? to_skl014(d, insn)
               : to_insn(d, insn, tl_pt_changes_cr3);
}

/* After a call out of the traced range, tracing resumes at its return address. */
static void expect_resume(struct tl_pt_insns *d, const struct tl_pt_insn *insn)
{
    const uint8_t class = insn->x86.class;
    d->ip = class == TL_X86_CALL || class == TL_X86_FAR_CALL ? insn->ip + insn->x86.size : 0;
}

/* ---- TRIG ------------------------------------------------------------------------------------ */

static int set_trig_ip(struct tl_pt_insns *d)
{
    struct tl_pt_event *const event = &d->event;
    if (event->ip)
        return 0;
    if (!d->counts || event->packet.trig.icnt < d->count)
        return -TL_PT_BAD_PACKET;
    event->packet.trig.icnt -= (uint16_t)d->count;
    event->ip = d->ip;
    return 0;
}

/* Execute `icnt` instructions after the IP. */
static int to_trig(struct tl_pt_insns *d, struct tl_pt_insn *insn)
{
    struct tl_pt_event *const event = &d->event;
    if (event->ip_suppressed)
        return REACHED;
    int rc = set_trig_ip(d);
    if (rc < 0 || !d->enabled)
        return rc < 0 ? rc : REACHED;
    rc = to_ip(d, insn, event->ip);
    while (rc == REACHED && event->packet.trig.icnt > 0) {
        rc = add_insn(d, insn);
        if (rc != REACHED)
            break;
        const int e = next_ip(insn, &d->ip);
        if (e < 0)
            return e;
        event->ip = d->ip;
        event->packet.trig.icnt--;
    }
    return rc;
}

/* ---- to the next event ----------------------------------------------------------------------- */

/* Erratum SKD022: a failing VM entry disables tracing synchronously, not asynchronously. */
static bool is_skd022(struct tl_pt_insns *d)
{
    struct tl_pt_insn insn;
    if (!d->events.config->errata.skd022 || decode_at(d, d->event.from, &insn) < 0 ||
        insn.x86.special != TL_X86_VM_ENTRY)
        return false;
    d->event.kind = TL_PT_EV_DISABLED;
    return true;
}

/*
 * Execute up to and including an instruction that the event binds to; it is left after the event.
 */
static int to_binding(struct tl_pt_insns *d, const struct binding *binding, struct tl_pt_insn *insn)
{
    int rc;
    if (binding->by_ip && !d->event.ip_suppressed) {
        rc = to_ip(d, insn, d->event.ip);
        if (rc == REACHED)
            rc = add_insn(d, insn);
        if (rc == -TL_PT_NO_MAP && d->ip == d->event.ip) /* the event is known without its code */
            return tl_pt_insns_pending(d);
    } else {
        rc = to_insn(d, insn, binding->suits);
    }
    if (rc != REACHED)
        return rc;
    d->bound = binding->flag;
    d->postponed = true;
    d->waits = *insn;
    return tl_pt_insns_pending(d);
}

/* Does an event of this kind take effect before the instruction at its IP, if it has one and
 * tracing is enabled? Other kinds need more checks. */
static bool stands_at_ip(uint8_t kind)
{
    switch (kind) {
    case TL_PT_EV_EXEC_MODE:
    case TL_PT_EV_IFLAGS:
    case TL_PT_EV_INTERRUPT:
    case TL_PT_EV_SMI:
    case TL_PT_EV_INIT:
    case TL_PT_EV_VMEXIT:
    case TL_PT_EV_SHUTDOWN:
    case TL_PT_EV_UINTR:
    case TL_PT_EV_SWINTR:
    case TL_PT_EV_SYSCALL:
        return true;
    default:
        return false;
    }
}

/* Execute up to the event. Tracing is enabled, or the event does not require it. */
static int to_event(struct tl_pt_insns *d)
{
    struct tl_pt_insn insn;
    const struct binding *const binding = &bindings[d->event.kind];
    int rc = REACHED;
    if (binding->flag)
        return d->enabled ? to_binding(d, binding, &insn) : tl_pt_insns_pending(d);
    switch (d->event.kind) {
    case TL_PT_EV_DISABLED:
        if (d->event.status)
            break;
        rc = to_disabled(d, &insn);
        if (rc == -TL_PT_BAD_QUERY && d->steps <= STEPS_MAX) { /* binds to any branch */
            expect_resume(d, &insn);
            rc = REACHED;
        }
        break;
    case TL_PT_EV_ASYNC_DISABLED:
        rc = to_ip(d, &insn, d->event.from);
        if (rc == REACHED && is_skd022(d))
            return to_event(d);
        break;
    case TL_PT_EV_ASYNC_BRANCH:
        rc = to_ip(d, &insn, d->event.from);
        break;
    case TL_PT_EV_EXSTOP:
    case TL_PT_EV_MWAIT:
        if (d->enabled && !d->event.ip_suppressed)
            rc = to_ip(d, &insn, d->event.ip);
        break;
    case TL_PT_EV_ASYNC_PAGING:
    case TL_PT_EV_ASYNC_VMCS:
    case TL_PT_EV_TSX:
        if (!d->event.ip_suppressed)
            rc = to_ip(d, &insn, d->event.ip);
        break;
    case TL_PT_EV_TRIG:
        rc = to_trig(d, &insn);
        break;
    default:
        if (stands_at_ip(d->event.kind) && !d->event.ip_suppressed)
            rc = to_ip(d, &insn, d->event.ip);
        break;
    }
    return rc == REACHED ? tl_pt_insns_pending(d) : rc;
}

/* Leave the instruction that events were bound to. */
static int leave_postponed(struct tl_pt_insns *d)
{
    int rc = 0;
    if (d->postponed && d->enabled) {
        rc = next_ip(&d->waits, &d->ip);
        if (rc == -TL_PT_BAD_QUERY)
            rc = leave_with_trace(d, &d->waits);
        if (rc == -TL_PT_EOS)
            rc = -TL_PT_BAD_QUERY;
    }
    if (rc >= 0) {
        d->postponed = false;
        d->bound = 0;
    }
    return rc;
}

/* Can `to` be reached from `from` without a branch that needs a packet? */
static bool is_straight(const struct tl_pt_insns *d, uint64_t from, uint64_t to)
{
    uint64_t ip = from;
    for (unsigned i = 0; i < BDM64_STEPS && ip != to; i++) {
        struct tl_pt_insn insn;
        if (decode_at(d, ip, &insn) < 0 || next_ip(&insn, &ip) < 0)
            return false;
    }
    return ip == to;
}

/* Erratum BDM64: the branch before an abort actually went to where the abort is. */
static void mend_bdm64(struct tl_pt_insns *d)
{
    const uint8_t class = d->last.x86.class;
    if (!d->events.config->errata.bdm64 || !d->event.packet.tsx.abrt || d->n == 0 ||
        class == TL_X86_OTHER || class == TL_X86_PTWRITE)
        return;
    if (!is_straight(d, d->ip, d->event.ip))
        d->ip = d->event.ip;
}

/* Does the event bind to the instruction that is being left? */
static bool binds_to_postponed(struct tl_pt_insns *d, const struct binding *binding)
{
    if (!d->postponed || (d->bound & binding->flag) ||
        (binding->by_ip && !d->event.ip_suppressed) || !binding->suits(&d->waits.x86))
        return false;
    d->bound |= binding->flag;
    return true;
}

/* A synchronous disable while an instruction is being left: does it belong to that one? Returns 1
 * if so. */
static int trailing_disabled(struct tl_pt_insns *d)
{
    if (!d->postponed)
        return 0;
    if (d->event.ip_suppressed && tl_pt_changes_cr3(&d->waits.x86))
        return 1;
    if (next_ip(&d->waits, &d->ip) < 0) {
        expect_resume(d, &d->waits);
        return 1;
    }
    d->postponed = false;
    d->bound = 0;
    return !d->event.ip_suppressed && d->ip == d->event.ip;
}

static bool outcomes_make_a_tick(const struct tl_pt_insns *d, bool in_run)
{
    return d->options.ticks && in_run && d->event.has_tsc && d->event.tsc != d->tsc;
}

int tl_pt_insns_trailing(struct tl_pt_insns *d, bool in_run)
{
    int rc;
    while (d->status == TL_PT_OK && d->event.kind == TL_PT_EV_TNT) {
        if (outcomes_make_a_tick(d, in_run)) {
            const uint8_t class = d->last.x86.class;
            return d->n > 0 && (class == TL_X86_COND || class == TL_X86_RETURN)
                       ? tl_pt_insns_pending(d)
                       : status(d, 0);
        }
        if (d->event.packet.tnt.n > 0)
            break;
        tl_pt_insns_fetch(d);
    }
    if (d->status != TL_PT_OK) {
        rc = leave_postponed(d);
        return rc < 0 ? rc : status(d, d->status == TL_PT_EOS ? 0 : TL_PT_EVENT_PENDING);
    }
    const struct tl_pt_event *const event = &d->event;
    const bool somewhere = !event->ip_suppressed && d->enabled;
    const struct binding *const binding = &bindings[event->kind];
    if (binding->flag) {
        if (!d->enabled || binds_to_postponed(d, binding))
            return tl_pt_insns_pending(d);
        rc = leave_postponed(d);
        return rc < 0 ? rc : status(d, 0);
    }
    if (event->kind == TL_PT_EV_DISABLED) {
        if (event->status)
            rc = 1;
        else
            rc = trailing_disabled(d);
        if (rc > 0)
            return tl_pt_insns_pending(d);
    }
    if (d->postponed) { /* leaving it consumes a TIP or an outcome, so there is another event */
        rc = leave_postponed(d);
        return rc < 0 ? rc : tl_pt_insns_trailing(d, in_run);
    }
    bool here = true;
    switch (event->kind) {
    case TL_PT_EV_TNT:
    case TL_PT_EV_TIP:
    case TL_PT_EV_DISABLED:
        here = false;
        break;
    case TL_PT_EV_ASYNC_DISABLED:
        here = d->ip == event->from && !is_skd022(d);
        break;
    case TL_PT_EV_ASYNC_BRANCH:
        here = d->ip == event->from;
        break;
    case TL_PT_EV_ASYNC_PAGING:
    case TL_PT_EV_ASYNC_VMCS:
        here = event->ip_suppressed || d->ip == event->ip;
        break;
    case TL_PT_EV_TSX:
        if (in_run && !event->ip_suppressed)
            mend_bdm64(d);
        here = event->ip_suppressed || d->ip == event->ip;
        break;
    case TL_PT_EV_EXSTOP:
    case TL_PT_EV_MWAIT:
        here = !somewhere || d->ip == event->ip;
        break;
    case TL_PT_EV_TRIG:
        if (!somewhere)
            break;
        rc = set_trig_ip(d);
        if (rc < 0)
            return rc;
        here = event->packet.trig.icnt == 0 && event->ip == d->ip;
        break;
    default:
        here = !stands_at_ip(event->kind) || !somewhere || d->ip == event->ip;
        break;
    }
    return here ? tl_pt_insns_pending(d) : status(d, 0);
}

/* Execute as far as possible without an event. */
static int without_event(struct tl_pt_insns *d)
{
    struct tl_pt_insn insn;
    const int rc = to_insn(d, &insn, NULL);
    return rc == -TL_PT_BAD_QUERY && d->steps <= STEPS_MAX ? leave_with_trace(d, &insn)
           : rc < 0                                        ? rc
                                                           : 0;
}

int tl_pt_insns_next(struct tl_pt_insns *d)
{
    d->n = 0;
    if (d->status != TL_PT_OK) {
        if (d->status != TL_PT_EOS)
            return -(int)d->status;
        if (!d->enabled)
            return -TL_PT_EOS;
        const int rc = without_event(d);
        return rc < 0 ? rc : TL_PT_END;
    }
    if (d->event.kind != TL_PT_EV_TNT && d->event.kind != TL_PT_EV_TIP)
        return to_event(d);
    if (!d->enabled)
        return -TL_PT_NO_ENABLE;
    const int rc = without_event(d);
    return rc < 0 ? rc : tl_pt_insns_trailing(d, true);
}
