/* SPDX-License-Identifier: MIT */
/*
 * Additional lane data: current process, machine and mode of a core, and its speed. In a short
 * range all items are read; in a longer one the chunks' index entries give the state at the begin
 * of each, and cycles are counted in some chunks.
 */
#include "base/cancel.h"
#include "base/search.h"
#include "query/columns.h"
#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 128 /* chunks of a long range whose items are read */

static const uint64_t short_range = UINT64_C(1) << 22; /* positions */

/* The index entry of the chunk that contains a position; NULL: none. */
static int chunk_at(const struct tl_columns *c, uint64_t position, struct tl_view **view,
                    const struct tl_chunk **out, struct tl_fail *fail)
{
    const size_t shard = tl_cut_shard_at(&c->cut, position);
    *out = NULL;
    *view = NULL;
    if (shard >= c->cut.n_rows)
        return TL_OK;
    const int r = tl_cut_view(&c->cut, shard, view, fail);
    if (r < 0)
        return r;
    const struct tl_shard_index *const index = &(*view)->index;
    const size_t chunk = tl_shard_chunk_at(index, position);
    *out = chunk < index->n_chunks ? &index->chunks[chunk] : NULL;
    return TL_OK;
}

/* ---- states ---------------------------------------------------------------------------------- */

struct states {
    struct tl_columns columns;
    uint64_t narrow;        /* runs narrower than this are merged */
    struct tl_state_run *p; /* from and to are positions until all have been added */
    size_t n, cap;
    uint64_t widest; /* part of the last run that has its state */
};

static bool same_state(const struct tl_state_run *a, const struct tl_state_run *b)
{
    return a->has_mode == b->has_mode && a->mode == b->mode && a->has_context == b->has_context &&
           a->context == b->context && a->has_vmid == b->has_vmid && a->vmid == b->vmid;
}

/* Runs are added in order, contiguous. A merged run has the state of its widest part. */
static int add_run(struct states *s, const struct tl_flow_now *now, uint64_t from, uint64_t to)
{
    if (to <= from)
        return TL_OK;
    const struct tl_state_run run = {.from = from,
                                     .to = to,
                                     .has_mode = now->has_mode,
                                     .mode = now->has_mode ? now->mode : 0,
                                     .has_context = now->has_context,
                                     .context = now->has_context ? now->context : 0,
                                     .has_vmid = now->has_vmid,
                                     .vmid = now->has_vmid ? now->vmid : 0};
    struct tl_state_run *const last = s->n > 0 ? &s->p[s->n - 1] : NULL;
    if (last && same_state(last, &run)) {
        last->to = to;
        s->widest = last->mixed ? s->widest + (to - from) : to - last->from;
        return TL_OK;
    }
    if (last && last->to - last->from < s->narrow && to - last->from <= 2 * s->narrow) {
        const uint64_t begin = last->from;
        if (to - from > s->widest) {
            *last = run;
            last->from = begin;
            s->widest = to - from;
        }
        last->to = to;
        last->mixed = true;
        return TL_OK;
    }
    if (tl_grow(&s->p, &s->cap, s->n + 1, sizeof *s->p) < 0)
        return TL_NOMEM;
    s->p[s->n++] = run;
    s->widest = to - from;
    return TL_OK;
}

