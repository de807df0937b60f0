/* SPDX-License-Identifier: MIT */
/*
 * Measures gaps by the timestamps around them. Only chunks with gaps are read: of others the first
 * and last timestamps in the index suffice.
 */
#include "query/losses.h"

#include "base/cancel.h"
#include "shard/itemlog.h"

struct losing {
    const struct tl_cut *cut;
    uint64_t from, to;
    struct tl_stats_lost *lost;
    uint64_t last;    /* last timestamp, raw; if `timed` */
    bool timed;       /* there was a timestamp */
    uint32_t reasons; /* bit set of the gaps since then */
};

/* Process a timestamp. */
static void at_time(struct losing *l, uint64_t raw)
{
    const struct tl_lane *const lane = l->cut->lane;
    const uint64_t before = l->timed ? tl_lane_time(lane, l->last) : 0;
    const uint64_t now = tl_lane_time(lane, raw);
    for (unsigned i = 0; l->timed && now > before && i < TL_GAP_KINDS; i++) {
        if (!(l->reasons >> i & 1))
            continue;
        struct tl_stats_lost *const lost = &l->lost[i];
        lost->n++;
        lost->total += now - before;
        if (lost->longest < now - before) {
            lost->longest = now - before;
            lost->longest_at = before;
        }
    }
    l->reasons = 0;
    l->last = raw;
    l->timed = true;
}

/* Process a section without gaps, with timestamps from `first` to `last`. */
static void no_gap(struct losing *l, uint32_t anchors, const struct tl_anchor *first,
                   const struct tl_anchor *last)
{
    if (anchors == 0)
        return;
    at_time(l, first->time);
    at_time(l, last->time);
}

static int look_into(struct losing *l, struct tl_view *view, size_t i, struct tl_fail *fail)
{
    const struct tl_chunk *const c = &view->index.chunks[i];
    struct tl_buf log = {0};
    struct tl_flow_now now = c->at;
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position;
    int r = tl_view_items(view, i, &log, fail);
    tl_itemlog_read(&reader, (struct tl_bytes){log.p, log.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    while (r >= 0 && (r = tl_itemlog_next(&reader, &item, &position)) >= 0 && r != TL_EOF) {
        tl_flow_now_item(&now, &item);
        if (tl_item_is_anchor(&item))
            at_time(l, now.axis);
        else if (item.kind == TL_ITEM_GAP && item.sub < TL_GAP_KINDS &&
                 c->first + position >= l->from && c->first + position <= l->to)
            l->reasons |= 1u << item.sub;
    }
    tl_buf_fini(&log);
    return r == TL_EOF ? TL_OK : r;
}

int tl_cut_lost(const struct tl_cut *cut, uint64_t from, uint64_t to, struct tl_stats_lost *lost,
                struct tl_fail *fail)
{
    struct losing l = {.cut = cut, .from = from, .to = to, .lost = lost};
    int r = TL_OK;
    for (size_t i = 0; i < cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *const row = &cut->rows[i];
        /* After the range: until a time is known. */
        if (row->first > to && l.reasons == 0)
            break;
        if (row->gaps == 0 || row->first > to || row->first + row->n < from) {
            no_gap(&l, row->anchors, &row->anchor_first, &row->anchor_last);
            continue;
        }
        struct tl_view *view;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        for (size_t c = 0; c < view->index.n_chunks && r >= 0; c++) {
            const struct tl_chunk *const chunk = &view->index.chunks[c];
            r = tl_cancel_check();
            if (r < 0)
                break;
            if (chunk->kinds & 1u << TL_ITEM_GAP)
                r = look_into(&l, view, c, fail);
            else
                no_gap(&l, chunk->anchors, &chunk->anchor_first, &chunk->anchor_last);
        }
        tl_view_put(view);
    }
    return r;
}
