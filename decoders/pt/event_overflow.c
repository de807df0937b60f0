/* SPDX-License-Identifier: MIT */
/*
 * Resolves where an overflow ends: at the IP of a FUP if tracing is enabled at that time, otherwise
 * at the TIP.PGE that follows. Some processors omit that FUP, or send an extra one (errata SKD010,
 * APL11, APL12).
 */
#include "pt/event.h"

static bool reports_time(uint8_t kind)
{
    return kind >= TL_PT_TSC && kind <= TL_PT_CBR;
}

static enum tl_pt_error keep_time(const struct tl_pt_events *d, struct tl_pt_ahead *ahead)
{
    return tl_pt_error_of_time(tl_pt_clock_packet(&ahead->clock, d->config, &ahead->packet, false));
}

/* Find a FUP in the PSB+ at `ahead`; if found it is ahead->packet. */
static enum tl_pt_error find_header_fup(struct tl_pt_events *d, struct tl_pt_ahead *ahead,
                                        bool *found)
{
    for (*found = false;;) {
        const enum tl_pt_error e = tl_pt_ahead_next(d, ahead);
        if (e != TL_PT_OK)
            return e;
        switch (ahead->packet.kind) {
        case TL_PT_FUP:
            *found = true;
            return TL_PT_OK;
        case TL_PT_PSBEND:
        case TL_PT_OVF:
            return TL_PT_OK;
        case TL_PT_MODE_EXEC:
        case TL_PT_MODE_TSX:
        case TL_PT_PIP:
        case TL_PT_VMCS:
        case TL_PT_MNT:
        case TL_PT_PAD:
        case TL_PT_INVALID:
            break;
        default:
            if (!reports_time(ahead->packet.kind))
                return TL_PT_BAD_CONTEXT;
        }
    }
}

/* Find a FUP that is not preceded by a packet showing that tracing is disabled. `*after`: offset
 * of the packet behind it, 0: there is none. */
static enum tl_pt_error find_fup(struct tl_pt_events *d, size_t *after)
{
    struct tl_pt_ahead ahead = {.at = d->next};
    for (*after = 0;;) {
        const enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        if (e != TL_PT_OK)
            return e;
        switch (ahead.packet.kind) {
        case TL_PT_FUP:
            *after = ahead.at;
            return TL_PT_OK;
        case TL_PT_PSBEND:
        case TL_PT_TIP:
        case TL_PT_TIP_PGD:
        case TL_PT_TNT_8:
        case TL_PT_TNT_64:
            return TL_PT_BAD_CONTEXT;
        case TL_PT_PAD:
        case TL_PT_MNT:
        case TL_PT_INVALID:
            break;
        default:
            if (!reports_time(ahead.packet.kind))
                return TL_PT_OK;
        }
    }
}

/* Report an overflow with the time of the OVF and without IP. */
static void report(struct tl_pt_events *d, struct tl_pt_event *out, bool *reported)
{
    *out = (struct tl_pt_event){.kind = TL_PT_EV_OVERFLOW,
                                .packet = d->packet,
                                .ip_suppressed = true,
                                .has_tsc = d->clock.time.have_tsc,
                                .tsc = d->clock.time.tsc};
    *reported = true;
}

/* Continue at the packet at `ahead`. */
static void continue_at(struct tl_pt_events *d, const struct tl_pt_ahead *ahead)
{
    d->packet = ahead->packet;
    d->next = ahead->at;
    d->clock = ahead->clock;
}

/* Tracing resumes at the IP of `fup`; continue at the packet at `ahead`. */
static void recover_at(struct tl_pt_events *d, const struct tl_pt_ahead *ahead,
                       const struct tl_pt_packet *fup, struct tl_pt_event *out, bool *reported)
{
    report(d, out, reported);
    tl_pt_last_ip_update(&d->last_ip, fup);
    if (tl_pt_last_ip_known(&d->last_ip)) {
        out->ip = d->last_ip.ip;
        out->ip_suppressed = false;
    }
    continue_at(d, ahead);
    d->enabled = true;
}

static void recover_disabled(struct tl_pt_events *d, const struct tl_pt_ahead *ahead,
                             struct tl_pt_event *out, bool *reported)
{
    report(d, out, reported);
    continue_at(d, ahead);
    tl_pt_event_fetch(d);
}

/* SKD010: the FUP or TIP.PGE is missing if the next packets require tracing to be enabled. */
static enum tl_pt_error handle_skd010(struct tl_pt_events *d, struct tl_pt_event *out,
                                      bool *reported)
{
    struct tl_pt_ahead ahead = {.at = d->next, .clock = d->clock};
    struct tl_pt_packet tsx = {0};
    bool has_tsx = false;
    for (;;) {
        enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        const struct tl_pt_packet *const p = &ahead.packet;
        if (e != TL_PT_OK)
            return e == TL_PT_EOS ? TL_PT_OK : e;
        switch (p->kind) {
        case TL_PT_TIP_PGD:
            recover_disabled(d, &ahead, out, reported);
            return TL_PT_OK;
        case TL_PT_MODE_TSX:
            if (has_tsx)
                return TL_PT_OK;
            has_tsx = true;
            tsx = *p;
            break;
        case TL_PT_FUP:
            if (has_tsx) {
                struct tl_pt_event *const event = tl_pt_event_queue(d, TL_PT_EV_TSX, AT_FUP_BOUND);
                if (!event)
                    return TL_PT_INTERNAL;
                event->packet = tsx;
            }
            recover_at(d, &ahead, p, out, reported);
            return TL_PT_OK;
        case TL_PT_TIP:
            recover_at(d, &ahead, p, out, reported);
            tl_pt_event_fetch(d);
            return TL_PT_OK;
        case TL_PT_PSB: {
            struct tl_pt_ahead header = ahead;
            bool found;
            e = find_header_fup(d, &header, &found);
            if (e != TL_PT_OK)
                return e == TL_PT_EOS ? TL_PT_OK : e;
            if (found)
                recover_at(d, &ahead, &header.packet, out, reported);
            return TL_PT_OK;
        }
        case TL_PT_PSBEND:
            return TL_PT_BAD_CONTEXT;
        case TL_PT_PIP:
        case TL_PT_VMCS:
        case TL_PT_MODE_EXEC:
        case TL_PT_PAD:
        case TL_PT_MNT:
        case TL_PT_PWRE:
        case TL_PT_PWRX:
        case TL_PT_EVD:
        case TL_PT_TRIG:
            break;
        case TL_PT_EXSTOP:
        case TL_PT_PTW:
        case TL_PT_CFE:
            if (p->ip)
                return TL_PT_OK;
            break;
        default:
            if (!reports_time(p->kind))
                return TL_PT_OK;
            e = keep_time(d, &ahead);
            if (e != TL_PT_OK)
                return e;
        }
    }
}

