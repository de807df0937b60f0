/* SPDX-License-Identifier: MIT */
/*
 * Follows the call stack through a range and gives each change its time from the exact scale of the
 * shard it is in. Times are looked up by position, not taken from the items as they pass, because
 * the time of a position depends on the timestamp after it.
 */
#include "query/timing.h"

#include "query/cycle_scale.h"

#include <stdlib.h>

enum { WINDOW = 1 << 15, WIDEST = 1 << 30 };

struct timed_frame {
    struct tl_frame frame;
    struct tl_moment begin;
    /* In the range so far, as in struct tl_timing_call: */
    uint64_t self, self_time;
    uint64_t interrupted, interruptions;
    uint64_t switched_out; /* the walker's, when it began */
    bool known;            /* it began in the range, at `begin` */
    bool cut;              /* its begin or end is hidden */
};

struct walker {
    const struct tl_cut *cut;
    const struct tl_timing_sinks *sinks;
    struct tl_fail *fail;
    struct tl_timing_part part;
    uint64_t from, to;
    struct tl_scale scale; /* up to `scale_end` */
    uint64_t scale_end;
    uint64_t window; /* positions of the next scale, at most */
    size_t next_break;
    /* Everything before this has been reported. At a gap `before` is the moment at which what ends
     * there ended, `now` that at which what follows begins. */
    uint64_t since;
    struct tl_moment before, now;
    uint64_t first;           /* of the range's begin */
    uint64_t switched_out;    /* ticks so far, up to `now`: */
    uint64_t switched_before; /* up to `before` */
    uint64_t lost_at;         /* position of the last gap */
    bool lost;
    bool adopted; /* `frames` has those that were there before the range */
    bool started; /* the range's begin has been reported */
    bool silent;  /* at the stream's begin, and no instruction has been seen */
    int failed;   /* < 0: result of the sink for items */
    uint8_t privilege;
    uint32_t depth;
    struct tl_callstack calls;
    struct timed_frame frames[TL_CALLSTACK_MAX];
};

struct tl_moment tl_timing_length(const struct tl_moment *a, const struct tl_moment *b)
{
    return (struct tl_moment){.time = b->time - a->time,
                              .least = b->least > a->most ? b->least - a->most : 0,
                              .most = b->most == UINT64_MAX ? UINT64_MAX : b->most - a->least};
}

uint64_t tl_timing_shown(const struct tl_lane *lane, uint64_t ticks)
{
    /* Where the clock begins does not matter; its tick 0 may be long before that. */
    struct tl_axis axis = tl_lane_axis(lane);
    axis.clock.zero = 0;
    return tl_axis_shown(&axis, ticks);
}

uint64_t tl_timing_step(const struct tl_lane *lane, const struct tl_rows_times *times)
{
    const uint64_t intervals = times->anchors > 0 ? times->anchors - 1 : 0;
    const uint64_t time = tl_timing_shown(lane, times->last - times->first);
    return intervals > 0 ? time / intervals + (time % intervals >= intervals - intervals / 2) : 0;
}

/* ---- moments --------------------------------------------------------------------------------- */

static struct tl_moment moment_in(const struct tl_scale *scale, uint64_t position)
{
    struct tl_moment m = {0, 0, UINT64_MAX};
    if (tl_scale_value(scale, position, &m.time))
        (void)tl_scale_edge(scale, position, &m.least, &m.most);
    return m;
}

/* Of what ends at a gap. */
static struct tl_moment before_break(const struct tl_scale_break *b)
{
    return (struct tl_moment){b->from, b->from, b->to};
}

int tl_timing_moment(const struct tl_cut *cut, uint64_t position, bool end, struct tl_moment *out,
                     struct tl_fail *fail)
{
    struct tl_scale scale;
    int r = tl_scale_open(&scale, cut, TL_SCALE_TICKS, false, position, position, fail);
    if (r < 0)
        return r;
    *out = moment_in(&scale, position);
    for (size_t i = 0; i < scale.n_breaks && end; i++)
        if (scale.breaks[i].position == position) {
            *out = before_break(&scale.breaks[i]);
            break;
        }
    r = scale.n > 0 ? TL_OK : TL_EOF;
    tl_scale_close(&scale);
    return r;
}

