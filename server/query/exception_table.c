/* SPDX-License-Identifier: MIT */
/*
 * Exceptions and interrupts of a range, by number, from rows of each of them. Periods are measured
 * from entry to entry, because that is what the source of the interrupt determines; mean and
 * deviation are computed from sums of ticks as double, which are exact enough for a ratio.
 */
#include "query/query.h"
#include "query/timed_rows.h"
#include "query/timing_answer.h"

#include "base/numbers.h"
#include "flow/m_exception.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct exception {
    uint16_t sub;     /* number and flag, as in its item */
    bool signal;      /* handlers of signals, which no item tells of */
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
    struct tl_timed_rows names;
    struct tl_numbers numbers; /* of exceptions, by `sub` and whether it is a signal */
    struct exception *p;
    size_t n, cap;
    /* Those since the last one that returned to code that is no handler. */
    struct tl_exception_span *recent;
    size_t n_recent, cap_recent;
    bool returned;    /* one has done so: */
    uint64_t user_at; /* then */
};

static struct exception *exception_of(struct table *t, const struct tl_exception_span *span)
{
    const bool signal = span->flags & TL_EXCEPTION_SIGNAL;
    const uint32_t key = span->number | (uint32_t)signal << 16;
    const uint32_t at = tl_numbers_find(&t->numbers, key);
    if (at != TL_NO_NUMBER)
        return &t->p[at];
    if (tl_grow(&t->p, &t->cap, t->n + 1, sizeof *t->p) < 0 || tl_numbers_add(&t->numbers, key) < 0)
        return NULL;
    t->p[t->n] =
        (struct exception){.sub = span->number, .signal = signal, .handler = TL_NO_FUNCTION};
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

static void enter(struct table *t, struct exception *e, const struct tl_exception_span *span)
{
    if (e->entered > 0)
        note_period(e, span->time, span->begin);
    if (t->returned)
        note_latency(e, span->time - t->user_at, span->begin);
    e->entered++;
    e->nested += span->level > 1;
    e->last = span->time;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int by_begin(const void *a, const void *b)
{
    const struct tl_exception_span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->level < y->level ? -1 : x->level > y->level;
}

static int count(struct table *t, const struct tl_exception_span *span)
{
    struct exception *const e = exception_of(t, span);
    if (!e)
        return TL_NOMEM;
    e->self += span->self;
    e->self_time += span->self_time;
    e->deepest = span->level > e->deepest ? span->level : e->deepest;
    if (!(span->flags & TL_EXCEPTION_RESUMED) && span->begin >= t->ask.from)
        enter(t, e, span);
    if (span->flags & TL_EXCEPTION_CUT)
        return TL_OK;
    if (e->ended++ == 0)
        e->handler = span->function;
    const int r = tl_length_add(&e->insns, span->end - span->begin, span->begin);
    return r < 0 ? r : tl_length_add(&e->time, span->end_time - span->time, span->begin);
}

/* Count the recent ones, in the order in which they began. */
static int count_recent(struct table *t)
{
    int r = TL_OK;
    if (t->n_recent > 1)
        qsort(t->recent, t->n_recent, sizeof *t->recent, by_begin);
    for (size_t i = 0; i < t->n_recent && r >= 0; i++)
        r = count(t, &t->recent[i]);
    t->n_recent = 0;
    return r;
}

static int on_exception(void *context, const struct tl_exception_span *span)
{
    struct table *const t = context;
    int r = tl_grow(&t->recent, &t->cap_recent, t->n_recent + 1, sizeof *t->recent);
    if (r < 0)
        return r;
    t->recent[t->n_recent++] = *span;
    if (span->level > 1 || span->flags & TL_EXCEPTION_OPEN)
        return TL_OK;
    r = count_recent(t);
    if (!(span->flags & TL_EXCEPTION_CUT)) {
        t->returned = true;
        t->user_at = span->end_time;
    }
    return r;
}

static int on_piece(void *context, const struct tl_timed_rows *rows)
{
    struct table *const t = context;
    int r = TL_OK;
    for (size_t i = 0; i < rows->n_names && r >= 0; i++)
        r = tl_timed_rows_name(&t->names, rows->names[i].number, rows->names[i].text);
    return r;
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
    char made[TL_M_NAME];
    const char *name = tl_timed_rows_find_name(&t->names, e->sub);
    if (!name && lane->protocol == TL_PROTO_ITM && row.number >= 0) /* events have no other name */
        name = tl_m_exception_name(image, (unsigned)row.number, made);
    snprintf(row.name, sizeof row.name, "%s", e->signal ? "signal" : name ? name : "");
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

static int gather(struct table *t, struct tl_fail *fail)
{
    const struct tl_timed_rows_sinks sinks = {
        .exception = on_exception, .piece = on_piece, .context = t};
    struct tl_timed_extent all;
    const int r = tl_timed_rows_gather(&t->ask.cut, t->ask.from, t->ask.to, &sinks, &all, fail);
    tl_timing_ask_extent(&t->ask, &all);
    return r < 0 ? r : count_recent(t);
}

int tl_lake_exception_table(struct tl_lake *lake, const struct tl_timing_range *range,
                            struct tl_exception_table *out, struct tl_fail *fail)
{
    struct table t = {0};
    *out = (struct tl_exception_table){0};
    int r = tl_timing_ask_begin(&t.ask, lake, range, &out->about, fail);
    if (r >= 0)
        r = gather(&t, fail);
    if (r >= 0)
        r = answer(&t, out);
    for (size_t i = 0; i < t.n; i++) {
        tl_length_fini(&t.p[i].insns);
        tl_length_fini(&t.p[i].time);
    }
    free(t.p);
    free(t.recent);
    tl_timed_rows_fini(&t.names);
    tl_numbers_fini(&t.numbers);
    tl_timing_ask_end(&t.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
