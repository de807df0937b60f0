/* SPDX-License-Identifier: MIT */
/*
 * Runs of instructions are collected from timestamp to timestamp, since the time of each depends on
 * both. A walk begins at a chunk with a timestamp before the range, so that a long silence costs no
 * more than the chunk it begins in.
 */
#include "lake/timed_walk.h"

#include "base/cancel.h"
#include "shard/savedstack.h"
#include "shard/timeknots.h"

#include <stdlib.h>

/* Instructions of one function at one depth and privilege, since the last timestamp. */
struct run {
    uint64_t position, end;
    uint32_t function, depth;
    uint8_t privilege;
};

/* A change of the call stack, at a position. */
struct change {
    struct tl_frame frame;
    uint64_t position;
    uint32_t depth;
    bool pops;
};

struct timed_walk {
    const struct tl_cut *cut;
    const struct tl_image *image;
    uint64_t to; /* ticks */
    const struct tl_timed_sinks *sinks;
    struct tl_time_knots knots;
    struct run *runs;
    size_t n, cap;
    bool timed;      /* there was a timestamp */
    bool separate;   /* the next instruction begins a run of its own */
    bool idle;       /* the last instruction waits: `last` is it; else trace is missing */
    uint8_t missing; /* unless idle: enum tl_timed_kind */
    bool over;       /* behind the range */
    struct run last;
    uint64_t time; /* after the last span */
    struct tl_flow_now now;
    /* If calls are wanted: changes of the stack since the last timestamp, the times at which its
     * frames began (UINT64_MAX: before the walk). */
    struct change *changes;
    size_t n_changes, cap_changes;
    size_t settled; /* changes whose time is known */
    uint64_t *begins;
    struct tl_callstack calls;
};

/* ---- spans ---------------------------------------------------------------------------------- */

static int give(struct timed_walk *w, const struct tl_timed_span *span)
{
    return w->sinks->span && span->time < w->to ? w->sinks->span(w->sinks->context, span) : TL_OK;
}

static int give_run(struct timed_walk *w, const struct run *run, uint64_t from, uint64_t to)
{
    return give(w, &(struct tl_timed_span){.time = from,
                                           .end_time = to,
                                           .position = run->position,
                                           .end = run->end,
                                           .function = run->function,
                                           .depth = run->depth,
                                           .privilege = run->privilege,
                                           .kind = TL_TIMED_RUN});
}

static int give_missing(struct timed_walk *w, uint8_t kind, uint64_t position, uint64_t to)
{
    const struct tl_timed_span span = {.time = w->time,
                                       .end_time = to,
                                       .position = position,
                                       .end = position,
                                       .function = TL_NO_FUNCTION,
                                       .privilege = UINT8_MAX,
                                       .kind = kind};
    w->idle = false;
    w->missing = kind;
    w->time = to;
    return give(w, &span);
}

/* Trace is missing before the next run. */
static int give_break(struct timed_walk *w, uint64_t to)
{
    return give_missing(w, tl_missing_kind(w->knots.flags), w->knots.place, to);
}

static int give_call(struct timed_walk *w, const struct tl_frame *frame, uint32_t depth, bool ended,
                     uint64_t end, uint64_t end_time)
{
    const struct tl_timed_call call = {.frame = frame,
                                       .depth = depth,
                                       .ended = ended,
                                       .begun = w->begins[depth] != UINT64_MAX,
                                       .begin_time = w->begins[depth],
                                       .end = end,
                                       .end_time = end_time};
    return w->sinks->call(w->sinks->context, &call);
}

/* Changes of the stack up to `position` were at this time. */
static int settle_changes(struct timed_walk *w, uint64_t position, uint64_t time)
{
    int r = TL_OK;
    for (; w->settled < w->n_changes && w->changes[w->settled].position <= position && r >= 0;
         w->settled++) {
        const struct change *const c = &w->changes[w->settled];
        if (c->pops)
            r = give_call(w, &c->frame, c->depth, true, c->position, time);
        w->begins[c->depth] = c->pops ? UINT64_MAX : time;
    }
    return r;
}

/* Called before the run behind the change is taken, so that it begins one. */
static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct timed_walk *const w = context;
    const int r = tl_grow(&w->changes, &w->cap_changes, w->n_changes + 1, sizeof *w->changes);
    if (r >= 0)
        w->changes[w->n_changes++] = (struct change){*frame, insn, depth, change == TL_FRAME_POP};
    w->separate = true;
    return r;
}

/* The time of a position from `point` to the one behind it, whose own position has its time. */
static uint64_t time_at(const struct tl_time_point *point, uint64_t position)
{
    const struct tl_time_point *const next = point + 1;
    if (position >= next->position)
        return next->time;
    return point->time + tl_time_share(position - point->position, next->time - point->time,
                                       next->position - point->position);
}