/* Is the break before what is to be reported? */
static bool is_passed(const struct walker *w, const struct tl_scale_break *b)
{
    const bool first = !w->started && w->part.has_begin;
    return b->position < w->since ||
           (b->position == w->since && (!first || b->to <= w->part.begin));
}

/* The moment before the instruction at a position, within the part. */
static struct tl_moment moment_of(const struct walker *w, uint64_t position)
{
    const struct tl_moment m = moment_in(&w->scale, position);
    if (position == w->to && w->part.has_end && m.time > w->part.end)
        return (struct tl_moment){w->part.end, w->part.end, w->part.end};
    return m;
}

/* A scale of cycles, continuing the one before it. */
static int next_cycles(struct walker *w)
{
    struct tl_scale *const s = &w->scale;
    uint64_t value;
    const int r = tl_cycle_scale_open(s, w->cut, w->since, w->scale_end, w->fail);
    if (r < 0 || !w->started || !tl_scale_value(s, w->since, &value))
        return r;
    const uint64_t more = w->now.time - value;
    for (size_t i = 0; i < s->n; i++)
        s->points[i].value += more;
    for (size_t i = 0; i < s->n_breaks; i++) {
        s->breaks[i].from += more;
        s->breaks[i].to += more;
    }
    return r;
}

/* Get the scale of what follows `since`: at first of little, since the walk may end early, then of
 * more and more of a shard. */
