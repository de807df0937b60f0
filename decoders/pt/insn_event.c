/* SPDX-License-Identifier: MIT */
/*
 * Effects of events, synchronisation, and recovery after errors, of the decoder that goes
 * instruction by instruction. It follows the reference's order of reports, with which the fast
 * decoder is compared.
 */
#include "pt/binding.h"
#include "pt/insn.h"

#include <string.h>

/*
 * ---- effects of events -------------------------------------------------------------------------
 */

static void set_space(struct tl_pt_insns *d)
{
    if (d->image)
        d->view = tl_image_view(d->image, &d->space, 0, NULL);
}

static int enable(struct tl_pt_insns *d)
{
    if (d->event.status)
        return d->enabled ? 0 : -TL_PT_BAD_STATUS;
    if (d->event.ip_suppressed)
        return -TL_PT_NO_IP;
    if (d->enabled)
        return -TL_PT_BAD_CONTEXT;
    d->event.from = d->ip; /* equal addresses mean that tracing resumed */
    d->ip = d->event.ip;
    d->enabled = true;
    return 0;
}

static int disable(struct tl_pt_insns *d)
{
    if (d->event.status)
        return d->enabled ? -TL_PT_BAD_STATUS : 0;
    if (!d->enabled)
        return -TL_PT_BAD_CONTEXT;
    d->enabled = false;
    d->count = 0;
    return 0;
}

static int apply(struct tl_pt_insns *d)
{
    struct tl_pt_event *const event = &d->event;
    switch (event->kind) {
    case TL_PT_EV_ENABLED:
        return enable(d);
    case TL_PT_EV_DISABLED:
    case TL_PT_EV_ASYNC_DISABLED:
        return disable(d);
    case TL_PT_EV_ASYNC_BRANCH:
        if (!d->enabled)
            return -TL_PT_BAD_CONTEXT;
        d->ip = event->ip;
        return 0;
    case TL_PT_EV_PAGING:
    case TL_PT_EV_ASYNC_PAGING:
        d->space.context_id = event->packet.pip.cr3;
        d->space.has_context_id = true;
        set_space(d);
        return 0;
    case TL_PT_EV_VMCS:
    case TL_PT_EV_ASYNC_VMCS:
        d->space.vmid = event->packet.vmcs;
        d->space.has_vmid = true;
        set_space(d);
        return 0;
    case TL_PT_EV_OVERFLOW:
        d->enabled = !event->ip_suppressed;
        d->ip = event->ip_suppressed ? 0 : event->ip;
        d->speculative = false;
        return 0;
    case TL_PT_EV_EXEC_MODE: {
        const uint8_t isa = tl_pt_exec_isa(&event->packet);
        if (event->status && d->enabled && d->isa != TL_ISA_NONE && d->isa != isa)
            return -TL_PT_BAD_STATUS;
        d->isa = isa;
        return 0;
    }
    case TL_PT_EV_TSX:
        d->speculative = event->packet.tsx.intx;
        return 0;
    case TL_PT_EV_STOP:
        return d->enabled ? -TL_PT_BAD_CONTEXT : 0;
    default:
        return 0;
    }
}

/* Report the time at the first outcome of a TNT; the others remain to be used. */
static int take_tick(struct tl_pt_insns *d, struct tl_pt_event *out)
{
    *out = (struct tl_pt_event){
        .kind = TL_PT_EV_TICK, .has_tsc = true, .tsc = d->event.tsc, .ip = d->ip};
    d->tsc = d->event.tsc;
    if (d->event.packet.tnt.n == 0)
        tl_pt_insns_fetch(d);
    return tl_pt_insns_trailing(d, false);
}

int tl_pt_insns_event(struct tl_pt_insns *d, struct tl_pt_event *out)
{
    if (d->status != TL_PT_OK)
        return -(int)d->status;
    if (d->event.kind == TL_PT_EV_TNT)
        return take_tick(d, out);
    const int rc = apply(d);
    if (rc < 0)
        return rc;
    *out = d->event;
    tl_pt_insns_fetch(d);
    return tl_pt_insns_trailing(d, false);
}

