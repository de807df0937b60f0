/* SPDX-License-Identifier: MIT */
/*
 * The spans are summed up from the items themselves if the tile spans few positions (exact),
 * otherwise from the shards' stored buckets (TL_LEVEL_STORED), or, if it spans many shards, from
 * the catalog's summaries (TL_LEVEL_SUMMARY or coarser: summary.c). On the instruction axis all
 * functions of a span are counted (shard/function_counts.h), unless a shard is of an older version.
 *
 * On the time axis these give only the pages; the rest is counted in time (time_tile.h). Where that
 * is not possible, in many shards of older versions, a stored bucket that crosses an edge is
 * divided in proportion, its events are counted on the side on which it begins, and a span in which
 * no instruction begins shows the running one.
 */
#include "query/tile_spans.h"

#include "base/search.h"
#include "lake/time_summary.h"

#include <stdlib.h>

#define N             TL_TILE_BUCKETS
#define EXACT_MAX     (UINT64_C(1) << 20) /* maximum positions decoded for a tile */
#define STORED_SHARDS 12                  /* maximum shards whose own buckets are read */
#define SMALL_SHARDS  1024 /* the same, for tiles that are finer than the summaries */

static inline bool is_in(const struct tl_spans *s, size_t span, uint64_t position)
{
    return s->edges[span] <= position && position < s->edges[span + 1];
}

/* The last non-empty span that begins at or before `position`; N: none. Callers that iterate over
 * positions nearly always get the previous span again, or the next one. */
static size_t span_at(struct tl_spans *s, uint64_t position)
{
    if (is_in(s, s->last, position))
        return s->last;
    if (s->last + 1 < N && is_in(s, s->last + 1, position))
        return ++s->last;
    const size_t ended = tl_count_upto(s->edges + 1, sizeof *s->edges, 0, N, position);
    if (ended == N || s->edges[ended] > position)
        return N;
    return s->last = ended;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* Every function of a span has its own count, since among many alike none of a few counters would
 * be right. */
static void count_function(struct tl_spans *s, size_t span, uint64_t function, uint64_t n)
{
    const uint64_t key = (uint64_t)span << 32 | function;
    if (function == 0 || n == 0 || s->failed)
        return;
    if (s->last_counted < s->functions.n && s->functions.keys[s->last_counted] == key) {
        s->counts[s->last_counted] += n;
        return;
    }
    uint32_t number = tl_numbers_find(&s->functions, key);
    if (number == TL_NO_NUMBER) {
        number = s->functions.n;
        s->failed =
            tl_grow(&s->counts, &s->cap_counts, (size_t)number + 1, sizeof *s->counts) < 0 ||
            tl_numbers_add(&s->functions, key) < 0;
        if (s->failed)
            return;
        s->counts[number] = 0;
    }
    s->counts[number] += n;
    s->last_counted = number;
}

static bool is_more(const struct tl_top *a, const struct tl_top *b)
{
    return a->n != b->n ? a->n > b->n : a->id < b->id;
}

/* The two most frequent functions of each span become its bucket's. */
static void rank_functions(struct tl_spans *s)
{
    uint32_t distinct[N] = {0};
    for (size_t i = 0; i < N; i++)
        memset(s->buckets[i].functions, 0, sizeof s->buckets[i].functions);
    for (uint32_t k = 0; k < s->functions.n; k++) {
        const uint64_t key = s->functions.keys[k];
        const struct tl_top one = {(uint32_t)key, s->counts[k]};
        struct tl_top *const top = s->buckets[key >> 32].functions;
        distinct[key >> 32]++;
        if (is_more(&one, &top[0])) {
            top[1] = top[0];
            top[0] = one;
        } else if (is_more(&one, &top[1])) {
            top[1] = one;
        }
    }
    for (size_t i = 0; i < N; i++) {
        struct tl_bucket *const b = &s->buckets[i];
        const uint32_t n = distinct[i] < UINT8_MAX ? distinct[i] : UINT8_MAX;
        b->distinct = n > b->distinct ? (uint8_t)n : b->distinct;
    }
}

/* ---- from items ----------------------------------------------------------------------------- */

bool tl_spans_continue(const struct tl_spans *s)
{
    return s->axis == TL_UNIT_TIME && !tl_item_is_point(s->cut->lane->protocol, TL_ITEM_SOFTWARE);
}

static void take_block(struct tl_spans *s, const struct tl_item *item, uint64_t position,
                       unsigned privilege, unsigned depth)
{
    const struct tl_block *b = item->block;
    const uint64_t function = b->function == TL_NO_FUNCTION ? 0 : (uint64_t)b->function + 1;
    const uint64_t end = position + item->n;
    uint64_t at = position > s->edges[0] ? position : s->edges[0];
    size_t i = span_at(s, at);
    for (; i < N && at < end; i++) {
        const uint64_t stop = s->edges[i + 1] < end ? s->edges[i + 1] : end;
        if (stop <= at)
            continue;
        /* Approximate address inside the block: sufficient for its page. */
        const uint64_t pc = at == position ? b->pc : b->pc + (at - position) * b->size / b->n;
        tl_bucket_insns(&s->buckets[i], stop - at, 0, pc, privilege, depth);
        count_function(s, i, function, stop - at);
        at = stop;
    }
    if (item->flags & TL_ITEM_TAKEN && at == end && end > s->edges[0] && i > 0)
        s->buckets[i - 1].branches++;
}

static void take_point(struct tl_spans *s, const struct tl_item *item, uint64_t position, size_t i,
                       unsigned privilege, const struct tl_flow_now *now)
{
    const uint64_t pc = tl_item_address(item);
    int64_t symbol = -1;
    if (tl_item_is_code(item))
        symbol = tl_flow_now_symbol(now, s->image, pc);
    const uint64_t function = symbol < 0 ? 0 : (uint64_t)symbol + 1;
    if (i >= N)
        return;
    tl_bucket_insns(&s->buckets[i], 1, 0, pc, privilege, now->depth);
    count_function(s, i, function, 1);
}

static void take_item(void *context, const struct tl_walk *walk, size_t at)
{
    struct tl_spans *const s = context;
    const struct tl_item *const item = &walk->items[at];
    const uint64_t position = walk->positions[at];
    struct tl_flow_now *const now = &s->now;
    if (at == 0)
        *now = walk->now;
    now->depth = tl_callstack_depth(&s->calls);
    if (item->kind == TL_ITEM_BLOCK) {
        take_block(s, item, position, tl_flow_now_privilege(now), now->depth);
        return;
    }
    const unsigned privilege = tl_flow_now_privilege(now);
    tl_flow_now_item(now, item);
    const size_t i = span_at(s, position);
    if (i < N) {
        tl_bucket_item(&s->buckets[i], item);
    } else if (position == s->cut->end) {
        s->tail_mask |= tl_bucket_mask(item);
        s->tail_flags |= tl_bucket_flags(item);
    }
    if (tl_item_is_point(s->cut->lane->protocol, item->kind))
        take_point(s, item, position, i, privilege, now);
}

static int from_items(struct tl_spans *s, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, s->cut, s->edges[0], s->edges[N]);
    const int r = tl_cut_walk_follow(&walk, &s->calls, NULL, take_item, s, fail);
    tl_cut_walk_end(&walk);
    return r;
}

