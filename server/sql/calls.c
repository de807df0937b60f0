/* SPDX-License-Identifier: MIT */
/*
 * The table of calls: each one that begins within the bounds, told when it ends, or when its stream
 * does. Behind the bounds the walk goes on until the last of them has ended; since some last for
 * the whole trace, it leaves out chunks in which none does, as the stacks at their begins tell.
 */
#include "base/search.h"
#include "query/query.h"
#include "query/stacks.h"
#include "sql/flow.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

#define WALKED                                                                                     \
    (2 * TL_CHUNK_MARKERS) /* positions, before some are left out: most calls are short */

struct call {
    uint64_t begin, end, pc;
    uint32_t function, caller;
    uint32_t depth;
    uint16_t exception;
    uint8_t kind; /* enum tl_frame_kind */
    bool ended;
};

struct calls {
    struct tl_flow_rows flow;
    struct tl_callstack stack;
    const char *function; /* that is asked for; NULL: any */
    struct call *told;    /* of the items so far; rows are taken from `at` on */
    size_t n, cap, at;
    bool finishing; /* the stream has ended */
    uint64_t go_on; /* position from which on chunks may be left out */
    size_t stream;  /* whose that is */
};

enum {
    CALL_TRACE,
    CALL_STREAM,
    CALL_POSITION,
    CALL_TIME,
    CALL_LAST,
    CALL_INSNS,
    CALL_DURATION,
    CALL_FUNCTION,
    CALL_CALLER,
    CALL_DEPTH,
    CALL_KIND,
    CALL_NUMBER,
    CALL_PC,
    CALL_ENDED,
    CALL_SWITCHED_OUT
};
static const struct tl_table_column call_columns[] = {
    [CALL_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [CALL_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [CALL_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [CALL_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [CALL_LAST] = {"last_position", "INT", TL_COLUMN_PLAIN},
    [CALL_INSNS] = {"insns", "INT", TL_COLUMN_PLAIN},
    [CALL_DURATION] = {"duration", "INT", TL_COLUMN_PLAIN},
    [CALL_FUNCTION] = {"function", "TEXT", TL_COLUMN_FUNCTION},
    [CALL_CALLER] = {"caller", "TEXT", TL_COLUMN_PLAIN},
    [CALL_DEPTH] = {"depth", "INT", TL_COLUMN_PLAIN},
    [CALL_KIND] = {"kind", "TEXT", TL_COLUMN_PLAIN},
    [CALL_NUMBER] = {"number", "INT", TL_COLUMN_PLAIN},
    [CALL_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [CALL_ENDED] = {"ended", "INT", TL_COLUMN_PLAIN},
    [CALL_SWITCHED_OUT] = {"switched_out", "INT", TL_COLUMN_PLAIN},
};

static bool is_wanted(const struct calls *s, uint32_t function)
{
    return !s->function ||
           strcmp(tl_function_name(tl_flow_rows_image(&s->flow), function), s->function) == 0;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct calls *const s = context;
    if (change == TL_FRAME_PUSH || !tl_frame_is_call(frame) || frame->insn < s->flow.from ||
        frame->insn >= s->flow.to || !is_wanted(s, frame->function))
        return TL_OK;
    const int r = tl_grow(&s->told, &s->cap, s->n + 1, sizeof *s->told);
    if (r < 0)
        return r;
    s->told[s->n++] = (struct call){
        .begin = frame->insn,
        .end = insn,
        .pc = frame->pc,
        .function = frame->function,
        .caller = depth > 0 ? s->stack.frames[depth - 1].function : TL_NO_FUNCTION,
        .depth = depth,
        .exception = frame->exception,
        .kind = frame->kind,
        .ended = !s->finishing && !(frame->flags & TL_FRAME_LOST),
    };
    return TL_OK;
}

/* The innermost frame under way that began within the bounds, which is the first of these to end.
 * NULL: there is none. */
static const struct tl_frame *find_within(const struct calls *s)
{
    for (uint32_t i = s->stack.depth; i > 0; i--)
        if (s->stack.frames[i - 1].insn < s->flow.to)
            return s->stack.frames[i - 1].insn >= s->flow.from ? &s->stack.frames[i - 1] : NULL;
    return NULL;
}

/* Go on where the frame ends: 1. */
static int leave_out(struct tl_cursor *c, struct calls *s, const struct tl_frame *frame)
{
    struct tl_callstack *const scratch = calloc(1, sizeof *scratch);
    const struct tl_frame first = *frame;
    uint64_t low = s->flow.position, high;
    if (!scratch)
        return TL_NOMEM;
    tl_callstack_init(scratch, s->flow.image, 0, NULL, NULL);
    int r = tl_stack_end_chunk(&s->flow.cut, &first, (uint32_t)(frame - s->stack.frames), &low,
                               &high, scratch, c->asking->fail);
    free(scratch);
    if (r >= 0 && low > s->flow.position)
        r = tl_flow_rows_go_on_at(c, &s->flow, low);
    s->go_on = low + WALKED;
    return r < 0 ? r : 1;
}

/* Behind the bounds: go on for as long as a call of them is under way. Returns 1. */
static int pass_behind(struct tl_cursor *c, struct calls *s)
{
    const struct tl_frame *const within = find_within(s);
    if (s->stream != s->flow.stream)
        s->go_on = s->flow.to + WALKED;
    s->stream = s->flow.stream;
    if (within && s->flow.position >= s->go_on)
        return leave_out(c, s, within);
    if (!within)
        tl_flow_rows_stop(&s->flow);
    return 1;
}

/* Tell the calls that are under way as far as they are known. */
static int finish_stream(struct calls *s)
{
    s->stack.insns = s->flow.cut.end;
    s->finishing = true;
    const int r = tl_callstack_finish(&s->stack);
    s->finishing = false;
    return r;
}

static int next_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    if (++s->at < s->n)
        return TL_OK;
    s->at = s->n = 0;
    int r = 1;
    while (s->n == 0 && (r = tl_flow_rows_next(c, &s->flow, true)) > 0) {
        if (r == 2)
            r = finish_stream(s);
        else if (r == 1 && s->n == 0 && s->flow.position >= s->flow.to)
            r = pass_behind(c, s);
        if (r < 0)
            break;
    }
    c->end = s->n == 0;
    return r < 0 ? r : TL_OK;
}

static int first_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->flow.calls = &s->stack;
    s->flow.walk_to = UINT64_MAX;
    s->function = c->bounds.function;
    s->stack.sink = on_frame;
    s->stack.context = s;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_call(c);
}

static void close_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    free(s->told);
    tl_flow_rows_close(&s->flow);
}

static void tell_duration(struct tl_cursor *c, const struct call *call, sqlite3_context *context)
{
    struct calls *const s = c->state;
    uint64_t begin, end;
    if (tl_scale_value(tl_flow_rows_scale(c, &s->flow, call->begin), call->begin, &begin) &&
        tl_scale_value(tl_flow_rows_scale(c, &s->flow, call->end), call->end, &end))
        tl_column_u64(context, end - begin);
}

/* The time in which the thread did not run, between two positions of one scale: behind the first,
 * up to the last. */
static uint64_t sum_switched_out(const struct tl_scale *time, uint64_t after, uint64_t last)
{
    const struct tl_scale_break *const breaks = time->breaks;
    uint64_t sum = 0;
    size_t i = tl_count_upto(TL_KEYS(breaks, position), time->n_breaks, after);
    for (; i < time->n_breaks && breaks[i].position <= last; i++)
        if (tl_missing_kind(breaks[i].flags) == TL_TIMED_SWITCHED_OUT)
            sum += breaks[i].to - breaks[i].from;
    return sum;
}

/* The time of a call in which its thread did not run. */
static void tell_switched_out(struct tl_cursor *c, const struct call *call,
                              sqlite3_context *context)
{
    struct calls *const s = c->state;
    uint64_t sum = 0, after = call->begin, first = call->begin, last;
    bool timed;
    do {
        const struct tl_scale *const time = tl_flow_rows_scale(c, &s->flow, first);
        last = first - first % TL_SQL_TIMES_WIDTH + (TL_SQL_TIMES_WIDTH - 1);
        last = last < call->end ? last : call->end;
        timed = time->n > 0;
        sum += sum_switched_out(time, after, last);
        after = last;
        first = last + 1;
    } while (timed && last < call->end);
    if (timed)
        tl_column_u64(context, sum);
}

static void call_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    static const char *const kinds[] = {[TL_FRAME_ROOT] = "root",
                                        [TL_FRAME_CALL] = "call",
                                        [TL_FRAME_TAIL] = "tail",
                                        [TL_FRAME_EXCEPTION] = "exception"};
    struct calls *const s = c->state;
    const struct call *const call = &s->told[s->at];
    const struct tl_image *const image = tl_flow_rows_image(&s->flow);
    const bool lasts = s->flow.names_last;
    switch (column) {
    case CALL_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case CALL_STREAM:
        tl_column_name(context, tl_flow_rows_stream(&s->flow), lasts);
        break;
    case CALL_POSITION:
        tl_column_u64(context, call->begin);
        break;
    case CALL_TIME:
        tl_flow_rows_time(c, &s->flow, context, call->begin);
        break;
    case CALL_LAST:
        tl_column_u64(context, call->end - (call->end > call->begin));
        break;
    case CALL_INSNS:
        tl_column_u64(context, call->end - call->begin);
        break;
    case CALL_DURATION:
        tell_duration(c, call, context);
        break;
    case CALL_FUNCTION:
        tl_column_name(context, tl_function_name(image, call->function), lasts);
        break;
    case CALL_CALLER:
        tl_column_name(context, tl_function_name(image, call->caller), lasts);
        break;
    case CALL_DEPTH:
        sqlite3_result_int64(context, call->depth);
        break;
    case CALL_KIND:
        tl_column_name(context, kinds[call->kind], true);
        break;
    case CALL_NUMBER:
        if (call->kind == TL_FRAME_EXCEPTION && tl_exception_number(call->exception) >= 0)
            sqlite3_result_int(context, tl_exception_number(call->exception));
        break;
    case CALL_PC:
        tl_column_u64(context, call->pc);
        break;
    case CALL_SWITCHED_OUT:
        tell_switched_out(c, call, context);
        break;
    default:
        sqlite3_result_int(context, call->ended);
    }
}

const struct tl_table tl_call_table = {.name = "call",
                                       .columns = call_columns,
                                       .n_columns = COUNT(call_columns),
                                       .state_bytes = sizeof(struct calls),
                                       .rows = 1e7,
                                       .first = first_call,
                                       .next = next_call,
                                       .column = call_column,
                                       .close = close_call};
