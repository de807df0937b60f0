/* SPDX-License-Identifier: MIT */
/*
 * The packets between an access and its value. They are kept as they were read, so that what
 * follows them knows nothing of the delay.
 */
#include "etm3/late.h"

#include <string.h>

static bool is_data(const struct tl_etm3_packet *p, enum tl_etm3_data data)
{
    return p->type == TL_ETM3_DATA && p->data == data && p->tag > 0;
}

static void take_value(struct tl_etm3_late *l, const struct tl_etm3_packet *value)
{
    struct tl_etm3_packet *const to = &l->v[l->at[value->tag]];
    to->data = TL_ETM3_NORMAL;
    to->tag = 0;
    to->has_value = true;
    to->value_size = value->value_size;
    to->value = value->value;
    l->awaits &= (uint8_t) ~(1u << value->tag);
}

/* The access that has waited longest: the index of its packet, or `n` if there is none. */
static unsigned oldest(const struct tl_etm3_late *l, unsigned *tag)
{
    unsigned at = l->n;
    for (unsigned t = 1; t < 4; t++)
        if (l->awaits >> t & 1 && l->at[t] < at) {
            at = l->at[t];
            *tag = t;
        }
    return at;
}

unsigned tl_etm3_late_ready(const struct tl_etm3_late *l)
{
    unsigned tag;
    return oldest(l, &tag);
}

void tl_etm3_late_drop(struct tl_etm3_late *l, unsigned n)
{
    l->n -= (uint8_t)n;
    memmove(l->v, l->v + n, l->n * sizeof *l->v);
    for (unsigned tag = 1; tag < 4; tag++)
        l->at[tag] -= (uint8_t)(l->awaits >> tag & 1 ? n : l->at[tag]);
}

bool tl_etm3_late_add(struct tl_etm3_late *l, const struct tl_etm3_packet *p)
{
    unsigned tag = 0;
    if (is_data(p, TL_ETM3_LATE) && l->awaits >> p->tag & 1) {
        take_value(l, p);
        return true;
    }
    if (p->type == TL_ETM3_ISYNC && p->reason != TL_ETM3_PERIODIC)
        l->awaits = 0;
    const bool waits = is_data(p, TL_ETM3_PENDING);
    if (!waits && l->awaits == 0)
        return false;
    if (waits) {
        l->awaits |= (uint8_t)(1u << p->tag);
        l->at[p->tag] = l->n;
    }
    l->v[l->n++] = *p;
    /* There is no room for another one: the oldest access does without its value. */
    if (l->n == TL_ETM3_LATE_MAX && oldest(l, &tag) < l->n)
        l->awaits &= (uint8_t) ~(1u << tag);
    return true;
}

/* ---- state ----------------------------------------------------------------------------------- */

static void packet_state(struct tl_etm3_packet *p, struct tl_state *s)
{
    enum { ATOMS = 16, WORD = 4, TAGS = 3 };
    tl_state_u8(s, &p->type, TL_ETM3_DATA);
    tl_state_u8(s, &p->size, TL_ETM3_PACKET_MAX);
    tl_state_u8(s, &p->n, ATOMS);
    tl_state_u16(s, &p->atoms);
    tl_state_u8(s, &p->lead, UINT8_MAX);
    tl_state_bool(s, &p->each);
    tl_state_u32(s, &p->address);
    tl_state_u8(s, &p->isa, TL_ETM3_JAZELLE);
    tl_state_bool(s, &p->ns);
    tl_state_bool(s, &p->hyp);
    tl_state_u8(s, &p->data, TL_ETM3_NOT_TRACED);
    tl_state_u8(s, &p->tag, TAGS);
    tl_state_bool(s, &p->first);
    tl_state_bool(s, &p->has_address);
    tl_state_bool(s, &p->has_value);
    tl_state_u8(s, &p->value_size, WORD);
    tl_state_u32(s, &p->value);
    tl_state_bool(s, &p->has_exception);
    tl_state_bool(s, &p->cancelled);
    tl_state_u16(s, &p->exception);
    tl_state_u8(s, &p->reason, TL_ETM3_DEBUG_EXIT);
    tl_state_bool(s, &p->has_load);
    tl_state_u32(s, &p->load);
    tl_state_bool(s, &p->has_context);
    tl_state_u32(s, &p->context);
    tl_state_bool(s, &p->has_cycles);
    tl_state_u32(s, &p->cycles);
    tl_state_bool(s, &p->has_time);
    tl_state_u64(s, &p->time);
    tl_state_u64(s, &p->offset);
}

void tl_etm3_late_state(struct tl_etm3_late *l, struct tl_state *s)
{
    enum { TAGGED = 0xe /* bits of tags 1 to 3 */ };
    tl_state_u8(s, &l->n, TL_ETM3_LATE_MAX - 1);
    tl_state_u8(s, &l->awaits, TAGGED);
    tl_state_check(s, (l->awaits & ~TAGGED) == 0 && (l->n > 0) == (l->awaits > 0));
    for (unsigned tag = 1; tag < 4; tag++) {
        uint8_t at = l->awaits >> tag & 1 ? l->at[tag] : 0;
        tl_state_u8(s, &at, TL_ETM3_LATE_MAX - 1);
        tl_state_check(s, !(l->awaits >> tag & 1) || at < l->n);
        l->at[tag] = at;
    }
    for (unsigned i = 0; i < l->n; i++) {
        if (tl_state_loads(s))
            l->v[i] = (struct tl_etm3_packet){0};
        packet_state(&l->v[i], s);
    }
}
