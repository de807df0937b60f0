/* SPDX-License-Identifier: MIT */
/*
 * Stored buckets lie within a tile's buckets, and are added up, never divided: what is needed finer
 * than a shard has it is walked. A shard has so many buckets that this is no more than some shards.
 */
#include "query/time_tile.h"

#include "builder/time_buckets.h"
#include "lake/time_summary.h"
#include "shard/timeknots.h"

#include <stdlib.h>

#define N          TL_TILE_BUCKETS
#define WALK_MAX   (UINT64_C(16) << 20) /* positions walked for a tile, at most */
#define FEW_TICKS  64 /* in a bucket: longer ticks are divided, in all tiles of such a level */
#define OWN_SHARDS 64 /* shards whose own buckets are read, at most; of more, summaries */

struct filling {
    struct tl_time_tile *tile;
    const struct tl_cut *cut;
    struct tl_axis axis;
    uint64_t number;   /* of the tile's first bucket */
    uint64_t from, to; /* ticks of the tile */
    uint64_t shown_to; /* where the tile ends, as shown */
    size_t row, end;   /* rows with time in it: [row, end) */
    struct range {     /* ticks to be walked, ascending */
        uint64_t from, to;
    } * ranges;
    size_t n_ranges, cap_ranges;
    uint64_t positions; /* in them */
    struct tl_time_buckets *counter;
    tl_cut_each *each;
    void *context;
};

/* How many of a row's positions, which have the time from `from` to `to`, are in the tile, if they
 * are spread evenly. */
static uint64_t positions_in(const struct filling *f, size_t row, uint64_t from, uint64_t to)
{
    const uint64_t a = from > f->from ? from : f->from, b = to < f->to ? to : f->to;
    return a < b ? tl_time_share(b - a, f->cut->rows[row].n, to - from) : 0;
}

/* ---- from buckets --------------------------------------------------------------------------- */

/* Add the buckets of a level whose numbers have `shift` bits more. */
static int add_level(struct filling *f, const struct tl_time_level *level, unsigned shift)
{
    int r = TL_OK;
    for (size_t i = 0; i < level->n && r >= 0; i++) {
        const uint64_t number = level->p[i].number >> shift;
        if (number >= f->number && number - f->number < N)
            r = tl_time_bucket_merge(&f->tile->buckets[number - f->number], &level->p[i]);
    }
    return r;
}

/* The time of a row, `from` to `to`, has to be walked; the last one's also behind it. */
static int add_range(struct filling *f, size_t row, uint64_t from, uint64_t to)
{
    const bool ends = to < f->to && row + 1 < f->end;
    const uint64_t a = from > f->from ? from : f->from, b = ends ? to : f->to;
    struct range *const last = f->n_ranges > 0 ? &f->ranges[f->n_ranges - 1] : NULL;
    if (a > b)
        return TL_OK;
    f->positions += positions_in(f, row, from, to);
    if (last && last->to == a) {
        last->to = b;
        return TL_OK;
    }
    const int r = tl_grow(&f->ranges, &f->cap_ranges, f->n_ranges + 1, sizeof *f->ranges);
    if (r >= 0)
        f->ranges[f->n_ranges++] = (struct range){a, b};
    return r;
}

/* A row's buckets, or that it has to be walked. */
static int add_row(struct filling *f, size_t row, const struct tl_time_pyramid *pyramid)
{
    unsigned shift;
    const struct tl_time_level *const level =
        pyramid ? tl_time_pyramid_at(pyramid, f->tile->level, &shift) : NULL;
    uint64_t from, to;
    if (level)
        return add_level(f, level, shift);
    return tl_cut_row_time(f->cut, row, &from, &to) ? add_range(f, row, from, to) : TL_OK;
}

static int add_view(struct filling *f, size_t row, struct tl_fail *fail)
{
    struct tl_view *view;
    int r = tl_cut_view(f->cut, row, &view, fail);
    if (r < 0)
        return r;
    r = add_row(f, row, &view->index.times);
    tl_view_put(view);
    return r;
}

