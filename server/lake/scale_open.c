/* SPDX-License-Identifier: MIT */
/*
 * Makes the points between which positions and time are interpolated. Where trace is missing, time
 * jumps instead, because interpolation across a gap would give every instruction around it a time
 * that it did not have.
 */
#include "lake/scale.h"

#include "decode/point.h"
#include "shard/itemlog.h"
#include "shard/timeknots.h"

/* Maximum shards or chunks that are read; beyond this only their ends are used. */
#define FINE 24

/* Unless trace is missing there for at least this fraction of the wanted range. */
#define WIDE_PARTS 512

struct maker {
    struct tl_scale *scale;
    const struct tl_cut *cut;
    enum tl_scale_kind kind;
    bool by_value;
    bool exact; /* all timestamps, however many */
    bool steps; /* positions are records with times of their own */
    bool lossy; /* trace is missing before the present row, or in it */
    uint64_t from, to;
    uint64_t wide;             /* minimum width of a break, in values */
    struct tl_buckets summary; /* if has_summary: which rows may have breaks */
    uint64_t summarised;       /* number of rows covered by `summary` */
    bool has_summary;
    struct tl_scale_break missing; /* since the last point, if `broken` */
    bool broken;
    bool on;                    /* tracing goes on at the last timestamp, where it was off: */
    uint64_t on_at;             /* that one's position */
    struct tl_time_knots knots; /* since the last point, if `counting` */
    bool counting;              /* everything since the last point has been read */
};

static uint64_t shown(const struct maker *m, uint64_t value)
{
    return m->kind == TL_SCALE_TIME ? tl_lane_time(m->cut->lane, value) : value;
}

static int add_point(struct tl_scale *s, uint64_t position, uint64_t value, bool estimated,
                     uint8_t inexact)
{
    struct tl_scale_point *const last = s->n > 0 ? &s->points[s->n - 1] : NULL;
    if (last && last->position == position && last->value == value) {
        last->estimated = last->estimated && estimated;
        last->inexact = inexact;
        return TL_OK;
    }
    if (tl_grow(&s->points, &s->cap, s->n + 1, sizeof(*s->points)) < 0)
        return TL_NOMEM;
    s->points[s->n++] = (struct tl_scale_point){position, value, estimated, inexact};
    return TL_OK;
}

/* When trace is missing the value jumps. */
static int add_break(struct maker *m, uint64_t value)
{
    struct tl_scale *const s = m->scale;
    const uint64_t last = s->points[s->n - 1].value;
    const uint64_t position = m->missing.position;
    if (value == last && !(m->exact && m->kind == TL_SCALE_TICKS))
        return TL_OK;
    if (tl_grow(&s->breaks, &s->cap_breaks, s->n_breaks + 1, sizeof(*s->breaks)) < 0)
        return TL_NOMEM;
    m->missing.from = last;
    m->missing.to = value;
    s->breaks[s->n_breaks++] = m->missing;
    const int r = add_point(s, position, last, false, 0);
    return r < 0 ? r : add_point(s, position, value, false, 0);
}

/* Nothing has run since tracing went on: it was off until here. */
static void note_silence(struct maker *m, uint64_t position)
{
    if (!m->on || m->broken || m->on_at != position)
        return;
    m->broken = true;
    m->missing = (struct tl_scale_break){.position = position, .flags = TL_FLAG_OFF};
}

static int add(struct maker *m, uint64_t position, uint64_t raw, uint8_t inexact)
{
    struct tl_scale *s = m->scale;
    uint64_t value = shown(m, raw);
    if (s->n > 0 && value < s->points[s->n - 1].value)
        value = s->points[s->n - 1].value;
    int r = TL_OK;
    note_silence(m, position);
    if (m->broken && s->n > 0)
        r = add_break(m, value);
    m->broken = m->on = false;
    m->counting = false;
    return r < 0 ? r : add_point(s, position, value, false, inexact);
}

/* The cycle counts since the last timestamp divide the time until this one. */
static int add_counts(struct maker *m, uint64_t position, uint64_t raw)
{
    struct tl_time_knots *const k = &m->knots;
    int r = tl_time_knots_end(k, position, raw);
    for (size_t i = 1; i + 1 < k->n && r >= 0; i++)
        r = add_point(m->scale, k->points[i].position, shown(m, k->points[i].time), true, 0);
    return r;
}