/* All changes of state. Chunks without any are not read. */
static int exact_states(struct states *s, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    static const uint32_t changes = 1u << TL_ITEM_MODE | 1u << TL_ITEM_CONTEXT;
    struct tl_cut_walk walk;
    const struct tl_chunk *chunk;
    tl_cut_walk_begin(&walk, &s->columns.cut, from, to);
    walk.walk.detail = TL_WALK_ITEMS;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_peek(&walk, &chunk, fail)) >= 0 && chunk) {
        const uint64_t first = chunk->first > from ? chunk->first : from;
        const uint64_t end = chunk->first + chunk->n < to ? chunk->first + chunk->n : to;
        r = tl_cancel_check();
        if (r >= 0 && !(chunk->kinds & changes)) {
            r = add_run(s, &chunk->at, first, end);
            tl_cut_walk_skip(&walk);
            continue;
        }
        if (r >= 0)
            r = tl_cut_walk_next(&walk, fail);
        struct tl_flow_now now = walk.walk.now;
        uint64_t at = first;
        for (size_t i = 0; i < walk.walk.n && r >= 0; i++) {
            const struct tl_item *const item = &walk.walk.items[i];
            if (item->kind == TL_ITEM_MODE || item->kind == TL_ITEM_CONTEXT) {
                const uint64_t here = walk.walk.positions[i] < end ? walk.walk.positions[i] : end;
                r = add_run(s, &now, at, here);
                at = here > at ? here : at;
            }
            tl_flow_now_item(&now, item);
        }
        if (r >= 0)
            r = add_run(s, &now, at, end);
    }
    tl_cut_walk_end(&walk);
    return r;
}

/* The state at the begin of each column's chunk. */
static int sampled_states(struct states *s, struct tl_fail *fail)
{
    const struct tl_columns *const c = &s->columns;
    int r = TL_OK;
    for (size_t i = 0; i < c->n && r >= 0; i++) {
        struct tl_view *view;
        const struct tl_chunk *chunk;
        if (c->edges[i + 1] == c->edges[i])
            continue;
        r = chunk_at(c, c->edges[i], &view, &chunk, fail);
        if (r >= 0 && chunk)
            r = add_run(s, &chunk->at, c->edges[i], c->edges[i + 1]);
        tl_view_put(view);
        if (r >= 0)
            r = tl_cancel_check();
    }
    return r;
}

static void name_run(const struct tl_setup *setup, struct tl_state_run *run)
{
    const char *name = run->has_context ? tl_setup_context_name(setup, false, run->context) : NULL;
    if (!name && run->has_vmid)
        name = tl_setup_context_name(setup, true, run->vmid);
    snprintf(run->name, sizeof run->name, "%s", name ? name : "");
}

int tl_lake_states(struct tl_lake *lake, const struct tl_lane_request *request,
                   struct tl_states *out, struct tl_fail *fail)
{
    struct states s = {0};
    struct tl_columns *const c = &s.columns;
    *out = (struct tl_states){0};
    int r = tl_columns_open(c, lake, request, fail);
    if (r >= 0) {
        const uint64_t first = c->edges[0], end = c->edges[c->n];
        out->sampled = end - first > short_range;
        s.narrow = out->sampled ? 0 : (end - first) / c->n;
        r = out->sampled ? sampled_states(&s, fail) : exact_states(&s, first, end, fail);
    }
    for (size_t i = 0; i < s.n && r >= 0; i++) {
        if (s.p[i].has_mode)
            tl_mode_text(s.p[i].mode, s.p[i].mode_text);
        name_run(&c->cut.gen->setup, &s.p[i]);
        s.p[i].from = tl_columns_value(c, s.p[i].from);
        s.p[i].to =
            i + 1 == s.n ? tl_columns_value(c, s.p[i].to) : tl_columns_value(c, s.p[i + 1].from);
    }
    tl_columns_close(c);
    out->runs = s.p;
    out->n = s.n;
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_states_fini(struct tl_states *states)
{
    free(states->runs);
    *states = (struct tl_states){0};
}

/* ---- counters -------------------------------------------------------------------------------- */

static size_t column_of(const struct tl_columns *c, uint64_t position)
{
    const size_t begun = tl_count_upto(c->edges, sizeof *c->edges, 0, c->n, position);
    return begun > 0 ? begun - 1 : 0;
}

/*
 * Count cycles in [from, to). A count covers the time since the previous one, so it belongs to the
 * positions between the two. `column` SIZE_MAX: each is added to the column it ends in.
 */
static int count_cycles(struct tl_counters *out, const struct tl_columns *c, uint64_t from,
                        uint64_t to, size_t column, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    const struct tl_chunk *chunk;
    uint64_t last = UINT64_MAX; /* position of the previous count; UINT64_MAX: not known */
    tl_cut_walk_begin(&walk, &c->cut, from, to);
    walk.walk.detail = TL_WALK_ITEMS;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_peek(&walk, &chunk, fail)) >= 0 && chunk) {
        r = tl_cancel_check();
        if (r >= 0 && !(chunk->kinds & 1u << TL_ITEM_CYCLES)) {
            tl_cut_walk_skip(&walk);
            last = UINT64_MAX;
            continue;
        }
        if (r >= 0)
            r = tl_cut_walk_next(&walk, fail);
        for (size_t i = 0; i < walk.walk.n && r >= 0; i++) {
            const struct tl_item *const item = &walk.walk.items[i];
            const uint64_t at = walk.walk.positions[i];
            if (item->kind == TL_ITEM_GAP)
                last = UINT64_MAX;
            if (item->kind != TL_ITEM_CYCLES)
                continue;
            const bool known = item->flags & TL_ITEM_HAS_VALUE;
            if (known && last != UINT64_MAX && at > 0) {
                const size_t k = column == SIZE_MAX ? column_of(c, at - 1) : column;
                out->p[k].cycles += item->value;
                out->p[k].cycle_insns += at - last;
                out->has_cycles = true;
            }
            last = known ? at : UINT64_MAX;
        }
    }
    tl_cut_walk_end(&walk);
    return r;
}

