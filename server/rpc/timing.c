/* SPDX-License-Identifier: MIT */
/* Fills messages from the lake's answers. Names are copied, since messages need valid UTF-8. */
#include "rpc/timing.h"

#include "base/utf8.h"
#include "flow/item.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

void tl_timing_reply_free(struct tl_timing_reply *reply)
{
    for (size_t i = 0; i < reply->n; i++)
        free(reply->memory[i]);
    free(reply->memory);
    *reply = (struct tl_timing_reply){0};
}

/* Zeroed memory that lives as long as the reply; NULL: there is none. */
static void *take(struct tl_timing_reply *reply, size_t size)
{
    if (tl_grow(&reply->memory, &reply->cap, reply->n + 1, sizeof *reply->memory) < 0)
        return NULL;
    void *const p = calloc(1, size);
    if (p)
        reply->memory[reply->n++] = p;
    return p;
}

static char *text_of(struct tl_timing_reply *reply, const char *name)
{
    char *const text = take(reply, strlen(name) + 1);
    if (text) {
        strcpy(text, name);
        tl_utf8_clean(text);
    }
    return text;
}

/* ---- parts of all answers -------------------------------------------------------------------- */

static Tracelake__V1__Timing *about_of(struct tl_timing_reply *reply,
                                       const struct tl_timing_about *about)
{
    Tracelake__V1__Timing *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__timing__init(m);
    m->begin = about->from;
    m->to = about->to;
    m->has_time = about->has_time;
    m->time_unit_ns = about->time_unit_ns;
    m->time_begin = about->time_from;
    m->time_to = about->time_to;
    m->time = about->time;
    m->ran = about->ran;
    m->lost = about->lost;
    m->off = about->off;
    return m;
}

static Tracelake__V1__Duration *duration_of(struct tl_timing_reply *reply,
                                            const struct tl_duration *duration)
{
    Tracelake__V1__Duration *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__duration__init(m);
    m->value = duration->value;
    m->least = duration->least;
    m->unbounded = duration->most == UINT64_MAX;
    m->most = m->unbounded ? 0 : duration->most;
    return m;
}

static Tracelake__V1__Lengths *lengths_of(struct tl_timing_reply *reply,
                                          const struct tl_lengths *lengths)
{
    Tracelake__V1__Lengths *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__lengths__init(m);
    m->total = lengths->total;
    m->min = lengths->min;
    m->max = lengths->max;
    m->p50 = lengths->p50;
    m->p90 = lengths->p90;
    m->p99 = lengths->p99;
    m->p999 = lengths->p999;
    m->longest = lengths->longest;
    return m;
}

static enum tl_weight weight_of(Tracelake__V1__Weight weight)
{
    return weight == TRACELAKE__V1__WEIGHT__WEIGHT_TIME ? TL_WEIGHT_TIME : TL_WEIGHT_INSNS;
}

