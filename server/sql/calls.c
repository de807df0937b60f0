/* SPDX-License-Identifier: MIT */
/*
 * The table of calls: each one that begins within the bounds, told when it ends, or when its stream
 * does. Since the stack at each chunk's begin is stored, parts of the stream are walked apart from
 * each other, by the crew: each has the calls that end in it. The last shard is walked by the
 * thread that asks, and what is behind the bounds until the last call of them has ended; since some
 * last for the whole trace, it leaves out chunks in which none does, as the stacks tell. Where only
 * the longest calls are wanted, the crew leaves out chunks in which none of them ends.
 */
#include "base/cancel.h"
#include "base/inorder.h"
#include "base/search.h"
#include "query/query.h"
#include "query/stacks.h"
#include "shard/savedstack.h"
#include "sql/flow.h"
#include "sql/longest.h"

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

#define LONGEST_MOST  10000     /* more than so many of the longest calls are not looked for */
#define LONGEST_TAKEN (1 << 19) /* candidates kept, some 30 MB */

#define PARTS 4 /* of a shard, so that few calls wait for being told */

/* Follows the flow, and keeps the calls that end. */
struct told {
    struct tl_callstack stack;
    const struct tl_image *image;
    const char *function;             /* that is asked for; NULL: any */
    uint64_t from, to;                /* where calls begin */
    const struct tl_longest *longest; /* none but these; NULL: all */
    bool finishing;                   /* the stream has ended */
    struct call *p;
    size_t n, cap;
};

