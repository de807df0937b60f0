/* SPDX-License-Identifier: MIT */
/* Fills messages from the lake's answers. Names are copied, since messages need valid UTF-8. */
#include "base/members.h"
#include "lake_timing.h"
#include "rpc/lookups.h"

#include "flow/item.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts of all answers -------------------------------------------------------------------- */

static Tracelake__V1__Timing *about_of(struct tl_reply *reply, const struct tl_timing_about *about)
{
    Tracelake__V1__Timing *const m = tl_reply_new(reply, &tracelake__v1__timing__descriptor);
    if (!m)
        return NULL;
    m->begin = about->from;
    TL_COPY_MEMBERS(m, about, to, has_time, time_unit_ns, time_to, time, ran, lost, off,
                    switched_out, time_step);
    m->time_begin = about->time_from;
    if (about->behind)
        TL_SET(m, behind, true);
    return m;
}

static Tracelake__V1__Duration *duration_of(struct tl_reply *reply,
                                            const struct tl_duration *duration)
{
    Tracelake__V1__Duration *const m = tl_reply_new(reply, &tracelake__v1__duration__descriptor);
    if (!m)
        return NULL;
    m->value = duration->value;
    m->least = duration->least;
    m->unbounded = duration->most == UINT64_MAX;
    m->most = m->unbounded ? 0 : duration->most;
    return m;
}

static Tracelake__V1__Lengths *lengths_of(struct tl_reply *reply, const struct tl_lengths *lengths)
{
    Tracelake__V1__Lengths *const m = tl_reply_new(reply, &tracelake__v1__lengths__descriptor);
    if (!m)
        return NULL;
    TL_COPY_MEMBERS(m, lengths, total, min, max, p50, p90, p99, p999, longest);
    return m;
}

static enum tl_weight weight_of(Tracelake__V1__Weight weight)
{
    return weight == TRACELAKE__V1__WEIGHT__WEIGHT_TIME ? TL_WEIGHT_TIME : TL_WEIGHT_INSNS;
}

