/* SPDX-License-Identifier: MIT */
/*
 * PSB+: the packets behind a PSB that repeat what is in force. They are status, not events of their
 * own, so they are queued until its end says whether tracing is on.
 */
#include "pt/event.h"

/* Erratum BDM70: is the next relevant packet a TIP.PGE? Then the FUP in PSB+ is to be ignored. */
static enum tl_pt_error is_bdm70(struct tl_pt_events *d, bool *hit)
{
    struct tl_pt_ahead ahead = {.at = d->next};
    *hit = false;
    for (;;) {
        const enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        if (e != TL_PT_OK)
            return e == TL_PT_EOS ? TL_PT_OK : e;
        switch (ahead.packet.kind) {
        case TL_PT_TIP_PGE:
            *hit = true;
            return TL_PT_OK;
        case TL_PT_PAD:
        case TL_PT_TSC:
        case TL_PT_CBR:
        case TL_PT_PSBEND:
        case TL_PT_PIP:
        case TL_PT_MODE_EXEC:
        case TL_PT_MODE_TSX:
        case TL_PT_VMCS:
        case TL_PT_TMA:
        case TL_PT_MTC:
        case TL_PT_CYC:
        case TL_PT_MNT:
            break;
        default:
            return TL_PT_OK;
        }
    }
}

static enum tl_pt_error header_fup(struct tl_pt_events *d)
{
    bool bdm70 = false;
    if (d->config->errata.bdm70) {
        const enum tl_pt_error e = is_bdm70(d, &bdm70);
        if (e != TL_PT_OK)
            return e;
    }
    d->enabled = d->packet.address.ipc != TL_PT_IP_SUPPRESSED && !bdm70;
    if (d->enabled)
        tl_pt_last_ip_update(&d->last_ip, &d->packet);
    return TL_PT_OK;
}

static enum tl_pt_error header_status(struct tl_pt_events *d, enum tl_pt_event_kind kind)
{
    struct tl_pt_event *const event = tl_pt_event_queue(d, kind, AT_PSBEND);
    if (!event)
        return TL_PT_INTERNAL;
    event->status = kind != TL_PT_EV_MNT;
    return TL_PT_OK;
}

static enum tl_pt_error header_exec(struct tl_pt_events *d)
{
    const struct tl_pt_packet *const p = &d->packet;
    const bool iflags = d->options.iflags;
    if (d->mode_known &&
        ((iflags && d->iflag != p->exec.iflag) || d->csd != p->exec.csd || d->csl != p->exec.csl))
        return TL_PT_BAD_STATUS;
    d->mode_known = true;
    d->csl = p->exec.csl;
    d->csd = p->exec.csd;
    d->iflag = p->exec.iflag;
    const enum tl_pt_error e = header_status(d, TL_PT_EV_EXEC_MODE);
    return e == TL_PT_OK && iflags ? header_status(d, TL_PT_EV_IFLAGS) : e;
}

static enum tl_pt_error header_packet(struct tl_pt_events *d)
{
    enum tl_pt_error e;
    switch (d->packet.kind) {
    case TL_PT_FUP:
        return header_fup(d);
    case TL_PT_MODE_EXEC:
        return header_exec(d);
    case TL_PT_MODE_TSX:
        return header_status(d, TL_PT_EV_TSX);
    case TL_PT_PIP:
        return header_status(d, TL_PT_EV_ASYNC_PAGING);
    case TL_PT_VMCS:
        return header_status(d, TL_PT_EV_ASYNC_VMCS);
    case TL_PT_MNT:
        return header_status(d, TL_PT_EV_MNT);
    case TL_PT_CBR:
        e = tl_pt_event_keep_time(d, true);
        return e == TL_PT_OK ? header_status(d, TL_PT_EV_CBR) : e;
    case TL_PT_TSC:
    case TL_PT_TMA:
    case TL_PT_MTC:
    case TL_PT_CYC:
        return tl_pt_event_keep_time(d, true);
    case TL_PT_INVALID:
        return TL_PT_OK;
    default:
        return TL_PT_BAD_CONTEXT;
    }
}

enum tl_pt_error tl_pt_event_header(struct tl_pt_events *d)
{
    if (d->n > 0)
        return TL_PT_BAD_CONTEXT;
    d->last_ip = (struct tl_pt_last_ip){0};
    d->enabled = false;
    if (d->options.anew_at_psb && !d->counts_cycles)
        d->clock.calibration = (struct tl_pt_calibration){0};
    if (d->options.anew_at_psb && !d->clock.time.have_tsc)
        d->clock.time = (struct tl_pt_time){0};
    d->counts_cycles = false;
    /* The first event; its kind is set at the end. */
    enum tl_pt_error e = header_status(d, TL_PT_EV_DISABLED);
    while (e == TL_PT_OK) {
        tl_pt_event_fetch(d);
        if (d->failed != TL_PT_OK)
            return d->failed;
        const bool overflow = d->packet.kind == TL_PT_OVF;
        if (d->packet.kind == TL_PT_PSBEND || overflow) {
            struct tl_pt_event dropped;
            if (d->enabled)
                d->queue[0].event.kind = TL_PT_EV_ENABLED;
            else if (overflow) /* the FUP may be lost */
                tl_pt_event_take(d, AT_PSBEND, &dropped);
            else
                d->queue[0].event.ip_suppressed = true;
            return TL_PT_OK;
        }
        e = header_packet(d);
    }
    return e;
}