/* ---- from stored buckets --------------------------------------------------------------------- */

/* If rounding leaves nothing of a few instructions, they count for the most frequent entry. */
static void keep_max(struct tl_top *top, const struct tl_top *from, size_t n, uint64_t part)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        if (top[i].n > 0)
            return;
        most = from[i].n > from[most].n ? i : most;
    }
    if (from[most].n > 0)
        top[most].n = part;
}

static void keep_most_privilege(uint64_t to[static 4], const uint64_t from[static 4], uint64_t part)
{
    size_t most = 0;
    for (size_t i = 0; i < 4; i++) {
        if (to[i] > 0)
            return;
        most = from[i] > from[most] ? i : most;
    }
    to[most] = from[most] > 0 ? part : 0;
}

/* Add `part` of the `whole` positions of a bucket to a span; `events`: including its events. */
static void merge_part(struct tl_spans *s, size_t span, const struct tl_bucket *from, uint64_t part,
                       uint64_t whole, bool events)
{
    struct tl_bucket piece = *from;
    if (part < whole) {
        piece.insns = tl_spans_share(from->insns, part, whole);
        piece.branches = tl_spans_share(from->branches, part, whole);
        for (size_t i = 0; i < TL_BUCKET_FUNCTIONS; i++)
            piece.functions[i].n = tl_spans_share(from->functions[i].n, part, whole);
        for (size_t i = 0; i < TL_BUCKET_PAGES; i++)
            piece.pages[i].n = tl_spans_share(from->pages[i].n, part, whole);
        for (size_t i = 0; i < 4; i++)
            piece.privilege[i] = tl_spans_share(from->privilege[i], part, whole);
        keep_max(piece.functions, from->functions, TL_BUCKET_FUNCTIONS, part);
        keep_max(piece.pages, from->pages, TL_BUCKET_PAGES, part);
        keep_most_privilege(piece.privilege, from->privilege, part);
    }
    if (!events) {
        piece.events = 0;
        piece.event_mask = 0;
        piece.flags = 0;
    }
    for (size_t i = 0; i < TL_BUCKET_FUNCTIONS; i++)
        count_function(s, span, piece.functions[i].id, piece.functions[i].n);
    memset(piece.functions, 0, sizeof piece.functions);
    tl_bucket_merge(&s->buckets[span], &piece);
}