/* The time of a record of software trace is that of the timestamp before it: no interpolation. */
static int add_time(struct maker *m, uint64_t position, uint64_t raw, uint8_t inexact)
{
    struct tl_scale *const s = m->scale;
    int r = TL_OK;
    if (m->steps && s->n > 0 && !m->broken)
        r = add_point(s, position, s->points[s->n - 1].value, false, s->points[s->n - 1].inexact);
    else if (m->counting && !m->broken && m->knots.n > 1)
        r = add_counts(m, position, raw);
    if (r >= 0)
        r = add(m, position, raw, inexact);
    if (r >= 0)
        r = tl_time_knots_begin(&m->knots, position, raw);
    m->counting = r >= 0;
    return r;
}

/* Tracing goes on, at the last timestamp at the earliest, if that is where it was off. */
static void note_restart(struct maker *m, uint64_t position)
{
    struct tl_scale *const s = m->scale;
    m->on = !m->broken && s->n > 0 && s->points[s->n - 1].position == position;
    m->on_at = position;
    if (m->on)
        s->points[s->n - 1].inexact |= TL_ITEM_AT_LEAST;
}

/* Process an item before `position`: is trace missing there, does it count cycles? */
static int note_item(struct maker *m, const struct tl_item *item, uint64_t position)
{
    if (item->kind == TL_ITEM_CYCLES && m->counting)
        return tl_time_knots_item(&m->knots, position, item);
    if (!tl_item_is_break(m->cut->lane->protocol, item->kind)) {
        if (item->kind == TL_ITEM_TRACE_ON)
            note_restart(m, position);
        return TL_OK;
    }
    if (!m->broken)
        m->missing = (struct tl_scale_break){.position = position};
    m->broken = true;
    tl_scale_break_add(&m->missing, item);
    return TL_OK;
}

/* Does an interval, with the raw values at its ends, touch the range of full resolution? */
static bool touches(const struct maker *m, uint64_t first, uint64_t last, uint64_t low,
                    uint64_t high)
{
    const uint64_t a = m->by_value ? shown(m, low) : first;
    const uint64_t b = m->by_value ? shown(m, high) : last;
    return a <= m->to && b >= m->from;
}

/* A row or a chunk including the space to the next one, in positions and raw values. */
struct stretch {
    uint64_t first, last, low, high;
};

/* From the last timestamp before it to the first one after it, which the interpolation crosses. */
static struct stretch row_stretch(const struct maker *m, size_t i)
{
    const struct tl_shard_row *row = &m->cut->rows[i];
    const size_t n = m->cut->n_rows;
    struct stretch s = {row->first, row->first + row->n, row->at.offset, row->byte_last};
    if (m->kind == TL_SCALE_BYTE) {
        s.high = i + 1 < n ? row[1].at.offset : s.high;
    } else {
        size_t next = i + 1, before = i;
        while (next < n && m->cut->rows[next].anchors == 0)
            next++;
        while (before > 0 && m->cut->rows[before - 1].anchors == 0)
            before--;
        if (before > 0)
            s.first = m->cut->rows[before - 1].anchor_last.position;
        s.high = row->anchor_last.time;
        if (next < n) {
            s.last = m->cut->rows[next].anchor_first.position;
            s.high = m->cut->rows[next].anchor_first.time;
        }
        s.low = row->at.has_time   ? row->at.axis
                : row->anchors > 0 ? row->anchor_first.time
                                   : s.high;
    }
    s.high = s.high > s.low ? s.high : s.low;
    return s;
}

static bool touches_stretch(const struct maker *m, struct stretch s)
{
    return touches(m, s.first, s.last, s.low, s.high);
}

static bool is_wide(const struct maker *m, struct stretch s)
{
    return m->kind != TL_SCALE_BYTE && shown(m, s.high) - shown(m, s.low) >= m->wide;
}