static int check(unsigned unit, unsigned weight, uint32_t limit, struct tl_fail *fail)
{
    int rc = tl_check_enum("unit", unit, TL_UNITS, fail);
    if (rc >= 0)
        rc = tl_check_enum("weight", weight, TL_WEIGHTS, fail);
    if (rc >= 0 && weight == TL_WEIGHT_CYCLES)
        rc = tl_fail_set(fail, TL_USAGE,
                         "functions and calls are by insns or time; profiles are by cycles, too");
    if (rc >= 0 && limit > TL_TIMING_ROWS)
        rc = tl_fail_set(fail, TL_USAGE, "at most %d rows are in one answer", TL_TIMING_ROWS);
    return rc;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void fill_function(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_function_times *const f = row;
    Tracelake__V1__FunctionTimes *const m = message;
    m->name = tl_reply_text(reply, f->name);
    TL_COPY_MEMBERS(m, f, pc, calls, ended, self, total, total_time);
    m->self_time = duration_of(reply, &f->self_time);
    if (f->ended > 0) {
        m->insns = lengths_of(reply, &f->insns);
        m->time = lengths_of(reply, &f->time);
    }
}

static void fill_functions(struct tl_reply *reply, Tracelake__V1__FunctionsReply *m,
                           const struct tl_function_table *table)
{
    m->all = table->all;
    m->about = about_of(reply, &table->about);
    TL_REPLY_ROWS(reply, m, functions, function_times, table->p, table->n, fill_function);
}

int tl_answer_functions(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                        struct tl_fail *fail)
{
    const Tracelake__V1__FunctionsRequest *const r = request;
    const struct tl_function_table_request wanted = {
        .range = {r->trace, r->stream, (enum tl_range_unit)r->unit, r->begin, tl_end_of(r->to)},
        .weight = weight_of(r->weight),
        .limit = r->limit};
    struct tl_function_table table = {0};
    Tracelake__V1__FunctionsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__functions_reply__descriptor);
    int rc = !m ? TL_NOMEM : check((unsigned)r->unit, (unsigned)r->weight, r->limit, fail);
    if (rc >= 0)
        rc = tl_lake_function_table(asker->lake, &wanted, &table, fail);
    if (rc >= 0)
        fill_functions(reply, m, &table);
    tl_function_table_fini(&table);
    return tl_reply_done(reply, rc);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void fill_call(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_call_row *const call = row;
    Tracelake__V1__TimedCall *const m = message;
    m->name = tl_reply_text(reply, call->name);
    m->caller = tl_reply_text(reply, call->caller);
    m->begin = call->from;
    TL_COPY_MEMBERS(m, call, to, self, time_to, self_time, interrupted, interruptions, switched_out,
                    depth, cut, open);
    m->time_begin = call->time_from;
    m->time = duration_of(reply, &call->time);
}

static void fill_calls(struct tl_reply *reply, Tracelake__V1__CallsReply *m,
                       const struct tl_calls *calls)
{
    m->all = calls->all;
    m->what = tl_reply_text(reply, calls->what);
    m->about = about_of(reply, &calls->about);
    TL_REPLY_ROWS(reply, m, calls, timed_call, calls->p, calls->n, fill_call);
}

int tl_answer_calls(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                    struct tl_fail *fail)
{
    const Tracelake__V1__CallsRequest *const r = request;
    const struct tl_calls_request wanted = {
        .range = {r->trace, r->stream, (enum tl_range_unit)r->unit, r->begin, tl_end_of(r->to)},
        .function = r->function,
        .weight = weight_of(r->weight),
        .order = (enum tl_calls_order)r->order, /* the enums have the same values */
        .least = r->least,
        .most = r->most ? r->most : UINT64_MAX,
        .lengths_in_ns = r->lengths_in_ns,
        .skip = r->skip,
        .limit = r->limit};
    struct tl_calls calls = {0};
    Tracelake__V1__CallsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__calls_reply__descriptor);
    int rc = !m ? TL_NOMEM : check((unsigned)r->unit, (unsigned)r->weight, r->limit, fail);
    if (rc >= 0 && (unsigned)r->order >= TL_CALLS_ORDERS)
        rc = tl_fail_set(fail, TL_USAGE, "order %u is not known", (unsigned)r->order);
    if (rc >= 0)
        rc = tl_lake_calls_of(asker->lake, &wanted, &calls, fail);
    if (rc >= 0)
        fill_calls(reply, m, &calls);
    tl_calls_fini(&calls);
    return tl_reply_done(reply, rc);
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static void fill_exception(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_exception_row *const e = row;
    Tracelake__V1__ExceptionTimes *const m = message;
    TL_COPY_MEMBERS(m, e, number, interrupt, entered, ended, self, self_time, nested, deepest,
                    latencies, latency_min, latency_max, latency_total);
    TL_COPY_MEMBERS(m, e, latency_worst, periods, period_min, period_max, period_longest, period,
                    jitter);
    m->name = tl_reply_text(reply, e->name);
    m->handler = tl_reply_text(reply, e->handler);
    if (e->ended > 0) {
        m->insns = lengths_of(reply, &e->insns);
        m->time = lengths_of(reply, &e->time);
    }
}

static void fill_exceptions(struct tl_reply *reply, Tracelake__V1__ExceptionsReply *m,
                            const struct tl_exception_table *table)
{
    m->about = about_of(reply, &table->about);
    TL_REPLY_ROWS(reply, m, exceptions, exception_times, table->p, table->n, fill_exception);
}

int tl_answer_exceptions(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                         struct tl_fail *fail)
{
    const Tracelake__V1__ExceptionsRequest *const r = request;
    const struct tl_timing_range range = {r->trace, r->stream, (enum tl_range_unit)r->unit,
                                          r->begin, tl_end_of(r->to)};
    struct tl_exception_table table = {0};
    Tracelake__V1__ExceptionsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__exceptions_reply__descriptor);
    int rc = !m ? TL_NOMEM : check((unsigned)r->unit, 0, 0, fail);
    if (rc >= 0)
        rc = tl_lake_exception_table(asker->lake, &range, &table, fail);
    if (rc >= 0)
        fill_exceptions(reply, m, &table);
    tl_exception_table_fini(&table);
    return tl_reply_done(reply, rc);
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* The names of a set of reasons. */
static char **reasons_of(struct tl_reply *reply, uint32_t reasons, size_t *n)
{
    char **const names = tl_reply_take(reply, TL_GAP_KINDS * sizeof *names);
    for (unsigned i = 0; names && i < TL_GAP_KINDS; i++)
        if (reasons >> i & 1)
            names[(*n)++] = tl_reply_text(reply, tl_gap_name((enum tl_gap)i));
    return names;
}

static void fill_gap(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_gap_row *const gap = row;
    Tracelake__V1__TimedGap *const m = message;
    m->at = gap->position;
    m->time_begin = gap->time_from;
    TL_COPY_MEMBERS(m, gap, time_to, gaps, off, switched_out);
    m->reasons = reasons_of(reply, gap->reasons, &m->n_reasons);
}

static void fill_gaps(struct tl_reply *reply, Tracelake__V1__GapsReply *m,
                      const struct tl_gap_table *table)
{
    m->all = table->all;
    m->about = about_of(reply, &table->about);
    TL_REPLY_ROWS(reply, m, gaps, timed_gap, table->p, table->n, fill_gap);
}

int tl_answer_gaps(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                   struct tl_fail *fail)
{
    const Tracelake__V1__GapsRequest *const r = request;
    const struct tl_timing_range range = {r->trace, r->stream, (enum tl_range_unit)r->unit,
                                          r->begin, tl_end_of(r->to)};
    struct tl_gap_table table = {0};
    Tracelake__V1__GapsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__gaps_reply__descriptor);
    int rc = !m ? TL_NOMEM : check((unsigned)r->unit, 0, r->limit, fail);
    if (rc >= 0)
        rc = tl_lake_gap_table(asker->lake, &range, r->limit, &table, fail);
    if (rc >= 0)
        fill_gaps(reply, m, &table);
    tl_gap_table_fini(&table);
    return tl_reply_done(reply, rc);
}