/* APL11: an extra TIP.PGD although tracing was already disabled. */
static enum tl_pt_error handle_apl11(struct tl_pt_events *d, struct tl_pt_event *out,
                                     bool *reported)
{
    struct tl_pt_ahead ahead = {.at = d->next, .clock = d->clock};
    for (;;) {
        enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        if (e != TL_PT_OK)
            return e;
        switch (ahead.packet.kind) {
        case TL_PT_TIP_PGD:
            recover_disabled(d, &ahead, out, reported);
            return TL_PT_OK;
        case TL_PT_PAD:
        case TL_PT_MNT:
        case TL_PT_CFE:
        case TL_PT_EVD:
        case TL_PT_TRIG:
            break;
        default:
            if (!reports_time(ahead.packet.kind))
                return TL_PT_OK;
            e = keep_time(d, &ahead);
            if (e != TL_PT_OK)
                return e;
        }
    }
}

/* Continue after the FUP, at `after`, with tracing disabled. */
static enum tl_pt_error skip_fup(struct tl_pt_events *d, size_t after, struct tl_pt_event *out,
                                 bool *reported)
{
    struct tl_pt_ahead ahead = {.at = d->next, .clock = d->clock};
    while (ahead.at < after) {
        enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        if (e == TL_PT_OK && reports_time(ahead.packet.kind))
            e = keep_time(d, &ahead);
        if (e != TL_PT_OK)
            return e;
    }
    continue_at(d, &ahead);
    report(d, out, reported);
    tl_pt_event_fetch(d);
    return TL_PT_OK;
}

/* APL12: the FUP is extra if the next packets require tracing to be disabled. */
static enum tl_pt_error handle_apl12(struct tl_pt_events *d, size_t after, struct tl_pt_event *out,
                                     bool *reported)
{
    struct tl_pt_ahead ahead = {.at = after};
    for (;;) {
        enum tl_pt_error e = tl_pt_ahead_next(d, &ahead);
        if (e != TL_PT_OK)
            return e == TL_PT_EOS ? TL_PT_OK : e;
        switch (ahead.packet.kind) {
        case TL_PT_TNT_8:
        case TL_PT_TNT_64:
        case TL_PT_TIP:
        case TL_PT_TIP_PGD:
        case TL_PT_PSBEND:
        case TL_PT_OVF:
        case TL_PT_INVALID:
            return TL_PT_OK;
        case TL_PT_PSB: {
            bool found;
            e = find_header_fup(d, &ahead, &found);
            if (e != TL_PT_OK || found)
                return e == TL_PT_EOS ? TL_PT_OK : e;
            return skip_fup(d, after, out, reported);
        }
        case TL_PT_STOP:
        case TL_PT_TIP_PGE:
            return skip_fup(d, after, out, reported);
        default:
            break;
        }
    }
}

/* Forget everything except the time. */
static void forget(struct tl_pt_events *d)
{
    d->enabled = d->bound = d->mode_known = false;
    d->last_ip = (struct tl_pt_last_ip){0};
    d->n = 0;
    struct tl_pt_calibration *const c = &d->clock.calibration;
    if (d->options.keep_tcal_on_overflow) {
        c->tsc = c->cyc_tsc = c->cyc_mtc = c->ctc = 0;
        c->have_mtc = false;
    } else {
        *c = (struct tl_pt_calibration){0};
    }
}

enum tl_pt_error tl_pt_event_overflow(struct tl_pt_events *d, struct tl_pt_event *out,
                                      bool *reported)
{
    size_t fup;
    forget(d);
    const enum tl_pt_error why = find_fup(d, &fup);
    if (fup) {
        if (d->config->errata.apl12) {
            const enum tl_pt_error e = handle_apl12(d, fup, out, reported);
            if (e != TL_PT_OK || *reported)
                return e;
        }
        struct tl_pt_event *const event = tl_pt_event_queue(d, TL_PT_EV_OVERFLOW, AT_FUP_BOUND);
        event->has_tsc = d->clock.time.have_tsc;
        event->tsc = d->clock.time.tsc;
        return TL_PT_OK;
    }
    if (d->config->errata.skd010) {
        const enum tl_pt_error e = handle_skd010(d, out, reported);
        if (e != TL_PT_OK || *reported)
            return e;
    }
    if (d->config->errata.apl11 && why == TL_PT_BAD_CONTEXT) {
        const enum tl_pt_error e = handle_apl11(d, out, reported);
        if (e != TL_PT_OK || *reported)
            return e;
    }
    if (why != TL_PT_OK && why != TL_PT_EOS)
        return why;
    report(d, out, reported);
    tl_pt_event_fetch(d);
    return TL_PT_OK;
}