static int sample_cycles(struct tl_counters *out, const struct tl_columns *c, struct tl_fail *fail)
{
    const size_t step = (c->n + SAMPLES - 1) / SAMPLES;
    int r = TL_OK;
    for (size_t i = 0; i < c->n && r >= 0; i += step) {
        struct tl_view *view;
        const struct tl_chunk *chunk;
        r = chunk_at(c, c->edges[i], &view, &chunk, fail);
        if (r >= 0 && chunk && chunk->kinds & 1u << TL_ITEM_CYCLES)
            r = count_cycles(out, c, chunk->first, chunk->first + chunk->n, i, fail);
        tl_view_put(view);
    }
    return r;
}

int tl_lake_counters(struct tl_lake *lake, const struct tl_lane_request *request,
                     struct tl_counters *out, struct tl_fail *fail)
{
    struct tl_columns c;
    *out = (struct tl_counters){0};
    int r = tl_columns_open(&c, lake, request, fail);
    if (r >= 0) {
        out->p = calloc(c.n, sizeof *out->p);
        out->n = out->p ? c.n : 0;
        r = out->p ? TL_OK : TL_NOMEM;
        out->from = c.from;
        out->to = c.to;
        out->has_time = c.time.n > 0;
    }
    for (size_t i = 0; i < out->n; i++) {
        uint64_t begin = 0, end = 0;
        out->p[i].insns = c.edges[i + 1] - c.edges[i];
        if (c.axis == TL_UNIT_TIME)
            out->p[i].time = tl_columns_at(&c, i + 1) - tl_columns_at(&c, i);
        else if (tl_scale_value(&c.time, c.edges[i], &begin) &&
                 tl_scale_value(&c.time, c.edges[i + 1], &end))
            out->p[i].time = end > begin ? end - begin : 0;
    }
    if (r >= 0) {
        out->sampled = c.edges[c.n] - c.edges[0] > short_range;
        r = out->sampled ? sample_cycles(out, &c, fail)
                         : count_cycles(out, &c, c.edges[0], c.edges[c.n], SIZE_MAX, fail);
    }
    tl_columns_close(&c);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_counters_fini(struct tl_counters *counters)
{
    free(counters->p);
    *counters = (struct tl_counters){0};
}
