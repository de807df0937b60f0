/* SPDX-License-Identifier: MIT */
/*
 * Makes the rows of a part as those of a shard are made while it is built, so that whoever reads
 * them need not know where they are from. It serves parts that are no whole shard.
 */
#include "query/timed_rows.h"

#include <stdlib.h>

struct begun {
    struct tl_exception_span row; /* as far as it is known */
    bool dated;                   /* its begin's time is */
};

struct maker {
    const struct tl_timing_part *part;
    struct tl_timed_rows *rows;
    struct begun left; /* the exception whose frame was left last, if `has_left` */
    bool has_left;
    bool waits; /* the handler of one has not begun: */
    struct tl_exception_span waiting;
    uint32_t active;                      /* exceptions on the stack */
    struct begun begun[TL_CALLSTACK_MAX]; /* by depth */
};

static uint8_t flags_of(const struct tl_frame *frame)
{
    return (uint8_t)((tl_frame_is_call(frame) ? 0 : TL_EXCEPTION_RESUMED) |
                     (frame->flags & TL_FRAME_SIGNAL ? TL_EXCEPTION_SIGNAL : 0));
}

/* The exception whose last frame was left is over. */
static int finish(struct maker *m)
{
    const bool has = m->has_left;
    m->has_left = false;
    return has ? tl_timed_rows_exception(m->rows, &m->left.row) : TL_OK;
}

/* The handler that is waited for does not come. */
static int unseen(struct maker *m)
{
    const bool waits = m->waits;
    int r = finish(m);
    m->waits = false;
    if (r >= 0 && waits)
        r = tl_timed_rows_exception(m->rows, &m->waiting);
    return r;
}

static int on_begin(void *context, const struct tl_frame *frame, uint32_t depth,
                    const struct tl_moment *at)
{
    struct maker *const m = context;
    (void)at;
    if (m->waits && frame->insn > m->waiting.begin) {
        const int r = unseen(m);
        if (r < 0)
            return r;
    }
    if (frame->kind == TL_FRAME_EXCEPTION && tl_frame_is_call(frame) &&
        !(frame->flags & TL_FRAME_SIGNAL))
        m->waits = false;
    if (frame->flags & TL_FRAME_CONTINUED && m->has_left) {
        m->has_left = false;
        m->begun[depth] = m->left;
        m->active++;
        return TL_OK;
    }
    const int r = finish(m);
    if (r < 0 || frame->kind != TL_FRAME_EXCEPTION)
        return r;
    m->begun[depth] = (struct begun){.row = {.begin = frame->insn,
                                             .level = ++m->active,
                                             .number = frame->exception,
                                             .flags = flags_of(frame)}};
    return TL_OK;
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct maker *const m = context;
    struct begun *const begun = &m->begun[call->depth];
    struct tl_exception_span *const row = &begun->row;
    const int r = m->waits && call->end > m->waiting.begin ? unseen(m) : finish(m);
    if (r < 0 || call->frame.kind != TL_FRAME_EXCEPTION)
        return r;
    if (!begun->dated)
        row->time = call->from.time;
    begun->dated = true;
    row->end = call->end;
    row->end_time = call->to.time;
    row->self += call->self;
    row->self_time += call->self_time;
    row->function = call->frame.function;
    row->flags |= (uint8_t)((call->open ? TL_EXCEPTION_OPEN : 0) |
                            (call->frame.flags & TL_FRAME_LOST ? TL_EXCEPTION_UNSEEN : 0));
    m->active--;
    if (row->flags & TL_EXCEPTION_CUT)
        return tl_timed_rows_exception(m->rows, row);
    m->left = *begun;
    m->has_left = true;
    return TL_OK;
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct maker *const m = context;
    (void)from;
    (void)to;
    tl_timed_extent_span(&m->rows->extent, span);
    return TL_OK;
}

struct tl_gap_span tl_timed_rows_gap_of(const struct tl_scale_break *gap)
{
    return (struct tl_gap_span){.position = gap->position,
                                .time = gap->from,
                                .end_time = gap->to,
                                .gaps = gap->count,
                                .reasons = gap->reasons,
                                .kind = tl_missing_kind(gap->flags)};
}

static int on_gap(void *context, const struct tl_scale_break *gap)
{
    struct maker *const m = context;
    const struct tl_gap_span span = tl_timed_rows_gap_of(gap);
    return tl_timed_rows_gap(m->rows, &span);
}

/* The item comes before the handler's frame, if that comes. */
static int on_item(void *context, const struct tl_item *item, uint64_t position,
                   const struct tl_moment *at)
{
    struct maker *const m = context;
    if (position == m->part->to && m->part->has_end) /* of the stored part that follows */
        return TL_OK;
    int r = m->waits ? unseen(m) : TL_OK;
    if (r < 0 || item->kind != TL_ITEM_EXCEPTION)
        return r;
    m->waits = true;
    m->waiting = (struct tl_exception_span){.begin = position,
                                            .end = position,
                                            .time = at->time,
                                            .end_time = at->time,
                                            .function = TL_NO_FUNCTION,
                                            .level = m->active + 1,
                                            .number = item->sub,
                                            .flags = TL_EXCEPTION_UNSEEN};
    return tl_timed_rows_name(m->rows, item->sub, item->text);
}

int tl_timed_rows_walk(const struct tl_cut *cut, const struct tl_timing_part *part,
                       struct tl_timed_rows *rows, struct tl_fail *fail)
{
    struct maker *const m = calloc(1, sizeof *m);
    const struct tl_timing_sinks sinks = {.span = on_span,
                                          .begin = on_begin,
                                          .end = on_end,
                                          .gap = on_gap,
                                          .item = on_item,
                                          .context = m};
    if (!m)
        return TL_NOMEM;
    m->part = part;
    m->rows = rows;
    int r = tl_timing_walk_part(cut, part, &sinks, fail);
    /* What is behind the range may have the handler. */
    m->waits &= m->waiting.begin < part->to || !cut->open;
    if (r >= 0)
        r = unseen(m);
    free(m);
    tl_timed_rows_close(rows);
    rows->extent.from = part->from;
    rows->extent.to = part->to;
    return r;
}