static int check(unsigned unit, unsigned weight, uint32_t limit, struct tl_fail *fail)
{
    if (unit >= TL_UNITS)
        return tl_fail_set(fail, TL_USAGE, "unit %u is not known", unit);
    if (weight >= TL_WEIGHTS)
        return tl_fail_set(fail, TL_USAGE, "weight %u is not known", weight);
    if (limit > TL_TIMING_ROWS)
        return tl_fail_set(fail, TL_USAGE, "at most %d rows are in one answer", TL_TIMING_ROWS);
    return TL_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static Tracelake__V1__FunctionTimes *function_row(struct tl_timing_reply *reply,
                                                  const struct tl_function_times *f)
{
    Tracelake__V1__FunctionTimes *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__function_times__init(m);
    m->name = text_of(reply, f->name);
    m->pc = f->pc;
    m->calls = f->calls;
    m->ended = f->ended;
    m->self = f->self;
    m->total = f->total;
    m->self_time = duration_of(reply, &f->self_time);
    m->total_time = f->total_time;
    if (f->ended > 0) {
        m->insns = lengths_of(reply, &f->insns);
        m->time = lengths_of(reply, &f->time);
    }
    return m->name && m->self_time && (f->ended == 0 || (m->insns && m->time)) ? m : NULL;
}

static int functions_message(struct tl_timing_reply *reply, const struct tl_function_table *table)
{
    Tracelake__V1__FunctionsReply *const m = take(reply, sizeof *m);
    if (!m)
        return TL_NOMEM;
    tracelake__v1__functions_reply__init(m);
    m->all = table->all;
    m->about = about_of(reply, &table->about);
    m->functions = take(reply, (table->n + 1) * sizeof *m->functions);
    bool ok = m->about && m->functions;
    for (size_t i = 0; ok && i < table->n; i++)
        ok = (m->functions[m->n_functions++] = function_row(reply, &table->p[i])) != NULL;
    reply->message = &m->base;
    return ok ? TL_OK : TL_NOMEM;
}

int tl_timing_functions(struct tl_lake *lake, const void *request, struct tl_timing_reply *reply,
                        struct tl_fail *fail)
{
    const Tracelake__V1__FunctionsRequest *const r = request;
    const struct tl_function_table_request wanted = {
        .range = {r->trace, r->stream, (enum tl_range_unit)r->unit, r->begin,
                  r->to ? r->to : UINT64_MAX},
        .weight = weight_of(r->weight),
        .limit = r->limit};
    struct tl_function_table table = {0};
    int rc = check((unsigned)r->unit, (unsigned)r->weight, r->limit, fail);
    if (rc >= 0)
        rc = tl_lake_function_table(lake, &wanted, &table, fail);
    if (rc >= 0)
        rc = functions_message(reply, &table);
    tl_function_table_fini(&table);
    return rc;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static Tracelake__V1__TimedCall *call_row(struct tl_timing_reply *reply,
                                          const struct tl_call_row *row)
{
    Tracelake__V1__TimedCall *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__timed_call__init(m);
    m->name = text_of(reply, row->name);
    m->caller = text_of(reply, row->caller);
    m->begin = row->from;
    m->to = row->to;
    m->self = row->self;
    m->time_begin = row->time_from;
    m->time_to = row->time_to;
    m->time = duration_of(reply, &row->time);
    m->self_time = row->self_time;
    m->interrupted = row->interrupted;
    m->interruptions = row->interruptions;
    m->depth = row->depth;
    m->cut = row->cut;
    m->open = row->open;
    return m->name && m->caller && m->time ? m : NULL;
}

static int calls_message(struct tl_timing_reply *reply, const struct tl_calls *calls)
{
    Tracelake__V1__CallsReply *const m = take(reply, sizeof *m);
    if (!m)
        return TL_NOMEM;
    tracelake__v1__calls_reply__init(m);
    m->all = calls->all;
    m->what = text_of(reply, calls->what);
    m->about = about_of(reply, &calls->about);
    m->calls = take(reply, (calls->n + 1) * sizeof *m->calls);
    bool ok = m->what && m->about && m->calls;
    for (size_t i = 0; ok && i < calls->n; i++)
        ok = (m->calls[m->n_calls++] = call_row(reply, &calls->p[i])) != NULL;
    reply->message = &m->base;
    return ok ? TL_OK : TL_NOMEM;
}

int tl_timing_calls(struct tl_lake *lake, const void *request, struct tl_timing_reply *reply,
                    struct tl_fail *fail)
{
    const Tracelake__V1__CallsRequest *const r = request;
    const struct tl_calls_request wanted = {
        .range = {r->trace, r->stream, (enum tl_range_unit)r->unit, r->begin,
                  r->to ? r->to : UINT64_MAX},
        .function = r->function,
        .weight = weight_of(r->weight),
        .order = (enum tl_calls_order)r->order, /* the enums have the same values */
        .least = r->least,
        .most = r->most ? r->most : UINT64_MAX,
        .lengths_in_ns = r->lengths_in_ns,
        .skip = r->skip,
        .limit = r->limit};
    struct tl_calls calls = {0};
    int rc = check((unsigned)r->unit, (unsigned)r->weight, r->limit, fail);
    if (rc >= 0 && (unsigned)r->order >= TL_CALLS_ORDERS)
        rc = tl_fail_set(fail, TL_USAGE, "order %u is not known", (unsigned)r->order);
    if (rc >= 0)
        rc = tl_lake_calls_of(lake, &wanted, &calls, fail);
    if (rc >= 0)
        rc = calls_message(reply, &calls);
    tl_calls_fini(&calls);
    return rc;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static Tracelake__V1__ExceptionTimes *exception_row(struct tl_timing_reply *reply,
                                                    const struct tl_exception_row *e)
{
    Tracelake__V1__ExceptionTimes *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__exception_times__init(m);
    m->number = e->number;
    m->interrupt = e->interrupt;
    m->name = text_of(reply, e->name);
    m->handler = text_of(reply, e->handler);
    m->entered = e->entered;
    m->ended = e->ended;
    m->self = e->self;
    m->self_time = e->self_time;
    m->nested = e->nested;
    m->deepest = e->deepest;
    m->latencies = e->latencies;
    m->latency_min = e->latency_min;
    m->latency_max = e->latency_max;
    m->latency_total = e->latency_total;
    m->latency_worst = e->latency_worst;
    m->periods = e->periods;
    m->period_min = e->period_min;
    m->period_max = e->period_max;
    m->period_longest = e->period_longest;
    m->period = e->period;
    m->jitter = e->jitter;
    if (e->ended > 0) {
        m->insns = lengths_of(reply, &e->insns);
        m->time = lengths_of(reply, &e->time);
    }
    return m->name && m->handler && (e->ended == 0 || (m->insns && m->time)) ? m : NULL;
}

static int exceptions_message(struct tl_timing_reply *reply, const struct tl_exception_table *table)
{
    Tracelake__V1__ExceptionsReply *const m = take(reply, sizeof *m);
    if (!m)
        return TL_NOMEM;
    tracelake__v1__exceptions_reply__init(m);
    m->about = about_of(reply, &table->about);
    m->exceptions = take(reply, (table->n + 1) * sizeof *m->exceptions);
    bool ok = m->about && m->exceptions;
    for (size_t i = 0; ok && i < table->n; i++)
        ok = (m->exceptions[m->n_exceptions++] = exception_row(reply, &table->p[i])) != NULL;
    reply->message = &m->base;
    return ok ? TL_OK : TL_NOMEM;
}

int tl_timing_exceptions(struct tl_lake *lake, const void *request, struct tl_timing_reply *reply,
                         struct tl_fail *fail)
{
    const Tracelake__V1__ExceptionsRequest *const r = request;
    const struct tl_timing_range range = {r->trace, r->stream, (enum tl_range_unit)r->unit,
                                          r->begin, r->to ? r->to : UINT64_MAX};
    struct tl_exception_table table = {0};
    int rc = check((unsigned)r->unit, 0, 0, fail);
    if (rc >= 0)
        rc = tl_lake_exception_table(lake, &range, &table, fail);
    if (rc >= 0)
        rc = exceptions_message(reply, &table);
    tl_exception_table_fini(&table);
    return rc;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

static bool add_reasons(struct tl_timing_reply *reply, Tracelake__V1__TimedGap *m, uint32_t reasons)
{
    m->reasons = take(reply, TL_GAP_KINDS * sizeof *m->reasons);
    bool ok = m->reasons != NULL;
    for (unsigned i = 0; ok && i < TL_GAP_KINDS; i++)
        if (reasons >> i & 1)
            ok = (m->reasons[m->n_reasons++] = text_of(reply, tl_gap_name((enum tl_gap)i))) != NULL;
    return ok;
}

static Tracelake__V1__TimedGap *gap_row(struct tl_timing_reply *reply, const struct tl_gap_row *gap)
{
    Tracelake__V1__TimedGap *const m = take(reply, sizeof *m);
    if (!m)
        return NULL;
    tracelake__v1__timed_gap__init(m);
    m->at = gap->position;
    m->time_begin = gap->time_from;
    m->time_to = gap->time_to;
    m->gaps = gap->gaps;
    m->off = gap->off;
    return add_reasons(reply, m, gap->reasons) ? m : NULL;
}

static int gaps_message(struct tl_timing_reply *reply, const struct tl_gap_table *table)
{
    Tracelake__V1__GapsReply *const m = take(reply, sizeof *m);
    if (!m)
        return TL_NOMEM;
    tracelake__v1__gaps_reply__init(m);
    m->all = table->all;
    m->about = about_of(reply, &table->about);
    m->gaps = take(reply, (table->n + 1) * sizeof *m->gaps);
    bool ok = m->about && m->gaps;
    for (size_t i = 0; ok && i < table->n; i++)
        ok = (m->gaps[m->n_gaps++] = gap_row(reply, &table->p[i])) != NULL;
    reply->message = &m->base;
    return ok ? TL_OK : TL_NOMEM;
}

int tl_timing_gaps(struct tl_lake *lake, const void *request, struct tl_timing_reply *reply,
                   struct tl_fail *fail)
{
    const Tracelake__V1__GapsRequest *const r = request;
    const struct tl_timing_range range = {r->trace, r->stream, (enum tl_range_unit)r->unit,
                                          r->begin, r->to ? r->to : UINT64_MAX};
    struct tl_gap_table table = {0};
    int rc = check((unsigned)r->unit, 0, r->limit, fail);
    if (rc >= 0)
        rc = tl_lake_gap_table(lake, &range, r->limit, &table, fail);
    if (rc >= 0)
        rc = gaps_message(reply, &table);
    tl_gap_table_fini(&table);
    return rc;
}
