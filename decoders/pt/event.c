/* SPDX-License-Identifier: MIT */
/*
 * Turns packets of Intel PT into events. Packets bind to packets that follow; events pending until
 * such a packet are queued in order.
 */
#include "pt/event.h"

#include <string.h>

/* Result of processing a packet: an event, none yet, or an error. */
enum outcome { REPORTED, MORE, FAILED };

struct step {
    struct tl_pt_event *out;
    enum tl_pt_error error;
};

/* ---- the queue ------------------------------------------------------------------------------- */

struct tl_pt_event *tl_pt_event_queue(struct tl_pt_events *d, enum tl_pt_event_kind kind,
                                      uint32_t binds)
{
    if (d->n == TL_PT_EVENT_QUEUE)
        return NULL;
    d->queue[d->n].binds = binds;
    d->queue[d->n].event = (struct tl_pt_event){.kind = (uint8_t)kind, .packet = d->packet};
    return &d->queue[d->n++].event;
}

/* Index of the first queued event that waits for any of `binds`; n: none. */
static unsigned waiting(const struct tl_pt_events *d, uint32_t binds)
{
    unsigned i = 0;
    while (i < d->n && !(d->queue[i].binds & binds))
        i++;
    return i;
}

static bool is_waiting(const struct tl_pt_events *d, uint32_t binds)
{
    return waiting(d, binds) < d->n;
}

static struct tl_pt_event *find(struct tl_pt_events *d, uint32_t binds, enum tl_pt_event_kind kind)
{
    for (unsigned i = 0; i < d->n; i++)
        if ((d->queue[i].binds & binds) && d->queue[i].event.kind == kind)
            return &d->queue[i].event;
    return NULL;
}

bool tl_pt_event_take(struct tl_pt_events *d, uint32_t binds, struct tl_pt_event *out)
{
    const unsigned i = waiting(d, binds);
    if (i == d->n)
        return false;
    *out = d->queue[i].event;
    memmove(&d->queue[i], &d->queue[i + 1], (d->n - i - 1) * sizeof d->queue[0]);
    d->n--;
    return true;
}

static enum outcome wait_for(struct tl_pt_events *d, struct step *step, enum tl_pt_event_kind kind,
                             uint32_t binds)
{
    if (tl_pt_event_queue(d, kind, binds))
        return MORE;
    step->error = TL_PT_INTERNAL;
    return FAILED;
}

static enum outcome fail(struct step *step, enum tl_pt_error error)
{
    step->error = error;
    return FAILED;
}

/* ---- packets --------------------------------------------------------------------------------- */

enum tl_pt_error tl_pt_ahead_next(struct tl_pt_events *d, struct tl_pt_ahead *ahead)
{
    ahead->packet.offset = ahead->at;
    const int size =
        tl_pt_parse(d->config, (struct tl_bytes){d->trace.p + ahead->at, d->trace.n - ahead->at},
                    &ahead->packet);
    if (size > 0)
        ahead->at += (size_t)size;
    d->looked_ahead |= size == TL_AGAIN;
    return tl_pt_error_of(size);
}

void tl_pt_event_fetch(struct tl_pt_events *d)
{
    do {
        d->packet.offset = d->next;
        const int size = tl_pt_parse(
            d->config, (struct tl_bytes){d->trace.p + d->next, d->trace.n - d->next}, &d->packet);
        d->failed = tl_pt_error_of(size);
        if (size > 0)
            d->next += (size_t)size;
    } while (d->failed == TL_PT_OK && d->packet.kind == TL_PT_PAD);
}

enum tl_pt_error tl_pt_event_keep_time(struct tl_pt_events *d, bool header)
{
    if (d->packet.kind == TL_PT_CYC) {
        d->cycles += d->packet.cyc;
        d->has_cycles |= d->packet.cyc > 0;
        d->counts_cycles = true;
        if (d->packet.cyc == 0 && d->options.skip_empty_cyc)
            return TL_PT_OK;
    }
    return tl_pt_error_of_time(tl_pt_clock_packet(&d->clock, d->config, &d->packet, header));
}

