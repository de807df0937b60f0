/* SPDX-License-Identifier: MIT */
/*
 * Receives every change of the call stack. Calls that return without another change are most of
 * all, so these are counted without the detour over a frame.
 */
#include "builder/call_counter.h"

/* Count the instructions up to a position for the innermost frame, at `depth`. */
static inline void count_own(struct tl_call_counter *c, uint32_t depth, uint64_t position)
{
    if (position > c->since) {
        c->counts.known[c->paths[depth]].self += position - c->since;
        c->since = position;
    }
}

/* If the tree is full a path also represents calls of other functions. NULL: out of memory. */
static __attribute__((noinline)) struct tl_call_sums *sums_of_other(struct tl_call_counter *c,
                                                                    uint32_t function)
{
    const int64_t place = tl_call_paths_add_function(&c->counts, function);
    return place < 0 ? NULL : &c->counts.index.functions[place].by[TL_BY_INSNS];
}

static inline int begin_call(struct tl_call_counter *c, const struct tl_frame *frame,
                             uint32_t depth, uint64_t insn)
{
    const uint32_t parent = c->paths[depth];
    const int64_t path = tl_call_paths_find(&c->counts, parent, frame->function);
    if (path < 0)
        return TL_NOMEM;
    c->paths[depth + 1] = (uint32_t)path;
    if (!tl_frame_is_call(frame) || insn < c->from)
        return TL_OK;
    if ((uint32_t)path != parent) {
        c->counts.known[path].calls++;
        return TL_OK;
    }
    struct tl_call_sums *const sums = sums_of_other(c, frame->function);
    if (sums)
        sums->calls++;
    return sums ? TL_OK : TL_NOMEM;
}

static inline int end_call(struct tl_call_counter *c, const struct tl_frame *frame, uint32_t depth,
                           uint64_t insn)
{
    const uint32_t path = c->paths[depth + 1];
    if (!tl_frame_is_call(frame) || insn < c->from)
        return TL_OK;
    struct tl_call_sums *const sums =
        path != c->paths[depth] ? &tl_call_paths_function(&c->counts, path)->by[TL_BY_INSNS]
                                : sums_of_other(c, frame->function);
    return sums ? tl_call_sums_end(sums, frame->insn, insn - frame->insn) : TL_NOMEM;
}

static void wait_for(struct tl_call_counter *c, uint16_t number, uint64_t position)
{
    c->waits = true;
    c->waiting = number;
    c->waiting_at = position;
    c->plain_from = UINT64_MAX;
}

static void stop_waiting(struct tl_call_counter *c)
{
    c->waits = false;
    c->plain_from = c->from;
}

void tl_call_counter_unseen(struct tl_call_counter *c)
{
    stop_waiting(c);
    if (c->times)
        tl_call_times_event(c->times, TL_CALL_MODE, c->waiting_at, 0,
                            TL_CALL_UNSEEN | (uint32_t)c->waiting << 16);
}

/* An exception whose handler has not begun is followed by another one, or by missing trace. */
void tl_call_counter_news(struct tl_call_counter *c, const struct tl_item *item, uint64_t position)
{
    if (c->waits)
        tl_call_counter_unseen(c);
    if (item->kind != TL_ITEM_EXCEPTION)
        return;
    wait_for(c, item->sub, position);
    if (tl_timed_rows_name(&c->counts.rows, item->sub, item->text) < 0)
        tl_call_counter_fini(c);
}

/* Is it the handler that is waited for? Then it is there; if another function runs, it is not. */
static __attribute__((noinline)) void meet(struct tl_call_counter *c, enum tl_frame_change change,
                                           const struct tl_frame *frame, uint64_t insn)
{
    if (insn > c->waiting_at)
        tl_call_counter_unseen(c);
    else if (change == TL_FRAME_PUSH && frame->kind == TL_FRAME_EXCEPTION &&
             tl_frame_is_call(frame) && !(frame->flags & TL_FRAME_SIGNAL))
        stop_waiting(c);
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct tl_call_counter *const c = context;
    int r;
    if (c->waits)
        meet(c, change, frame, insn);
    if (change == TL_FRAME_PUSH) {
        count_own(c, depth, insn);
        r = begin_call(c, frame, depth, insn);
    } else {
        count_own(c, depth + 1, insn);
        r = end_call(c, frame, depth, insn);
    }
    const bool goes_on =
        change == TL_FRAME_PUSH && frame->flags & TL_FRAME_CONTINUED && tl_frame_is_call(frame);
    if (r < 0)
        tl_call_counter_fini(c);
    else if (c->times)
        tl_call_times_frame(c->times, change, frame, c->paths[depth + 1], insn,
                            goes_on ? TL_CALL_GOES_ON : 0);
    return TL_OK;
}

