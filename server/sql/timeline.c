/* SPDX-License-Identifier: MIT */
/*
 * The table of what happens in a stream, in order: frames of the call stack begin and end, events
 * and gaps are between them. It begins with the frames that are there already, so that a picture
 * can be drawn from any position on, and a reader of pages needs no page but the present one.
 */
#include "query/query.h"
#include "sql/flow.h"

#include <stdlib.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum what { OPEN, BEGIN, END, EVENT, GAP };

struct row {
    struct tl_frame frame; /* OPEN, BEGIN, END */
    uint64_t position;
    uint32_t depth;
    uint8_t what; /* enum what */
    bool ended;   /* END */
};

struct timeline {
    struct tl_flow_rows flow;
    struct tl_callstack stack;
    struct row *told; /* of the present item; rows are taken from `at` on */
    size_t n, cap, at;
    size_t opened;  /* number of streams, up to the one whose frames at the begin are told */
    bool finishing; /* the stream has ended */
    struct tl_buf line;
};

enum {
    AT_TRACE,
    AT_STREAM,
    AT_POSITION,
    AT_TIME,
    AT_EARLIEST,
    AT_LATEST,
    AT_WHAT,
    AT_DEPTH,
    AT_KIND,
    AT_NUMBER,
    AT_PC,
    AT_FUNCTION,
    AT_TEXT,
    AT_BEGIN,
    AT_CALLED,
    AT_ENDED
};
static const struct tl_table_column timeline_columns[] = {
    [AT_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [AT_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [AT_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [AT_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [AT_EARLIEST] = {"earliest", "INT", TL_COLUMN_PLAIN},
    [AT_LATEST] = {"latest", "INT", TL_COLUMN_PLAIN},
    [AT_WHAT] = {"what", "TEXT", TL_COLUMN_PLAIN},
    [AT_DEPTH] = {"depth", "INT", TL_COLUMN_PLAIN},
    [AT_KIND] = {"kind", "TEXT", TL_COLUMN_PLAIN},
    [AT_NUMBER] = {"number", "INT", TL_COLUMN_PLAIN},
    [AT_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [AT_FUNCTION] = {"function", "TEXT", TL_COLUMN_PLAIN},
    [AT_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
    [AT_BEGIN] = {"begin", "INT", TL_COLUMN_PLAIN},
    [AT_CALLED] = {"called", "INT", TL_COLUMN_PLAIN},
    [AT_ENDED] = {"ended", "INT", TL_COLUMN_PLAIN},
};

/* ---- rows ------------------------------------------------------------------------------------ */

static int add(struct timeline *s, struct row row)
{
    const int r = tl_grow(&s->told, &s->cap, s->n + 1, sizeof *s->told);
    if (r >= 0)
        s->told[s->n++] = row;
    return r;
}

static int add_open(struct timeline *s, const struct tl_frame *frame, uint32_t depth)
{
    return add(
        s, (struct row){.frame = *frame, .position = s->flow.from, .depth = depth, .what = OPEN});
}

/* Tell the frames that are there at the begin of the range, once: the lower `depth` ones. */
static int add_opened(struct timeline *s, uint32_t depth)
{
    int r = TL_OK;
    if (s->opened == s->flow.stream)
        return r;
    s->opened = s->flow.stream;
    for (uint32_t i = 0; i < depth && r >= 0; i++)
        r = add_open(s, &s->stack.frames[i], i);
    return r;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct timeline *const s = context;
    if (insn < s->flow.from || insn >= s->flow.to)
        return TL_OK;
    const bool first = s->opened != s->flow.stream;
    int r = add_opened(s, depth);
    if (r >= 0 && first && change == TL_FRAME_POP)
        r = add_open(s, frame, depth);
    return r < 0 ? r
                 : add(s, (struct row){.frame = *frame,
                                       .position = insn,
                                       .depth = depth,
                                       .what = change == TL_FRAME_PUSH ? BEGIN : END,
                                       .ended = !s->finishing && !(frame->flags & TL_FRAME_LOST)});
}

static int add_item(struct timeline *s)
{
    const unsigned kind = s->flow.item->kind;
    if (s->flow.position < s->flow.from)
        return TL_OK;
    const int r = add_opened(s, s->stack.depth);
    if (r < 0 || !(TL_EVENT_KINDS >> kind & 1 || kind == TL_ITEM_GAP))
        return r;
    return add(
        s, (struct row){.position = s->flow.position, .what = kind == TL_ITEM_GAP ? GAP : EVENT});
}

/* The walk of a stream ends: its frames do, too, if it is the stream's end. */
static int finish_stream(struct timeline *s)
{
    int r = add_opened(s, s->stack.depth);
    if (r < 0 || s->flow.to <= s->flow.cut.end)
        return r;
    s->stack.insns = s->flow.cut.end;
    s->finishing = true;
    r = tl_callstack_finish(&s->stack);
    s->finishing = false;
    return r;
}

static int next_row(struct tl_cursor *c)
{
    struct timeline *const s = c->state;
    if (++s->at < s->n)
        return TL_OK;
    s->at = s->n = 0;
    int r = 1;
    while (s->n == 0 && (r = tl_flow_rows_next(c, &s->flow, true)) > 0) {
        r = r == 3 ? TL_OK : r == 2 ? finish_stream(s) : add_item(s);
        if (r < 0)
            break;
    }
    c->end = s->n == 0;
    return r < 0 ? r : TL_OK;
}

static int first_row(struct tl_cursor *c)
{
    struct timeline *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->flow.calls = &s->stack;
    s->stack.sink = on_frame;
    s->stack.context = s;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_row(c);
}

static void close_rows(struct tl_cursor *c)
{
    struct timeline *const s = c->state;
    free(s->told);
    tl_buf_fini(&s->line);
    tl_flow_rows_close(&s->flow);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void tell_bound(struct tl_cursor *c, struct timeline *s, bool latest,
                       sqlite3_context *context)
{
    const uint64_t at = s->told[s->at].position;
    uint64_t from, to;
    if (!tl_scale_edge(tl_flow_rows_scale(c, &s->flow, at), at, &from, &to))
        return;
    if (!latest)
        tl_column_u64(context, from);
    else if (to != UINT64_MAX)
        tl_column_u64(context, to);
}

/* What is told of frames only. */
static void frame_column(struct timeline *s, sqlite3_context *context, int column)
{
    static const char *const kinds[] = {[TL_FRAME_ROOT] = "root",
                                        [TL_FRAME_CALL] = "call",
                                        [TL_FRAME_TAIL] = "tail",
                                        [TL_FRAME_EXCEPTION] = "exception"};
    const struct row *const row = &s->told[s->at];
    const struct tl_frame *const frame = &row->frame;
    switch (column) {
    case AT_DEPTH:
        sqlite3_result_int64(context, row->depth);
        break;
    case AT_KIND:
        tl_column_text(context, kinds[frame->kind]);
        break;
    case AT_NUMBER:
        if (frame->kind == TL_FRAME_EXCEPTION && tl_exception_number(frame->exception) >= 0)
            sqlite3_result_int(context, tl_exception_number(frame->exception));
        break;
    case AT_PC:
        tl_column_u64(context, frame->pc);
        break;
    case AT_FUNCTION:
        tl_column_text(context, tl_function_name(tl_flow_rows_image(&s->flow), frame->function));
        break;
    case AT_BEGIN:
        tl_column_u64(context, frame->insn);
        break;
    case AT_CALLED:
        sqlite3_result_int(context, tl_frame_is_call(frame));
        break;
    case AT_ENDED:
        if (row->what == END)
            sqlite3_result_int(context, row->ended);
        break;
    default:
        break;
    }
}

static void item_column(struct timeline *s, sqlite3_context *context, int column)
{
    static const enum tl_item_part parts[] = {[AT_KIND] = TL_ITEM_PART_KIND,
                                              [AT_NUMBER] = TL_ITEM_PART_NUMBER,
                                              [AT_PC] = TL_ITEM_PART_PC,
                                              [AT_FUNCTION] = TL_ITEM_PART_FUNCTION,
                                              [AT_TEXT] = TL_ITEM_PART_TEXT};
    if (column >= AT_KIND && column <= AT_TEXT)
        tl_flow_rows_item(&s->flow, parts[column], &s->line, context);
}

static void timeline_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    static const char *const names[] = {
        [OPEN] = "open", [BEGIN] = "begin", [END] = "end", [EVENT] = "event", [GAP] = "gap"};
    struct timeline *const s = c->state;
    const struct row *const row = &s->told[s->at];
    switch (column) {
    case AT_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case AT_STREAM:
        tl_column_text(context, tl_flow_rows_stream(&s->flow));
        break;
    case AT_POSITION:
        tl_column_u64(context, row->position);
        break;
    case AT_TIME:
        tl_flow_rows_time(c, &s->flow, context, row->position);
        break;
    case AT_EARLIEST:
    case AT_LATEST:
        tell_bound(c, s, column == AT_LATEST, context);
        break;
    case AT_WHAT:
        tl_column_text(context, names[row->what]);
        break;
    default:
        if (row->what >= EVENT)
            item_column(s, context, column);
        else
            frame_column(s, context, column);
    }
}

const struct tl_table tl_timeline_table = {.name = "timeline",
                                           .columns = timeline_columns,
                                           .n_columns = COUNT(timeline_columns),
                                           .state_bytes = sizeof(struct timeline),
                                           .rows = 1e7,
                                           .ordered = true,
                                           .first = first_row,
                                           .next = next_row,
                                           .column = timeline_column,
                                           .close = close_rows};