/* Is a break at one of these positions shown individually? */
static bool is_shown(const struct tl_spans *s, uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < s->time.n_breaks && s->time.breaks[i].position < high; i++)
        if (s->time.breaks[i].position >= low)
            return true;
    return false;
}

/* Distribute a bucket over [first, end), of which positions [low, high) exist. */
static void spread(struct tl_spans *s, const struct tl_bucket *from, uint64_t low, uint64_t high)
{
    if (low >= s->edges[N] || high < s->edges[0])
        return;
    size_t i = span_at(s, low > s->edges[0] ? low : s->edges[0]);
    const uint64_t whole = high - low;
    const bool begins = low >= s->edges[0];
    struct tl_bucket piece;
    bool first = true;
    if (from->flags & TL_FLAG_GAP && is_shown(s, low, high)) {
        piece = *from;
        piece.flags = 0;
        from = &piece;
    }
    for (; i < N && s->edges[i] < high; i++) {
        const uint64_t a = s->edges[i] > low ? s->edges[i] : low;
        const uint64_t b = s->edges[i + 1] < high ? s->edges[i + 1] : high;
        if (b <= a)
            continue;
        merge_part(s, i, from, b - a, whole, first && begins);
        first = false;
    }
    if (first && begins && i < N) /* only items: no positions */
        merge_part(s, i, from, 0, 0, true);
}

static void spread_all(struct tl_spans *s, const struct tl_buckets *from, uint64_t end)
{
    const unsigned shift = 2 * from->level;
    uint64_t i = s->edges[0] >> shift;
    i = i > from->first ? i - from->first : 0;
    for (; i < from->n; i++) {
        const uint64_t low = (from->first + i) << shift;
        if (low >= s->edges[N])
            break;
        const uint64_t high = low + (UINT64_C(1) << shift);
        spread(s, &from->p[i], low, high < end ? high : end);
    }
}

/* Count functions where a shard has all of them, by buckets each of which lies in one span. */
static void count_all(struct tl_spans *s, const struct tl_time_level *from, unsigned level)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct tl_time_bucket *const b = &from->p[i];
        const uint64_t at = b->number << 2 * level;
        if (at < s->edges[0] || at >= s->edges[N])
            continue;
        const size_t span = span_at(s, at);
        for (uint32_t k = 0; k < b->n_shares; k++)
            count_function(s, span, b->shares[k].function, b->shares[k].ticks);
    }
}

/* Count a shard's functions, and clear them in its buckets. They are counted before, if
 * `counted`. */
static void count_shard(struct tl_spans *s, const struct tl_shard_index *index,
                        struct tl_buckets *buckets, bool counted)
{
    const struct tl_time_pyramid *const all = &index->functions;
    const bool coarse = s->level > TL_LEVEL_STORED;
    if (!counted)
        count_all(s, &all->levels[coarse], all->finest + coarse);
    for (size_t i = 0; i < buckets->n; i++)
        if (coarse || tl_function_counts_has(all, buckets->first + i))
            memset(buckets->p[i].functions, 0, sizeof buckets->p[i].functions);
}

static int copy_buckets(struct tl_buckets *out, const struct tl_buckets *from)
{
    *out = (struct tl_buckets){.level = from->level};
    return tl_buckets_merge(out, from);
}

/* Add the buckets of shards [first, last), and count their functions, which `counted` says of those
 * before it. */
static int add_shards(struct tl_spans *s, size_t first, size_t last, size_t counted,
                      struct tl_buckets *all, struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = first; i < last && r >= 0; i++) {
        struct tl_view *view;
        struct tl_buckets own;
        r = tl_cut_view(s->cut, i, &view, fail);
        if (r < 0)
            break;
        r = copy_buckets(&own, &view->index.buckets);
        if (r >= 0 && s->axis == TL_UNIT_INSN && view->index.functions.n > 0)
            count_shard(s, &view->index, &own, i < counted);
        if (r >= 0)
            r = tl_buckets_merge(all, &own);
        tl_buckets_fini(&own);
        tl_view_put(view);
    }
    return r;
}

static int from_shards(struct tl_spans *s, size_t first, size_t last, struct tl_fail *fail)
{
    struct tl_buckets all = {.level = TL_LEVEL_STORED};
    const int r = add_shards(s, first, last, 0, &all, fail);
    if (r >= 0)
        spread_all(s, &all, s->cut->end);
    tl_buckets_fini(&all);
    return r;
}

/* A shard's summary may be coarser than the tile. */
static int on_summary(void *context, size_t row, const struct tl_time_pyramid *pyramid,
                      struct tl_fail *fail)
{
    struct tl_spans *const s = context;
    struct tl_view *view;
    if (pyramid->n == 0)
        return TL_EOF;
    if (pyramid->finest <= s->level) {
        count_all(s, &pyramid->levels[0], pyramid->finest);
        return TL_OK;
    }
    const int r = tl_cut_view(s->cut, row, &view, fail);
    if (r < 0)
        return r;
    count_all(s, &view->index.functions.levels[1], TL_COUNTS_LEVEL);
    tl_view_put(view);
    return TL_OK;
}

