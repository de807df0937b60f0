/* SPDX-License-Identifier: MIT */
/*
 * Events are settled from one timestamp to the next in one pass along the points between which time
 * passes evenly: a call that returned without another change of the stack, as most do, costs two
 * interpolations and no frame.
 */
#include "builder/call_times.h"

#include <stdlib.h>
#include <string.h>

void tl_call_times_fini(struct tl_call_times *t)
{
    tl_time_knots_fini(&t->knots);
    free(t->log);
    free(t->frames);
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

/* ---- what ran ------------------------------------------------------------------------------- */

static __attribute__((noinline)) int report(struct tl_call_times *t, enum tl_timed_kind kind,
                                            uint32_t function, uint32_t depth, uint64_t position,
                                            uint64_t time)
{
    const struct tl_timed_span span = {.time = t->time,
                                       .end_time = time,
                                       .position = t->position,
                                       .end = position,
                                       .function = function,
                                       .depth = depth,
                                       .privilege = t->privilege,
                                       .kind = kind};
    const int r = t->sink(t->context, &span);
    if (r < 0)
        t->sink = NULL;
    return r;
}

/* The innermost frame ran until here. */
static inline void run_until(struct tl_call_times *t, uint64_t position, uint64_t time)
{
    t->counts->known[t->path].time += time - t->time;
    if (t->sink && (position > t->position || time > t->time))
        (void)report(t, TL_TIMED_RUN,
                     t->depth > 0 ? t->frames[t->depth - 1].function : TL_NO_FUNCTION, t->depth,
                     position, time);
    t->position = position;
    t->time = time;
}

/* Trace is missing here, for a time. */
static void lose_until(struct tl_call_times *t, uint64_t time)
{
    const bool off = t->gap_known && t->gap_off;
    *(off ? &t->counts->index.off : &t->counts->index.lost) += time - t->time;
    if (t->sink && time > t->time)
        (void)report(t, off ? TL_TIMED_OFF : TL_TIMED_LOST, TL_NO_FUNCTION, t->depth, t->position,
                     time);
    t->time = time;
}

/* A gap between the last timestamp and the next, which is at `time`. */
static void pass_gap(struct tl_call_times *t, uint64_t time)
{
    run_until(t, t->knots.place, t->time);
    t->gap = t->knots.place;
    t->gap_known = true;
    t->gap_off = tl_time_knots_is_off(&t->knots);
    lose_until(t, time);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Sums of the function of path `path`, called from `parent`: the same if the tree is full. NULL:
 * out of memory. */
static inline struct tl_call_sums *sums_of(struct tl_call_times *t, uint32_t parent, uint32_t path,
                                           uint32_t function)
{
    if (path != parent)
        return &tl_call_paths_function(t->counts, path)->by[TL_BY_TIME];
    const int64_t place = tl_call_paths_add_function(t->counts, function);
    return place < 0 ? NULL : &t->counts->index.functions[place].by[TL_BY_TIME];
}

static int count_begin(struct tl_call_times *t, uint32_t parent, uint32_t path, uint32_t function)
{
    if (path != parent) {
        t->counts->known[path].timed_calls++;
        return TL_OK;
    }
    struct tl_call_sums *const sums = sums_of(t, parent, path, function);
    if (sums)
        sums->calls++;
    return sums ? TL_OK : TL_NOMEM;
}

static int push(struct tl_call_times *t, const struct tl_call_event *event)
{
    const uint32_t parent = t->path;
    const int64_t path = tl_call_paths_find(t->counts, parent, event->function);
    if (path < 0 || t->depth == TL_CALLSTACK_MAX) /* the call stack has no more frames */
        return path < 0 ? TL_NOMEM : TL_OK;
    t->path = (uint32_t)path;
    t->frames[t->depth++] = (struct tl_timed_frame){.position = t->position,
                                                    .time = t->time,
                                                    .function = event->function,
                                                    .path = (uint32_t)path,
                                                    .detail = event->detail};
    return is_call(event->detail) ? count_begin(t, parent, (uint32_t)path, event->function) : TL_OK;
}

static int pop(struct tl_call_times *t)
{
    if (t->depth == 0)
        return TL_OK;
    const struct tl_timed_frame *const frame = &t->frames[--t->depth];
    t->path = t->depth > 0 ? frame[-1].path : 0;
    if (!is_call(frame->detail))
        return TL_OK;
    struct tl_call_sums *const sums = sums_of(t, t->path, frame->path, frame->function);
    return sums ? tl_call_sums_end(sums, frame->position, t->time - frame->time) : TL_NOMEM;
}

/* A call from `position` on that returned at `end`, before the next point. TL_AGAIN: it is not so
 * simple. */
static inline int pass_leaf(struct tl_call_times *t, const struct tl_call_event *event,
                            const struct tl_time_segment *segment)
{
    const uint64_t position = event->at >> 2, end = position + event->detail;
    const struct tl_call_path *const from = &t->counts->known[t->path];
    if (end >= segment->end || from->callee != event->function || from->child == 0)
        return TL_AGAIN;
    struct tl_call_path *const known = &t->counts->known[from->child];
    const uint64_t time = tl_time_in(segment, position), end_time = tl_time_in(segment, end);
    run_until(t, position, time);
    known->time += end_time - time;
    known->timed_calls++;
    if (t->sink)
        (void)report(t, TL_TIMED_RUN, event->function, t->depth + 1, end, end_time);
    t->position = end;
    t->time = end_time;
    return tl_call_sums_end(&t->counts->index.functions[known->function].by[TL_BY_TIME], position,
                            end_time - time);
}

/* A leaf becomes a push, and the event the pop at its end. */
static int open_leaf(struct tl_call_times *t, struct tl_call_event *event)
{
    const uint64_t end = position_of(event) + event->detail;
    event->detail = TL_FRAME_CALL;
    const int r = push(t, event);
    *event = (struct tl_call_event){end << 2 | TL_CALL_POP, event->function, TL_FRAME_CALL};
    return r;
}

/* Settle an event that is no simple call. Returns 1 if it is done; 0 if it has become another. */
static int settle_event(struct tl_call_times *t, struct tl_call_event *event,
                        const struct tl_time_segment *segment)
{
    int r = TL_OK;
    run_until(t, position_of(event), tl_time_in(segment, position_of(event)));
    switch (event->at & 3) {
    case TL_CALL_LEAF:
        r = open_leaf(t, event);
        return r < 0 ? r : 0;
    case TL_CALL_PUSH:
        r = push(t, event);
        break;
    case TL_CALL_POP:
        r = pop(t);
        break;
    default:
        t->privilege = (uint8_t)event->detail;
        break;
    }
    return r < 0 ? r : 1;
}

/* Settle events from `i` on that are before position `end`, which the points reach. Returns the
 * number of the first one that is not. TL_NOMEM. */
static int64_t settle_before(struct tl_call_times *t, size_t i, const struct tl_time_point *point,
                             uint64_t end)
{
    struct tl_time_segment segment = tl_time_segment(point);
    while (i < t->n && position_of(&t->log[i]) < end) {
        struct tl_call_event *const event = &t->log[i];
        while (segment.end <= position_of(event))
            segment = tl_time_segment(++point);
        int r = (event->at & 3) == TL_CALL_LEAF ? pass_leaf(t, event, &segment) : TL_AGAIN;
        if (r == TL_AGAIN)
            r = settle_event(t, event, &segment);
        else if (r >= 0)
            r = 1;
        if (r < 0)
            return r;
        i += (size_t)r;
    }
    return (int64_t)i;
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
        i = settle_before(t, 0, point, k->place);
        pass_gap(t, time);
        point += 2;
    }
    if (i >= 0)
        i = settle_before(t, (size_t)i, point, position);
    if (i < 0)
        return TL_NOMEM;
    if (t->gap == position)
        lose_until(t, time);
    run_until(t, position, time);
    drop_events(t, i);
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
    const int64_t settled = settle_before(t, 0, points, end);
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

/* The stack's frames are those at the first timestamp. */
static int start(struct tl_call_times *t, const struct tl_callstack *calls, uint64_t position,
                 const struct tl_flow_now *now)
{
    t->frames = calloc(TL_CALLSTACK_MAX, sizeof *t->frames);
    if (!t->frames || tl_time_knots_begin(&t->knots, position, now->axis) < 0)
        return TL_NOMEM;
    t->known = true;
    t->position = position;
    t->time = now->axis;
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
    return tl_call_times_begin(t, t->counts);
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

/* Find the paths of frames and of what is logged now, so that their numbers do not depend on when
 * that is settled. */
static int find_paths(struct tl_call_times *t)
{
    uint32_t *const paths = malloc((TL_CALLSTACK_MAX + 2) * sizeof *paths);
    int64_t path = paths ? 0 : TL_NOMEM;
    uint32_t depth = 0;
    for (; depth < t->depth && path >= 0; depth++) {
        paths[depth] = (uint32_t)path;
        path = tl_call_paths_find(t->counts, (uint32_t)path, t->frames[depth].function);
        t->frames[depth].path = (uint32_t)path;
    }
    t->path = (uint32_t)path;
    for (size_t i = 0; i < t->n && path >= 0; i++) {
        const unsigned kind = t->log[i].at & 3;
        if (kind == TL_CALL_POP && depth > 0)
            path = paths[--depth];
        if (kind != TL_CALL_PUSH && kind != TL_CALL_LEAF)
            continue;
        const int64_t found = tl_call_paths_find(t->counts, (uint32_t)path, t->log[i].function);
        if (kind == TL_CALL_PUSH && depth < TL_CALLSTACK_MAX)
            paths[depth++] = (uint32_t)path;
        if (kind == TL_CALL_PUSH || found < 0)
            path = found;
    }
    free(paths);
    return path < 0 ? TL_NOMEM : TL_OK;
}

int tl_call_times_begin(struct tl_call_times *t, struct tl_call_paths *counts)
{
    t->counts = counts;
    if (t->known && find_paths(t) < 0)
        return TL_NOMEM;
    counts->index.timed = t->known;
    counts->index.from = t->position;
    counts->index.begin = t->time;
    return TL_OK;
}

void tl_call_times_end(struct tl_call_times *t)
{
    if (t->counts && t->known) {
        t->counts->index.to = t->position;
        t->counts->index.end = t->time;
    }
    t->counts = NULL;
}

void tl_call_times_finish(struct tl_call_times *t, uint64_t position)
{
    if (!t->known || !t->counts)
        return;
    t->knots.steps = true; /* all has the last timestamp's time */
    t->knots.broken = false;
    if (settle(t, position, t->time) < 0)
        tl_call_times_drop(t);
}

/* ---- saved state ---------------------------------------------------------------------------- */

/* Is the log in the order of positions, from what is settled on? */
static bool is_ordered(const struct tl_call_times *t)
{
    uint64_t position = t->position;
    for (size_t i = 0; i < t->n; i++) {
        if (position_of(&t->log[i]) < position)
            return false;
        position = position_of(&t->log[i]);
    }
    return t->depth <= TL_CALLSTACK_MAX;
}

static void frames_state(struct tl_call_times *t, struct tl_state *s)
{
    tl_state_u32(s, &t->depth);
    tl_state_check(s, t->depth <= TL_CALLSTACK_MAX);
    if (tl_state_loads(s) && s->rc >= 0 && t->known && !t->frames &&
        !(t->frames = calloc(TL_CALLSTACK_MAX, sizeof *t->frames)))
        tl_state_fail(s, TL_NOMEM);
    tl_state_check(s, t->frames || t->depth == 0);
    for (uint32_t i = 0; i < t->depth && s->rc >= 0; i++) {
        tl_state_u64(s, &t->frames[i].position);
        tl_state_u64(s, &t->frames[i].time);
        tl_state_u32(s, &t->frames[i].function);
        tl_state_u32(s, &t->frames[i].detail);
    }
}

void tl_call_times_state(struct tl_call_times *t, struct tl_state *s)
{
    tl_state_bool(s, &t->known);
    tl_state_bool(s, &t->dropped);
    tl_state_u8(s, &t->privilege, UINT8_MAX);
    tl_state_u64(s, &t->position);
    tl_state_u64(s, &t->time);
    tl_state_u64(s, &t->gap);
    tl_state_bool(s, &t->gap_known);
    tl_state_bool(s, &t->gap_off);
    tl_time_knots_state(&t->knots, s);
    tl_state_check(s, !t->known || t->knots.n > 0);
    tl_state_array(s, &t->log, &t->n, &t->cap, sizeof *t->log);
    frames_state(t, s);
    tl_state_check(s, is_ordered(t));
    if (tl_state_loads(s) && s->rc < 0)
        tl_call_times_fini(t);
}
