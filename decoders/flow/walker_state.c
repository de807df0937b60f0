/* SPDX-License-Identifier: MIT */
/* Where a walker stands: copied, compared, saved. */
#include "flow/walker.h"

void tl_walker_copy(struct tl_walker *w, const struct tl_walker *from)
{
    w->pc = from->pc;
    w->isa = from->isa;
    w->space = from->space;
    w->need_mode = from->need_mode;
    w->need_address = from->need_address;
    w->gap_told = from->gap_told;
    w->by_address = from->by_address;
    w->returns = from->returns;
    w->mode = from->mode;
    tl_walker_restore_context(w, &from->context);
}

void tl_walker_place_state(struct tl_walker *w, struct tl_state *s)
{
    tl_state_u64(s, &w->pc);
    tl_state_u8(s, &w->isa, TL_ISA_COUNT - 1);
    tl_state_u8(s, &w->space, UINT8_MAX);
}

void tl_walker_rest_state(struct tl_walker *w, struct tl_state *s)
{
    struct tl_walker_returns *const r = &w->returns;
    tl_state_bool(s, &w->need_mode);
    tl_state_bool(s, &w->need_address);
    tl_state_bool(s, &w->gap_told);
    tl_state_bool(s, &w->by_address);
    tl_state_bool(s, &r->pending);
    tl_state_bool(s, &r->wait_address);
    tl_state_u8(s, &r->n, r->size);
    tl_state_u8(s, &r->top, (uint8_t)(r->size - 1));
    for (size_t i = 0; i < r->size; i++) {
        tl_state_u64(s, &r->v[i].pc);
        tl_state_u8(s, &r->v[i].isa, TL_ISA_COUNT - 1);
    }
    tl_state_u64(s, &w->mode);
    tl_state_check(s, !w->cache || w->need_mode || w->need_address || w->isa != TL_ISA_NONE);
    for (unsigned i = 0; i < r->n; i++)
        tl_state_check(s, r->v[(r->top - i) & (r->size - 1u)].isa != TL_ISA_NONE);
}

static bool same_returns(const struct tl_walker_returns *a, const struct tl_walker_returns *b)
{
    if (a->n != b->n || a->pending != b->pending || a->wait_address != b->wait_address)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        const unsigned at_a = (a->top - i) & (a->size - 1u), at_b = (b->top - i) & (b->size - 1u);
        if (a->v[at_a].pc != b->v[at_b].pc || a->v[at_a].isa != b->v[at_b].isa)
            return false;
    }
    return true;
}

bool tl_walker_same(const struct tl_walker *a, const struct tl_walker *b)
{
    return a->pc == b->pc && a->isa == b->isa && a->space == b->space &&
           a->need_mode == b->need_mode && a->need_address == b->need_address &&
           a->gap_told == b->gap_told && a->by_address == b->by_address && a->mode == b->mode &&
           tl_walker_same_context(&a->context, &b->context) &&
           same_returns(&a->returns, &b->returns);
}
