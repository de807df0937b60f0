/* SPDX-License-Identifier: MIT */
/*
 * Tiles. A tile's 512 buckets are spans of positions: equal ones on the instruction axis; on the
 * time axis those between two edges in time. They are summed up from the items themselves if the
 * tile spans few positions (exact), otherwise from the shards' stored buckets (TL_LEVEL_STORED),
 * or, if it spans many shards, from the catalog's summaries (TL_LEVEL_SUMMARY or coarser:
 * summary.c). On the time axis a stored bucket may cross an edge; then it is divided in proportion,
 * and its events are counted on the side on which it begins. A span in which no instruction begins
 * shows the running one, and a span within a gap gets its share of the gap.
 */
#include "query/query.h"

#include "base/hash.h"
#include "base/search.h"

#include <stdlib.h>

#define N             TL_TILE_BUCKETS
#define EXACT_MAX     (UINT64_C(1) << 20) /* maximum positions decoded for a tile */
#define STORED_SHARDS 12                  /* maximum shards whose own buckets are read */
#define BREAK_WIDE    8 /* width in buckets of a break that is shown individually */

struct spans {
    const struct tl_cut *cut;
    const struct tl_image *image;
    enum tl_range_unit axis;
    uint64_t edges[N + 1]; /* positions */
    struct tl_bucket buckets[N];
    uint64_t times[N + 1]; /* time axis */
    struct tl_scale time;  /* for the time axis, and for the instruction axis if breaks are shown */
    size_t last;           /* span returned last */
    size_t quiet;          /* time axis: the next span that may be empty */
    uint16_t tail_mask;    /* of items after the last position */
    uint8_t tail_flags;
    /* From items: */
    struct tl_callstack calls;
    struct tl_flow_now now;
};

static inline bool is_in(const struct spans *s, size_t span, uint64_t position)
{
    return s->edges[span] <= position && position < s->edges[span + 1];
}

/* The last non-empty span that begins at or before `position`; N: none. Callers that iterate over
 * positions nearly always get the previous span again, or the next one. */
static size_t span_at(struct spans *s, uint64_t position)
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

/* ---- from items ----------------------------------------------------------------------------- */

/* Messages of software trace are instantaneous: nothing continues between two of them. */
static bool continues(const struct spans *s)
{
    return s->axis == TL_UNIT_TIME && !tl_item_is_point(s->cut->lane->protocol, TL_ITEM_SOFTWARE);
}

/* Fill empty spans whose preceding position is one of [position, end), at about `pc`. */
static void take_quiet(struct spans *s, uint64_t position, uint64_t end, uint64_t function,
                       uint64_t pc, unsigned privilege, unsigned depth)
{
    if (!continues(s))
        return;
    for (; s->quiet < N && s->edges[s->quiet] <= end; s->quiet++)
        if (s->edges[s->quiet + 1] == s->edges[s->quiet] && s->edges[s->quiet] > position)
            tl_bucket_insns(&s->buckets[s->quiet], 1, function, pc, privilege, depth);
}

static void take_block(struct spans *s, const struct tl_item *item, uint64_t position,
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
        tl_bucket_insns(&s->buckets[i], stop - at, function, pc, privilege, depth);
        at = stop;
    }
    if (item->flags & TL_ITEM_TAKEN && at == end && end > s->edges[0] && i > 0)
        s->buckets[i - 1].branches++;
    take_quiet(s, position, end, function, b->pc, privilege, depth);
}

static void take_point(struct spans *s, const struct tl_item *item, uint64_t position, size_t i,
                       unsigned privilege, const struct tl_flow_now *now)
{
    const uint64_t pc = tl_item_address(item);
    int64_t symbol = -1;
    if (tl_item_is_code(item))
        symbol = tl_flow_now_symbol(now, s->image, pc);
    const uint64_t function = symbol < 0 ? 0 : (uint64_t)symbol + 1;
    if (i < N)
        tl_bucket_insns(&s->buckets[i], 1, function, pc, privilege, now->depth);
    take_quiet(s, position, position + 1, function, pc, privilege, now->depth);
}