static void set_time(const struct tl_pt_events *d, struct tl_pt_event *event)
{
    event->has_tsc = d->clock.time.have_tsc;
    event->tsc = d->clock.time.tsc;
}

static void set_ip(const struct tl_pt_events *d, struct tl_pt_event *event)
{
    if (tl_pt_last_ip_known(&d->last_ip))
        event->ip = d->last_ip.ip;
    else
        event->ip_suppressed = true;
}

/* Return an event for this packet alone. */
static enum outcome report(struct tl_pt_events *d, struct step *step, enum tl_pt_event_kind kind,
                           bool with_ip)
{
    *step->out =
        (struct tl_pt_event){.kind = (uint8_t)kind, .packet = d->packet, .ip_suppressed = !with_ip};
    if (with_ip)
        set_ip(d, step->out);
    set_time(d, step->out);
    return REPORTED;
}

/* The same, and fetch the next packet. */
static enum outcome report_and_continue(struct tl_pt_events *d, struct step *step,
                                        enum tl_pt_event_kind kind, bool with_ip)
{
    report(d, step, kind, with_ip);
    tl_pt_event_fetch(d);
    return REPORTED;
}

/* ---- IP packets ------------------------------------------------------------------------------ */

static enum outcome on_psbend(struct tl_pt_events *d, struct step *step)
{
    struct tl_pt_event *const out = step->out;
    if (!tl_pt_event_take(d, AT_PSBEND, out))
        return MORE;
    if (out->kind != TL_PT_EV_DISABLED && out->kind != TL_PT_EV_CBR && out->kind != TL_PT_EV_MNT)
        set_ip(d, out);
    set_time(d, out);
    return REPORTED;
}

static enum outcome on_fup(struct tl_pt_events *d, struct step *step)
{
    struct tl_pt_event *const out = step->out;
    tl_pt_last_ip_update(&d->last_ip, &d->packet);
    d->bound |= is_waiting(d, AT_FUP_BOUND);
    do {
        if (tl_pt_event_take(d, AT_FUP | AT_FUP_BOUND, out))
            continue;
        if (d->bound)
            return MORE;
        if (!tl_pt_last_ip_known(&d->last_ip))
            return fail(step, d->last_ip.have ? TL_PT_IP_SUPPRESSED_ERROR : TL_PT_NO_IP);
        struct tl_pt_event *const branch = tl_pt_event_queue(d, TL_PT_EV_ASYNC_BRANCH, AT_TIP);
        if (!branch)
            return fail(step, TL_PT_INTERNAL);
        branch->from = d->last_ip.ip;
        return MORE;
    } while (out->kind == TL_PT_EV_IGNORED);
    if (out->kind == TL_PT_EV_OVERFLOW)
        d->enabled = true; /* its time is that of the OVF */
    else
        set_time(d, out);
    if (out->kind == TL_PT_EV_RSM || out->kind == TL_PT_EV_SIPI || out->kind == TL_PT_EV_PWRE)
        out->ip_suppressed = true;
    else
        set_ip(d, out);
    return REPORTED;
}

/* Report the branch first: other events waiting for the TIP take effect after it. */
static enum outcome report_branch(struct tl_pt_events *d, struct step *step)
{
    struct tl_pt_event *const branch = find(d, AT_TIP, TL_PT_EV_ASYNC_BRANCH);
    d->bound = true;
    if (!branch)
        return report(d, step, TL_PT_EV_TIP, true);
    struct tl_pt_event first;
    tl_pt_event_take(d, AT_TIP, &first);
    if (first.kind != TL_PT_EV_ASYNC_BRANCH) {
        struct tl_pt_event *const other = find(d, AT_TIP, TL_PT_EV_ASYNC_BRANCH);
        const struct tl_pt_event swapped = first;
        first = *other;
        *other = swapped;
    }
    *step->out = first;
    set_ip(d, step->out);
    set_time(d, step->out);
    return REPORTED;
}