/* Can trace be missing in a row? Determined without opening a shard. */
static bool may_break(struct maker *m, size_t i)
{
    const struct tl_shard_row *row = &m->cut->rows[i];
    const struct tl_buckets *const all = &m->summary;
    if (row->gaps > 0)
        return true;
    if (!m->has_summary &&
        tl_cut_summary(m->cut, 0, UINT64_MAX, &m->summary, &m->summarised, NULL) < 0)
        m->summarised = 0;
    m->has_summary = true;
    if (i >= m->summarised)
        return true;
    uint64_t b = row->first >> 2 * all->level;
    b = b > all->first ? b - all->first : 0;
    for (; b < all->n && (all->first + b) << 2 * all->level <= row->first + row->n; b++)
        if (all->p[b].event_mask & TL_HAS_TRACE_ON)
            return true;
    return false;
}

static int add_log(struct maker *m, struct tl_view *view, size_t i, struct tl_fail *fail)
{
    const struct tl_chunk *c = &view->index.chunks[i];
    struct tl_buf log = {0};
    int r = tl_view_items(view, i, &log, fail);
    struct tl_itemlog_reader reader;
    struct tl_flow_now now = c->at;
    tl_itemlog_read(&reader, (struct tl_bytes){log.p, log.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    if (r >= 0 && m->kind == TL_SCALE_BYTE)
        r = add(m, c->first, c->at.offset, 0);
    while (r >= 0) {
        struct tl_item item;
        uint64_t position;
        r = tl_itemlog_next(&reader, &item, &position);
        if (r == TL_EOF) {
            r = TL_OK;
            break;
        }
        if (r < 0)
            break;
        tl_flow_now_item(&now, &item);
        if (m->kind == TL_SCALE_BYTE)
            r = add(m, c->first + position, item.offset, 0);
        else if (tl_item_is_anchor(&item))
            r = add_time(m, c->first + position, now.axis, item.flags & TL_ITEM_INEXACT);
        else
            r = note_item(m, &item, c->first + position);
    }
    tl_buf_fini(&log);
    return r;
}

/* What a time may be that stands for others, of a source of which times may be inexact. */
static uint8_t coarse(const struct maker *m)
{
    return m->steps ? (uint8_t)(TL_ITEM_DELAYED | (m->lossy ? TL_ITEM_AT_LEAST : 0)) : 0;
}

static int add_chunk_ends(struct maker *m, const struct tl_chunk *c)
{
    if (m->kind == TL_SCALE_BYTE)
        return add(m, c->first, c->at.offset, 0);
    int r = TL_OK;
    if (c->anchors > 0)
        r = add(m, c->anchor_first.position, c->anchor_first.time, coarse(m));
    if (c->anchors > 1 && r >= 0)
        r = add(m, c->anchor_last.position, c->anchor_last.time, coarse(m));
    return r;
}

static struct stretch chunk_stretch(const struct maker *m, size_t row,
                                    const struct tl_shard_index *index, size_t i)
{
    const struct tl_chunk *c = &index->chunks[i];
    const size_t n = index->n_chunks;
    struct stretch s = {c->first, c->first + c->n, c->at.offset, index->row.byte_last};
    if (m->kind == TL_SCALE_BYTE) {
        s.high = i + 1 < n ? c[1].at.offset : s.high;
    } else {
        size_t next = i + 1, before = i;
        while (next < n && index->chunks[next].anchors == 0)
            next++;
        while (before > 0 && index->chunks[before - 1].anchors == 0)
            before--;
        s.first =
            before > 0 ? index->chunks[before - 1].anchor_last.position : row_stretch(m, row).first;
        s.high = c->anchor_last.time;
        if (next < n) {
            s.last = index->chunks[next].anchor_first.position;
            s.high = index->chunks[next].anchor_first.time;
        } else { /* what crosses the shard's end */
            const struct stretch whole = row_stretch(m, row);
            s.last = whole.last;
            s.high = whole.high;
        }
        s.low = c->at.has_time ? c->at.axis : c->anchors > 0 ? c->anchor_first.time : s.high;
    }
    s.high = s.high > s.low ? s.high : s.low;
    return s;
}

static int add_view(struct maker *m, size_t row, struct tl_view *view, bool fine,
                    struct tl_fail *fail)
{
    const uint32_t breaks = 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON;
    const struct tl_shard_index *index = &view->index;
    size_t touched = 0;
    for (size_t i = 0; i < index->n_chunks; i++)
        touched += touches_stretch(m, chunk_stretch(m, row, index, i));
    int r = TL_OK;
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++) {
        const struct stretch s = chunk_stretch(m, row, index, i);
        const bool wide = index->chunks[i].kinds & breaks && is_wide(m, s);
        if (((fine && (touched <= FINE || m->exact)) || wide) && touches_stretch(m, s))
            r = add_log(m, view, i, fail);
        else
            r = add_chunk_ends(m, &index->chunks[i]);
    }
    return r;
}

static int add_row_ends(struct maker *m, const struct tl_shard_row *row)
{
    if (m->kind == TL_SCALE_BYTE)
        return add(m, row->first, row->at.offset, 0);
    int r = TL_OK;
    if (row->anchors > 0)
        r = add(m, row->anchor_first.position, row->anchor_first.time, coarse(m));
    if (row->anchors > 1 && r >= 0)
        r = add(m, row->anchor_last.position, row->anchor_last.time, coarse(m));
    return r;
}

/* Compute the minimum width of breaks from the total time. */
static void measure(struct maker *m)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < m->cut->n_rows; i++) {
        const struct stretch s = row_stretch(m, i);
        if (!touches_stretch(m, s))
            continue;
        low = shown(m, s.low) < low ? shown(m, s.low) : low;
        high = shown(m, s.high) > high ? shown(m, s.high) : high;
    }
    if (m->by_value) {
        low = low < m->from ? m->from : low;
        high = high > m->to ? m->to : high;
    }
    m->wide = high > low ? (high - low) / WIDE_PARTS + 1 : 1;
}