static void take_item(void *context, const struct tl_walk *walk, size_t at)
{
    struct spans *const s = context;
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

static int from_items(struct spans *s, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    /* Begin with the instruction being executed at the begin of the first span. */
    const uint64_t first = s->edges[0] - (s->edges[0] > 0 && continues(s));
    tl_cut_walk_begin(&walk, s->cut, first, s->edges[N]);
    const int r = tl_cut_walk_follow(&walk, &s->calls, NULL, take_item, s, fail);
    tl_cut_walk_end(&walk);
    return r;
}

/* ---- from stored buckets --------------------------------------------------------------------- */

static uint64_t share(uint64_t n, uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((unsigned __int128)n * part / whole);
}

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

/* Merge `part` of the `whole` positions of a bucket; `events`: including its events. */
static void merge_part(struct tl_bucket *into, const struct tl_bucket *from, uint64_t part,
                       uint64_t whole, bool events)
{
    struct tl_bucket piece = *from;
    if (part < whole) {
        piece.insns = share(from->insns, part, whole);
        piece.branches = share(from->branches, part, whole);
        for (size_t i = 0; i < TL_BUCKET_FUNCTIONS; i++)
            piece.functions[i].n = share(from->functions[i].n, part, whole);
        for (size_t i = 0; i < TL_BUCKET_PAGES; i++)
            piece.pages[i].n = share(from->pages[i].n, part, whole);
        for (size_t i = 0; i < 4; i++)
            piece.privilege[i] = share(from->privilege[i], part, whole);
        keep_max(piece.functions, from->functions, TL_BUCKET_FUNCTIONS, part);
        keep_max(piece.pages, from->pages, TL_BUCKET_PAGES, part);
        keep_most_privilege(piece.privilege, from->privilege, part);
    }
    if (!events) {
        piece.events = 0;
        piece.event_mask = 0;
        piece.flags = 0;
    }
    tl_bucket_merge(into, &piece);
}

/* Is a break at one of these positions shown individually? */
static bool is_shown(const struct spans *s, uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < s->time.n_breaks && s->time.breaks[i].position < high; i++)
        if (s->time.breaks[i].position >= low)
            return true;
    return false;
}

/* Distribute a bucket over [first, end), of which positions [low, high) exist. */
static void spread(struct spans *s, const struct tl_bucket *from, uint64_t low, uint64_t high)
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
        merge_part(&s->buckets[i], from, b - a, whole, first && begins);
        first = false;
    }
    if (first && begins && i < N) /* only items: no positions */
        merge_part(&s->buckets[i], from, 0, 0, true);
}

static void spread_all(struct spans *s, const struct tl_buckets *from, uint64_t end)
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

static int from_shards(struct spans *s, size_t first, size_t last, struct tl_fail *fail)
{
    struct tl_buckets all = {.level = TL_LEVEL_STORED};
    int r = TL_OK;
    for (size_t i = first; i < last && r >= 0; i++) {
        struct tl_view *view;
        r = tl_cut_view(s->cut, i, &view, fail);
        if (r < 0)
            break;
        r = tl_buckets_merge(&all, &view->index.buckets);
        tl_view_put(view);
    }
    if (r >= 0)
        spread_all(s, &all, s->cut->end);
    tl_buckets_fini(&all);
    return r;
}

/* Summaries of sealed shards, and the buckets of those before `last` that are still in memory. */
static int from_summary(struct spans *s, size_t last, struct tl_fail *fail)
{
    const struct tl_cut *cut = s->cut;
    struct tl_buckets all;
    uint64_t shards = 0;
    int r = tl_cut_summary(cut, s->edges[0], s->edges[N], &all, &shards, fail);
    for (size_t i = (size_t)shards; r >= 0 && i < last; i++) {
        struct tl_view *view;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = tl_buckets_merge(&all, &view->index.buckets);
        tl_view_put(view);
    }
    if (r >= 0)
        spread_all(s, &all, cut->end);
    tl_buckets_fini(&all);
    return r;
}

static int fill(struct spans *s, struct tl_fail *fail)
{
    const struct tl_cut *cut = s->cut;
    if (s->edges[N] == s->edges[0] && (s->edges[0] == 0 || !continues(s)))
        return TL_OK;
    if (s->edges[N] - s->edges[0] <= EXACT_MAX)
        return from_items(s, fail);
    const size_t first = tl_cut_items_at(cut, s->edges[0]);
    size_t last = tl_cut_shard_at(cut, s->edges[N] - 1);
    if (last < cut->n_rows)
        last++;
    return last - first <= STORED_SHARDS ? from_shards(s, first, last, fail)
                                         : from_summary(s, last, fail);
}

