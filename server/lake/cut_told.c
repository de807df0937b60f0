/* SPDX-License-Identifier: MIT */
#include "lake/lakeint.h"
#include "stf/flow_map.h"
#include "stf/known.h"

/* From the header of its first shard; NONE if it cannot be read. */
static enum tl_isa told_isa(const struct tl_cut *cut)
{
    struct tl_walk walk = {0};
    struct tl_view *view = NULL;
    struct tl_fail fail;
    enum tl_isa isa = TL_ISA_NONE;
    if (cut->n_rows > 0 && tl_cut_view(cut, 0, &view, &fail) >= 0 &&
        tl_walk_head(&walk, view, &fail) >= 0 && walk.headed)
        isa = tl_stf_unmap_isa(walk.groups.header.isa, walk.groups.header.iem);
    tl_view_put(view);
    tl_walk_fini(&walk);
    return isa;
}

enum tl_isa tl_cut_isa(const struct tl_cut *cut)
{
    const struct tl_lane *const lane = cut->lane;
    if (tl_protocol_has(lane->protocol, TL_TRAIT_RECORDS))
        return told_isa(cut);
    const int id = tl_stream_id(lane->name);
    return tl_source_isa(lane->protocol,
                         id < 0 ? NULL : tl_setup_source(&cut->gen->setup, (unsigned)id));
}

int tl_cut_known(const struct tl_cut *cut, uint64_t position, struct tl_stf_known **out,
                 struct tl_fail *fail)
{
    *out = NULL;
    const size_t i = tl_cut_shard_at(cut, position);
    if (!tl_protocol_has(cut->lane->protocol, TL_TRAIT_RECORDS) || position == 0 ||
        i >= cut->n_rows)
        return TL_OK;
    const struct tl_shard_row *const row = &cut->rows[i];
    struct tl_walk walk = {0};
    struct tl_view *view = NULL;
    struct tl_stf_known *known = NULL;
    int r = tl_stf_known_new(&known);
    if (r >= 0)
        r = tl_cut_view(cut, i, &view, fail);
    if (r >= 0) /* each position is an instruction */
        r = tl_walk_known(&walk, view, position - row->first, known, fail);
    tl_view_put(view);
    tl_walk_fini(&walk);
    if (r < 0) {
        tl_stf_known_free(known);
        return r;
    }
    *out = known;
    return TL_OK;
}
