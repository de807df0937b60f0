/* SPDX-License-Identifier: MIT */
/*
 * Measures the calls of a shard in the making. Events are settled from one timestamp to the next in
 * one pass along the points between which time passes evenly: a call that returned without another
 * change of the stack, as most do, costs two interpolations and no frame.
 */
#include "builder/call_times.h"

#include <stdlib.h>
#include <string.h>

#define REPORTED 2048 /* positions after which spans are reported at a timestamp */

void tl_call_times_fini(struct tl_call_times *t)
{
    tl_time_knots_fini(&t->knots);
    tl_exception_times_fini(&t->exceptions);
    free(t->log);
    free(t->frames);
    free(t->ran);
    t->ran = NULL;
    t->n_ran = t->cap_ran = 0;
    t->log = NULL;
    t->frames = NULL;
    t->n = t->cap = 0;
    t->depth = 0;
    t->known = false;
}

void tl_call_times_drop(struct tl_call_times *t)
{
    tl_call_times_fini(t);
    t->dropped = true;
}

static uint64_t position_of(const struct tl_call_event *event)
{
    return event->at >> 2;
}

/* As tl_frame_is_call(). */
static bool is_call(uint32_t detail)
{
    return (detail & 0xff) != TL_FRAME_ROOT && !(detail >> 8 & TL_FRAME_RESUMED);
}

static bool is_exception(uint32_t detail)
{
    return (detail & 0xff) == TL_FRAME_EXCEPTION;
}

/* ---- what ran ------------------------------------------------------------------------------- */

static int report(struct tl_call_times *t, enum tl_timed_kind kind, uint32_t function,
                  uint32_t depth, uint64_t position, uint64_t time)
{
    const struct tl_timed_span span = {.time = t->reported_time,
                                       .end_time = time,
                                       .position = t->reported,
                                       .end = position,
                                       .function = function,
                                       .depth = depth,
                                       .privilege = t->privilege,
                                       .kind = kind};
    const int r = t->sink(t->context, &span);
    if (r < 0)
        t->sink = NULL;
    t->reported = position;
    t->reported_time = time;
    return r;
}

/* The function of a path of the shard. */
static uint32_t function_of(const struct tl_call_times *t, uint32_t path)
{
    return t->counts->tree.nodes[path].function;
}

/* Report the paths that took time, or those that took none. */
static void report_paths(struct tl_call_times *t, bool took)
{
    for (size_t i = 0; i < t->n_ran && t->sink; i++) {
        const struct tl_ran_path *const ran = &t->ran[i];
        struct tl_call_path *const known = &t->counts->known[ran->path];
        const uint64_t time = known->time - known->reported;
        if ((time > 0) != took)
            continue;
        known->reported = known->time;
        (void)report(t, TL_TIMED_RUN, function_of(t, ran->path), ran->depth, t->position,
                     t->reported_time + time);
    }
}

/* All joined spans begin before the limit: those without time come first, so that none is told at
 * the limit itself. So it does not matter when they are reported. */
void tl_call_times_report(struct tl_call_times *t)
{
    report_paths(t, false);
    report_paths(t, true);
    t->n_ran = 0;
    t->round++;
    t->reported = t->position;
}

/* The path of the innermost frame, or of a call in it, runs for the first time since the last
 * report. */
static __attribute__((noinline)) void note_path(struct tl_call_times *t, uint32_t path,
                                                uint32_t depth)
{
    struct tl_call_path *const known = &t->counts->known[path];
    if (tl_grow(&t->ran, &t->cap_ran, t->n_ran + 1, sizeof *t->ran) < 0)
        tl_call_times_report(t); /* it has room then */
    t->ran[t->n_ran++] = (struct tl_ran_path){path, depth};
    known->reported = known->time;
    known->round = t->round;
}

/* May spans up to a time, which is the last of several, be apart from those before? */
static bool may_be_apart(const struct tl_call_times *t, uint64_t time)
{
    return t->sink && (!t->limit || time >= *t->limit);
}

/* Is a span not to be joined to those before? What begins at the limit is behind it, even if it
 * takes no time. */
static inline bool is_apart(const struct tl_call_times *t, uint64_t begin, uint64_t end)
{
    return t->sink && (!t->limit || begin >= *t->limit || end > *t->limit);
}

