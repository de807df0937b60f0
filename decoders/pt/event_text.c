/* SPDX-License-Identifier: MIT */
/*
 * Text is appended with bounds in one place, so that the fields of each event can be written one by
 * one. Its wording is exactly the reference's, since listings are compared line by line.
 */
#include "pt/event_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct text {
    char *out;
    size_t n;
    bool ip; /* print the IP */
};

__attribute__((format(printf, 2, 3))) static void put(struct text *x, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(x->out + x->n, TL_PT_EVENT_TEXT - x->n, format, args);
    va_end(args);
    if (n > 0)
        x->n += (size_t)n < TL_PT_EVENT_TEXT - x->n ? (size_t)n : TL_PT_EVENT_TEXT - 1 - x->n;
}

static void print_ip(struct text *x, const struct tl_pt_event *event)
{
    if (x->ip && !event->ip_suppressed)
        put(x, ", ip: %016" PRIx64, event->ip);
}

static void print_from(struct text *x, const struct tl_pt_event *event, const char *from,
                       const char *to)
{
    if (!x->ip)
        return;
    put(x, ", %s: %016" PRIx64, from, event->from);
    if (!event->ip_suppressed)
        put(x, ", %s: %016" PRIx64, to, event->ip);
}

static void print_vmexit(struct text *x, const struct tl_pt_event *event)
{
    put(x, "vmexit");
    if (event->packet.cfe.type == TL_PT_CFE_VMEXIT_INTR)
        put(x, ", intr: %u", event->packet.cfe.vector);
    if (event->has_vmxr)
        put(x, ", vmxr: %016" PRIx64, event->vmxr);
    if (event->has_vmxq)
        put(x, ", vmxq: %016" PRIx64, event->vmxq);
    print_ip(x, event);
}

static void print_pwrx(struct text *x, const struct tl_pt_packet *p)
{
    put(x, "pwrx %s%s%sc%u (c%u)", p->pwrx.interrupt ? "int: " : "", p->pwrx.store ? "st: " : "",
        p->pwrx.autonomous ? "hw: " : "", (p->pwrx.last + 1) & 15u, (p->pwrx.deepest + 1) & 15u);
}

static void print_trig(struct text *x, const struct tl_pt_event *event)
{
    put(x, "trig %02x%s", event->packet.trig.trbv, event->packet.trig.mult ? ", mult" : "");
    print_ip(x, event);
    if (event->packet.trig.icnt && !event->ip_suppressed)
        put(x, ", icnt: %u", event->packet.trig.icnt);
}

static const char *mode_name(const struct tl_pt_packet *p)
{
    return p->exec.csl ? (p->exec.csd ? "<unknown>" : "64-bit")
                       : (p->exec.csd ? "32-bit" : "16-bit");
}

static void print(struct text *x, const struct tl_pt_event *e)
{
    static const char *const plain[TL_PT_EV_IGNORED + 1] = {
        [TL_PT_EV_DISABLED] = "disabled", [TL_PT_EV_OVERFLOW] = "overflow",
        [TL_PT_EV_STOP] = "stopped",      [TL_PT_EV_EXSTOP] = "exstop",
        [TL_PT_EV_TICK] = "tick",         [TL_PT_EV_IRET] = "iret",
        [TL_PT_EV_SMI] = "smi",           [TL_PT_EV_RSM] = "rsm",
        [TL_PT_EV_INIT] = "init",         [TL_PT_EV_VMENTRY] = "vmentry",
        [TL_PT_EV_SHUTDOWN] = "shutdown", [TL_PT_EV_UIRET] = "uiret",
        [TL_PT_EV_SYSCALL] = "syscall"};
    const struct tl_pt_packet *const p = &e->packet;
    const bool ip = x->ip;
    if (plain[e->kind]) {
        put(x, "%s", plain[e->kind]);
        print_ip(x, e);
        return;
    }
    switch (e->kind) {
    case TL_PT_EV_ENABLED:
        put(x, "%s", e->from == e->ip ? "resumed" : "enabled");
        print_ip(x, e);
        break;
    case TL_PT_EV_ASYNC_DISABLED:
        put(x, "disabled");
        print_from(x, e, "at", "ip");
        break;
    case TL_PT_EV_ASYNC_BRANCH:
        put(x, "interrupt");
        print_from(x, e, "from", "to");
        break;
    case TL_PT_EV_PAGING:
    case TL_PT_EV_ASYNC_PAGING:
        put(x, "paging, cr3: %016" PRIx64 "%s", p->pip.cr3, p->pip.nr ? ", nr" : "");
        if (ip && e->kind == TL_PT_EV_ASYNC_PAGING)
            put(x, ", ip: %016" PRIx64, e->ip);
        break;
    case TL_PT_EV_VMCS:
    case TL_PT_EV_ASYNC_VMCS:
        put(x, "vmcs, base: %016" PRIx64, p->vmcs);
        if (ip && e->kind == TL_PT_EV_ASYNC_VMCS)
            put(x, ", ip: %016" PRIx64, e->ip);
        break;
    case TL_PT_EV_EXEC_MODE:
        put(x, "exec mode: %s", mode_name(p));
        print_ip(x, e);
        break;
    case TL_PT_EV_TSX:
        put(x, "%s", p->tsx.abrt ? "aborted" : p->tsx.intx ? "begin transaction" : "committed");
        print_ip(x, e);
        break;
    case TL_PT_EV_MWAIT:
        put(x, "mwait %" PRIx32 " %" PRIx32, p->mwait.hints, p->mwait.ext);
        print_ip(x, e);
        break;
    case TL_PT_EV_PWRE:
        put(x, "pwre c%u.%u%s", (p->pwre.state + 1) & 15u, (p->pwre.sub_state + 1) & 15u,
            p->pwre.hw ? " hw" : "");
        break;
    case TL_PT_EV_PWRX:
        print_pwrx(x, p);
        break;
    case TL_PT_EV_PTWRITE:
        put(x, "ptwrite: %" PRIx64, p->ptw.payload);
        print_ip(x, e);
        break;
    case TL_PT_EV_CBR:
        put(x, "cbr: %x", p->cbr);
        break;
    case TL_PT_EV_MNT:
        put(x, "mnt: %" PRIx64, p->mnt);
        break;
    case TL_PT_EV_IFLAGS:
        put(x, "interrupts %s", p->exec.iflag ? "enabled" : "disabled");
        print_ip(x, e);
        break;
    case TL_PT_EV_INTERRUPT:
        put(x, "interrupt %u", p->cfe.vector);
        if (e->has_cr2)
            put(x, ", cr2: %016" PRIx64, e->cr2);
        print_ip(x, e);
        break;
    case TL_PT_EV_SWINTR:
    case TL_PT_EV_UINTR:
        put(x, "%s %u", e->kind == TL_PT_EV_UINTR ? "uintr" : "swintr", p->cfe.vector);
        print_ip(x, e);
        break;
    case TL_PT_EV_SIPI:
        put(x, "sipi: %x", p->cfe.vector);
        break;
    case TL_PT_EV_VMEXIT:
        print_vmexit(x, e);
        break;
    case TL_PT_EV_TRIG:
        print_trig(x, e);
        break;
    default:
        break;
    }
}

char *tl_pt_event_text(const struct tl_pt_event *event, bool with_ip,
                       char out[static TL_PT_EVENT_TEXT])
{
    struct text x = {.out = out, .ip = with_ip};
    out[0] = 0;
    print(&x, event);
    return out;
}
