/* SPDX-License-Identifier: MIT */
/*
 * Feeds what is walked to the counters that shards are built with. It begins at a chunk with a
 * timestamp before the first row, from where on all times follow.
 */
#include "lake/recount_calls.h"

#include "base/cancel.h"
#include "builder/call_counter.h"
#include "shard/savedstack.h"

#include <stdlib.h>

struct recounter {
    const struct tl_cut *cut;
    const struct tl_image *image;
    struct tl_call_counter counter;
    struct tl_call_times times;
    struct tl_callstack calls;
    struct tl_walk walk;
    struct tl_flow_now now;
    uint64_t first_time; /* of the stream's first timestamp */
};

/* ---- where to begin ------------------------------------------------------------------------- */

/* The last row before `row` that has a timestamp; `row` itself if there is none. */
static size_t row_before(const struct tl_cut *cut, size_t row)
{
    for (size_t i = row; i-- > 0;)
        if (cut->rows[i].anchors > 0)
            return i;
    return row;
}

/* The last chunk with a timestamp. */
static size_t last_chunk(const struct tl_shard_index *index)
{
    for (size_t i = index->n_chunks; i-- > 0;)
        if (index->chunks[i].anchors > 0)
            return i;
    return 0;
}

/* ---- times of earlier positions ------------------------------------------------------------- */

/* The begin of the last chunk with a timestamp at or before the position. 0: there is none, else 1.
 */
static int chunk_before(const struct tl_cut *cut, uint64_t position, uint64_t *first,
                        struct tl_fail *fail)
{
    size_t row = cut->n_rows;
    while (row > 0 &&
           (cut->rows[row - 1].anchors == 0 || cut->rows[row - 1].anchor_first.position > position))
        row--;
    if (row == 0)
        return 0;
    struct tl_view *view;
    const int r = tl_cut_view(cut, row - 1, &view, fail);
    if (r < 0)
        return r;
    for (size_t i = 0; i < view->index.n_chunks; i++) {
        const struct tl_chunk *const chunk = &view->index.chunks[i];
        if (chunk->anchors > 0 && chunk->anchor_first.position <= position)
            *first = chunk->first;
    }
    tl_view_put(view);
    return 1;
}

/* A timestamp: is it the first one behind the position? Then 1, and `*time` is the position's. */
static int pass_time(struct tl_time_knots *k, uint64_t at, uint64_t axis, uint64_t position,
                     uint64_t *time)
{
    if (k->n == 0 || at <= position) {
        *time = axis;
        return tl_time_knots_begin(k, at, axis);
    }
    if (tl_time_knots_end(k, at, axis) < 0)
        return TL_NOMEM;
    const struct tl_time_point *point = k->points;
    while (point[1].position <= position)
        point++;
    const struct tl_time_segment segment = tl_time_segment(point);
    *time = tl_time_in(&segment, position);
    return 1;
}

static int pass_chunk(struct tl_time_knots *k, const struct tl_walk *walk, uint64_t position,
                      uint64_t *time)
{
    struct tl_flow_now now = walk->now;
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r == TL_OK; i++) {
        const struct tl_item *const item = &walk->items[i];
        tl_flow_now_item(&now, item);
        if (tl_item_is_anchor(item))
            r = pass_time(k, walk->positions[i], now.axis, position, time);
        else if (k->n > 0)
            r = tl_time_knots_item(k, walk->positions[i], item);
    }
    return r;
}

/* The time of a position, which is changed only if there is a timestamp before it. */
static int time_of(const struct tl_cut *cut, uint64_t position, uint64_t *time,
                   struct tl_fail *fail)
{
    struct tl_time_knots knots = {0};
    struct tl_cut_walk walk;
    uint64_t first = 0;
    int r = chunk_before(cut, position, &first, fail);
    tl_time_knots_init(&knots, cut->lane->protocol);
    if (r <= 0)
        return r;
    tl_cut_walk_begin(&walk, cut, first, UINT64_MAX);
    walk.walk.detail = TL_WALK_ITEMS;
    while ((r = tl_cut_walk_next(&walk, fail)) == TL_OK &&
           (r = pass_chunk(&knots, &walk.walk, position, time)) == TL_OK)
        ;
    tl_cut_walk_end(&walk);
    tl_time_knots_fini(&knots);
    return r == TL_EOF || r > 0 ? TL_OK : r;
}

/* The frames at the first timestamp that is walked began earlier; those before the stream's first
 * timestamp have that one's time. */