/* ---- edges ---------------------------------------------------------------------------------- */

static void insn_edges(struct spans *s, uint64_t first, uint64_t width)
{
    for (size_t i = 0; i <= N; i++) {
        const unsigned __int128 edge = (unsigned __int128)width * i + first;
        s->edges[i] = edge < s->cut->end ? (uint64_t)edge : s->cut->end;
    }
}

static int time_edges(struct spans *s, uint64_t first, uint64_t width, struct tl_fail *fail)
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

/* ---- columns -------------------------------------------------------------------------------- */

static uint8_t of_255(uint64_t part, uint64_t whole)
{
    if (whole == 0 || part == 0)
        return 0;
    const uint64_t n = share(255, part < whole ? part : whole, whole);
    return n == 0 ? 1 : (uint8_t)n;
}

static uint8_t log2_of(uint64_t n)
{
    uint8_t log = 0;
    while (n > 1) {
        n >>= 1;
        log++;
    }
    return log;
}

static uint64_t time_first(const struct spans *s)
{
    return s->time.n > 0 ? s->time.points[0].value : 0;
}

static uint64_t time_last(const struct spans *s)
{
    return s->time.n > 0 ? s->time.points[s->time.n - 1].value : 0;
}

/* Determine how much of a span's time is traced or lost, and why; `*next` is the first break that
 * may extend into it. */
static void fill_time(struct tl_tile_lane *m, struct spans *s, size_t i, size_t *next)
{
    const uint64_t width = s->times[i + 1] - s->times[i];
    if (s->time.n == 0 || s->times[i] > time_last(s) || s->times[i + 1] <= time_first(s))
        return;
    const uint64_t a = s->times[i] > time_first(s) ? s->times[i] : time_first(s);
    const uint64_t b = s->times[i + 1] < time_last(s) ? s->times[i + 1] : time_last(s);
    uint64_t covered = b > a ? b - a : 1, lost = 0;
    while (*next < s->time.n_breaks && s->time.breaks[*next].to <= a)
        ++*next;
    for (size_t k = *next; k < s->time.n_breaks && s->time.breaks[k].from < b; k++) {
        const struct tl_scale_break *const at = &s->time.breaks[k];
        const uint64_t low = at->from > a ? at->from : a, high = at->to < b ? at->to : b;
        covered -= high - low;
        if (tl_scale_is_off(at))
            continue;
        lost += high - low;
        m->flags[i] |= at->flags;
    }
    m->coverage[i] = of_255(covered, width);
    m->lost[i] = of_255(lost, width);
}

static void fill_column(struct tl_tile_lane *m, size_t i, const struct tl_bucket *bucket)
{
    struct tl_bucket b = *bucket;
    tl_bucket_sort(&b);
    m->insns[i] = b.insns;
    m->function[i] = (uint32_t)b.functions[0].id;
    m->share[i] = of_255(b.functions[0].n, b.insns);
    m->function2[i] = (uint32_t)b.functions[1].id;
    m->share2[i] = of_255(b.functions[1].n, b.insns);
    m->distinct[i] = log2_of(b.distinct);
    m->page[i] = b.pages[0].id;
    for (size_t k = 0; k < 4; k++)
        m->privilege[4 * i + k] = of_255(b.privilege[k], b.insns);
    m->branches[i] = of_255(b.branches, b.insns);
    m->event_mask[i] = b.event_mask;
    m->event_count[i] = b.events < UINT32_MAX ? (uint32_t)b.events : UINT32_MAX;
    m->flags[i] = b.flags;
    m->depth_min[i] = b.insns > 0 ? b.depth_min : 0;
    m->depth_max[i] = b.insns > 0 ? b.depth_max : 0;
}

/* The last executed instruction is still being executed. */
static void repeat_column(struct tl_tile_lane *m, size_t i)
{
    m->function[i] = m->function[i - 1];
    m->share[i] = m->share[i - 1];
    m->function2[i] = m->function2[i - 1];
    m->share2[i] = m->share2[i - 1];
    m->distinct[i] = m->distinct[i - 1];
    m->page[i] = m->page[i - 1];
    memcpy(m->privilege + 4 * i, m->privilege + 4 * (i - 1), 4);
    m->depth_min[i] = m->depth_min[i - 1];
    m->depth_max[i] = m->depth_max[i - 1];
}