struct calls {
    struct tl_flow_rows flow;
    struct told walked;       /* by this thread */
    struct tl_inorder *order; /* what comes before; NULL: nothing */
    size_t shard;             /* … the first one of it */
    struct tl_longest longest;
    struct told *part; /* NULL: rows are those of `walked` */
    size_t at;         /* the present row */
    uint64_t go_on;    /* position from which on chunks may be left out */
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

static bool is_wanted(const struct told *t, const struct tl_frame *frame, uint64_t end)
{
    const struct tl_slow_call call = {frame->insn, end - frame->insn};
    return (!t->longest || !tl_slow_call_is_less(&call, &t->longest->least)) &&
           (!t->function || strcmp(tl_function_name(t->image, frame->function), t->function) == 0);
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct told *const t = context;
    if (change == TL_FRAME_PUSH || !tl_frame_is_call(frame) || frame->insn < t->from ||
        frame->insn >= t->to || !is_wanted(t, frame, insn))
        return TL_OK;
    const int r = tl_grow(&t->p, &t->cap, t->n + 1, sizeof *t->p);
    if (r < 0)
        return r;
    t->p[t->n++] = (struct call){
        .begin = frame->insn,
        .end = insn,
        .pc = frame->pc,
        .function = frame->function,
        .caller = depth > 0 ? t->stack.frames[depth - 1].function : TL_NO_FUNCTION,
        .depth = depth,
        .exception = frame->exception,
        .kind = frame->kind,
        .ended = !t->finishing && !(frame->flags & TL_FRAME_LOST),
    };
    return TL_OK;
}

/* What is asked for of the stream that is open. */
static void begin_told(const struct tl_cursor *c, const struct tl_flow_rows *flow, struct told *t)
{
    t->image = tl_flow_rows_image(flow);
    t->function = c->bounds.function;
    t->from = flow->from;
    t->to = flow->to;
    t->stack.sink = on_frame;
    t->stack.context = t;
}

/* ---- durations ------------------------------------------------------------------------------- */

/* The time of a call's end is that of what precedes it: at a gap the last one known before. False:
 * there are no times. */
static bool end_of(struct tl_cursor *c, const struct call *call, uint64_t *out)
{
    struct calls *const s = c->state;
    const struct tl_scale *const scale = tl_flow_rows_scale(c, &s->flow, call->end);
    const struct tl_scale_break *const breaks = scale->breaks;
    const size_t i = tl_count_below(TL_KEYS(breaks, position), scale->n_breaks, call->end);
    if (call->end > call->begin && i < scale->n_breaks && breaks[i].position == call->end) {
        *out = breaks[i].from;
        return true;
    }
    return tl_scale_value(scale, call->end, out);
}

static bool duration_of(struct tl_cursor *c, const struct call *call, uint64_t *out)
{
    struct calls *const s = c->state;
    uint64_t begin, end;
    if (!tl_scale_value(tl_flow_rows_scale(c, &s->flow, call->begin), call->begin, &begin) ||
        !end_of(c, call, &end))
        return false;
    *out = end - begin;
    return true;
}

/* ---- parts that are walked apart ------------------------------------------------------------- */

static void drop_part(void *piece)
{
    struct told *const t = piece;
    if (t)
        free(t->p);
    free(t);
}

static int walk_chunk(const struct tl_flow_rows *flow, struct told *t, struct tl_walk *walk,
                      struct tl_view *view, size_t chunk, bool first, struct tl_fail *fail)
{
    const struct tl_walk_range all = {
        .to = UINT64_MAX, .tail = true, .protocol = flow->cut.lane->protocol};
    int r = tl_walk_chunk(walk, view, chunk, &all, fail);
    if (r >= 0 && first)
        r = tl_walk_stack(walk, &t->stack);
    if (r < 0)
        return r;
    for (size_t i = 0; i < walk->n && r >= 0; i++)
        r = tl_walk_follow(walk, &t->stack, i);
    return r < 0 ? r : tl_cancel_rest();
}

static bool may_tell(const struct told *t, uint64_t from, uint64_t to)
{
    return !t->longest || tl_longest_may_end(t->longest, from, to);
}

static int walk_part(const struct tl_flow_rows *flow, struct told *t, struct tl_view *view,
                     size_t part, struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &view->index;
    const size_t to = index->n_chunks * (part + 1) / PARTS;
    const size_t begin = tl_shard_items_at(index, flow->from);
    size_t from = index->n_chunks * part / PARTS;
    struct tl_walk *const walk = calloc(1, sizeof *walk);
    int r = walk ? TL_OK : TL_NOMEM;
    from = from > begin ? from : begin;
    if (walk) {
        walk->detail = TL_WALK_FLOW;
        walk->image = t->image;
    }
    for (size_t i = from, next = to; i < to && r >= 0; i++) {
        const struct tl_chunk *const chunk = &index->chunks[i];
        if (!may_tell(t, chunk->first, chunk->first + chunk->n))
            continue;
        if (i != next)
            tl_callstack_init(&t->stack, t->image, chunk->first, on_frame, t);
        r = walk_chunk(flow, t, walk, view, i, i != next, fail);
        next = i + 1;
    }
    if (walk)
        tl_walk_fini(walk);
    free(walk);
    return r;
}

/* Runs on any thread. */
static int make_part(void *context, size_t i, void **out, struct tl_fail *fail)
{
    struct tl_cursor *const c = context;
    const struct calls *const s = c->state;
    struct told *const t = calloc(1, sizeof *t);
    struct tl_view *view;
    if (!t)
        return TL_NOMEM;
    const struct tl_shard_row *const row = &s->flow.cut.rows[s->shard + i / PARTS];
    begin_told(c, &s->flow, t);
    t->longest = s->longest.most ? &s->longest : NULL;
    if (!may_tell(t, row->first, row->first + row->n)) {
        *out = t;
        return TL_OK;
    }
    int r = tl_cut_view(&s->flow.cut, s->shard + i / PARTS, &view, fail);
    if (r >= 0) {
        r = walk_part(&s->flow, t, view, i % PARTS, fail);
        tl_view_put(view);
    }
    if (r >= 0)
        *out = t;
    else
        drop_part(t);
    return r;
}

/* Take the next part's calls, if there is one. */
static int next_part(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    void *part;
    drop_part(s->part);
    s->part = NULL;
    int r = tl_cancel_rest();
    if (r >= 0)
        r = c->asking->check(c->asking);
    if (r >= 0)
        r = tl_inorder_take(s->order, &part, c->asking->fail);
    if (r == TL_EOF) {
        tl_inorder_free(s->order);
        s->order = NULL;
        return TL_OK;
    }
    s->part = r >= 0 ? part : NULL;
    return r;
}

static int begin_parts(struct tl_cursor *c, size_t n)
{
    struct calls *const s = c->state;
    s->order =
        tl_inorder_new(c->asking->lake->crew, n * PARTS, TL_INORDER_MOST, make_part, drop_part, c);
    return s->order ? TL_OK : TL_NOMEM;
}

static int add_told(struct told *all, const struct told *part)
{
    const int r = tl_grow(&all->p, &all->cap, all->n + part->n, sizeof *all->p);
    if (r >= 0 && part->n > 0)
        memcpy(all->p + all->n, part->p, part->n * sizeof *all->p);
    all->n += r < 0 ? 0 : part->n;
    return r;
}

/* All parts' longest calls become the present part's. If what is stored does not help, the calls
 * are told as if nothing were: too many may be among the longest, or a stream that was repaired
 * does not have what was stored of it. */
static int gather_longest(struct tl_cursor *c, size_t n)
{
    struct calls *const s = c->state;
    struct told *const all = calloc(1, sizeof *all);
    int r = all ? begin_parts(c, n) : TL_NOMEM;
    while (r >= 0 && s->order && all->n < LONGEST_TAKEN) {
        r = next_part(c);
        if (r >= 0 && s->part)
            r = add_told(all, s->part);
    }
    const bool found = r >= 0 && !s->order && all->n >= s->longest.listed;
    tl_inorder_free(s->order);
    s->order = NULL;
    tl_longest_fini(&s->longest);
    if (found) {
        drop_part(s->part);
        s->part = all;
        return TL_OK;
    }
    drop_part(all);
    drop_part(s->part);
    s->part = NULL;
    return r < 0 ? r : begin_parts(c, n);
}

/* Tell what is in `n` shards. */
static int tell_parts(struct tl_cursor *c, size_t n)
{
    struct calls *const s = c->state;
    const struct tl_cut *const cut = &s->flow.cut;
    const struct tl_shard_row *const last = &cut->rows[s->shard + n - 1];
    if (c->most == 0 || c->most > LONGEST_MOST || s->flow.to < cut->end)
        return begin_parts(c, n);
    s->longest.most = c->most;
    const int r = tl_longest_find(&s->longest, cut, s->flow.from, last->first + last->n,
                                  c->bounds.function, c->asking->fail);
    return r < 0 ? r : gather_longest(c, n);
}

/* A stream is open: leave what is before its last shard to the crew. */
static int begin_stream(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    const struct tl_cut *const cut = &s->flow.cut;
    begin_told(c, &s->flow, &s->walked);
    s->go_on = s->flow.to + WALKED;
    if (cut->n_rows == 0 || s->flow.from >= cut->end || atomic_load(&cut->lane->is_virtual))
        return TL_OK;
    const size_t first = tl_cut_items_at(cut, s->flow.from);
    size_t last = s->flow.to < cut->end ? tl_cut_shard_at(cut, s->flow.to - 1) : cut->n_rows - 1;
    last = last < cut->n_stored ? last : cut->n_stored;
    if (last <= first || last >= cut->n_rows)
        return TL_OK;
    s->shard = first;
    const int r = tell_parts(c, last - first);
    return r < 0 ? r : tl_flow_rows_go_on_in(c, &s->flow, last);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* The innermost frame under way that began within the bounds, which is the first of these to end.
 * NULL: there is none. */
static const struct tl_frame *find_within(const struct told *t)
{
    for (uint32_t i = t->stack.depth; i > 0; i--)
        if (t->stack.frames[i - 1].insn < t->to)
            return t->stack.frames[i - 1].insn >= t->from ? &t->stack.frames[i - 1] : NULL;
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
    int r = tl_stack_end_chunk(&s->flow.cut, &first, (uint32_t)(frame - s->walked.stack.frames),
                               &low, &high, scratch, c->asking->fail);
    free(scratch);
    if (r >= 0 && low > s->flow.position)
        r = tl_flow_rows_go_on_at(c, &s->flow, low);
    s->go_on = low + WALKED;
    return r < 0 ? r : 1;
}

/* Behind the bounds: go on for as long as a call of them is under way. Returns 1. */
static int pass_behind(struct tl_cursor *c, struct calls *s)
{
    const struct tl_frame *const within = find_within(&s->walked);
    if (within && s->flow.position >= s->go_on)
        return leave_out(c, s, within);
    if (!within)
        tl_flow_rows_stop(&s->flow);
    return 1;
}

/* Tell the calls that are under way as far as they are known. */
static int finish_stream(struct calls *s)
{
    s->walked.stack.insns = s->flow.cut.end;
    s->walked.finishing = true;
    const int r = tl_callstack_finish(&s->walked.stack);
    s->walked.finishing = false;
    return r;
}

static const struct told *rows_of(const struct calls *s)
{
    return s->part ? s->part : &s->walked;
}

static int next_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    if (++s->at < rows_of(s)->n)
        return TL_OK;
    drop_part(s->part);
    s->part = NULL;
    s->at = s->walked.n = 0;
    int r = TL_OK;
    while (r >= 0 && rows_of(s)->n == 0) {
        if (s->order) {
            r = next_part(c);
            continue;
        }
        r = tl_flow_rows_next(c, &s->flow, true);
        if (r == TL_OK)
            break;
        if (r == 3)
            r = begin_stream(c);
        else if (r == 2)
            r = finish_stream(s);
        else if (r == 1 && s->walked.n == 0 && s->flow.position >= s->flow.to)
            r = pass_behind(c, s);
    }
    c->end = rows_of(s)->n == 0;
    return r < 0 ? r : TL_OK;
}

static int first_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    s->flow.detail = TL_WALK_FLOW;
    s->flow.calls = &s->walked.stack;
    s->flow.walk_to = UINT64_MAX;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_call(c);
}

