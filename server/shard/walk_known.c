/* SPDX-License-Identifier: MIT */
/*
 * The machine state recorded in imported STF before an instruction. Files of simulators hold
 * registers and memory that trace units do not tell, which the page shows.
 */
#include "shard/walk.h"
#include "stf/group.h"
#include "stf/known.h"

/*
 * The groups of the first `*left` instructions at the begin of `rest`; `*left` is reduced by their
 * number.
 */
static struct tl_bytes take_groups(const struct tl_stf_layout *layout, struct tl_bytes rest,
                                   uint64_t *left)
{
    struct tl_stf_group group = {rest, *layout};
    struct tl_bytes record;
    while (*left > 0 && tl_stf_group_skip(&group, &record) == TL_OK)
        *left -= tl_stf_is_marker(record.p[0]);
    return (struct tl_bytes){rest.p, (size_t)(group.rest.p - rest.p)};
}

int tl_walk_known(struct tl_walk *w, struct tl_view *view, uint64_t markers,
                  struct tl_stf_known *known, struct tl_fail *fail)
{
    const struct tl_shard_stats *const stats = &view->index.stats;
    const bool none = stats->reported && stats->counted &&
                      !stats->records[tl_stats_record(TL_STF_INST_REG)] &&
                      !stats->records[tl_stats_record(TL_STF_PAGE_TABLE_WALK)];
    struct tl_buf frame = {0};
    int r = tl_walk_head(w, view, fail);
    if (r >= 0 && !w->whole)
        return TL_OK;
    uint64_t left = none ? 0 : markers;
    for (size_t i = 0; r >= 0 && i < view->index.n_frames && (i == 0 || left > 0); i++) {
        tl_buf_reset(&frame);
        r = tl_view_frame(view, i, &frame, fail);
        struct tl_bytes rest = {frame.p, frame.n}, reported;
        if (r >= 0 && i == 0) {
            size_t size = 0;
            rest = (struct tl_bytes){frame.p + w->head, frame.n - w->head};
            const bool again = view->index.version >= 3 && view->index.row.number > 0 &&
                               tl_stf_groups_known(&w->groups, rest, &size, &reported) != SIZE_MAX;
            if (again)
                r = tl_stf_known_pass(known, &w->groups.layout, reported);
        }
        if (r >= 0)
            r = tl_stf_known_pass(known, &w->groups.layout,
                                  take_groups(&w->groups.layout, rest, &left));
    }
    tl_buf_fini(&frame);
    return r;
}