static int date_frames(struct recounter *c, struct tl_fail *fail)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < c->times.depth && r >= 0; i++) {
        const struct tl_timed_frame *const frame = &c->times.frames[i];
        const bool same = i > 0 && frame->position == frame[-1].position;
        uint64_t time = same ? frame[-1].time : c->first_time;
        if (!same)
            r = time_of(c->cut, frame->position, &time, fail);
        tl_call_times_date(&c->times, i, time);
    }
    return r;
}

/* ---- walking -------------------------------------------------------------------------------- */

static int take_item(struct recounter *c, size_t i, struct tl_fail *fail)
{
    const struct tl_item *const item = &c->walk.items[i];
    int r = TL_OK;
    if (item->kind != TL_ITEM_BLOCK) {
        const bool known = c->times.known;
        tl_flow_now_item(&c->now, item);
        tl_call_counter_item(&c->counter, c->walk.positions[i], &c->now, item);
        if (!known && c->times.known)
            r = date_frames(c, fail);
    }
    if (r >= 0)
        r = tl_walk_follow(&c->walk, &c->calls, i);
    if (item->kind != TL_ITEM_BLOCK)
        tl_call_counter_followed(&c->counter, c->walk.positions[i], item);
    return r;
}

static int take_chunk(struct recounter *c, struct tl_view *view, size_t chunk, uint64_t from,
                      struct tl_fail *fail)
{
    const struct tl_walk_range range = {.from = view->index.chunks[chunk].first,
                                        .to = UINT64_MAX,
                                        .tail = true,
                                        .protocol = c->cut->lane->protocol};
    c->walk.detail = TL_WALK_FLOW;
    c->walk.image = c->image;
    int r = tl_walk_chunk(&c->walk, view, chunk, &range, fail);
    if (r < 0)
        return r;
    c->now = c->walk.now;
    if (!c->counter.calls) {
        r = tl_walk_stack(&c->walk, &c->calls);
        tl_call_counter_begin(&c->counter, &c->calls, &c->times, range.from, from);
    }
    for (size_t i = 0; i < c->walk.n && r >= 0; i++)
        r = take_item(c, i, fail);
    return r < 0 ? r : c->counter.counting && !c->times.dropped ? tl_cancel_check() : TL_NOMEM;
}

static int take_row(struct recounter *c, size_t row, bool late, struct tl_fail *fail)
{
    const uint64_t end = c->cut->rows[row].first + c->cut->rows[row].n;
    const bool last = row + 1 == c->cut->n_rows && !c->cut->open;
    struct tl_view *view;
    int r = tl_cut_view(c->cut, row, &view, fail);
    if (r < 0)
        return r;
    for (size_t i = late ? last_chunk(&view->index) : 0; i < view->index.n_chunks && r >= 0; i++)
        r = take_chunk(c, view, i, c->cut->rows[row].first, fail);
    tl_view_put(view);
    if (r >= 0 && last)
        tl_call_counter_finish(&c->counter, end);
    if (r >= 0)
        tl_call_counter_end(&c->counter, end);
    return r >= 0 && !c->counter.counting ? TL_NOMEM : r;
}

int tl_recount_calls(const struct tl_cut *cut, size_t first, size_t end, tl_recounted_calls *take,
                     void *context, struct tl_fail *fail)
{
    struct recounter *const c = calloc(1, sizeof *c);
    const size_t begin = row_before(cut, first);
    if (!c)
        return TL_NOMEM;
    c->cut = cut;
    c->image = tl_gen_image(cut->gen);
    tl_time_knots_init(&c->times.knots, cut->lane->protocol);
    tl_callstack_init(&c->calls, c->image, 0, NULL, NULL);
    for (size_t i = cut->n_rows; i-- > 0;)
        c->first_time = cut->rows[i].anchors > 0 ? cut->rows[i].anchor_first.time : c->first_time;
    int r = TL_OK;
    for (size_t row = begin; row < end && r >= 0; row++) {
        struct tl_shard_calls calls;
        r = take_row(c, row, row < first && row == begin, fail);
        if (r < 0)
            break;
        tl_call_counter_take(&c->counter, &calls);
        if (row >= first)
            r = take(context, row, &calls);
        tl_shard_calls_fini(&calls);
        tl_call_counter_fini(&c->counter);
    }
    tl_call_counter_fini(&c->counter);
    tl_call_times_fini(&c->times);
    tl_walk_fini(&c->walk);
    free(c);
    return r;
}

bool tl_cut_row_is_indexed(const struct tl_cut *cut, size_t row, bool timed)
{
    const struct tl_shard_row *const at = &cut->rows[row];
    return timed || !(at->anchors > 0 || (row > 0 && at->at.has_time));
}
