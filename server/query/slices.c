/* SPDX-License-Identifier: MIT */
/*
 * Call-stack slices of a range. Each index chunk stores the stack at its begin, including where
 * each frame began. A short range is walked. In a long one the stacks are compared at the begin of
 * every n-th chunk: frames that are active at none of these are too short to be visible. This
 * brackets the end of each other frame; the stacks of the chunks in between narrow it to one chunk;
 * and that chunk's instructions give the exact end. slices_time.c does the same in time.
 */
#include "query/slices.h"

#include "lake/locate.h"
#include "lake_lanes.h"

#include <stdlib.h>

#define SLICES_MAX  4096
#define COLUMNS     1024                /* default width of the picture */
#define COLUMNS_MAX 4096                /* maximum width */
#define WALKS       128                 /* chunks whose instructions are read */
#define SHORT       (UINT64_C(1) << 22) /* maximum positions of a range that is walked */
#define SHORT_TIMED (UINT64_C(1) << 21) /* the same on the time axis */

/* ---- selecting the widest ------------------------------------------------------------------- */

static uint64_t width(const struct tl_slicing *s, const struct tl_slice *slice)
{
    const uint64_t from = slice->begin > s->low ? slice->begin : s->low;
    const uint64_t to = slice->end < s->high ? slice->end : s->high;
    return to > from ? to - from : 0;
}

void tl_slicing_leave_out(struct tl_slicing *s, uint64_t most)
{
    s->truncated = true;
    if (s->resolution < most)
        s->resolution = most;
}

struct width {
    uint64_t units; /* of the axis */
    uint64_t
        turn; /* pseudo-random order among equal widths, so that they are spread over the range */
    size_t slice;
};

static int by_width(const void *a, const void *b)
{
    const struct width *x = a, *y = b;
    if (x->units != y->units)
        return x->units > y->units ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static int by_slice(const void *a, const void *b)
{
    const struct width *x = a, *y = b;
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* All slices, widest first, owned by the caller. NULL: out of memory. */
static struct width *widest(const struct tl_slicing *s)
{
    struct width *order = malloc((s->n + 1) * sizeof(*order));
    for (size_t i = 0; order && i < s->n; i++)
        order[i] = (struct width){width(s, &s->p[i]),
                                  (s->p[i].from + s->p[i].depth) * UINT64_C(0x9e3779b97f4a7c15), i};
    if (order)
        qsort(order, s->n, sizeof(*order), by_width);
    return order;
}

/* Keep only the widest SLICES_MAX. */
static int trim(struct tl_slicing *s)
{
    if (s->n <= SLICES_MAX)
        return TL_OK;
    struct width *const order = widest(s);
    if (!order)
        return TL_NOMEM;
    s->narrowest = order[SLICES_MAX].units;
    tl_slicing_leave_out(s, s->narrowest);
    qsort(order, SLICES_MAX, sizeof(*order), by_slice);
    for (size_t i = 0; i < SLICES_MAX; i++)
        s->p[i] = s->p[order[i].slice];
    s->n = SLICES_MAX;
    free(order);
    return TL_OK;
}

int tl_slicing_add(struct tl_slicing *s, const struct tl_slice *slice)
{
    const uint64_t units = width(s, slice);
    if (units == 0)
        return TL_OK;
    if (s->n >= SLICES_MAX && units < s->narrowest)
        return TL_OK;
    const int r = tl_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p));
    if (r < 0)
        return r;
    s->p[s->n++] = *slice;
    return s->n < 2 * SLICES_MAX ? TL_OK : trim(s);
}

static int by_place(const void *a, const void *b)
{
    const struct tl_slice *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

struct tl_slice tl_slice_of(const struct tl_frame *frame, uint32_t depth, uint64_t end)
{
    return (struct tl_slice){.from = frame->insn,
                             .to = end,
                             .begin = frame->insn,
                             .end = end,
                             .pc = frame->pc,
                             .depth = depth,
                             .function = frame->function,
                             .exception = frame->exception,
                             .kind = frame->kind};
}

/* ---- walking -------------------------------------------------------------------------------- */

/* Walk from the begin of the chunk that contains `from`, where the stack is known: frames that end
 * before `to` are passed to `sink`. */
static int walk_frames(struct tl_slicing *s, struct tl_callstack *calls, tl_frame_sink *sink,
                       uint64_t from, uint64_t to, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, s->cut, from, to);
    walk.range.tail = false;
    walk.walk = s->walk;
    const int r = tl_cut_walk_follow(&walk, calls, sink, NULL, s, fail);
    s->walk = walk.walk; /* reuse its memory */
    walk.walk = (struct tl_walk){0};
    tl_cut_walk_end(&walk);
    return r;
}

