/* SPDX-License-Identifier: MIT */
/*
 * Call-stack slices by time. Stacks are compared at begins of chunks, at most a column apart. Where
 * the next chunk begins more than two columns later, since the processor was idle in between or the
 * picture is of few chunks, what is between them is walked. So every slice of two columns is found:
 * it is active at one of these begins, or lies where all is walked.
 */
#include "query/slices.h"

#include "shard/timeknots.h"

#include <stdlib.h>

#define WALKS 512 /* stretches that are walked, at most: no more have two columns */

/* ---- by walking ----------------------------------------------------------------------------- */

static int on_call(void *context, const struct tl_timed_call *call)
{
    struct tl_slicing *const s = context;
    struct tl_slice slice = tl_slice_of(call->frame, call->depth, call->end);
    slice.begin = call->begun ? call->begin_time : 0;
    slice.end = call->end_time;
    slice.exact = true;
    return tl_slicing_add(s, &slice);
}

int tl_slicing_walk_time(struct tl_slicing *s, struct tl_fail *fail)
{
    const struct tl_timed_sinks sinks = {.call = on_call, .context = s};
    return tl_timed_walk(s->cut, s->low, s->high, &sinks, fail);
}

int tl_slicing_find_begins(struct tl_slicing *s, struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = 0; i < s->n && r >= 0; i++) {
        struct tl_slice *const slice = &s->p[i];
        struct tl_scale scale;
        uint64_t shown;
        if (slice->begin > 0)
            continue;
        r = tl_scale_open(&scale, s->cut, TL_SCALE_TIME, false, slice->from, slice->from, fail);
        if (r < 0)
            break;
        if (tl_scale_value(&scale, slice->from, &shown))
            slice->begin = tl_axis_ticks(&s->axis, shown);
        tl_scale_close(&scale);
    }
    return r;
}

/* ---- by comparing --------------------------------------------------------------------------- */

struct sampling {
    struct tl_slicing *s;
    struct tl_callstack *last, *now; /* at the last begin of a chunk, and at this one */
    uint64_t position, time;         /* of the last one */
    uint64_t column;                 /* ticks */
    /* Consecutive stretches to be walked: up to the last one, and while they are, to `until`. */
    bool pending;
    uint64_t begin_position, begin_time, until;
    size_t walks;
    struct began { /* by depth: the frame of `last` that began at this time */
        uint64_t insn, time;
    } began[TL_CALLSTACK_MAX];
};

/* When a frame of the last stack began; 0: not known yet. */
static uint64_t began_at(const struct sampling *g, uint32_t depth, const struct tl_frame *frame)
{
    const struct began *const b = &g->began[depth];
    return b->insn == frame->insn ? b->time : 0;
}

/* Add the frames of the last stack that are not there any more at this one. */
static int compare(struct sampling *g, uint64_t position, uint64_t time)
{
    uint32_t same = 0;
    int r = TL_OK;
    while (same < g->last->depth && same < g->now->depth &&
           tl_same_frame(&g->last->frames[same], &g->now->frames[same]))
        same++;
    for (uint32_t i = g->last->depth; i-- > same && r >= 0;) {
        struct tl_slice slice = tl_slice_of(&g->last->frames[i], i, position);
        slice.begin = began_at(g, i, &g->last->frames[i]);
        slice.end = time;
        r = tl_slicing_add(g->s, &slice);
    }
    return r;
}

/* A call of a stretch that is walked. What ends with a chunk's first instruction is in the stack at
 * its begin, and ends in the next stretch. */
static int on_walked(void *context, const struct tl_timed_call *call)
{
    struct sampling *const g = context;
    if (call->begun && call->frame->insn < g->until)
        g->began[call->depth] = (struct began){call->frame->insn, call->begin_time};
    const bool ends = call->ended ? call->end < g->until : g->until == UINT64_MAX;
    if (!ends || call->end < g->begin_position)
        return TL_OK;
    struct tl_slice slice = tl_slice_of(call->frame, call->depth, call->end);
    slice.begin = began_at(g, call->depth, call->frame);
    slice.end = call->end_time;
    slice.exact = true;
    return tl_slicing_add(g->s, &slice);
}

