/* SPDX-License-Identifier: MIT */
/*
 * Saves and restores the flow decoder's state for checkpoints. Pending events and packets are part
 * of it, since a stream may be cut between a packet and the place it applies to.
 */
#include "pt/flow.h"

static void packet_state(struct tl_pt_packet *p, struct tl_state *s)
{
    tl_state_bytes(s, p, sizeof *p);
    tl_state_check(s, p->kind < TL_PT_KINDS && p->size <= TL_PT_PACKET_MAX);
}

static void event_state(struct tl_pt_event *e, struct tl_state *s)
{
    tl_state_u8(s, &e->kind, TL_PT_EV_IGNORED);
    tl_state_bool(s, &e->ip_suppressed);
    tl_state_bool(s, &e->status);
    tl_state_bool(s, &e->has_tsc);
    tl_state_bool(s, &e->has_cr2);
    tl_state_bool(s, &e->has_vmxq);
    tl_state_bool(s, &e->has_vmxr);
    tl_state_u64(s, &e->ip);
    tl_state_u64(s, &e->from);
    tl_state_u64(s, &e->tsc);
    tl_state_u64(s, &e->cr2);
    tl_state_u64(s, &e->vmxq);
    tl_state_u64(s, &e->vmxr);
    packet_state(&e->packet, s);
}

static void events_state(struct tl_pt_events *d, struct tl_state *s)
{
    uint8_t n = (uint8_t)d->n;
    tl_state_bool(s, &d->enabled);
    tl_state_bool(s, &d->bound);
    tl_state_bool(s, &d->mode_known);
    tl_state_bool(s, &d->csl);
    tl_state_bool(s, &d->csd);
    tl_state_bool(s, &d->iflag);
    tl_state_u64(s, &d->last_ip.ip);
    tl_state_bool(s, &d->last_ip.have);
    tl_state_bool(s, &d->last_ip.suppressed);
    tl_pt_clock_state(&d->clock, s);
    tl_state_u64(s, &d->cycles);
    tl_state_bool(s, &d->has_cycles);
    tl_state_bool(s, &d->counts_cycles);
    tl_state_u8(s, &n, TL_PT_EVENT_QUEUE);
    d->n = n;
    for (unsigned i = 0; i < d->n; i++) {
        tl_state_u32(s, &d->queue[i].binds);
        event_state(&d->queue[i].event, s);
    }
}

static void context_state(struct tl_image_context *c, struct tl_state *s)
{
    tl_state_u64(s, &c->context_id);
    tl_state_u64(s, &c->vmid);
    tl_state_bool(s, &c->has_context_id);
    tl_state_bool(s, &c->has_vmid);
}

void tl_pt_flow_state(struct tl_pt_flow *f, struct tl_state *s)
{
    struct tl_image_context context = f->walker.context;
    uint32_t held = (uint32_t)f->held.n;
    events_state(&f->events, s);
    tl_state_u64(s, &f->anchor);
    tl_state_bool(s, &f->enabled);
    tl_state_bool(s, &f->upper);
    tl_state_bool(s, &f->lost);
    if (!f->lost)
        f->lost_at = 0;
    tl_state_u64(s, &f->lost_at);
    tl_state_u8(s, &f->isa, TL_ISA_COUNT - 1);
    tl_state_u64(s, &f->reported_tsc);
    tl_state_u64(s, &f->beside);
    tl_state_bool(s, &f->has_time);
    tl_state_bool(s, &f->context_reported);
    tl_state_bool(s, &f->is_guest);
    context_state(&f->host, s);
    if (f->n_outcomes == 0)
        f->outcomes = 0;
    tl_state_u64(s, &f->outcomes);
    tl_state_u8(s, &f->n_outcomes, 64);
    if (!f->postponed)
        f->bound = 0;
    tl_state_bool(s, &f->postponed);
    tl_state_bool(s, &f->strayed);
    tl_state_u8(s, &f->bound, UINT8_MAX);
    context_state(&context, s);
    if (tl_state_loads(s)) {
        tl_walker_hide(&f->walker, f->is_guest && f->context_reported);
        tl_walker_restore_context(&f->walker, &context);
    }
    tl_walker_place_state(&f->walker, s);
    tl_walker_rest_state(&f->walker, s);
    tl_item_batch_state(&f->out, s);
    tl_state_u32(s, &held);
    if (tl_state_loads(s)) {
        tl_state_check(s, held <= TL_PT_FLOW_HELD * 2 && held <= s->in.n);
        tl_buf_reset(&f->held);
        if (s->rc >= 0)
            tl_state_fail(s, tl_buf_reserve(&f->held, held));
        f->held.n = s->rc >= 0 ? held : 0;
    }
    if (f->held.n > 0) {
        tl_state_u64(s, &f->base);
        tl_state_bytes(s, f->held.p, f->held.n);
        f->events.next = 0;
    }
}