/* Report the events that waited for the IP of a TIP or TIP.PGE, one per call. */
static enum outcome report_bound(struct tl_pt_events *d, struct step *step)
{
    do {
        if (!tl_pt_event_take(d, AT_TIP, step->out))
            return MORE;
    } while (step->out->kind == TL_PT_EV_IGNORED);
    set_ip(d, step->out);
    set_time(d, step->out);
    return REPORTED;
}

static enum outcome on_tip(struct tl_pt_events *d, struct step *step)
{
    if (!d->enabled)
        return fail(step, TL_PT_BAD_CONTEXT);
    tl_pt_last_ip_update(&d->last_ip, &d->packet);
    return d->bound ? report_bound(d, step) : report_branch(d, step);
}

static enum outcome on_tip_pge(struct tl_pt_events *d, struct step *step)
{
    tl_pt_last_ip_update(&d->last_ip, &d->packet);
    if (d->bound) {
        const enum outcome o = report_bound(d, step);
        const uint8_t kind = step->out->kind;
        return o == REPORTED && kind != TL_PT_EV_EXEC_MODE && kind != TL_PT_EV_IFLAGS
                   ? fail(step, TL_PT_BAD_CONTEXT)
                   : o;
    }
    d->enabled = d->bound = true;
    return report(d, step, TL_PT_EV_ENABLED, true);
}