/* ---- a short range -------------------------------------------------------------------------- */

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    if (change != TL_FRAME_POP)
        return TL_OK;
    struct tl_slice slice = tl_slice_of(frame, depth, insn);
    slice.exact = true;
    return tl_slicing_add(context, &slice);
}

static int walked(struct tl_slicing *s, struct tl_callstack *calls, struct tl_fail *fail)
{
    int r = walk_frames(s, calls, on_frame, s->from, s->to, fail);
    if (r >= 0) {
        calls->insns = s->to;
        r = tl_callstack_finish(calls);
    }
    return r;
}

/* ---- a long one: where stacks differ -------------------------------------------------------- */

/* Frames of `last`, the stack at `low`, that are not in `now`, the one at `high`, ended between
 * them. */
static int compare_stacks(struct tl_slicing *s, const struct tl_callstack *last,
                          const struct tl_callstack *now, uint64_t low, uint64_t high)
{
    uint32_t same = 0;
    while (same < last->depth && same < now->depth &&
           tl_same_frame(&last->frames[same], &now->frames[same]))
        same++;
    int r = TL_OK;
    for (uint32_t i = last->depth; i-- > same && r >= 0;) {
        struct tl_slice slice = tl_slice_of(&last->frames[i], i, high);
        slice.low = low;
        slice.high = high;
        r = tl_slicing_add(s, &slice);
    }
    tl_slicing_leave_out(s,
                         high - (low > s->from ? low : s->from)); /* begun and ended between them */
    return r;
}

static int sampled(struct tl_slicing *s, uint32_t columns, struct tl_callstack *last,
                   struct tl_callstack *now, struct tl_fail *fail)
{
    const uint64_t stride = (s->to - s->from) / columns;
    uint64_t next = 0, low = s->from;
    int r = TL_OK;
    last->depth = 0;
    for (size_t i = tl_cut_shard_at(s->cut, s->from); i < s->cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *row = &s->cut->rows[i];
        if (row->first >= s->to)
            break;
        if (row->first + row->n <= next)
            continue;
        struct tl_view *view = NULL;
        r = tl_cut_view(s->cut, i, &view, fail);
        for (size_t c = 0; r >= 0 && c < view->index.n_chunks; c++) {
            const uint64_t first = view->index.chunks[c].first;
            if (first < next || first >= s->to || first + view->index.chunks[c].n <= s->from)
                continue;
            r = tl_stack_at_chunk(view, c, now, fail);
            if (r >= 0 && first > s->from)
                r = compare_stacks(s, last, now, low, first);
            *last = *now;
            low = first;
            next = first + stride;
        }
        tl_view_put(view);
    }
    now->depth = 0;
    return r < 0 ? r : compare_stacks(s, last, now, low, s->to);
}

/* ---- exact bounds --------------------------------------------------------------------------- */

static int on_end(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                  uint32_t depth, uint64_t insn)
{
    struct tl_slicing *const s = context;
    if (change != TL_FRAME_POP)
        return TL_OK;
    const struct tl_slice wanted = tl_slice_of(frame, depth, insn);
    struct tl_slice *const slice = bsearch(&wanted, s->p, s->n, sizeof(*s->p), by_place);
    if (slice && !slice->exact) {
        slice->to = slice->end = insn;
        slice->exact = true;
    }
    return TL_OK;
}

/* Find the ends of the widest slices, in order of position. Walking a chunk finds all ends
 * in it. */
