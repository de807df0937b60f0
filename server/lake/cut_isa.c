/* SPDX-License-Identifier: MIT */
#include "lake/lakeint.h"
#include "stf/flow_map.h"

/* By the header of its first shard; NONE where that cannot be read. */
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
