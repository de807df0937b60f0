/* SPDX-License-Identifier: MIT */
/*
 * Tiles. A tile's 512 buckets are spans of positions (tile_spans.h): equal ones on the instruction
 * axis; on the time axis those between two edges in time, where what ran is counted in time
 * (time_tile.h).
 */
#include "query/tile_spans.h"

#include "base/hash.h"

#include <stdlib.h>

#define N          TL_TILE_BUCKETS
#define BREAK_WIDE 8 /* width in buckets of a break that is shown individually */

/* ---- columns -------------------------------------------------------------------------------- */

static uint8_t of_255(uint64_t part, uint64_t whole)
{
    if (whole == 0 || part == 0)
        return 0;
    const uint64_t n = tl_spans_share(255, part < whole ? part : whole, whole);
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

static uint64_t time_first(const struct tl_spans *s)
{
    return s->time.n > 0 ? s->time.points[0].value : 0;
}

static uint64_t time_last(const struct tl_spans *s)
{
    return s->time.n > 0 ? s->time.points[s->time.n - 1].value : 0;
}

/* Determine how much of a span's time is traced or lost, and why; `*next` is the first break that
 * may extend into it. */
static void fill_time(struct tl_tile_lane *m, struct tl_spans *s, size_t i, size_t *next)
{
    const uint64_t width = s->times[i + 1] - s->times[i];
    if (s->time.n == 0 || s->times[i] > time_last(s) || s->times[i + 1] <= time_first(s))
        return;
    const uint64_t a = s->times[i] > time_first(s) ? s->times[i] : time_first(s);
    const uint64_t b = s->times[i + 1] < time_last(s) ? s->times[i + 1] : time_last(s);
    uint64_t covered = b > a ? b - a : 1, missing[TL_TIMED_KINDS] = {0};
    while (*next < s->time.n_breaks && s->time.breaks[*next].to <= a)
        ++*next;
    for (size_t k = *next; k < s->time.n_breaks && s->time.breaks[k].from < b; k++) {
        const struct tl_scale_break *const at = &s->time.breaks[k];
        const uint64_t low = at->from > a ? at->from : a, high = at->to < b ? at->to : b;
        covered -= high - low;
        const enum tl_timed_kind kind = tl_missing_kind(at->flags);
        missing[kind] += high - low;
        m->flags[i] |= kind == TL_TIMED_OFF ? 0 : at->flags;
    }
    m->coverage[i] = of_255(covered, width);
    m->lost[i] = of_255(missing[TL_TIMED_LOST], width);
    m->switched_out[i] = of_255(missing[TL_TIMED_SWITCHED_OUT], width);
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

/* The page of a function's begin. */
static uint64_t page_of(const struct tl_spans *s, uint32_t function)
{
    size_t n = 0;
    const struct tl_symbol *const symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    return function > 0 && function <= n ? symbols[function - 1].address >> 12 : 0;
}

/* What ran in a span of time, in place of what its positions say. */
static void fill_ran(struct tl_tile_lane *m, const struct tl_spans *s, size_t i,
                     struct tl_time_bucket *b)
{
    const struct tl_time_share *const top = b->shares;
    const uint64_t ran = b->ticks[TL_TIMED_RUN];
    tl_time_bucket_rank(b);
    if (m->page[i] == 0 || m->function[i] != top[0].function)
        m->page[i] = page_of(s, top[0].function);
    if (m->page[i] == 0 && i > 0 && top[0].function == m->function[i - 1])
        m->page[i] = m->page[i - 1];
    m->function[i] = top[0].function;
    m->share[i] = of_255(top[0].ticks, ran);
    m->function2[i] = b->n_shares > 1 ? top[1].function : 0;
    m->share2[i] = b->n_shares > 1 ? of_255(top[1].ticks, ran) : 0;
    const uint8_t distinct = log2_of(b->n_shares);
    m->distinct[i] = distinct > m->distinct[i] ? distinct : m->distinct[i];
    for (size_t k = 0; k < 4; k++)
        m->privilege[4 * i + k] = of_255(b->privilege[k], ran);
    m->depth_min[i] = b->depth_min;
    m->depth_max[i] = b->depth_max;
}

static void fill_timed(struct tl_tile_lane *m, const struct tl_spans *s, size_t i, uint64_t width)
{
    struct tl_time_bucket *const b = &s->timed->buckets[i];
    const struct tl_lane *const lane = s->cut->lane;
    const uint64_t ran = tl_time_tile_shown(s->timed, lane, i, b->ticks[TL_TIMED_RUN]);
    m->insns[i] = b->insns;
    m->event_mask[i] = b->event_mask;
    m->event_count[i] = b->events < UINT32_MAX ? (uint32_t)b->events : UINT32_MAX;
    m->flags[i] = b->flags | (m->flags[i] & TL_FLAG_OPEN);
    m->coverage[i] = of_255(ran > 0 || b->insns == 0 ? ran : 1, width);
    m->lost[i] = of_255(tl_time_tile_shown(s->timed, lane, i, b->ticks[TL_TIMED_LOST]), width);
    m->switched_out[i] =
        of_255(tl_time_tile_shown(s->timed, lane, i, b->ticks[TL_TIMED_SWITCHED_OUT]), width);
    if (b->n_shares > 0)
        fill_ran(m, s, i, b);
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

static void fill_columns(struct tl_tile_lane *m, struct tl_spans *s, uint64_t width)
{
    size_t next = 0;
    m->lane = s->cut->lane->index;
    for (size_t i = 0; i < N; i++) {
        struct tl_bucket b = s->buckets[i];
        const uint64_t n = s->edges[i + 1] - s->edges[i];
        /* Counts are exact even if a bucket was divided. */
        if (n > 0 || !tl_spans_continue(s))
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
        if (s->timed && s->timed->known) {
            fill_timed(m, s, i, width);
            continue;
        }
        fill_time(m, s, i, &next);
        if (b.insns == 0 && m->coverage[i] > 0 && i > 0 && tl_spans_continue(s))
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
static void add_insn_break(struct tl_tile_lane *m, const struct tl_spans *s, uint64_t position,
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
static int insn_breaks(struct tl_tile_lane *m, struct tl_spans *s, struct tl_fail *fail)
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
static void time_breaks(struct tl_tile_lane *m, const struct tl_spans *s, uint64_t width)
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

/* Record from where on there is only an outline. */
static void note_behind(struct tl_tile_lane *m, const struct tl_cut *cut, enum tl_range_unit axis)
{
    m->behind = cut->behind;
    m->behind_from = axis == TL_UNIT_TIME ? cut->behind_time : cut->end;
}

/* Record what the lane's part of the tile depends on while the lane grows. */
static void note_revision(struct tl_tile *tile, const struct tl_spans *s,
                          const struct tl_tile_lane *m)
{
    uint64_t what = s->edges[N];
    if (tile->axis == TL_UNIT_TIME && s->time.n > 0 && s->times[N] >= time_last(s))
        what = mix(s->cut->end, time_last(s));
    what = m->behind ? mix(what, m->behind_from) : what;
    tile->revision = mix(mix(tile->revision, s->cut->lane->index), what);
}

static int add_lane(struct tl_tile *tile, struct tl_gen *gen, struct tl_lane *lane,
                    struct tl_fail *fail)
{
    struct tl_cut cut;
    const unsigned __int128 end = (unsigned __int128)tile->bucket * N + tile->first;
    const struct tl_cut_range range = {tile->axis, tile->first,
                                       end < UINT64_MAX ? (uint64_t)end : UINT64_MAX};
    int r = tl_cut_of_lane_range(&cut, gen, lane, &range, fail);
    if (r < 0)
        return r;
    struct tl_spans *s = calloc(1, sizeof *s);
    struct tl_tile_lane *columns = calloc(1, sizeof(*columns));
    r = s && columns ? TL_OK : TL_NOMEM;
    if (r >= 0) {
        s->cut = &cut;
        s->axis = tile->axis;
        s->level = tile->level;
        s->image = tl_gen_image(gen);
        if (tile->axis == TL_UNIT_TIME)
            r = tl_spans_time_edges(s, tile->first, tile->bucket, fail);
        else
            tl_spans_insn_edges(s, tile->first, tile->bucket);
    }
    if (r >= 0 && tl_spans_continue(s)) {
        s->timed = calloc(1, sizeof *s->timed);
        r = s->timed ? TL_OK : TL_NOMEM;
    }
    if (r >= 0 && s->timed) {
        s->timed->level = tile->level;
        s->timed->first = tile->first;
    }
    if (r >= 0)
        r = tl_spans_fill(s, fail);
    if (r >= 0) {
        note_behind(columns, &cut, tile->axis);
        note_revision(tile, s, columns);
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
        tl_spans_fini(s);
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