static void fill_columns(struct tl_tile_lane *m, struct spans *s, uint64_t width)
{
    size_t next = 0;
    m->lane = s->cut->lane->index;
    for (size_t i = 0; i < N; i++) {
        struct tl_bucket b = s->buckets[i];
        const uint64_t n = s->edges[i + 1] - s->edges[i];
        /* Counts are exact even if a bucket was divided. */
        if (n > 0 || !continues(s))
            b.insns = n;
        const bool edge = s->edges[i + 1] == s->cut->end && n > 0;
        if (edge && s->cut->open)
            b.flags |= TL_FLAG_OPEN;
        fill_column(m, i, &b);
        m->insns[i] = n;
        if (s->axis != TL_UNIT_TIME) {
            m->coverage[i] = of_255(n, width);
            continue;
        }
        fill_time(m, s, i, &next);
        if (b.insns == 0 && m->coverage[i] > 0 && i > 0 && continues(s))
            repeat_column(m, i);
    }
}

/* ---- breaks --------------------------------------------------------------------------------- */

static void add_break(struct tl_tile_lane *m, uint64_t position, uint64_t from, uint64_t to,
                      uint8_t flags)
{
    if (m->n_breaks < TL_TILE_BREAKS)
        m->breaks[m->n_breaks++] = (struct tl_tile_break){position, from, to, flags};
}

/* Add a break before a position, with its time if known. */
static void add_insn_break(struct tl_tile_lane *m, const struct spans *s, uint64_t position,
                           uint8_t flags)
{
    uint64_t time = 0;
    const struct tl_scale_break *found = NULL;
    const bool has_time = tl_scale_value(&s->time, position, &time);
    for (size_t i = 0; i < s->time.n_breaks && s->time.breaks[i].position <= position; i++)
        found = &s->time.breaks[i];
    const bool within = found && has_time && found->to == time;
    flags &= (uint8_t)~TL_FLAG_OPEN;
    add_break(m, position, within ? found->from : 0, within ? found->to : 0,
              flags ? flags : TL_FLAG_OFF);
}

static bool is_break(uint8_t flags, uint16_t mask)
{
    return flags & TL_FLAG_GAP || mask & TL_HAS_TRACE_ON;
}

/* If single instructions are visible, add each break between two of them. */
static int insn_breaks(struct tl_tile_lane *m, struct spans *s, struct tl_fail *fail)
{
    bool any = is_break(s->tail_flags, s->tail_mask);
    for (size_t i = 0; i < N; i++)
        any |= is_break(m->flags[i], (uint16_t)m->event_mask[i]);
    if (!any)
        return TL_OK;
    const int r =
        tl_scale_open(&s->time, s->cut, TL_SCALE_TIME, false, s->edges[0], s->edges[N], fail);
    for (size_t i = 0; r >= 0 && i < N; i++)
        if (is_break(m->flags[i], (uint16_t)m->event_mask[i]))
            add_insn_break(m, s, s->edges[i], m->flags[i]);
    if (r >= 0 && is_break(s->tail_flags, s->tail_mask))
        add_insn_break(m, s, s->cut->end, s->tail_flags);
    return r;
}

/* Add breaks wide enough to be distinguished. */
static void time_breaks(struct tl_tile_lane *m, const struct spans *s, uint64_t width)
{
    for (size_t i = 0; i < s->time.n_breaks; i++) {
        const struct tl_scale_break *const b = &s->time.breaks[i];
        if (b->from < s->times[N] && b->to > s->times[0] && (b->to - b->from) / width >= BREAK_WIDE)
            add_break(m, b->position, b->from, b->to, b->flags);
    }
}

/* ---- tiles ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return tl_fnv(hash, &value, sizeof value);
}

/* Record what the lane's part of the tile depends on while the lane grows. */
static void note_revision(struct tl_tile *tile, const struct spans *s)
{
    uint64_t what = s->edges[N];
    if (tile->axis == TL_UNIT_TIME && s->time.n > 0 && s->times[N] >= time_last(s))
        what = mix(s->cut->end, time_last(s));
    tile->revision = mix(mix(tile->revision, s->cut->lane->index), what);
}

