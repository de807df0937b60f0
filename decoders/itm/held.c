/* SPDX-License-Identifier: MIT */
/*
 * Order and time of what an ITM reports. Its timestamps stand behind what they are for, while all
 * readers expect them in front: so both are kept here until they can change places.
 */
#include "itm/held.h"

/* Source: DDI0403E C1.7.6: TSENA (bit 1), TSPrescale (9:8), GTSFREQ (11:10). */
void tl_itm_held_init(struct tl_itm_held *held, const struct tl_source *source)
{
    const uint64_t unknown = UINT64_MAX;
    const uint64_t control =
        tl_source_reg(source, "ITMTCR", tl_source_reg(source, "CONTROL_REGISTER", unknown));
    const bool known = control != unknown;
    held->prescale = known ? (uint8_t)(1u << 2 * (control >> 8 & 3)) : 1;
    held->timing = !known ? TL_ITM_UNKNOWN : control & 2 ? TL_ITM_TIMED : TL_ITM_UNTIMED;
    held->clock.has_global = known && (control >> 10 & 3) != 0;
    held->clock.scale[0] = held->clock.scale[1] = 1;
    memcpy(held->ports, source->ports, sizeof held->ports);
}

/* ---- items ----------------------------------------------------------------------------------- */

static void deliver_event(struct tl_itm_held *held, const struct tl_held *entry)
{
    char name[TL_HARDWARE_TEXT], text[TL_HARDWARE_TEXT];
    struct tl_item_batch *const out = &held->soft->out;
    struct tl_hardware event = entry->event;
    event.name = tl_dwt_name(held->dwt, &event, held->image, name, sizeof name);
    const size_t size = strlen(tl_hardware_text(&event, text)) + 1;
    char *const kept = tl_item_batch_store(out, size);
    memcpy(kept, text, size);
    struct tl_item *const item = tl_item_batch_add(out, TL_ITEM_HARDWARE, entry->offset);
    tl_hardware_item(&event, item);
    item->text = kept;
}

static void deliver(struct tl_itm_held *held, const struct tl_held *entry)
{
    switch ((enum tl_held_kind)entry->kind) {
    case TL_HELD_SOFTWARE:
        tl_item_batch_software(&held->soft->out, "itm", entry->channel, entry->value, entry->size,
                               entry->offset)
            ->sub = held->ports[entry->channel % TL_PORTS];
        break;
    case TL_HELD_EVENT:
        deliver_event(held, entry);
        break;
    case TL_HELD_TIME_LOW:
        tl_soft_note(held->soft, entry->offset, "global-time-low %" PRIu64, entry->value);
        break;
    }
}

/* Deliver the first `n` entries. */
static void release(struct tl_itm_held *held, uint8_t n)
{
    for (uint8_t i = 0; i < n; i++)
        deliver(held, &held->v[i]);
    held->n = (uint8_t)(held->n - n);
    memmove(held->v, held->v + n, held->n * sizeof *held->v);
}

static void end_next(struct tl_itm_held *held);

/* Deliver everything, untimed. */
static void deliver_all_untimed(struct tl_itm_held *held)
{
    end_next(held);
    release(held, held->n);
}

/* Does a timestamp follow that is for what is reported now? */
static bool waits(const struct tl_itm_held *held)
{
    return held->timing != TL_ITM_UNTIMED || held->clock.has_global;
}

void tl_itm_hold(struct tl_itm_held *held, const struct tl_held *entry)
{
    if (held->n == TL_HELD_MAX) {
        deliver_all_untimed(held);
        held->timing = held->timing == TL_ITM_UNKNOWN ? TL_ITM_UNTIMED : held->timing;
    }
    if (waits(held))
        held->v[held->n++] = *entry;
    else
        deliver(held, entry);
}

void tl_itm_break(struct tl_itm_held *held)
{
    deliver_all_untimed(held);
    held->clock.broken = held->clock.lost = true;
}