/* The innermost frame ran until here, and is reported by itself. */
static __attribute__((noinline)) void run_apart(struct tl_call_times *t, uint64_t position,
                                                uint64_t time)
{
    struct tl_call_path *const known = &t->counts->known[t->path];
    tl_call_times_report(t);
    known->time += time - t->time;
    known->reported = known->time;
    t->position = position;
    t->time = time;
    if (t->sink)
        (void)report(t, TL_TIMED_RUN, function_of(t, t->path), t->depth, position, time);
}

/* The innermost frame ran until here; `apart`: may_be_apart(). */
static inline void run_until(struct tl_call_times *t, uint64_t position, uint64_t time, bool apart)
{
    struct tl_call_path *const known = &t->counts->known[t->path];
    if (position == t->position && time == t->time)
        return;
    if (apart && is_apart(t, t->time, time)) {
        run_apart(t, position, time);
        return;
    }
    if (known->round != t->round)
        note_path(t, t->path, t->depth);
    known->time += time - t->time;
    t->position = position;
    t->time = time;
}

/* Trace is missing here, for a time. */
static void lose_until(struct tl_call_times *t, uint64_t time)
{
    const enum tl_timed_kind kind = t->gap_kind ? t->gap_kind : TL_TIMED_LOST;
    t->counts->index.extent.missing[kind] += time - t->time;
    if (t->depth > 0 && is_exception(t->frames[t->depth - 1].detail))
        tl_exception_times_called(&t->exceptions, t->exceptions.n - 1, t->position, t->time,
                                  t->position, time);
    if (t->sink && time > t->time) {
        tl_call_times_report(t);
        (void)report(t, kind, TL_NO_FUNCTION, t->depth, t->position, time);
    }
    t->time = time;
}

