/* SPDX-License-Identifier: MIT */
/*
 * Exceptions and interrupts of a range, by number. Periods are measured from entry to entry,
 * because that is what the source of the interrupt determines; mean and deviation are computed from
 * sums of ticks as double, which are exact enough for a ratio.
 *
 * Where the entry of a vector jumps to the handler proper, the stack has another frame at the same
 * place: that is the same exception. A new one has been told of by an item.
 */
#include "query/query.h"
#include "query/timing_answer.h"

#include "base/numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct exception {
    uint16_t sub; /* number and flag, as in its item */
    char name[32];
    uint32_t handler; /* symbol */
    uint64_t entered, ended, nested;
    uint32_t deepest;
    uint64_t self, self_time;
    struct tl_length_sum insns, time;
    uint64_t latencies, latency_min, latency_max, latency_total, latency_worst;
    uint64_t periods, period_min, period_max, period_longest;
    double period_sum, period_squares;
    uint64_t last; /* time of the last entry, if entered */
};

struct table {
    struct tl_timing_ask ask;
    struct tl_numbers numbers; /* of exceptions, by `sub` */
    struct exception *p;
    size_t n, cap;
    struct tl_timing_call ended; /* the frame that was left last, if `has_ended` */
    bool has_ended;
    bool news;       /* an item told of an exception since the last frame began */
    uint32_t active; /* exceptions on the stack */
    struct begun {
        uint64_t insn;
        struct tl_moment at;
        bool counts;           /* it was entered, not resumed */
    } begun[TL_CALLSTACK_MAX]; /* by depth */
    bool returned;             /* one has returned to code that is no handler: */
    uint64_t user_at;          /* then */
    uint16_t told;             /* by the last EXCEPTION item */
    char name[32];
};

static struct exception *exception_of(struct table *t, uint16_t sub)
{
    const uint32_t at = tl_numbers_find(&t->numbers, sub);
    if (at != TL_NO_NUMBER)
        return &t->p[at];
    if (tl_grow(&t->p, &t->cap, t->n + 1, sizeof *t->p) < 0 || tl_numbers_add(&t->numbers, sub) < 0)
        return NULL;
    t->p[t->n] = (struct exception){.sub = sub, .handler = TL_NO_FUNCTION};
    return &t->p[t->n++];
}

static void note_period(struct exception *e, uint64_t now, uint64_t position)
{
    const uint64_t period = now - e->last;
    e->period_min = e->periods == 0 || period < e->period_min ? period : e->period_min;
    if (e->periods == 0 || period > e->period_max) {
        e->period_max = period;
        e->period_longest = position;
    }
    e->periods++;
    e->period_sum += (double)period;
    e->period_squares += (double)period * (double)period;
}

static void note_latency(struct exception *e, uint64_t latency, uint64_t position)
{
    e->latency_min = e->latencies == 0 || latency < e->latency_min ? latency : e->latency_min;
    if (e->latencies == 0 || latency > e->latency_max) {
        e->latency_max = latency;
        e->latency_worst = position;
    }
    e->latencies++;
    e->latency_total += latency;
}

static void enter(struct table *t, struct exception *e, const struct tl_frame *frame, uint64_t now)
{
    if (e->entered > 0)
        note_period(e, now, frame->insn);
    if (t->returned)
        note_latency(e, now - t->user_at, frame->insn);
    if (t->told == e->sub && t->name[0] && !e->name[0])
        snprintf(e->name, sizeof e->name, "%s", t->name);
    e->entered++;
    e->nested += t->active > 0;
    e->last = now;
}

/* Does the frame continue the exception that was left at the same place? */
static bool goes_on(const struct table *t, const struct tl_frame *frame, uint32_t depth)
{
    const struct tl_frame *const left = &t->ended.frame;
    return t->has_ended && !t->news && frame->kind == TL_FRAME_EXCEPTION &&
           t->ended.depth == depth && t->ended.end == frame->insn &&
           left->exception == frame->exception && left->return_pc == frame->return_pc;
}

/* The exception whose last frame was left is over. */
static int finish(struct table *t)
{
    const struct tl_timing_call *const call = &t->ended;
    const struct begun *const begun = &t->begun[call->depth];
    if (!t->has_ended)
        return TL_OK;
    t->has_ended = false;
    struct exception *const e = exception_of(t, call->frame.exception);
    if (!e)
        return TL_NOMEM;
    if (e->ended++ == 0)
        e->handler = call->frame.function;
    if (t->active == 0) {
        t->returned = true;
        t->user_at = call->to.time;
    }
    const int r = tl_length_add(&e->insns, call->end - begun->insn, begun->insn);
    return r < 0 ? r : tl_length_add(&e->time, call->to.time - begun->at.time, begun->insn);
}

