/* SPDX-License-Identifier: MIT */
/*
 * Reads the items from the last count before the range to the first one behind it. A count says how
 * many cycles passed since the one before, so what the range begins or ends with needs both.
 */
#include "query/cycle_scale.h"

#include "base/cancel.h"
#include "decode/point.h"

#include <stdlib.h>

struct making {
    struct tl_scale *scale;
    enum tl_protocol protocol;
    uint64_t to;
    uint64_t sum;
    bool broken; /* trace is missing since the last count */
    struct tl_scale_break missing;
    bool done; /* there is a count at `to`, or behind it */
};

static int add_point(struct tl_scale *s, uint64_t position, uint64_t value)
{
    const int r = tl_grow(&s->points, &s->cap, s->n + 1, sizeof *s->points);
    if (r >= 0)
        s->points[s->n++] = (struct tl_scale_point){.position = position, .value = value};
    return r;
}

static void note_break(struct making *m, uint64_t position, const struct tl_item *item)
{
    if (!m->broken)
        m->missing = (struct tl_scale_break){.position = position};
    m->broken = true;
    tl_scale_break_add(&m->missing, item);
}

/* Nothing tells on which side of the break these cycles passed. */
static int add_break(struct making *m, uint64_t before)
{
    struct tl_scale *const s = m->scale;
    int r = tl_grow(&s->breaks, &s->cap_breaks, s->n_breaks + 1, sizeof *s->breaks);
    if (r < 0)
        return r;
    m->missing.from = before;
    m->missing.to = m->sum;
    s->breaks[s->n_breaks++] = m->missing;
    r = add_point(s, m->missing.position, before);
    return r < 0 ? r : add_point(s, m->missing.position, m->sum);
}

static int take_count(struct making *m, uint64_t position, uint64_t cycles)
{
    const uint64_t before = m->sum;
    int r = TL_OK;
    /* The first one is where counting begins; the stream's first position is known to be one. */
    if (m->scale->n > 0)
        m->sum += cycles;
    if (m->broken && m->sum > before)
        r = add_break(m, before);
    m->broken = false;
    m->done = m->scale->n > 0 && position >= m->to;
    return r < 0 ? r : add_point(m->scale, position, m->sum);
}

static int take_items(struct making *m, const struct tl_walk *walk)
{
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0 && !m->done; i++) {
        const struct tl_item *const item = &walk->items[i];
        if (item->kind == TL_ITEM_CYCLES)
            r = take_count(m, walk->positions[i], item->value);
        else if (tl_item_is_break(m->protocol, item->kind))
            note_break(m, walk->positions[i], item);
    }
    return r;
}

/* Where to read from: the begin of the last chunk with counts that ends before a position. */
static int find_begin(const struct tl_cut *cut, uint64_t position, uint64_t *out,
                      struct tl_fail *fail)
{
    size_t row = tl_cut_shard_at(cut, position);
    *out = 0;
    for (row = row < cut->n_rows ? row + 1 : cut->n_rows; row-- > 0;) {
        struct tl_view *view;
        const int r = tl_cut_view(cut, row, &view, fail);
        if (r < 0)
            return r;
        const struct tl_shard_index *const index = &view->index;
        bool found = false;
        for (size_t i = index->n_chunks; i-- > 0 && !found;) {
            const struct tl_chunk *const c = &index->chunks[i];
            found = c->first + c->n <= position && c->kinds & 1u << TL_ITEM_CYCLES;
            *out = found ? c->first : 0;
        }
        tl_view_put(view);
        if (found)
            break;
    }
    return TL_OK;
}

static int read_from(struct making *m, const struct tl_cut *cut, uint64_t begin,
                     struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    const struct tl_chunk *chunk;
    const uint32_t wanted = 1u << TL_ITEM_CYCLES | 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON;
    int r;
    tl_cut_walk_begin(&walk, cut, begin, UINT64_MAX);
    walk.walk.detail = TL_WALK_ITEMS;
    while ((r = tl_cut_walk_peek(&walk, &chunk, fail)) >= 0 && chunk && !m->done) {
        r = tl_cancel_check();
        if (r >= 0 && !(chunk->kinds & wanted)) {
            tl_cut_walk_skip(&walk);
            continue;
        }
        if (r >= 0)
            r = tl_cut_walk_next(&walk, fail);
        if (r >= 0)
            r = take_items(m, &walk.walk);
        if (r < 0)
            break;
    }
    tl_cut_walk_end(&walk);
    return r;
}

int tl_cycle_scale_open(struct tl_scale *out, const struct tl_cut *cut, uint64_t from, uint64_t to,
                        struct tl_fail *fail)
{
    struct making m = {.scale = out, .protocol = cut->lane->protocol, .to = to};
    uint64_t begin = 0;
    *out = (struct tl_scale){.end = cut->end};
    int r = find_begin(cut, from, &begin, fail);
    if (r >= 0 && begin == 0)
        r = add_point(out, 0, 0);
    if (r >= 0)
        r = read_from(&m, cut, begin, fail);
    if (out->n == 1 && begin == 0) /* there is no count at all */
        out->n = 0;
    return r < 0 ? r : TL_OK;
}