/* A gap between the last timestamp and the next, which is at `time`. */
static int pass_gap(struct tl_call_times *t, uint64_t time)
{
    const struct tl_time_knots *const k = &t->knots;
    run_until(t, k->place, t->time, true);
    if (!t->gap_kind || t->gap != k->place)
        t->before = t->time;
    t->gap = k->place;
    t->gap_kind = tl_missing_kind(k->flags);
    const struct tl_gap_span gap = {.position = k->place,
                                    .time = t->time,
                                    .end_time = time,
                                    .gaps = k->gaps,
                                    .reasons = k->reasons,
                                    .kind = t->gap_kind};
    lose_until(t, time);
    return gap.end_time > gap.time ? tl_timed_rows_gap(&t->counts->rows, &gap) : TL_OK;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static struct tl_open_exception exception_of(const struct tl_timed_frame *frame, uint32_t function)
{
    const bool resumed = frame->detail >> 8 & TL_FRAME_RESUMED,
               signal = frame->detail >> 8 & TL_FRAME_SIGNAL;
    return (struct tl_open_exception){.position = frame->position,
                                      .time = frame->time,
                                      .function = function,
                                      .number = (uint16_t)(frame->detail >> 16),
                                      .flags = (uint8_t)((resumed ? TL_EXCEPTION_RESUMED : 0) |
                                                         (signal ? TL_EXCEPTION_SIGNAL : 0))};
}

static __attribute__((noinline)) int push_exception(struct tl_call_times *t,
                                                    const struct tl_timed_frame *frame)
{
    const struct tl_open_exception one = exception_of(frame, function_of(t, frame->path));
    return tl_exception_times_enter(&t->exceptions, &one, frame->detail & TL_CALL_GOES_ON);
}

/* When a frame that ends now did: what ends at a gap did so before it. */
static inline uint64_t end_of(const struct tl_call_times *t, const struct tl_timed_frame *frame)
{
    return t->gap == t->position && t->gap_kind && frame->position < t->position ? t->before
                                                                                 : t->time;
}

/* A frame ended that is an exception, or called by one. */
static __attribute__((noinline)) int pop_exception(struct tl_call_times *t,
                                                   const struct tl_timed_frame *frame, bool lost)
{
    int r = TL_OK;
    if (is_exception(frame->detail))
        r = tl_exception_times_leave(&t->exceptions, t->position, t->time, end_of(t, frame), lost);
    if (frame > t->frames && is_exception(frame[-1].detail))
        tl_exception_times_called(&t->exceptions, t->exceptions.n - 1, frame->position, frame->time,
                                  t->position, t->time);
    return r;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) int push(struct tl_call_times *t,
                                                      const struct tl_call_event *event)
{
    if (t->depth == TL_CALLSTACK_MAX) /* the call stack has no more frames */
        return TL_OK;
    struct tl_call_path *const known = &t->counts->known[event->path];
    known->timed_calls += is_call(event->detail) && event->path != t->path;
    t->path = event->path;
    t->frames[t->depth++] = (struct tl_timed_frame){
        .position = t->position, .time = t->time, .path = event->path, .detail = event->detail};
    return is_exception(event->detail) ? push_exception(t, &t->frames[t->depth - 1]) : TL_OK;
}

static inline __attribute__((always_inline)) int pop(struct tl_call_times *t, uint32_t detail)
{
    if (t->depth == 0)
        return TL_OK;
    const struct tl_timed_frame *const frame = &t->frames[--t->depth];
    t->path = t->depth > 0 ? frame[-1].path : 0;
    if (t->exceptions.n > 0 && pop_exception(t, frame, detail >> 8 & TL_FRAME_LOST) < 0)
        return TL_NOMEM;
    if (!is_call(frame->detail) || frame->path == t->path)
        return TL_OK;
    return tl_call_sums_end(&tl_call_paths_function(t->counts, frame->path)->by[TL_BY_TIME],
                            frame->position, end_of(t, frame) - frame->time);
}

/* A call that returned before the next point. Returns 1; TL_AGAIN: its spans are to be reported
 * apart. */
static inline __attribute__((always_inline)) int pass_leaf(struct tl_call_times *t,
                                                           const struct tl_call_event *event,
                                                           const struct tl_time_segment *segment,
                                                           bool apart)
{
    const uint64_t position = event->at >> 2, end = position + event->detail;
    const uint64_t time = tl_time_in(segment, position), end_time = tl_time_in(segment, end);
    struct tl_call_path *const known = &t->counts->known[event->path];
    if (apart && is_apart(t, time, end_time))
        return TL_AGAIN;
    run_until(t, position, time, apart);
    if (known->round != t->round)
        note_path(t, event->path, t->depth + 1);
    known->time += end_time - time;
    known->timed_calls++;
    if (t->exceptions.n > 0 && is_exception(t->frames[t->depth - 1].detail))
        tl_exception_times_called(&t->exceptions, t->exceptions.n - 1, position, time, end,
                                  end_time);
    t->position = end;
    t->time = end_time;
    struct tl_call_sums *const sums = &t->counts->index.functions[known->function].by[TL_BY_TIME];
    return tl_call_sums_end(sums, position, end_time - time) < 0 ? TL_NOMEM : 1;
}

/* A leaf becomes a push, and the event the pop at its end. */
static int open_leaf(struct tl_call_times *t, struct tl_call_event *event)
{
    const uint64_t end = position_of(event) + event->detail;
    event->detail = TL_FRAME_CALL;
    const int r = push(t, event);
    *event = (struct tl_call_event){end << 2 | TL_CALL_POP, event->path, TL_FRAME_CALL};
    return r;
}

/* An exception without a handler, or another mode. */
static __attribute__((noinline)) int pass_note(struct tl_call_times *t,
                                               const struct tl_call_event *event)
{
    if (event->detail & TL_CALL_UNSEEN)
        return tl_exception_times_unseen(&t->exceptions, (uint16_t)(event->detail >> 16),
                                         t->position, t->time);
    if (t->privilege != (uint8_t)event->detail)
        tl_call_times_report(t);
    t->privilege = (uint8_t)event->detail;
    return TL_OK;
}

/* Settle an event that is no simple call. Returns 1 if it is done; 0 if it has become another. */
static inline __attribute__((always_inline)) int settle_event(struct tl_call_times *t,
                                                              struct tl_call_event *event,
                                                              const struct tl_time_segment *segment,
                                                              bool apart)
{
    run_until(t, position_of(event), tl_time_in(segment, position_of(event)), apart);
    switch (event->at & 3) {
    case TL_CALL_LEAF:
        return open_leaf(t, event);
    case TL_CALL_PUSH:
        return push(t, event) < 0 ? TL_NOMEM : 1;
    case TL_CALL_POP:
        return pop(t, event->detail) < 0 ? TL_NOMEM : 1;
    default:
        return pass_note(t, event) < 0 ? TL_NOMEM : 1;
    }
}

static inline __attribute__((always_inline)) int64_t
settle_events(struct tl_call_times *t, size_t i, const struct tl_time_point *point, uint64_t end,
              bool apart)
{
    struct tl_time_segment segment = tl_time_segment(point);
    while (i < t->n && position_of(&t->log[i]) < end) {
        struct tl_call_event *const event = &t->log[i];
        while (segment.end <= position_of(event))
            segment = tl_time_segment(++point);
        const bool leaf =
            (event->at & 3) == TL_CALL_LEAF && position_of(event) + event->detail < segment.end;
        int r = leaf ? pass_leaf(t, event, &segment, apart) : TL_AGAIN;
        if (r == TL_AGAIN)
            r = settle_event(t, event, &segment, apart);
        if (r < 0)
            return r;
        i += (size_t)r;
    }
    return (int64_t)i;
}

/* Settle events from `i` on that are before position `end`, which the points reach; `time` is the
 * last of theirs. Returns the number of the first one that is not. TL_NOMEM. */
static int64_t settle_before(struct tl_call_times *t, size_t i, const struct tl_time_point *point,
                             uint64_t end, uint64_t time)
{
    return may_be_apart(t, time) ? settle_events(t, i, point, end, true)
                                 : settle_events(t, i, point, end, false);
}

/* Events before the log's number `i` are settled. */
static void drop_events(struct tl_call_times *t, int64_t i)
{
    t->n -= (size_t)i;
    if (t->n > 0)
        memmove(t->log, t->log + i, t->n * sizeof *t->log);
}

/* The next timestamp has come. */
static int settle(struct tl_call_times *t, uint64_t position, uint64_t time)
{
    struct tl_time_knots *const k = &t->knots;
    if (tl_time_knots_end(k, position, time) < 0)
        return TL_NOMEM;
    const struct tl_time_point *point = k->points;
    int64_t i = 0;
    if (k->broken) {
        i = settle_before(t, 0, point, k->place, t->time);
        point += 2;
        if (i >= 0 && pass_gap(t, time) < 0)
            return TL_NOMEM;
    }
    if (i >= 0)
        i = settle_before(t, (size_t)i, point, position, time);
    if (i < 0)
        return TL_NOMEM;
    if (t->gap == position)
        lose_until(t, time);
    run_until(t, position, time, true);
    drop_events(t, i);
    if (position - t->reported >= REPORTED)
        tl_call_times_report(t);
    return tl_time_knots_begin(k, position, time);
}

/* ---- events --------------------------------------------------------------------------------- */

/* Too many: settle all at the time of the last timestamp. What passes until the next is lost. */
static int give_up(struct tl_call_times *t)
{
    const uint64_t end = position_of(&t->log[t->n - 1]) + 1;
    const struct tl_time_point points[] = {{t->position, t->time}, {end, t->time}};
    if (!t->knots.broken)
        t->knots.place = t->position;
    t->knots.broken = true;
    t->knots.flags |= TL_FLAG_GAP | TL_FLAG_OVERFLOW;
    const int64_t settled = settle_before(t, 0, points, end, t->time);
    if (settled >= 0)
        drop_events(t, settled);
    return settled < 0 ? TL_NOMEM : TL_OK;
}

bool tl_call_times_room(struct tl_call_times *t)
{
    int r = TL_OK;
    if (t->n >= TL_CALL_EVENTS)
        r = give_up(t);
    if (r >= 0)
        r = tl_grow(&t->log, &t->cap, t->n + 1, sizeof *t->log);
    if (r < 0)
        tl_call_times_drop(t);
    return r >= 0;
}

/* Those of the frames. */
static int adopt_exceptions(struct tl_call_times *t)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < t->depth && r >= 0; i++) {
        const struct tl_open_exception one = exception_of(&t->frames[i], t->frames[i].function);
        if (is_exception(t->frames[i].detail))
            r = tl_exception_times_enter(&t->exceptions, &one, false);
    }
    return r;
}