static int next_scale(struct walker *w)
{
    const struct tl_cut *const cut = w->cut;
    const size_t row = tl_cut_shard_at(cut, w->since);
    const uint64_t end = row < cut->n_rows ? cut->rows[row].first + cut->rows[row].n : w->to;
    tl_scale_close(&w->scale);
    w->scale_end = end < w->to && end > w->since ? end : w->to;
    if (w->scale_end - w->since > w->window)
        w->scale_end = w->since + w->window;
    w->window *= w->window < WIDEST ? 2 : 1;
    const int r = w->part.cycles ? next_cycles(w)
                                 : tl_scale_open_exact(&w->scale, cut, TL_SCALE_TICKS, w->since,
                                                       w->scale_end, w->fail);
    w->next_break = 0;
    while (r >= 0 && w->next_break < w->scale.n_breaks &&
           is_passed(w, &w->scale.breaks[w->next_break]))
        w->next_break++;
    return r;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static int report_span(struct walker *w, uint64_t end, const struct tl_moment *until, uint8_t kind)
{
    const struct timed_frame *const top = w->depth > 0 ? &w->frames[w->depth - 1] : NULL;
    const struct tl_timed_span span = {.time = w->now.time,
                                       .end_time = until->time,
                                       .position = w->since,
                                       .end = end,
                                       .function = kind == TL_TIMED_RUN && top ? top->frame.function
                                                                               : TL_NO_FUNCTION,
                                       .depth = w->depth,
                                       .privilege = w->privilege,
                                       .kind = kind};
    return w->sinks->span ? w->sinks->span(w->sinks->context, &span, &w->now, until) : TL_OK;
}

/* What passes before a stream's first instruction is no function's time. */
static int report_silence(struct walker *w)
{
    const struct tl_moment first = moment_of(w, w->since);
    const bool passed = w->silent && first.time > w->now.time;
    const int r = passed ? report_span(w, w->since, &first, TL_TIMED_LOST) : TL_OK;
    if (passed)
        w->now = w->before = first;
    w->silent = false;
    return r;
}

/* The innermost function ran until `end`. */
static int report_run(struct walker *w, uint64_t end, struct tl_moment until)
{
    if (end == w->since && until.time == w->now.time)
        return TL_OK;
    int r = report_silence(w);
    if (r >= 0)
        r = report_span(w, end, &until, TL_TIMED_RUN);
    if (w->depth > 0) {
        w->frames[w->depth - 1].self += end - w->since;
        w->frames[w->depth - 1].self_time += until.time - w->now.time;
    }
    w->since = end;
    w->now = w->before = until;
    w->switched_before = w->switched_out;
    return r;
}

/* Report the break, with what ran before it, and the time of which nothing is known: its own, and
 * what passes at its position after it. */
static int report_break(struct walker *w)
{
    const struct tl_scale_break *const b = &w->scale.breaks[w->next_break++], *const next = b + 1;
    const bool again =
        w->next_break < w->scale.n_breaks && next->position == b->position; /* another one */
    int r = TL_OK;
    if (w->since < b->position)
        r = report_run(w, b->position, before_break(b));
    const struct tl_moment until =
        again ? (struct tl_moment){next->from, b->from, next->to} : moment_of(w, b->position);
    const enum tl_timed_kind kind = tl_missing_kind(b->flags);
    w->switched_out += kind == TL_TIMED_SWITCHED_OUT ? until.time - w->now.time : 0;
    if (r >= 0)
        r = report_span(w, b->position, &until, kind);
    if (r >= 0 && w->sinks->gap && b->to > b->from)
        r = w->sinks->gap(w->sinks->context, b);
    w->now = until;
    return r;
}

/* Does the break at the part's last position belong to the part behind it, by its time? */
static bool is_in_next_part(const struct walker *w, const struct tl_scale_break *b)
{
    return b->position == w->to && w->part.has_end && b->from >= w->part.end;
}

/* Report everything before a position that the current scale reaches. */
static int report_within_scale(struct walker *w, uint64_t position)
{
    int r = TL_OK;
    while (r >= 0 && w->next_break < w->scale.n_breaks &&
           w->scale.breaks[w->next_break].position <= position &&
           !is_in_next_part(w, &w->scale.breaks[w->next_break]))
        r = report_break(w);
    return r >= 0 && position > w->since ? report_run(w, position, moment_of(w, position)) : r;
}

/* Report everything before a position. */
static int report_up_to(struct walker *w, uint64_t position)
{
    int r = TL_OK;
    if (position <= w->since)
        return TL_OK;
    while (r >= 0 && position > w->scale_end) {
        r = report_within_scale(w, w->scale_end);
        if (r >= 0)
            r = next_scale(w);
    }
    return r < 0 ? r : report_within_scale(w, position);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* An exception at `depth` took so long: add that to the calls that it interrupted, up to one that
 * is an exception itself. */
static void add_interruption(struct walker *w, uint32_t depth, uint64_t time)
{
    while (depth-- > 0) {
        w->frames[depth].interrupted += time;
        w->frames[depth].interruptions++;
        if (w->frames[depth].frame.kind == TL_FRAME_EXCEPTION)
            break;
    }
}

/* When a frame began that was there before the range. In cycles: by how many before it. */
static int find_begin(const struct walker *w, const struct timed_frame *f, struct tl_moment *out)
{
    struct tl_scale scale;
    uint64_t begin = 0, from = 0;
    if (!w->part.cycles)
        return tl_timing_moment(w->cut, f->frame.insn, false, out, w->fail);
    const int r = tl_cycle_scale_open(&scale, w->cut, f->frame.insn, w->from, w->fail);
    if (r >= 0 && tl_scale_value(&scale, f->frame.insn, &begin) &&
        tl_scale_value(&scale, w->from, &from))
        out->time = w->first - (from - begin);
    out->least = out->most = out->time;
    tl_scale_close(&scale);
    return r;
}

static int end_call(struct walker *w, uint32_t depth, uint64_t end, bool open)
{
    struct timed_frame *const f = &w->frames[depth];
    const bool empty = f->known && f->frame.insn == end; /* after a gap there, if one is */
    struct tl_timing_call call = {.frame = f->frame,
                                  .depth = depth,
                                  .end = end,
                                  .from = f->begin,
                                  .to = empty ? f->begin : w->before,
                                  .self = f->self,
                                  .self_time = f->self_time,
                                  .interrupted = f->interrupted,
                                  .interruptions = f->interruptions,
                                  .switched_out = w->switched_before > f->switched_out
                                                      ? w->switched_before - f->switched_out
                                                      : 0,
                                  .caller = depth > 0 ? f[-1].frame.function : TL_NO_FUNCTION,
                                  .cut = f->cut || open || (w->lost && w->lost_at == end),
                                  .open = open};
    if (f->frame.kind == TL_FRAME_EXCEPTION)
        add_interruption(w, depth, call.to.time - f->begin.time);
    if (!w->sinks->end)
        return TL_OK;
    const int r = f->known ? TL_OK : find_begin(w, f, &call.from);
    return r < 0 && r != TL_EOF ? r : w->sinks->end(w->sinks->context, &call);
}

static void enter(struct walker *w, const struct tl_frame *frame, uint32_t depth, bool known)
{
    w->frames[depth] = (struct timed_frame){.frame = *frame,
                                            .begin = w->now,
                                            .switched_out = w->switched_out,
                                            .known = known,
                                            .cut = !tl_frame_is_call(frame)};
    w->depth = depth + 1;
}

/* At the first report of the stack: the frames that were there before. */
static void adopt_frames(struct walker *w, uint32_t depth)
{
    if (w->adopted)
        return;
    w->adopted = true;
    w->depth = 0;
    for (uint32_t i = 0; i < depth && i < TL_CALLSTACK_MAX; i++)
        enter(w, &w->calls.frames[i], i, false);
}

/* The range begins, with the frames that are there. Time at its position belongs to these. */
static int begin_range(struct walker *w)
{
    const struct tl_timing_sinks *const sinks = w->sinks;
    int r = TL_OK;
    if (w->started)
        return TL_OK;
    w->started = true;
    for (uint32_t i = 0; i < w->depth && r >= 0 && sinks->begin; i++)
        r = sinks->begin(sinks->context, &w->frames[i].frame, i, &w->now);
    if (r >= 0 && w->part.has_begin) {
        r = report_within_scale(w, w->since);
        if (r >= 0)
            r = report_run(w, w->since, moment_of(w, w->since));
    }
    return r;
}

static int change_frame(struct walker *w, enum tl_frame_change change, const struct tl_frame *frame,
                        uint32_t depth, uint64_t insn)
{
    const struct tl_timing_sinks *const sinks = w->sinks;
    int r = report_up_to(w, insn);
    if (r >= 0 && change == TL_FRAME_POP) {
        w->frames[depth].frame.flags |= frame->flags & TL_FRAME_LOST;
        w->frames[depth].cut |= (frame->flags & TL_FRAME_LOST) != 0;
        r = end_call(w, depth, insn, false);
        w->depth = depth;
    } else if (r >= 0) {
        enter(w, frame, depth, frame->insn == insn);
        r = sinks->begin ? sinks->begin(sinks->context, frame, depth, &w->now) : TL_OK;
    }
    return r;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct walker *const w = context;
    if (depth >= TL_CALLSTACK_MAX)
        return TL_OK;
    adopt_frames(w, depth + (change == TL_FRAME_POP));
    if (w->failed < 0)
        return w->failed;
    if (insn >= w->from) {
        const int r = begin_range(w);
        return r < 0 ? r : change_frame(w, change, frame, depth, insn);
    }
    w->depth = depth;
    if (change == TL_FRAME_PUSH)
        enter(w, frame, depth, false);
    return TL_OK;
}

/* Kinds of items that are reported. */
#define REPORTED_ITEMS (1u << TL_ITEM_EXCEPTION | 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON)

static int report_item(struct walker *w, const struct tl_item *item, uint64_t position)
{
    if (!w->sinks->item || position < w->from || !(1u << item->kind & REPORTED_ITEMS))
        return TL_OK;
    int r = begin_range(w);
    if (r >= 0)
        r = report_up_to(w, position);
    return r < 0 ? r : w->sinks->item(w->sinks->context, item, position, &w->now);
}

static void on_item(void *context, const struct tl_walk *walk, size_t i)
{
    struct walker *const w = context;
    const struct tl_item *const item = &walk->items[i];
    adopt_frames(w, w->calls.depth);
    if (i == 0)
        w->privilege = (uint8_t)tl_flow_now_privilege(&walk->now);
    if (item->kind == TL_ITEM_MODE)
        w->privilege = (uint8_t)tl_mode_privilege(item->value);
    if (item->kind == TL_ITEM_GAP && !tl_gap_is_off(item->sub)) {
        w->lost = true;
        w->lost_at = walk->positions[i];
    }
    if (w->failed >= 0)
        w->failed = report_item(w, item, walk->positions[i]);
}

/* What ends at the range's begin did so before the gap there, if one is. */
static void begin_behind_gap(struct walker *w)
{
    for (size_t i = 0; i < w->next_break; i++)
        if (w->scale.breaks[i].position == w->from) {
            w->before = before_break(&w->scale.breaks[i]);
            break;
        }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static int walk_range(struct walker *w)
{
    struct tl_cut_walk walk;
    int r = next_scale(w);
    w->now = w->before = moment_in(&w->scale, w->from);
    if (w->part.has_begin && w->part.begin < w->now.time)
        w->now = w->before = (struct tl_moment){w->part.begin, w->part.begin, w->part.begin};
    w->first = w->now.time;
    begin_behind_gap(w);
    tl_cut_walk_begin(&walk, w->cut, w->from, w->to);
    if (r >= 0)
        r = tl_cut_walk_follow(&walk, &w->calls, on_frame, on_item, w, w->fail);
    tl_cut_walk_end(&walk);
    r = r < 0 ? r : w->failed;
    if (r >= 0)
        r = begin_range(w);
    if (r >= 0)
        r = report_up_to(w, w->to);
    for (uint32_t i = w->depth; i-- > 0 && r >= 0;)
        r = end_call(w, i, w->to, true);
    return r;
}

/* A range from the stream's begin has what passes there, which no other range has. */
static void begin_with_stream(struct walker *w)
{
    const struct tl_shard_row *const row = w->cut->n_rows > 0 ? w->cut->rows : NULL;
    w->silent = w->from == 0 && !w->part.cycles;
    if (w->part.has_begin || w->part.cycles || w->from > 0 || !row || row->anchors == 0 ||
        row->anchor_first.position > 0)
        return;
    w->part.has_begin = true;
    w->part.begin = row->anchor_first.time;
}

int tl_timing_walk_part(const struct tl_cut *cut, const struct tl_timing_part *part,
                        const struct tl_timing_sinks *sinks, struct tl_fail *fail)
{
    struct walker *const w = calloc(1, sizeof *w);
    if (!w)
        return TL_NOMEM;
    w->cut = cut;
    w->window = WINDOW;
    w->sinks = sinks;
    w->part = *part;
    w->fail = fail;
    w->to = part->to < cut->end ? part->to : cut->end;
    w->from = w->since = part->from < w->to ? part->from : w->to;
    begin_with_stream(w);
    const int r = walk_range(w);
    tl_scale_close(&w->scale);
    free(w);
    return r;
}

int tl_timing_walk(const struct tl_cut *cut, uint64_t from, uint64_t to,
                   const struct tl_timing_sinks *sinks, struct tl_fail *fail)
{
    return tl_timing_walk_part(cut, &(struct tl_timing_part){.from = from, .to = to}, sinks, fail);
}