static int find_ends(struct tl_slicing *s, struct tl_callstack *calls, struct tl_callstack *now,
                     struct tl_fail *fail)
{
    struct width *const order = widest(s);
    int r = order ? TL_OK : TL_NOMEM;
    for (size_t i = 0, walks = 0; r >= 0 && i < s->n && walks < WALKS; i++) {
        struct tl_slice *const slice = &s->p[order[i].slice];
        if (slice->exact)
            continue;
        walks++;
        const struct tl_frame frame = {.insn = slice->from, .pc = slice->pc};
        r = tl_stack_bisect(s->cut, &frame, slice->depth, &slice->low, &slice->high, now, fail);
        if (r >= 0)
            r = walk_frames(s, calls, on_end, slice->low, slice->high, fail);
        if (!slice->exact) { /* after the last instruction there */
            slice->to = slice->end = slice->high;
            slice->exact = true;
        }
    }
    free(order);
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------- */

void tl_slices_fini(struct tl_slices *slices)
{
    free(slices->p);
    tl_gen_put(slices->gen);
    *slices = (struct tl_slices){0};
}

static int slice_insns(struct tl_slicing *s, uint32_t columns, struct tl_callstack calls[static 2],
                       struct tl_fail *fail)
{
    const bool is_short = s->to - s->from <= SHORT;
    s->low = s->from;
    s->high = s->to;
    int r = is_short ? walked(s, &calls[0], fail) : sampled(s, columns, &calls[0], &calls[1], fail);
    if (r >= 0)
        r = trim(s);
    if (r >= 0 && s->n > 0) {
        qsort(s->p, s->n, sizeof(*s->p), by_place);
        r = find_ends(s, &calls[0], &calls[1], fail);
    }
    return r;
}

static int slice_time(struct tl_slicing *s, const struct tl_slices_request *request,
                      uint32_t columns, struct tl_callstack calls[static 2], struct tl_fail *fail)
{
    const bool is_short = s->to - s->from <= SHORT_TIMED;
    s->axis = tl_lane_axis(s->cut->lane);
    s->low = tl_axis_ticks(&s->axis, request->from);
    s->high = tl_axis_ticks(&s->axis, request->to);
    int r = is_short ? tl_slicing_walk_time(s, fail)
                     : tl_slicing_sample_time(s, columns, &calls[0], &calls[1], fail);
    if (r >= 0)
        r = trim(s);
    if (r >= 0)
        r = tl_slicing_find_begins(s, fail);
    if (s->n > 0)
        qsort(s->p, s->n, sizeof(*s->p), by_place);
    return r;
}

/* The program below handlers that hardware alone reports has no address: it is what the processor
 * does in thread mode. */
static const char *name_of(const struct tl_slicing *s, const struct tl_slice *slice)
{
    const bool reported = slice->kind == TL_FRAME_ROOT && slice->pc == 0;
    return reported && slice->function == TL_NO_FUNCTION
               ? "thread mode"
               : tl_function_name(s->image, slice->function);
}

static int answer(struct tl_slicing *s, struct tl_slices *out)
{
    const struct tl_axis *const axis = &s->axis;
    out->truncated = s->truncated;
    out->resolution = tl_axis_shown(axis, s->low + s->resolution) - tl_axis_shown(axis, s->low);
    out->gen = tl_gen_get(s->cut->gen);
    out->p = calloc(s->n + 1, sizeof(*out->p));
    if (!out->p)
        return TL_NOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const struct tl_slice *slice = &s->p[i];
        if (width(s, slice) == 0) /* it ended before the range */
            continue;
        out->p[out->n++] = (struct tl_stack_slice){
            .from = tl_axis_shown(axis, slice->begin),
            .to = tl_axis_shown(axis, slice->end < s->high ? slice->end : s->high),
            .pc = slice->pc,
            .depth = slice->depth,
            .is_exception = slice->kind == TL_FRAME_EXCEPTION,
            .interrupt = slice->exception & TL_EXCEPTION_INTERRUPT,
            .exception = tl_exception_number(slice->exception),
            .exact = slice->exact,
            .name = name_of(s, slice),
        };
    }
    return TL_OK;
}

int tl_lake_slices(struct tl_lake *lake, const struct tl_slices_request *request,
                   struct tl_slices *out, struct tl_fail *fail)
{
    *out = (struct tl_slices){0};
    if (request->columns > COLUMNS_MAX)
        return tl_fail_set(fail, TL_USAGE, "no more than %u columns", COLUMNS_MAX);
    const struct tl_cut_range range = {request->axis, request->from, request->to};
    struct tl_cut cut;
    int r = tl_cut_open_range(&cut, lake, request->trace, request->stream, &range, fail);
    if (r < 0)
        return r;
    struct tl_slicing s = {.cut = &cut, .image = tl_gen_image(cut.gen)};
    struct tl_callstack *calls = calloc(2, sizeof(*calls));
    const uint32_t columns = request->columns ? request->columns : COLUMNS;
    enum tl_range_unit axis = request->axis;
    r = tl_cut_unit(&cut, &axis, fail);
    if (r >= 0)
        r = tl_cut_resolve(&cut, axis, request->from, request->to, &s.from, &s.to, fail);
    if (r >= 0 && !calls)
        r = TL_NOMEM;
    if (r >= 0)
        r = axis == TL_UNIT_TIME ? slice_time(&s, request, columns, calls, fail)
                                 : slice_insns(&s, columns, calls, fail);
    if (r >= 0)
        r = answer(&s, out);
    tl_walk_fini(&s.walk);
    free(s.p);
    free(calls);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