static int make(struct maker *m, struct tl_fail *fail)
{
    const struct tl_cut *cut = m->cut;
    size_t touched = 0;
    int r = TL_OK;
    if (m->kind != TL_SCALE_BYTE)
        measure(m);
    for (size_t i = 0; i < cut->n_rows; i++)
        touched += touches_stretch(m, row_stretch(m, i));
    for (size_t i = 0; i < cut->n_rows && r >= 0; i++) {
        const struct stretch s = row_stretch(m, i);
        m->lossy |= cut->rows[i].gaps > 0;
        if (!touches_stretch(m, s) ||
            (touched > FINE && !m->exact && !(is_wide(m, s) && may_break(m, i)))) {
            r = add_row_ends(m, &cut->rows[i]);
            continue;
        }
        struct tl_view *view;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = add_view(m, i, view, touched <= 3 || m->exact, fail);
        tl_view_put(view);
    }
    /* The end has the last known byte offset. */
    if (r >= 0 && m->kind == TL_SCALE_BYTE && cut->n_rows > 0)
        r = add(m, cut->end, cut->rows[cut->n_rows - 1].byte_last, 0);
    return r;
}

static int open_scale(struct maker *m, struct tl_scale *out, struct tl_fail *fail)
{
    *out = (struct tl_scale){.end = m->cut->end};
    m->scale = out;
    m->steps = tl_lane_has_own_clock(m->cut->lane);
    tl_time_knots_init(&m->knots, m->cut->lane->protocol);
    if (m->kind != TL_SCALE_BYTE && !tl_lane_is_timed(m->cut->lane))
        return TL_OK;
    const int r = make(m, fail);
    tl_buckets_fini(&m->summary);
    tl_time_knots_fini(&m->knots);
    if (r < 0)
        tl_scale_close(out);
    return r;
}

int tl_scale_open(struct tl_scale *out, const struct tl_cut *cut, enum tl_scale_kind kind,
                  bool by_value, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    struct maker m = {.cut = cut, .kind = kind, .by_value = by_value, .from = from, .to = to};
    return open_scale(&m, out, fail);
}

int tl_scale_open_exact(struct tl_scale *out, const struct tl_cut *cut, enum tl_scale_kind kind,
                        uint64_t from, uint64_t to, struct tl_fail *fail)
{
    struct maker m = {.cut = cut, .kind = kind, .exact = true, .from = from, .to = to};
    return open_scale(&m, out, fail);
}