/* The runs between two timestamps have their times now. */
static int settle(struct timed_walk *w, uint64_t end_time)
{
    const struct tl_time_knots *const k = &w->knots;
    bool broken = k->broken;
    size_t point = 0;
    int r = TL_OK;
    for (size_t i = 0; i < w->n && r >= 0; i++) {
        const struct run *const run = &w->runs[i];
        if (broken && run->position >= k->place) {
            r = give_break(w, end_time);
            broken = false;
        }
        if (r >= 0)
            r = settle_changes(w, run->position, w->time);
        while (point + 2 < k->n && k->points[point + 1].position <= run->end)
            point++;
        const uint64_t to = broken ? w->time : time_at(&k->points[point], run->end);
        if (r >= 0)
            r = give_run(w, run, w->time, to);
        w->time = to;
        w->last = *run;
        w->idle = true;
    }
    if (broken && r >= 0)
        r = give_break(w, end_time);
    w->n = 0;
    w->separate = true;
    w->n_changes -= w->settled;
    if (w->settled > 0)
        memmove(w->changes, w->changes + w->settled, w->n_changes * sizeof *w->changes);
    w->settled = 0;
    return r;
}

/* Time passed without an instruction. */
static int wait(struct timed_walk *w, uint64_t position, uint64_t to)
{
    struct run run = w->last;
    if (w->time >= to)
        return TL_OK;
    if (!w->idle)
        return give_missing(w, w->missing, position, to);
    run.position = run.end = position;
    const uint64_t from = w->time;
    w->time = to;
    return give_run(w, &run, from, to);
}

static int take_time(struct timed_walk *w, uint64_t position, uint64_t ticks)
{
    int r = TL_OK;
    if (w->timed) {
        r = tl_time_knots_end(&w->knots, position, ticks);
        if (r >= 0)
            r = settle(w, ticks);
        if (r >= 0)
            r = wait(w, position, ticks);
    } else {
        w->time = ticks;
        w->missing = TL_TIMED_LOST;
        if (w->n > 0)
            w->last = w->runs[w->n - 1];
        w->idle = w->n > 0 && !w->separate;
        w->n = w->n_changes = 0;
    }
    w->timed = true;
    w->separate = true;
    w->over |= ticks >= w->to;
    return r < 0 ? r : tl_time_knots_begin(&w->knots, position, ticks);
}

/* ---- items ---------------------------------------------------------------------------------- */

static int take_run(struct timed_walk *w, uint64_t position, uint64_t n, uint32_t function)
{
    const uint32_t depth = tl_callstack_depth(&w->calls);
    const uint8_t privilege = (uint8_t)tl_flow_now_privilege(&w->now);
    struct run *const last = w->n > 0 ? &w->runs[w->n - 1] : NULL;
    if (last && !w->separate && last->function == function && last->depth == depth &&
        last->privilege == privilege) {
        last->end = position + n;
        return TL_OK;
    }
    w->separate = false;
    if (!w->timed && last) { /* only the last one before the first timestamp matters */
        *last = (struct run){position, position + n, function, depth, privilege};
        return TL_OK;
    }
    const int r = tl_grow(&w->runs, &w->cap, w->n + 1, sizeof *w->runs);
    if (r >= 0)
        w->runs[w->n++] = (struct run){position, position + n, function, depth, privilege};
    return r;
}

static int take_item(struct timed_walk *w, const struct tl_item *item, uint64_t position)
{
    if (item->kind == TL_ITEM_BLOCK)
        return take_run(w, position, item->n, item->block->function);
    tl_flow_now_item(&w->now, item);
    if (tl_item_is_anchor(item))
        return take_time(w, position, w->now.axis);
    w->separate |= item->kind == TL_ITEM_GAP || item->kind == TL_ITEM_TRACE_ON;
    if (w->timed) {
        const int r = tl_time_knots_item(&w->knots, position, item);
        if (r < 0)
            return r;
    }
    if (!tl_item_is_point(w->cut->lane->protocol, item->kind))
        return TL_OK;
    const uint32_t function = tl_item_is_code(item)
                                  ? tl_flow_now_function(&w->now, w->image, tl_item_address(item))
                                  : TL_NO_FUNCTION;
    return take_run(w, position, 1, function);
}