/* Count the functions of shards [first, last) by summaries; `*counted`: of those before it. */
static int count_summaries(struct tl_spans *s, size_t first, size_t last, size_t *counted,
                           struct tl_fail *fail)
{
    struct tl_time_level level = {0};
    unsigned shift;
    bool found;
    int r =
        tl_time_summary_get(s->cut, &s->cut->lane->function_summary, s->level,
                            s->edges[0] >> 2 * s->level, N, &level, &shift, counted, &found, fail);
    if (r >= 0 && found)
        count_all(s, &level, s->level - shift / 2);
    tl_time_level_fini(&level);
    if (r < 0 || found)
        return r;
    r = tl_time_summary_each(s->cut, true, first, last, on_summary, s, counted, fail);
    if (r != TL_EOF)
        return r;
    tl_numbers_reset(&s->functions); /* an older shard: by buckets */
    *counted = 0;
    return TL_OK;
}

/* Summaries of sealed shards, and the buckets of those before `last` that are still in memory. */
static int from_summary(struct tl_spans *s, size_t first, size_t last, struct tl_fail *fail)
{
    const struct tl_cut *cut = s->cut;
    struct tl_buckets all;
    uint64_t shards = 0;
    size_t counted = 0;
    int r = tl_cut_summary(cut, s->edges[0], s->edges[N], &all, &shards, fail);
    if (r >= 0 && s->axis == TL_UNIT_INSN)
        r = count_summaries(s, first, last, &counted, fail);
    for (size_t i = 0; r >= 0 && counted > 0 && i < all.n; i++)
        memset(all.p[i].functions, 0, sizeof all.p[i].functions);
    if (r >= 0)
        r = add_shards(s, (size_t)shards, last, counted, &all, fail);
    if (r >= 0)
        spread_all(s, &all, cut->end);
    tl_buckets_fini(&all);
    return r;
}

static int fill(struct tl_spans *s, struct tl_fail *fail)
{
    const struct tl_cut *cut = s->cut;
    if (s->timed) {
        const int r = tl_time_tile_fill(s->timed, cut, EXACT_MAX, take_item, s, fail);
        if (r < 0 || s->timed->walked)
            return r;
    }
    if (s->edges[N] == s->edges[0])
        return TL_OK;
    if (s->edges[N] - s->edges[0] <= EXACT_MAX)
        return from_items(s, fail);
    const size_t first = tl_cut_items_at(cut, s->edges[0]);
    size_t last = tl_cut_shard_at(cut, s->edges[N] - 1);
    if (last < cut->n_rows)
        last++;
    const size_t most = s->level < TL_LEVEL_SUMMARY ? SMALL_SHARDS : STORED_SHARDS;
    return last - first <= most ? from_shards(s, first, last, fail)
                                : from_summary(s, first, last, fail);
}

int tl_spans_fill(struct tl_spans *s, struct tl_fail *fail)
{
    const int r = fill(s, fail);
    rank_functions(s);
    return r >= 0 && s->failed ? TL_NOMEM : r;
}

/* ---- edges ---------------------------------------------------------------------------------- */

void tl_spans_insn_edges(struct tl_spans *s, uint64_t first, uint64_t width)
{
    for (size_t i = 0; i <= N; i++) {
        const unsigned __int128 edge = (unsigned __int128)width * i + first;
        s->edges[i] = edge < s->cut->end ? (uint64_t)edge : s->cut->end;
    }
}

int tl_spans_time_edges(struct tl_spans *s, uint64_t first, uint64_t width, struct tl_fail *fail)
{
    const unsigned __int128 end = (unsigned __int128)width * N + first;
    const uint64_t last = end < UINT64_MAX ? (uint64_t)end : UINT64_MAX;
    const int r = tl_scale_open(&s->time, s->cut, TL_SCALE_TIME, true, first, last, fail);
    if (r < 0)
        return r;
    for (size_t i = 0; i <= N; i++) {
        const unsigned __int128 edge = (unsigned __int128)width * i + first;
        s->times[i] = edge < last ? (uint64_t)edge : last;
        s->edges[i] = s->time.n > 0 ? tl_scale_position(&s->time, s->times[i]) : s->cut->end;
    }
    return TL_OK;
}

void tl_spans_fini(struct tl_spans *s)
{
    tl_numbers_fini(&s->functions);
    free(s->counts);
    tl_scale_close(&s->time);
    if (s->timed)
        tl_time_tile_fini(s->timed);
    free(s->timed);
}
