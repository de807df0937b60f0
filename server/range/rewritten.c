/* SPDX-License-Identifier: MIT */
/*
 * Writes a range's items again with an STF writer that begins with the state at its first position.
 * It is the slower way, for places where a shard's own groups say more or less than the range must.
 */
#include "range/rewritten.h"

#include "stf/known.h"

void tl_range_flow_begin(struct tl_range_flow *range, const struct tl_cut *cut, uint64_t from,
                         uint64_t to, bool tail)
{
    *range = (struct tl_range_flow){.first = from, .at = {.item = SIZE_MAX}};
    tl_cut_walk_begin(&range->walk, cut, from, to);
    range->walk.range.tail = tail;
}

void tl_range_flow_end(struct tl_range_flow *range)
{
    tl_cut_walk_end(&range->walk);
    tl_stf_flow_free(range->flow);
    range->flow = NULL;
}

static int make_flow(struct tl_range_flow *range, struct tl_fail *fail)
{
    const struct tl_cut *const cut = range->walk.cut;
    struct tl_stf_known *known;
    int r = tl_cut_known(cut, range->first, &known, fail);
    if (r < 0)
        return r;
    const struct tl_flow_now *now = &range->walk.walk.now;
    const struct tl_stf_flow_options options = {.isa = tl_cut_isa(cut), .first = range->first};
    const struct tl_stf_flow_state state = {
        .mode = now->mode,
        .context = now->context,
        .vmid = now->vmid,
        .isa = now->isa,
        .has_mode = now->has_mode,
        .has_context = now->has_context,
        .has_vmid = now->has_vmid,
    };
    r = tl_stf_flow_new(&range->flow, &options, &state);
    if (r < 0)
        tl_stf_known_free(known);
    else
        tl_stf_flow_know(range->flow, known);
    return r;
}

static void find_first(struct tl_range_flow *range)
{
    const struct tl_walk *const walk = &range->walk.walk;
    for (size_t i = 0; i < walk->n && !range->found; i++) {
        range->found = walk->items[i].kind == TL_ITEM_BLOCK;
        range->position = walk->positions[i];
    }
}

int tl_range_flow_feed(struct tl_range_flow *range, uint64_t stop, struct tl_fail *fail)
{
    struct tl_stf_flow_at *const at = &range->at;
    const struct tl_walk *walk = &range->walk.walk;
    if (range->ended)
        return TL_EOF;
    if (at->item >= walk->n) {
        const int r = range->sieve ? tl_sieve_next(range->sieve, &range->walk, fail)
                                   : tl_cut_walk_next(&range->walk, fail);
        tl_walk_slim(&range->walk.walk);
        *at = (struct tl_stf_flow_at){0};
        int made = TL_OK;
        if (!range->flow && (r >= 0 || r == TL_EOF))
            made = make_flow(range, fail);
        if (made < 0)
            return made;
        if (r == TL_EOF) {
            range->ended = true;
            return tl_stf_flow_finish(range->flow);
        }
        if (r < 0)
            return r;
        find_first(range);
    }
    return tl_stf_flow_items(range->flow, walk->items, walk->n, stop, at);
}
