/* SPDX-License-Identifier: MIT */
/*
 * Saves and restores a walker's state for checkpoints. Only what affects the output is saved, since
 * states are compared to find that two walks have met.
 */
#include "flow/walk.h"

void tl_walker_place_state(struct tl_walker *w, struct tl_state *s)
{
    tl_state_u64(s, &w->pc);
    tl_state_u8(s, &w->isa, TL_ISA_COUNT - 1);
    tl_state_u8(s, &w->space, UINT8_MAX);
}

/* `by_address` only matters if there is no code at pc. */
static bool may_report_address(const struct tl_walker *w)
{
    if (!w->cache || w->need_mode || w->need_address)
        return false;
    const struct tl_block *const b =
        w->block ? w->block : tl_block_get(w->cache, w->space, (enum tl_isa)w->isa, w->pc);
    return !b || b->n == 0;
}

void tl_walker_rest_state(struct tl_walker *w, struct tl_state *s)
{
    struct tl_walker_returns *const r = &w->returns;
    if (!tl_state_loads(s)) {
        w->by_address &= may_report_address(w);
        /* Times between which memory does not change are equivalent: save the earliest. */
        w->time = w->image ? tl_image_last_change(w->image, w->time) : 0;
    }
    tl_state_u64(s, &w->time);
    tl_state_u64(s, &w->stamp);
    tl_state_bool(s, &w->need_mode);
    tl_state_bool(s, &w->need_address);
    tl_state_bool(s, &w->gap_reported);
    tl_state_bool(s, &w->by_address);
    tl_state_u8(s, &r->pending, TL_PENDING_BELOW);
    tl_state_bool(s, &r->renewed);
    tl_state_u8(s, &r->n, r->size);
    if (tl_state_loads(s))
        r->top = (uint8_t)((r->n - 1u) & (r->size - 1u));
    for (unsigned i = 0; i < r->n; i++) { /* newest first */
        const unsigned at = (r->top - i) & (r->size - 1u);
        if (!tl_state_loads(s))
            tl_walk_resolve_return(w, at);
        tl_state_u64(s, &r->v[at].pc);
        tl_state_u8(s, &r->v[at].isa, TL_ISA_COUNT - 1);
        r->v[at].caller = NULL;
        tl_state_check(s, r->v[at].isa != TL_ISA_NONE);
    }
    tl_state_u64(s, &w->mode);
    tl_state_check(s, !w->cache || w->need_mode || w->need_address || w->isa != TL_ISA_NONE);
}