/* A summary that is too coarse: the shard itself may have finer buckets. */
static int on_summary(void *context, size_t row, const struct tl_time_pyramid *pyramid,
                      struct tl_fail *fail)
{
    struct filling *const f = context;
    unsigned shift;
    if (f->positions > WALK_MAX)
        return TL_EOF;
    return tl_time_pyramid_at(pyramid, f->tile->level, &shift) ? add_row(f, row, pyramid)
                                                               : add_view(f, row, fail);
}

/* `*row` receives the first one that the summaries do not have. */
static int add_summaries(struct filling *f, size_t *row, struct tl_fail *fail)
{
    struct tl_time_level level = {0};
    unsigned shift;
    bool found;
    int r = tl_time_summary_get(f->cut, &f->cut->lane->time_summary, f->tile->level, f->number, N,
                                &level, &shift, row, &found, fail);
    if (r >= 0 && found)
        r = add_level(f, &level, shift);
    tl_time_level_fini(&level);
    if (r < 0 || found)
        return r;
    r = tl_time_summary_each(f->cut, false, f->row, f->end, on_summary, f, row, fail);
    return r == TL_EOF ? TL_OK : r;
}

static int add_rows(struct filling *f, struct tl_fail *fail)
{
    size_t row = f->row;
    int r = TL_OK;
    if (f->end - f->row > OWN_SHARDS)
        r = add_summaries(f, &row, fail);
    for (; row < f->end && r >= 0 && f->positions <= WALK_MAX; row++)
        r = add_view(f, row, fail);
    return r;
}

/* ---- by walking ----------------------------------------------------------------------------- */

static int count_span(void *context, const struct tl_timed_span *span)
{
    struct filling *const f = context;
    tl_time_buckets_span(f->counter, span);
    return f->counter->failed ? TL_NOMEM : TL_OK;
}

/* The same with times as shown, of which several buckets may lie within one tick. */
static int count_shown(void *context, const struct tl_timed_span *span)
{
    struct filling *const f = context;
    struct tl_timed_span shown = *span;
    shown.time = tl_axis_shown(&f->axis, span->time);
    shown.end_time = tl_axis_shown(&f->axis, span->end_time);
    return count_span(f, &shown);
}

static void count_item(void *context, const struct tl_walk *walk, size_t i)
{
    struct filling *const f = context;
    if (walk->items[i].kind != TL_ITEM_BLOCK)
        tl_time_buckets_item(f->counter, walk->positions[i], &walk->items[i]);
    if (f->each)
        f->each(f->context, walk, i);
}

/* Does the range contain the stream's last tick? */
static bool has_end(const struct filling *f, const struct range *range)
{
    uint64_t from, to;
    for (size_t i = f->cut->n_rows; i-- > 0;)
        if (tl_cut_row_time(f->cut, i, &from, &to))
            return range->to > to;
    return false;
}

static int walk_range(struct filling *f, const struct range *range, struct tl_fail *fail)
{
    const bool shown = f->tile->shown;
    static const struct tl_axis plain;
    struct tl_time_pyramid counted = {0};
    f->counter = calloc(1, sizeof *f->counter);
    if (!f->counter)
        return TL_NOMEM;
    if (shown)
        tl_time_buckets_init_range(f->counter, &plain, f->tile->level, f->tile->first, f->shown_to);
    else
        tl_time_buckets_init_range(f->counter, &f->axis, f->tile->level, range->from, range->to);
    const struct tl_timed_sinks sinks = {
        .span = shown ? count_shown : count_span, .each = count_item, .context = f};
    int r = tl_timed_walk(f->cut, range->from, range->to, &sinks, fail);
    if (r >= 0 && has_end(f, range)) /* what is behind the last timestamp is shown there */
        tl_time_buckets_finish(f->counter, f->cut->end);
    if (r >= 0)
        tl_time_buckets_take(f->counter, &counted);
    if (r >= 0 && counted.n > 0)
        r = add_level(f, &counted.levels[0], 0);
    tl_time_pyramid_fini(&counted);
    tl_time_buckets_fini(f->counter);
    free(f->counter);
    return r;
}