static int walk_chunk(struct timed_walk *w, const struct tl_walk *walk)
{
    int r = TL_OK;
    w->now = walk->now;
    for (size_t i = 0; i < walk->n && r >= 0 && !w->over; i++) {
        r = tl_walk_follow(walk, &w->calls, i);
        if (r >= 0)
            r = take_item(w, &walk->items[i], walk->positions[i]);
        if (r >= 0 && w->sinks->each)
            w->sinks->each(w->sinks->context, walk, i);
    }
    return r;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int want_calls(struct timed_walk *w)
{
    w->begins = malloc(TL_CALLSTACK_MAX * sizeof *w->begins);
    for (size_t i = 0; w->begins && i < TL_CALLSTACK_MAX; i++)
        w->begins[i] = UINT64_MAX;
    return w->begins ? TL_OK : TL_NOMEM;
}

/* Frames that are there at the end have the last time. */
static int give_rest(struct timed_walk *w)
{
    int r = settle_changes(w, UINT64_MAX, w->time);
    for (uint32_t i = w->calls.depth; i-- > 0 && r >= 0;)
        r = give_call(w, &w->calls.frames[i], i, false, w->calls.insns, w->time);
    return r;
}

/* ---- the range ------------------------------------------------------------------------------ */

bool tl_cut_row_time(const struct tl_cut *cut, size_t row, uint64_t *from, uint64_t *to)
{
    const struct tl_shard_row *const at = &cut->rows[row];
    if (at->anchors == 0)
        return false;
    *from = at->at.has_time ? at->at.axis : at->anchor_first.time;
    *to = at->anchor_last.time;
    return true;
}

/* The first row that is entered at or after the time. */
static size_t row_after(const struct tl_cut *cut, uint64_t time)
{
    size_t low = 0, high = cut->n_rows;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct tl_flow_now *const at = &cut->rows[middle].at;
        if (at->has_time && at->axis >= time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Find the last chunk of a shard with an instruction, and a timestamp after it that is before the
 * time. */
static int chunk_before(const struct tl_cut *cut, size_t row, uint64_t time, bool *found,
                        uint64_t *position, struct tl_fail *fail)
{
    struct tl_view *view;
    const int r = tl_cut_view(cut, row, &view, fail);
    if (r < 0)
        return r;
    for (size_t i = view->index.n_chunks; i-- > 0 && !*found;) {
        const struct tl_chunk *const c = &view->index.chunks[i];
        *found =
            c->anchors > 0 && c->anchor_first.time < time && c->anchor_first.position > c->first;
        *position = c->first;
    }
    tl_view_put(view);
    return r;
}

/* Where to begin, to know all times from this one on, and what ran before it. */
static int begin_of(const struct tl_cut *cut, uint64_t time, uint64_t *position,
                    struct tl_fail *fail)
{
    bool found = false;
    int r = TL_OK;
    for (size_t i = row_after(cut, time); i-- > 0 && !found && r >= 0;)
        if (cut->rows[i].anchors > 0 && cut->rows[i].anchor_first.time < time)
            r = chunk_before(cut, i, time, &found, position, fail);
    for (size_t i = 0; i < cut->n_rows && !found; i++) { /* nothing is before it */
        found = cut->rows[i].anchors > 0;
        *position = cut->rows[i].first;
    }
    if (!found)
        *position = cut->end;
    return r;
}

static int walk_range(struct timed_walk *w, uint64_t first, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, w->cut, first, UINT64_MAX);
    walk.walk.detail = TL_WALK_FLOW;
    walk.walk.image = w->image;
    tl_callstack_init(&w->calls, w->image, first, w->sinks->call ? on_frame : NULL, w);
    int r = tl_cut_walk_calls(&walk, &w->calls, fail);
    while (r >= 0 && !w->over && (r = tl_cut_walk_next(&walk, fail)) >= 0) {
        r = walk_chunk(w, &walk.walk);
        if (r >= 0)
            r = tl_cancel_check();
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

int tl_timed_walk(const struct tl_cut *cut, uint64_t from, uint64_t to,
                  const struct tl_timed_sinks *sinks, struct tl_fail *fail)
{
    struct timed_walk *const w = calloc(1, sizeof *w);
    uint64_t first;
    if (!w)
        return TL_NOMEM;
    w->cut = cut;
    w->image = tl_gen_image(cut->gen);
    w->to = to;
    w->sinks = sinks;
    tl_time_knots_init(&w->knots, cut->lane->protocol);
    int r = sinks->call ? want_calls(w) : TL_OK;
    if (r >= 0)
        r = begin_of(cut, from, &first, fail);
    if (r >= 0 && first < cut->end)
        r = walk_range(w, first, fail);
    if (r >= 0 && sinks->call)
        r = give_rest(w);
    tl_time_knots_fini(&w->knots);
    free(w->runs);
    free(w->changes);
    free(w->begins);
    free(w);
    return r;
}