/* ---- what is worth a look -------------------------------------------------------------------- */

static void fill_extreme(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_extreme *const e = row;
    Tracelake__V1__Extreme *const m = message;
    m->kind = (Tracelake__V1__Extreme__Kind)e->kind; /* the enums have the same values */
    m->stream = tl_reply_text(reply, e->stream);
    m->name = tl_reply_text(reply, e->name ? e->name : e->exception);
    if (e->kind == TL_EXTREME_INTERRUPT && e->number >= 0)
        TL_SET(m, exception, e->number);
    if (e->reasons)
        m->reasons = reasons_of(reply, e->reasons, &m->n_reasons);
    m->at = e->position;
    TL_COPY_MEMBERS(m, e, has_time, time_unit_ns, length, usual, time_to);
    m->time_begin = e->time_from;
}

int tl_answer_extremes(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                       struct tl_fail *fail)
{
    const Tracelake__V1__ExtremesRequest *const r = request;
    struct tl_extremes extremes = {0};
    Tracelake__V1__ExtremesReply *const m =
        tl_reply_begin(reply, &tracelake__v1__extremes_reply__descriptor);
    const int rc = m ? tl_lake_extremes(asker->lake, r->trace, r->most, &extremes, fail) : TL_NOMEM;
    if (rc >= 0) {
        m->left_out = (uint32_t)extremes.left_out;
        TL_REPLY_ROWS(reply, m, extremes, extreme, extremes.p, extremes.n, fill_extreme);
    }
    tl_extremes_fini(&extremes);
    return tl_reply_done(reply, rc);
}