/* ---- a tile --------------------------------------------------------------------------------- */

/* Find the rows with time in the tile. */
static void find_rows(struct filling *f)
{
    uint64_t from, to;
    const struct tl_cut *const cut = f->cut;
    size_t low = 0, high = cut->n_rows;
    while (low < high) { /* the first row that is entered behind the begin */
        const size_t middle = low + (high - low) / 2;
        const struct tl_flow_now *const at = &cut->rows[middle].at;
        if (at->has_time && at->axis >= f->from)
            high = middle;
        else
            low = middle + 1;
    }
    f->row = low > 0 ? low - 1 : 0;
    f->end = f->row;
    for (size_t i = f->row; i < cut->n_rows; i++) {
        if (!tl_cut_row_time(cut, i, &from, &to))
            continue;
        if (from >= f->to && !(from == to && from < f->to))
            break;
        f->end = i + 1;
    }
}

/* Positions in the tile's range, roughly. */
static uint64_t positions_of(struct filling *f)
{
    uint64_t from, to, n = 0;
    for (size_t i = f->row; i < f->end; i++)
        n += tl_cut_row_time(f->cut, i, &from, &to) ? positions_in(f, i, from, to) : 0;
    return n;
}

static int fill(struct filling *f, uint64_t positions, struct tl_fail *fail)
{
    int r = TL_OK;
    find_rows(f);
    f->tile->known = true;
    if (f->row == f->end)
        return TL_OK;
    if (f->end - f->row <= OWN_SHARDS && positions_of(f) <= positions) {
        /* A tick may begin before the tile, and end in it. */
        const bool shown = f->tile->shown;
        const struct range all = {f->from - (shown && f->from > 0),
                                  f->to + (shown && f->to < UINT64_MAX)};
        f->tile->walked = true;
        return walk_range(f, &all, fail);
    }
    f->tile->shown = false;
    f->each = NULL;
    r = add_rows(f, fail);
    f->tile->known = f->positions <= WALK_MAX;
    for (size_t i = 0; i < f->n_ranges && r >= 0 && f->tile->known; i++)
        r = walk_range(f, &f->ranges[i], fail);
    return r;
}

int tl_time_tile_fill(struct tl_time_tile *tile, const struct tl_cut *cut, uint64_t positions,
                      tl_cut_each *each, void *context, struct tl_fail *fail)
{
    const unsigned __int128 end =
        (unsigned __int128)tile->first + ((unsigned __int128)N << 2 * tile->level);
    struct filling f = {.tile = tile,
                        .cut = cut,
                        .axis = tl_lane_axis(cut->lane),
                        .number = tile->first >> 2 * tile->level,
                        .each = each,
                        .context = context};
    f.from = tl_axis_ticks(&f.axis, tile->first);
    f.shown_to = end > UINT64_MAX ? UINT64_MAX : (uint64_t)end;
    f.to = end > UINT64_MAX ? UINT64_MAX : tl_axis_ticks(&f.axis, f.shown_to);
    /* Ticks that are shorter than the unit shown are told apart better as they are. */
    const uint64_t few =
        tl_axis_shown(&f.axis, f.from + FEW_TICKS) - tl_axis_shown(&f.axis, f.from);
    tile->shown = few > FEW_TICKS && few > UINT64_C(1) << 2 * tile->level;
    const int r = fill(&f, positions, fail);
    free(f.ranges);
    return r;
}

void tl_time_tile_fini(struct tl_time_tile *tile)
{
    for (size_t i = 0; i < N; i++)
        tl_time_bucket_fini(&tile->buckets[i]);
}

uint64_t tl_time_tile_shown(const struct tl_time_tile *tile, const struct tl_lane *lane, size_t i,
                            uint64_t duration)
{
    const struct tl_axis axis = tl_lane_axis(lane);
    if (tile->shown)
        return duration;
    const uint64_t begin = tl_axis_ticks(&axis, tile->first + ((uint64_t)i << 2 * tile->level));
    return tl_axis_shown(&axis, begin + duration) - tl_axis_shown(&axis, begin);
}