/* The frames that are new at this begin of a chunk began in between. */
static void note_begins(struct sampling *g, uint64_t position, uint64_t time)
{
    for (uint32_t i = 0; i < g->now->depth; i++) {
        const struct tl_frame *const frame = &g->now->frames[i];
        struct began *const b = &g->began[i];
        if (b->insn == frame->insn && b->time > 0)
            continue;
        *b = (struct began){.insn = frame->insn};
        if (frame->insn >= g->position && frame->insn < position && g->position > g->s->from)
            b->time = g->time + tl_time_share(frame->insn - g->position, time - g->time,
                                              position - g->position);
    }
}

/* Walk what is pending, up to a chunk's begin, and to the first timestamp behind it. */
static int walk_pending(struct sampling *g, uint64_t position, uint64_t time, struct tl_fail *fail)
{
    const struct tl_timed_sinks sinks = {.call = on_walked, .context = g};
    if (!g->pending)
        return TL_OK;
    g->pending = false;
    g->until = position;
    return tl_timed_walk(g->s->cut, g->begin_time, time + 1, &sinks, fail);
}

/* From the last begin of a chunk to this one. */
static int pass(struct sampling *g, uint64_t position, uint64_t time, struct tl_fail *fail)
{
    int r = TL_OK;
    if (time - g->time > 2 * g->column && g->walks < WALKS) {
        g->walks++;
        g->begin_position = g->pending ? g->begin_position : g->position;
        g->begin_time = g->pending ? g->begin_time : g->time;
        g->pending = true;
    } else {
        r = walk_pending(g, g->position, g->time, fail);
        tl_slicing_leave_out(g->s, time - g->time);
        if (r >= 0)
            r = compare(g, position, time);
    }
    note_begins(g, position, time);
    g->position = position;
    g->time = time;
    return r;
}

static int sample_view(struct sampling *g, struct tl_view *view, uint64_t *next,
                       struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &view->index;
    int r = TL_OK;
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++) {
        const struct tl_chunk *const c = &index->chunks[i];
        const uint64_t time = c->at.axis > g->time ? c->at.axis : g->time;
        /* The next one may be too far away to do without this one. */
        const bool needed = i + 1 == index->n_chunks || index->chunks[i + 1].at.axis > *next;
        if (c->first >= g->s->to || c->first + c->n <= g->s->from || (time < *next && !needed))
            continue;
        r = tl_stack_at_chunk(view, i, g->now, fail);
        if (r >= 0 && time > g->s->low)
            r = pass(g, c->first, time, fail);
        *g->last = *g->now;
        *next = g->time + g->column;
    }
    return r;
}

static int sample(struct sampling *g, struct tl_fail *fail)
{
    const struct tl_slicing *const s = g->s;
    const struct tl_cut *const cut = s->cut;
    uint64_t next = 0, from, to;
    int r = TL_OK;
    for (size_t i = tl_cut_shard_at(cut, s->from);
         i < cut->n_rows && cut->rows[i].first < s->to && r >= 0; i++) {
        const bool last = i + 1 == cut->n_rows || cut->rows[i + 1].first >= s->to;
        struct tl_view *view;
        if (!last && tl_cut_row_time(cut, i, &from, &to) && to < next)
            continue;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = sample_view(g, view, &next, fail);
        tl_view_put(view);
    }
    return r;
}

/* The range's end, or the last timestamp. */
static uint64_t end_of(const struct tl_slicing *s)
{
    uint64_t from, to;
    for (size_t i = s->cut->n_rows; i-- > 0;)
        if (tl_cut_row_time(s->cut, i, &from, &to))
            return to < s->high ? to : s->high;
    return s->low;
}

int tl_slicing_sample_time(struct tl_slicing *s, uint32_t columns, struct tl_callstack *last,
                           struct tl_callstack *now, struct tl_fail *fail)
{
    struct sampling *const g = calloc(1, sizeof *g);
    const uint64_t end = end_of(s);
    if (!g)
        return TL_NOMEM;
    *g = (struct sampling){.s = s, .last = last, .now = now, .position = s->from, .time = s->low};
    g->column = end > s->low ? (end - s->low) / columns : 0;
    last->depth = now->depth = 0;
    int r = sample(g, fail);
    now->depth = 0;
    if (r >= 0 && end >= g->time)
        r = pass(g, UINT64_MAX, end + 1, fail);
    if (r >= 0)
        r = walk_pending(g, UINT64_MAX, end, fail);
    free(g);
    return r;
}