void tl_call_times_date(struct tl_call_times *t, uint32_t i, uint64_t time)
{
    size_t before = 0;
    for (uint32_t k = 0; k < i; k++)
        before += is_exception(t->frames[k].detail);
    t->frames[i].time = time;
    if (is_exception(t->frames[i].detail) && before < t->exceptions.n)
        t->exceptions.open[before].time = time;
}

/* The stack's frames are those at the first timestamp. */
static int start(struct tl_call_times *t, const struct tl_callstack *calls, uint64_t position,
                 const struct tl_flow_now *now)
{
    t->frames = calloc(TL_CALLSTACK_MAX, sizeof *t->frames);
    if (!t->frames || tl_time_knots_begin(&t->knots, position, now->axis) < 0)
        return TL_NOMEM;
    t->known = true;
    t->position = t->reported = position;
    t->time = t->reported_time = now->axis;
    t->privilege = (uint8_t)tl_flow_now_privilege(now);
    for (t->depth = 0; t->depth < calls->depth; t->depth++) {
        const struct tl_frame *const frame = &calls->frames[t->depth];
        t->frames[t->depth] = (struct tl_timed_frame){
            .position = frame->insn,
            .time = now->axis,
            .function = frame->function,
            .detail = frame->kind | (uint32_t)frame->flags << 8 | (uint32_t)frame->exception << 16,
        };
    }
    const int r = adopt_exceptions(t);
    return r < 0 ? r : tl_call_times_begin(t, t->counts);
}