void tl_itm_resume(struct tl_itm_held *held, const struct tl_itm_held *last)
{
    held->timing = last->timing;
    held->clock = last->clock;
    tl_itm_break(held);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Times are estimates, and do not go back. */
static void tell_time(struct tl_itm_held *held, uint64_t time, unsigned inexact, uint64_t offset)
{
    const enum tl_time clock = held->clock.pinned ? TL_TIME_TRACE : TL_TIME_SOURCE;
    const uint64_t last = held->soft->stamp;
    tl_soft_time(held->soft, clock, time > last ? time : last, inexact,
                 held->n > 0 ? held->v[0].offset : offset);
}

/* The global time of the local sum. */
static uint64_t estimate(const struct tl_itm_clock *c)
{
    const unsigned __int128 since = (unsigned __int128)(c->local - c->at_local) * c->scale[0];
    return c->at + (uint64_t)(since / c->scale[1]);
}

/* A global timestamp is that of the local sum: with the one before, it tells the scale; `low`: it
 * may be later. */
static void pin(struct tl_itm_held *held, uint64_t time, bool low, uint64_t offset)
{
    struct tl_itm_clock *const c = &held->clock;
    const uint64_t first = held->n > 0 ? held->v[0].offset : offset;
    if (c->pinned && tl_time_restarts(c->at, time)) {
        tl_soft_restart(held->soft, time, first);
    } else if (c->pinned && !c->broken && !low && time > c->at && c->local > c->at_local) {
        c->scale[0] = time - c->at;
        c->scale[1] = c->local - c->at_local;
        c->stale = false;
    } else if (!c->pinned && held->soft->stamp > 0) { /* sums are another time */
        tl_item_batch_restart(&held->soft->out, held->soft->stamp, time, first);
        held->soft->stamp = 0;
    }
    c->at = time;
    c->at_local = c->local;
    c->pinned = true;
    c->broken = c->lost = low;
}

/* No local timestamp has come for what stands in front of a global one: that is its time. The local
 * sum then is not known, so that it tells no scale. */
static void end_next(struct tl_itm_held *held)
{
    struct tl_itm_clock *const c = &held->clock;
    if (!c->has_next)
        return;
    c->has_next = false;
    c->broken = true;
    const bool low = c->next_low;
    pin(held, c->next, low, held->v[0].offset);
    tell_time(held, c->next, TL_ITEM_DELAYED | (low ? TL_ITEM_AT_LEAST : 0u), held->v[0].offset);
    c->broken = true;
    release(held, c->next_n);
}

void tl_itm_local_time(struct tl_itm_held *held, uint64_t delta, unsigned relation, uint64_t offset)
{
    static const uint8_t inexact[] = {0, TL_ITEM_DELAYED, TL_ITEM_OVERDUE, TL_ITEM_OVERDUE};
    struct tl_itm_clock *const c = &held->clock;
    c->local += delta * held->prescale;
    held->timing = TL_ITM_TIMED;
    if (c->has_next)
        pin(held, c->next, c->next_low, offset);
    c->has_next = false;
    const bool guessed = c->broken || (c->stale && c->local > c->at_local);
    const unsigned how = inexact[relation] | (c->lost   ? TL_ITEM_AT_LEAST
                                              : guessed ? TL_ITEM_AT_LEAST | TL_ITEM_OVERDUE
                                                        : 0u);
    if (c->pinned)
        tell_time(held, estimate(c), how, offset);
    else if (!c->has_global)
        tell_time(held, c->local, how, offset);
    deliver_all_untimed(held);
}

/* Do packets wait for a local timestamp? */
static bool any_waits(const struct tl_itm_held *held)
{
    bool any = false;
    for (uint8_t i = 0; i < held->n; i++)
        any |= held->v[i].kind != TL_HELD_TIME_LOW;
    return any && held->timing == TL_ITM_TIMED;
}

void tl_itm_global_time(struct tl_itm_held *held, uint64_t time, bool changed, bool low,
                        uint64_t offset)
{
    struct tl_itm_clock *const c = &held->clock;
    c->broken |= changed;
    c->stale |= changed;
    c->has_global = true;
    if (any_waits(held)) {
        if (c->next_n < held->n) /* otherwise it is the same one, of which more is known */
            end_next(held);
        c->next = time;
        c->next_low = low;
        c->has_next = true;
        c->next_n = held->n;
        return;
    }
    pin(held, time, low, offset);
    tell_time(held, time, (held->n > 0 ? TL_ITEM_DELAYED : 0) | (low ? TL_ITEM_AT_LEAST : 0u),
              offset);
    deliver_all_untimed(held);
}

/* ---- state ----------------------------------------------------------------------------------- */

static void clock_state(struct tl_itm_clock *c, struct tl_state *s)
{
    tl_state_u64(s, &c->local);
    tl_state_u64(s, &c->at_local);
    tl_state_u64(s, &c->at);
    tl_state_u64(s, &c->scale[0]);
    tl_state_u64(s, &c->scale[1]);
    tl_state_check(s, c->scale[1] > 0);
    tl_state_u64(s, &c->next);
    tl_state_bool(s, &c->has_next);
    tl_state_bool(s, &c->next_low);
    tl_state_u8(s, &c->next_n, TL_HELD_MAX);
    tl_state_bool(s, &c->pinned);
    tl_state_bool(s, &c->broken);
    tl_state_bool(s, &c->stale);
    tl_state_bool(s, &c->lost);
    tl_state_bool(s, &c->has_global);
}

void tl_itm_held_state(struct tl_itm_held *held, struct tl_state *s)
{
    tl_state_u8(s, &held->timing, TL_ITM_TIMED);
    clock_state(&held->clock, s);
    tl_state_u8(s, &held->n, TL_HELD_MAX);
    tl_state_check(s, !held->clock.has_next || held->clock.next_n <= held->n);
    for (uint8_t i = 0; i < held->n; i++) {
        struct tl_held *const h = &held->v[i];
        tl_state_u8(s, &h->kind, TL_HELD_TIME_LOW);
        tl_state_u8(s, &h->size, 4);
        tl_state_u64(s, &h->channel);
        tl_state_u64(s, &h->value);
        tl_state_u64(s, &h->offset);
        if (h->kind == TL_HELD_EVENT)
            tl_dwt_event_state(&h->event, s);
    }
}