static void on_leaf(void *context, uint32_t function, uint32_t depth, uint64_t begin, uint64_t end)
{
    struct tl_call_counter *const c = context;
    const struct tl_call_path *const from = &c->counts.known[c->paths[depth]];
    if (from->callee != function || from->child == 0 || begin < c->plain_from) {
        const struct tl_frame frame = {.insn = begin, .function = function, .kind = TL_FRAME_CALL};
        (void)on_frame(c, TL_FRAME_PUSH, &frame, depth, begin);
        if (c->counting)
            (void)on_frame(c, TL_FRAME_POP, &frame, depth, end);
        return;
    }
    struct tl_call_path *const known = &c->counts.known[from->child];
    count_own(c, depth, begin);
    known->calls++;
    known->self += end - begin;
    c->since = end;
    const int r = tl_call_sums_end(&c->counts.index.functions[known->function].by[TL_BY_INSNS],
                                   begin, end - begin);
    if (r < 0)
        tl_call_counter_fini(c);
    else if (c->times)
        tl_call_times_leaf(c->times, from->child, begin, end);
}

void tl_call_counter_begin(struct tl_call_counter *c, struct tl_callstack *calls,
                           struct tl_call_times *times, uint64_t position, uint64_t from)
{
    int64_t path = tl_call_paths_begin(&c->counts);
    c->counting = true;
    c->calls = calls;
    calls->sink = on_frame;
    calls->leaf = on_leaf;
    calls->context = c;
    c->from = c->plain_from = from;
    if (times && calls->how == TL_LEAVE_EXCEPTION)
        wait_for(c, calls->exception, position);
    c->since = position > from ? position : from;
    c->paths[0] = 0;
    for (uint32_t i = 0; i < calls->depth && path >= 0; i++) {
        path = tl_call_paths_find(&c->counts, c->paths[i], calls->frames[i].function);
        c->paths[i + 1] = (uint32_t)path;
    }
    c->times = times;
    if (path >= 0 && times)
        path = tl_call_times_begin(times, &c->counts);
    if (path < 0)
        tl_call_counter_fini(c);
}

/* Stop listening. */
static void leave(struct tl_call_counter *c)
{
    if (c->calls) {
        c->calls->sink = NULL;
        c->calls->leaf = NULL;
    }
    c->calls = NULL;
    c->times = NULL;
}

void tl_call_counter_finish(struct tl_call_counter *c, uint64_t position)
{
    if (c->waits)
        tl_call_counter_unseen(c);
    if (c->times)
        tl_call_times_finish(c->times, position);
}

void tl_call_counter_end(struct tl_call_counter *c, uint64_t position)
{
    if (!c->calls)
        return;
    if (c->waits && position > c->waiting_at)
        tl_call_counter_unseen(c);
    count_own(c, c->calls->depth, position);
    if (c->times)
        tl_call_times_end(c->times);
    leave(c);
    if (tl_call_paths_report(&c->counts) < 0)
        tl_call_counter_fini(c);
}

void tl_call_counter_take(struct tl_call_counter *c, struct tl_shard_calls *out)
{
    *out = (struct tl_shard_calls){.tree = c->counts.tree,
                                   .index = c->counts.index,
                                   .rows = c->counts.rows,
                                   .has_index = true,
                                   .has_rows = true};
    out->rows.extent = out->index.extent;
    tl_timed_rows_close(&out->rows);
    c->counts.rows = (struct tl_timed_rows){0};
    c->counts.tree = (struct tl_calltree){0};
    c->counts.index = (struct tl_call_index){0};
}

void tl_call_counter_fini(struct tl_call_counter *c)
{
    if (c->times)
        tl_call_times_drop(c->times);
    leave(c);
    tl_call_paths_fini(&c->counts);
    c->counting = false;
}