/* ---- synchronisation ------------------------------------------------------------------------- */

void tl_pt_insns_init(struct tl_pt_insns *d, const struct tl_pt_config *config,
                      const struct tl_image *image, struct tl_bytes trace,
                      const struct tl_pt_insn_options *options)
{
    memset(d, 0, sizeof *d);
    d->options = *options;
    d->image = image;
    tl_pt_events_init(&d->events, config, trace, &options->events);
}

static void forget(struct tl_pt_insns *d)
{
    d->has_held = d->postponed = d->counts = false;
    d->bound = 0;
    d->n = d->count = d->steps = 0;
    memset(&d->returns, 0, sizeof d->returns);
}

/* PSB+ determines whether tracing is enabled, and where, before its events are reported. */
static int start(struct tl_pt_insns *d)
{
    struct tl_pt_events ahead = d->events;
    const uint64_t at = tl_pt_events_offset(&ahead);
    while (tl_pt_events_offset(&ahead) == at) {
        struct tl_pt_event event;
        const enum tl_pt_error e = tl_pt_events_next(&ahead, &event);
        if (e != TL_PT_OK && e != TL_PT_EOS)
            return -(int)e;
        if (e == TL_PT_EOS || !event.status)
            break;
        if (event.kind == TL_PT_EV_ENABLED) {
            d->enabled = true;
            d->ip = event.ip;
            break;
        }
    }
    d->status = tl_pt_events_next(&d->events, &d->event);
    d->taken++;
    return tl_pt_insns_trailing(d, false);
}

int tl_pt_insns_sync(struct tl_pt_insns *d)
{
    forget(d);
    d->enabled = d->speculative = false;
    d->isa = TL_ISA_NONE;
    d->ip = d->tsc = 0;
    d->space = (struct tl_image_context){0};
    set_space(d);
    d->status = tl_pt_events_sync(&d->events);
    return d->status == TL_PT_OK ? start(d) : -(int)d->status;
}

/* Can decoding resume at the event? Returns 0: no, but perhaps at the next one. */
static int resume_at(struct tl_pt_insns *d)
{
    struct tl_pt_event *const event = &d->event;
    switch (event->kind) {
    case TL_PT_EV_TIP:
        if (event->ip_suppressed)
            return 0;
        d->ip = event->ip;
        d->enabled = true;
        tl_pt_insns_fetch(d);
        return 1;
    case TL_PT_EV_ASYNC_BRANCH:
    case TL_PT_EV_ASYNC_DISABLED:
        d->ip = event->from;
        d->enabled = true;
        return 1;
    case TL_PT_EV_ENABLED:
        if (event->status) {
            d->ip = event->ip;
            d->enabled = true;
        } else if (d->enabled) { /* a disable is missing before it */
            d->held = *event;
            d->has_held = true;
            *event = (struct tl_pt_event){.kind = TL_PT_EV_DISABLED,
                                          .ip_suppressed = true,
                                          .has_tsc = d->held.has_tsc,
                                          .tsc = d->held.tsc};
        }
        return 2;
    case TL_PT_EV_DISABLED:
        if (event->status)
            d->enabled = false;
        d->ip = 0;
        return 2;
    case TL_PT_EV_OVERFLOW:
        return 2;
    case TL_PT_EV_TNT:
        return 0;
    default:
        if (!d->enabled)
            return 2;
        if (event->ip_suppressed || event->ip == 0)
            return 0;
        d->ip = event->ip;
        return 1;
    }
}

int tl_pt_insns_resync(struct tl_pt_insns *d)
{
    forget(d);
    /* Skip an event at which resuming has already failed. */
    if (d->status == TL_PT_OK && d->resumed == d->taken && d->taken > 0)
        tl_pt_insns_fetch(d);
    while (d->status == TL_PT_OK) {
        const uint64_t taken = d->taken;
        const int found = resume_at(d);
        if (found) {
            d->resumed = taken;
            return found == 2 ? tl_pt_insns_pending(d) : tl_pt_insns_trailing(d, false);
        }
        tl_pt_insns_fetch(d);
    }
    return -(int)d->status;
}