static int add_lane(struct tl_tile *tile, struct tl_gen *gen, struct tl_lane *lane,
                    struct tl_fail *fail)
{
    struct tl_cut cut;
    int r = tl_cut_of_lane(&cut, gen, lane);
    if (r < 0)
        return r;
    struct spans *s = calloc(1, sizeof(*s));
    struct tl_tile_lane *columns = calloc(1, sizeof(*columns));
    r = s && columns ? TL_OK : TL_NOMEM;
    if (r >= 0) {
        s->cut = &cut;
        s->axis = tile->axis;
        s->image = tl_gen_image(gen);
        if (tile->axis == TL_UNIT_TIME)
            r = time_edges(s, tile->first, tile->bucket, fail);
        else
            insn_edges(s, tile->first, tile->bucket);
    }
    if (r >= 0)
        r = fill(s, fail);
    if (r >= 0) {
        note_revision(tile, s);
        fill_columns(columns, s, tile->bucket);
        if (tile->axis == TL_UNIT_TIME)
            time_breaks(columns, s, tile->bucket);
        else if (tile->bucket == 1)
            r = insn_breaks(columns, s, fail);
    }
    if (r >= 0) {
        tile->lanes[tile->n_lanes++] = columns;
        columns = NULL;
    }
    if (s)
        tl_scale_close(&s->time);
    free(columns);
    free(s);
    tl_cut_close(&cut);
    return r;
}

static bool is_sealed(struct tl_trace *trace, const struct tl_gen *gen)
{
    pthread_mutex_lock(&trace->lock);
    const bool sealed = trace->state == TL_TRACE_SEALED && trace->serving == gen && !trace->making;
    pthread_mutex_unlock(&trace->lock);
    return sealed;
}

static int check(enum tl_range_unit axis, unsigned level, uint64_t index, unsigned lane_from,
                 unsigned lane_to, struct tl_fail *fail)
{
    if (axis != TL_UNIT_INSN && axis != TL_UNIT_TIME)
        return tl_fail_set(fail, TL_USAGE, "a tile's axis is insn or time");
    if (level > 27 || index > (UINT64_MAX >> 2 * level) / N)
        return tl_fail_set(fail, TL_USAGE, "there is no such tile");
    if (lane_from > lane_to || lane_to - lane_from >= TL_TILE_LANES)
        return tl_fail_set(fail, TL_USAGE, "ask for 1 to %u lanes", TL_TILE_LANES);
    return TL_OK;
}

void tl_tile_fini(struct tl_tile *tile)
{
    for (size_t i = 0; i < tile->n_lanes; i++)
        free(tile->lanes[i]);
    tile->n_lanes = 0;
}

int tl_lake_tile(struct tl_lake *lake, const char *id, enum tl_range_unit axis, unsigned level,
                 uint64_t index, unsigned lane_from, unsigned lane_to, uint64_t generation,
                 struct tl_tile *out, struct tl_fail *fail)
{
    *out = (struct tl_tile){.axis = axis, .level = level, .index = index};
    int r = check(axis, level, index, lane_from, lane_to, fail);
    if (r < 0)
        return r;
    struct tl_trace *trace = tl_lake_find_content(lake, id);
    if (!trace)
        return tl_no_content(lake, fail, id);
    tl_edge_read(trace);
    struct tl_gen *const gen = tl_trace_serving(trace);
    out->generation = gen->number;
    if (generation != 0 && generation != gen->number)
        r = tl_fail_set(fail, TL_NOTFOUND, "trace %.64s is of generation %llu now", id,
                        (unsigned long long)gen->number);
    out->bucket = UINT64_C(1) << 2 * level;
    out->first = out->bucket * N * index;
    out->revision = mix(TL_FNV, gen->number);
    /* Determined beforehand: a trace that is sealed now was complete when the lanes were read. */
    out->sealed = is_sealed(trace, gen);
    for (unsigned i = lane_from; i <= lane_to && r >= 0; i++) {
        struct tl_lane *const lane = tl_gen_lane_at(gen, i);
        if (!lane)
            break;
        r = add_lane(out, gen, lane, fail);
    }
    tl_gen_put(gen);
    tl_trace_put(trace);
    atomic_fetch_add(&lake->tiles_served, 1);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