static enum outcome on_tip_pgd(struct tl_pt_events *d, struct step *step)
{
    struct tl_pt_event *const out = step->out;
    tl_pt_last_ip_update(&d->last_ip, &d->packet);
    do {
        if (tl_pt_event_take(d, AT_TIP, out))
            continue;
        if (d->bound)
            return MORE;
        d->enabled = false;
        return report_and_continue(d, step, TL_PT_EV_DISABLED, true);
    } while (out->kind == TL_PT_EV_IGNORED);
    if (out->kind == TL_PT_EV_ASYNC_BRANCH) {
        out->kind = TL_PT_EV_ASYNC_DISABLED;
        set_ip(d, out);
        d->enabled = false;
        d->bound = true;
    } else {
        /* The IP is where tracing resumes; it is not reached here. */
        out->ip_suppressed = true;
    }
    set_time(d, out);
    return REPORTED;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* Mode and interrupt flag share a packet but are two events; report those that changed. */
static enum outcome on_mode_exec(struct tl_pt_events *d, struct step *step)
{
    const struct tl_pt_packet *const p = &d->packet;
    const uint32_t binds = AT_TIP | AT_FUP_BOUND;
    const bool mode = !d->mode_known || d->csl != p->exec.csl || d->csd != p->exec.csd;
    const bool flag = d->options.iflags && (!d->mode_known || d->iflag != p->exec.iflag);
    d->csl = p->exec.csl;
    d->csd = p->exec.csd;
    d->iflag = d->mode_known && !d->options.iflags ? d->iflag : p->exec.iflag;
    d->mode_known = true;
    if (mode && wait_for(d, step, TL_PT_EV_EXEC_MODE, binds) == FAILED)
        return FAILED;
    if (flag && wait_for(d, step, TL_PT_EV_IFLAGS, binds) == FAILED)
        return FAILED;
    return mode || flag ? MORE : wait_for(d, step, TL_PT_EV_IGNORED, binds);
}

static enum outcome on_mode_tsx(struct tl_pt_events *d, struct step *step)
{
    return d->enabled ? wait_for(d, step, TL_PT_EV_TSX, d->packet.tsx.abrt ? AT_FUP : AT_FUP_BOUND)
                      : report_and_continue(d, step, TL_PT_EV_TSX, false);
}

/* PIP and VMCS between the FUP and TIP of an asynchronous branch belong to it, VMCS before PIP;
 * otherwise they are separate events. */
static enum outcome on_space(struct tl_pt_events *d, struct step *step)
{
    const bool vmcs = d->packet.kind == TL_PT_VMCS;
    const enum tl_pt_event_kind kind = vmcs ? TL_PT_EV_ASYNC_VMCS : TL_PT_EV_ASYNC_PAGING;
    if (!find(d, AT_TIP, TL_PT_EV_ASYNC_BRANCH) &&
        !(vmcs && find(d, AT_TIP, TL_PT_EV_ASYNC_PAGING))) {
        report_and_continue(d, step, vmcs ? TL_PT_EV_VMCS : TL_PT_EV_PAGING, false);
        step->out->ip_suppressed = false;
        return REPORTED;
    }
    struct tl_pt_event *const event = tl_pt_event_queue(d, kind, AT_TIP);
    struct tl_pt_event *const paging = vmcs ? find(d, AT_TIP, TL_PT_EV_ASYNC_PAGING) : NULL;
    if (!event)
        return fail(step, TL_PT_INTERNAL);
    if (paging) {
        const struct tl_pt_event swapped = *paging;
        *paging = *event;
        *event = swapped;
    }
    return MORE;
}

/* ---- power and software ---------------------------------------------------------------------- */

/* MWAIT and PWRE packets in a row that may belong to one EXSTOP; bounds the search for it. */
#define SLEEPS_MAX 8

/* Is the next packet an EXSTOP, ignoring timing packets and others that bind to it? */
static bool stops_next(struct tl_pt_events *d)
{
    struct tl_pt_ahead ahead = {.at = d->next};
    unsigned others = 0;
    while (tl_pt_ahead_next(d, &ahead) == TL_PT_OK) {
        const uint8_t kind = ahead.packet.kind;
        const bool sleeps = kind == TL_PT_MWAIT || kind == TL_PT_PWRE;
        if (sleeps && ++others == SLEEPS_MAX)
            return false;
        if (!sleeps && kind != TL_PT_PAD && kind != TL_PT_MNT &&
            !(kind >= TL_PT_TSC && kind <= TL_PT_CBR))
            return kind == TL_PT_EXSTOP;
    }
    return false;
}

/* MWAIT and PWRE are reported at the EXSTOP of the same sleep; at once if it does not come: the
 * processor did not sleep, or an overflow lost the packet. */
static enum outcome on_sleep(struct tl_pt_events *d, struct step *step, enum tl_pt_event_kind kind)
{
    return stops_next(d) ? wait_for(d, step, kind, AT_EXSTOP)
                         : report_and_continue(d, step, kind, false);
}

/* Report MWAIT, EXSTOP and PWRE in this order, at the IP of the FUP or immediately. */
static enum outcome on_exstop(struct tl_pt_events *d, struct step *step)
{
    struct tl_pt_event waited;
    while (d->packet.ip && find(d, AT_EXSTOP, TL_PT_EV_MWAIT) &&
           tl_pt_event_take(d, AT_EXSTOP, &waited)) {
        struct tl_pt_event *const mwait = tl_pt_event_queue(d, TL_PT_EV_MWAIT, AT_FUP_BOUND);
        if (!mwait)
            return fail(step, TL_PT_INTERNAL);
        *mwait = waited;
    }
    if (d->packet.ip) {
        if (wait_for(d, step, TL_PT_EV_EXSTOP, AT_FUP_BOUND) == FAILED)
            return FAILED;
        for (unsigned i; (i = waiting(d, AT_EXSTOP)) < d->n;) {
            struct tl_pt_event *event;
            tl_pt_event_take(d, AT_EXSTOP, &waited);
            event = tl_pt_event_queue(d, (enum tl_pt_event_kind)waited.kind, AT_FUP_BOUND);
            *event = waited;
        }
        return MORE;
    }
    if (find(d, AT_EXSTOP, TL_PT_EV_MWAIT)) {
        tl_pt_event_take(d, AT_EXSTOP, step->out);
        step->out->ip_suppressed = true;
        set_time(d, step->out);
        return REPORTED;
    }
    if (!d->bound) {
        d->bound = is_waiting(d, AT_EXSTOP);
        return d->bound ? report(d, step, TL_PT_EV_EXSTOP, false)
                        : report_and_continue(d, step, TL_PT_EV_EXSTOP, false);
    }
    if (!tl_pt_event_take(d, AT_EXSTOP, step->out))
        return MORE;
    set_time(d, step->out);
    return REPORTED;
}

static enum outcome on_ptw(struct tl_pt_events *d, struct step *step)
{
    return d->packet.ip ? wait_for(d, step, TL_PT_EV_PTWRITE, AT_FUP_BOUND)
                        : report_and_continue(d, step, TL_PT_EV_PTWRITE, false);
}

static enum outcome on_trig(struct tl_pt_events *d, struct step *step)
{
    const struct tl_pt_packet *const p = &d->packet;
    if (p->ip) /* the FUP gives the exact place: no count needed */
        return !p->trig.icntv || p->trig.icnt ? fail(step, TL_PT_BAD_PACKET)
                                              : wait_for(d, step, TL_PT_EV_TRIG, AT_FUP_BOUND);
    if (p->trig.icntv && p->trig.icnt && !d->enabled)
        return fail(step, TL_PT_BAD_PACKET);
    const bool counted = p->trig.icntv;
    report_and_continue(d, step, TL_PT_EV_TRIG, false);
    step->out->ip_suppressed = !counted;
    return REPORTED;
}

/* ---- event trace ----------------------------------------------------------------------------- */

/* Attach an EVD to the event of the CFE that follows. */
static enum outcome on_evd(struct tl_pt_events *d, struct step *step)
{
    const struct tl_pt_packet *const p = &d->packet;
    const unsigned i = waiting(d, AT_CFE);
    struct tl_pt_event *event = i < d->n ? &d->queue[i].event : NULL;
    if (p->evd.type > TL_PT_EVD_VMXR)
        return MORE;
    const bool cr2 = p->evd.type == TL_PT_EVD_CR2;
    if (event && (cr2 || event->kind != TL_PT_EV_VMEXIT))
        return fail(step, TL_PT_BAD_CONTEXT);
    if (!event)
        event = tl_pt_event_queue(d, cr2 ? TL_PT_EV_INTERRUPT : TL_PT_EV_VMEXIT, AT_CFE);
    if (!event)
        return fail(step, TL_PT_INTERNAL);
    bool *const has = cr2                             ? &event->has_cr2
                      : p->evd.type == TL_PT_EVD_VMXQ ? &event->has_vmxq
                                                      : &event->has_vmxr;
    if (*has)
        return fail(step, TL_PT_BAD_CONTEXT);
    *has = true;
    *(cr2                             ? &event->cr2
      : p->evd.type == TL_PT_EVD_VMXQ ? &event->vmxq
                                      : &event->vmxr) = p->evd.payload;
    return MORE;
}

static const struct cfe {
    uint8_t event;  /* enum tl_pt_event_kind */
    bool alone;     /* no FUP gives the place, unless the packet's IP bit is set */
    bool never_ip;  /* the IP bit must not be set */
    bool after_evd; /* may be preceded by EVDs */
} cfes[] = {
    [TL_PT_CFE_INTR] = {TL_PT_EV_INTERRUPT, .after_evd = true},
    [TL_PT_CFE_IRET] = {TL_PT_EV_IRET, .alone = true},
    [TL_PT_CFE_SMI] = {TL_PT_EV_SMI},
    [TL_PT_CFE_RSM] = {TL_PT_EV_RSM, .never_ip = true},
    [TL_PT_CFE_SIPI] = {TL_PT_EV_SIPI, .never_ip = true},
    [TL_PT_CFE_INIT] = {TL_PT_EV_INIT},
    [TL_PT_CFE_VMENTRY] = {TL_PT_EV_VMENTRY, .alone = true},
    [TL_PT_CFE_VMEXIT] = {TL_PT_EV_VMEXIT, .after_evd = true},
    [TL_PT_CFE_VMEXIT_INTR] = {TL_PT_EV_VMEXIT, .after_evd = true},
    [TL_PT_CFE_SHUTDOWN] = {TL_PT_EV_SHUTDOWN, .alone = true},
    [TL_PT_CFE_UINTR] = {TL_PT_EV_UINTR},
    [TL_PT_CFE_UIRET] = {TL_PT_EV_UIRET, .alone = true},
    [TL_PT_CFE_SWINTR] = {TL_PT_EV_SWINTR},
    [TL_PT_CFE_SYSCALL] = {TL_PT_EV_SYSCALL},
};

static enum outcome on_cfe(struct tl_pt_events *d, struct step *step)
{
    const struct tl_pt_packet *const p = &d->packet;
    const struct cfe *const cfe =
        p->cfe.type < sizeof cfes / sizeof *cfes && cfes[p->cfe.type].event ? &cfes[p->cfe.type]
                                                                            : NULL;
    struct tl_pt_event event = {.packet = *p};
    const bool has = tl_pt_event_take(d, AT_CFE, &event);
    if (!cfe) /* unknown types are not an error, but consume their FUP */
        return has     ? fail(step, TL_PT_INTERNAL)
               : p->ip ? wait_for(d, step, TL_PT_EV_IGNORED, AT_FUP_BOUND)
                       : MORE;
    if (has && (!cfe->after_evd || event.kind != cfe->event))
        return fail(step, TL_PT_BAD_CONTEXT);
    if (p->ip && cfe->never_ip)
        return fail(step, TL_PT_BAD_PACKET);
    event.kind = cfe->event;
    event.packet = *p;
    if (p->ip || (d->enabled && !cfe->alone)) {
        struct tl_pt_event *const queued =
            tl_pt_event_queue(d, (enum tl_pt_event_kind)event.kind, p->ip ? AT_FUP_BOUND : AT_FUP);
        if (!queued)
            return fail(step, TL_PT_INTERNAL);
        *queued = event;
        return MORE;
    }
    event.ip_suppressed = true;
    set_time(d, &event);
    *step->out = event;
    tl_pt_event_fetch(d);
    return REPORTED;
}

/*
 * ---- all packets ------------------------------------------------------------------------------
 */

static enum outcome on_time(struct tl_pt_events *d, struct step *step)
{
    const enum tl_pt_error e = tl_pt_event_keep_time(d, false);
    return e == TL_PT_OK ? MORE : fail(step, e);
}

static enum outcome on_cbr(struct tl_pt_events *d, struct step *step)
{
    const enum tl_pt_error e = tl_pt_event_keep_time(d, false);
    return e == TL_PT_OK ? report_and_continue(d, step, TL_PT_EV_CBR, false) : fail(step, e);
}

static enum outcome on_overflow(struct tl_pt_events *d, struct step *step)
{
    const enum outcome o = on_psbend(d, step); /* an OVF also ends PSB+ */
    if (o != MORE)
        return o;
    /* What waits for a FUP that was lost has no place; but a PWRE needs none. */
    while (tl_pt_event_take(d, AT_FUP_BOUND | AT_EXSTOP, step->out))
        if (step->out->kind == TL_PT_EV_PWRE) {
            step->out->ip_suppressed = true;
            set_time(d, step->out);
            return REPORTED;
        }
    bool reported = false;
    const enum tl_pt_error e = tl_pt_event_overflow(d, step->out, &reported);
    return e != TL_PT_OK ? fail(step, e) : reported ? REPORTED : MORE;
}

static enum outcome on_psb(struct tl_pt_events *d, struct step *step)
{
    const enum tl_pt_error e = tl_pt_event_header(d);
    if (e != TL_PT_OK)
        return fail(step, e);
    return d->packet.kind == TL_PT_OVF ? on_overflow(d, step) : on_psbend(d, step);
}

static enum outcome on_tnt(struct tl_pt_events *d, struct step *step)
{
    if (!d->enabled)
        return fail(step, TL_PT_BAD_CONTEXT);
    report_and_continue(d, step, TL_PT_EV_TNT, false);
    step->out->ip_suppressed = false;
    return REPORTED;
}

static enum outcome on_packet(struct tl_pt_events *d, struct step *step)
{
    switch (d->packet.kind) {
    case TL_PT_TNT_8:
    case TL_PT_TNT_64:
        return on_tnt(d, step);
    case TL_PT_TSC:
    case TL_PT_TMA:
    case TL_PT_MTC:
    case TL_PT_CYC:
        return on_time(d, step);
    case TL_PT_CBR:
        return on_cbr(d, step);
    case TL_PT_FUP:
        return on_fup(d, step);
    case TL_PT_TIP:
        return on_tip(d, step);
    case TL_PT_TIP_PGE:
        return on_tip_pge(d, step);
    case TL_PT_TIP_PGD:
        return on_tip_pgd(d, step);
    case TL_PT_MODE_EXEC:
        return on_mode_exec(d, step);
    case TL_PT_MODE_TSX:
        return on_mode_tsx(d, step);
    case TL_PT_PIP:
    case TL_PT_VMCS:
        return on_space(d, step);
    case TL_PT_PSB:
        return on_psb(d, step);
    case TL_PT_PSBEND:
        return on_psbend(d, step);
    case TL_PT_OVF:
        return on_overflow(d, step);
    case TL_PT_STOP:
        return report_and_continue(d, step, TL_PT_EV_STOP, false);
    case TL_PT_EXSTOP:
        return on_exstop(d, step);
    case TL_PT_MWAIT:
        return on_sleep(d, step, TL_PT_EV_MWAIT);
    case TL_PT_PWRE:
        return on_sleep(d, step, TL_PT_EV_PWRE);
    case TL_PT_PWRX:
        return report_and_continue(d, step, TL_PT_EV_PWRX, false);
    case TL_PT_PTW:
        return on_ptw(d, step);
    case TL_PT_CFE:
        return on_cfe(d, step);
    case TL_PT_EVD:
        return on_evd(d, step);
    case TL_PT_TRIG:
        return on_trig(d, step);
    case TL_PT_MNT:
        return report_and_continue(d, step, TL_PT_EV_MNT, false);
    default:
        return MORE;
    }
}

void tl_pt_events_init(struct tl_pt_events *d, const struct tl_pt_config *config,
                       struct tl_bytes trace, const struct tl_pt_event_options *options)
{
    *d = (struct tl_pt_events){.config = config, .trace = trace, .options = *options};
    tl_pt_clock_init(&d->clock);
}

enum tl_pt_error tl_pt_events_sync(struct tl_pt_events *d)
{
    const size_t psb = d->synced ? tl_pt_resync(d->trace, d->next) : tl_pt_find_psb(d->trace);
    struct tl_pt_events clean;
    tl_pt_events_init(&clean, d->config, d->trace, &d->options);
    *d = clean;
    d->synced = true;
    d->next = psb;
    d->packet.offset = psb;
    d->failed = TL_PT_EOS;
    if (psb == d->trace.n)
        return TL_PT_EOS;
    tl_pt_event_fetch(d);
    return d->failed == TL_PT_OK ? tl_pt_event_header(d) : d->failed;
}

enum tl_pt_error tl_pt_events_next(struct tl_pt_events *d, struct tl_pt_event *out)
{
    struct step step = {.out = out};
    for (;;) {
        if (d->failed != TL_PT_OK)
            return d->failed;
        switch (on_packet(d, &step)) {
        case REPORTED:
            return TL_PT_OK;
        case FAILED:
            d->failed = step.error;
            return step.error;
        default:
            d->bound = false;
            tl_pt_event_fetch(d);
        }
    }
}