static void close_call(struct tl_cursor *c)
{
    struct calls *const s = c->state;
    tl_inorder_free(s->order);
    tl_longest_fini(&s->longest);
    drop_part(s->part);
    free(s->walked.p);
    tl_flow_rows_close(&s->flow);
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
    const uint64_t end = call->end - (call->end > call->begin); /* what is behind is not its time */
    uint64_t sum = 0, after = call->begin, first = call->begin, last;
    bool timed;
    do {
        const struct tl_scale *const time = tl_flow_rows_scale(c, &s->flow, first);
        last = first - first % TL_SQL_TIMES_WIDTH + (TL_SQL_TIMES_WIDTH - 1);
        last = last < end ? last : end;
        timed = time->n > 0;
        sum += sum_switched_out(time, after, last);
        after = last;
        first = last + 1;
    } while (timed && last < end);
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
    const struct call *const call = &rows_of(s)->p[s->at];
    const struct tl_image *const image = tl_flow_rows_image(&s->flow);
    const bool lasts = s->flow.names_last;
    uint64_t duration;
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
        if (duration_of(c, call, &duration))
            tl_column_u64(context, duration);
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
                                       .largest = CALL_INSNS,
                                       .first = first_call,
                                       .next = next_call,
                                       .column = call_column,
                                       .close = close_call};