void tl_call_times_item(struct tl_call_times *t, const struct tl_callstack *calls,
                        uint64_t position, const struct tl_flow_now *now,
                        const struct tl_item *item)
{
    int r = TL_OK;
    if (t->dropped || !t->counts)
        return;
    if (!t->known && item->kind != TL_ITEM_TIME)
        t->gap = position;
    else if (item->kind == TL_ITEM_MODE)
        tl_call_times_event(t, TL_CALL_MODE, position, 0, tl_flow_now_privilege(now));
    else if (item->kind != TL_ITEM_TIME)
        r = tl_time_knots_item(&t->knots, position, item);
    else if (t->known)
        r = settle(t, position, now->axis);
    else
        r = start(t, calls, position, now);
    if (r < 0)
        tl_call_times_drop(t);
}

/* ---- shards --------------------------------------------------------------------------------- */

int tl_call_times_begin(struct tl_call_times *t, struct tl_call_paths *counts)
{
    t->counts = counts;
    t->round++;
    if (t->known &&
        (tl_grow(&t->ran, &t->cap_ran, 1, sizeof *t->ran) < 0 || tl_call_times_find_paths(t) < 0))
        return TL_NOMEM;
    counts->index.extent.timed = t->known;
    counts->index.extent.from = t->position;
    counts->index.extent.begin = t->time;
    tl_exception_times_begin(&t->exceptions, t->known ? &counts->rows : NULL, t->position, t->time);
    return TL_OK;
}

/* Callees of exceptions are active. */
static void end_callees(struct tl_call_times *t)
{
    size_t n = 0;
    for (uint32_t i = 0; i + 1 < t->depth; i++) {
        const struct tl_timed_frame *const callee = &t->frames[i + 1];
        if (is_exception(t->frames[i].detail))
            tl_exception_times_called(&t->exceptions, n++, callee->position, callee->time,
                                      t->position, t->time);
    }
}

void tl_call_times_end(struct tl_call_times *t)
{
    if (t->counts && t->known) {
        tl_call_times_report(t);
        t->counts->index.extent.to = t->position;
        t->counts->index.extent.end = t->time;
        end_callees(t);
        if (tl_exception_times_end(&t->exceptions, t->position, t->time) < 0)
            tl_call_times_drop(t);
        else
            tl_call_times_name_paths(t);
    }
    t->counts = NULL;
}

void tl_call_times_finish(struct tl_call_times *t, uint64_t position)
{
    if (!t->known || !t->counts)
        return;
    t->knots.steps = true; /* all has the last timestamp's time */
    t->knots.broken = false;
    t->knots.flags = 0;
    int r = settle(t, position, t->time);
    for (size_t i = 0; i < t->n && r >= 0; i++)
        r = (t->log[i].at & 3) == TL_CALL_MODE ? pass_note(t, &t->log[i]) : TL_OK;
    if (r < 0)
        tl_call_times_drop(t);
    tl_call_times_report(t);
}