static int on_begin(void *context, const struct tl_frame *frame, uint32_t depth,
                    const struct tl_moment *at)
{
    struct table *const t = context;
    (void)depth;
    if (goes_on(t, frame, depth)) {
        t->has_ended = false;
        t->active++;
        return TL_OK;
    }
    const int r = finish(t);
    if (r < 0 || frame->kind != TL_FRAME_EXCEPTION)
        return r;
    struct exception *const e = exception_of(t, frame->exception);
    if (!e)
        return TL_NOMEM;
    const bool counts = tl_frame_is_call(frame);
    if (counts && frame->insn >= t->ask.from)
        enter(t, e, frame, at->time);
    t->news = false;
    t->begun[depth] = (struct begun){frame->insn, *at, counts};
    t->active++;
    e->deepest = t->active > e->deepest ? t->active : e->deepest;
    return TL_OK;
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct table *const t = context;
    const int r = finish(t);
    if (r < 0 || call->frame.kind != TL_FRAME_EXCEPTION)
        return r;
    struct exception *const e = exception_of(t, call->frame.exception);
    if (!e)
        return TL_NOMEM;
    e->self += call->self;
    e->self_time += call->self_time;
    t->active--;
    t->ended = *call;
    t->has_ended = !call->open && t->begun[call->depth].counts;
    return TL_OK;
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct table *const t = context;
    (void)from;
    (void)to;
    tl_timing_ask_span(&t->ask, span);
    return TL_OK;
}

/* The name is that of the item, which comes before the handler's frame. */
static void on_item(void *context, const struct tl_item *item, uint64_t position)
{
    struct table *const t = context;
    (void)position;
    t->news |= item->kind == TL_ITEM_EXCEPTION || item->kind == TL_ITEM_HARDWARE;
    if (item->kind != TL_ITEM_EXCEPTION)
        return;
    t->told = item->sub;
    snprintf(t->name, sizeof t->name, "%s", item->text ? item->text : "");
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct exception *x = a, *y = b;
    if (x->time.total != y->time.total)
        return x->time.total > y->time.total ? -1 : 1;
    if (x->insns.total != y->insns.total)
        return x->insns.total > y->insns.total ? -1 : 1;
    return x->sub < y->sub ? -1 : x->sub > y->sub;
}

static void set_periods(const struct tl_lane *lane, const struct exception *e,
                        struct tl_exception_row *row)
{
    /* A million ticks in the unit that is shown: clocks may be slower or faster than 1 GHz. */
    const double unit = (double)tl_timing_shown(lane, 1000000) / 1e6;
    const double n = (double)e->periods, mean = n > 0 ? e->period_sum / n : 0;
    const double variance = n > 0 ? e->period_squares / n - mean * mean : 0;
    row->periods = e->periods;
    row->period_min = tl_timing_shown(lane, e->period_min);
    row->period_max = tl_timing_shown(lane, e->period_max);
    row->period_longest = e->period_longest;
    row->period = mean * unit;
    row->jitter = variance > 0 ? sqrt(variance) * unit : 0;
}

static struct tl_exception_row row_of(const struct table *t, const struct tl_image *image,
                                      const struct exception *e)
{
    const struct tl_lane *const lane = t->ask.cut.lane;
    struct tl_exception_row row = {
        .number = tl_exception_number(e->sub),
        .interrupt = e->sub & TL_EXCEPTION_INTERRUPT,
        .handler = tl_function_name(image, e->handler),
        .entered = e->entered,
        .ended = e->ended,
        .insns = tl_length_result(&e->insns, NULL),
        .time = tl_length_result(&e->time, lane),
        .self = e->self,
        .self_time = tl_timing_shown(lane, e->self_time),
        .nested = e->nested,
        .deepest = e->deepest,
        .latencies = e->latencies,
        .latency_min = tl_timing_shown(lane, e->latency_min),
        .latency_max = tl_timing_shown(lane, e->latency_max),
        .latency_total = tl_timing_shown(lane, e->latency_total),
        .latency_worst = e->latency_worst,
    };
    snprintf(row.name, sizeof row.name, "%s", e->name);
    set_periods(lane, e, &row);
    return row;
}

static int answer(struct table *t, struct tl_exception_table *out)
{
    const struct tl_image *const image = tl_gen_image(t->ask.cut.gen);
    if (t->n > 1)
        qsort(t->p, t->n, sizeof *t->p, by_time);
    out->p = calloc(t->n + 1, sizeof *out->p);
    for (; out->p && out->n < t->n; out->n++)
        out->p[out->n] = row_of(t, image, &t->p[out->n]);
    return out->p ? TL_OK : TL_NOMEM;
}

void tl_exception_table_fini(struct tl_exception_table *table)
{
    free(table->p);
    tl_gen_put(table->about.gen);
    *table = (struct tl_exception_table){0};
}

int tl_lake_exception_table(struct tl_lake *lake, const struct tl_timing_range *range,
                            struct tl_exception_table *out, struct tl_fail *fail)
{
    struct table *const t = calloc(1, sizeof *t);
    const struct tl_timing_sinks sinks = {
        .span = on_span, .begin = on_begin, .end = on_end, .item = on_item, .context = t};
    *out = (struct tl_exception_table){0};
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    int r = tl_timing_ask_begin(&t->ask, lake, range, &out->about, fail);
    if (r >= 0)
        r = tl_timing_walk(&t->ask.cut, t->ask.from, t->ask.to, &sinks, fail);
    if (r >= 0)
        r = finish(t);
    if (r >= 0)
        r = answer(t, out);
    for (size_t i = 0; i < t->n; i++) {
        tl_length_fini(&t->p[i].insns);
        tl_length_fini(&t->p[i].time);
    }
    free(t->p);
    tl_numbers_fini(&t->numbers);
    tl_timing_ask_end(&t->ask);
    free(t);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
