/* SPDX-License-Identifier: MIT */
/*
 * Answers about time: functions, calls, exceptions and gaps as C structs. An answer keeps the
 * message that its texts are in, so that they need not be copied.
 */
#include "ask.h"
#include "tracelake/v1/ranges.pb-c.h"
#include "json/messagejson.h"

#include <stdlib.h>

static int no_memory(void *message, struct tracelake_error *error)
{
    protobuf_c_message_free_unpacked(message, NULL);
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

static struct tracelake_timing about_of(const Tracelake__V1__Timing *m)
{
    if (!m)
        return (struct tracelake_timing){0};
    return (struct tracelake_timing){.from = m->begin,
                                     .to = m->to,
                                     .has_time = m->has_time,
                                     .time_unit_ns = m->time_unit_ns,
                                     .time_from = m->time_begin,
                                     .time_to = m->time_to,
                                     .time = m->time,
                                     .ran = m->ran,
                                     .lost = m->lost,
                                     .off = m->off,
                                     .switched_out = m->switched_out,
                                     .time_step = m->time_step,
                                     .behind = m->opt_behind_case && m->behind};
}

static struct tracelake_duration duration_of(const Tracelake__V1__Duration *m)
{
    if (!m)
        return (struct tracelake_duration){0, 0, UINT64_MAX};
    return (struct tracelake_duration){m->value, m->least, m->unbounded ? UINT64_MAX : m->most};
}

static struct tracelake_lengths lengths_of(const Tracelake__V1__Lengths *m)
{
    if (!m)
        return (struct tracelake_lengths){0};
    return (struct tracelake_lengths){m->total, m->min, m->max,  m->p50,
                                      m->p90,   m->p99, m->p999, m->longest};
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct tracelake_function_times function_of(const Tracelake__V1__FunctionTimes *m)
{
    return (struct tracelake_function_times){.name = m->name,
                                             .pc = m->pc,
                                             .calls = m->calls,
                                             .ended = m->ended,
                                             .self = m->self,
                                             .total = m->total,
                                             .self_time = duration_of(m->self_time),
                                             .total_time = m->total_time,
                                             .insns = lengths_of(m->insns),
                                             .time = lengths_of(m->time)};
}

void tracelake_functions_free(struct tracelake_functions *functions)
{
    if (!functions)
        return;
    protobuf_c_message_free_unpacked(functions->message, NULL);
    free(functions->p);
    free(functions);
}

int tracelake_functions(struct tracelake *lake, const struct tracelake_range *range,
                        enum tracelake_weight weight, uint32_t limit,
                        struct tracelake_functions **out, struct tracelake_error *error)
{
    Tracelake__V1__FunctionsRequest request = TRACELAKE__V1__FUNCTIONS_REQUEST__INIT;
    Tracelake__V1__FunctionsReply *m;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    request.weight = (Tracelake__V1__Weight)weight;
    request.limit = limit;
    const int r = tl_ask_once(lake, "/tracelake.v1.Ranges/Functions", 0, &request.base,
                              &tracelake__v1__functions_reply__descriptor, &m, error);
    if (r < 0)
        return r;
    struct tracelake_functions *const f = calloc(1, sizeof *f);
    if (f)
        f->p = calloc(m->n_functions + 1, sizeof *f->p);
    if (!f || !f->p) {
        free(f);
        return no_memory(m, error);
    }
    f->message = m;
    f->about = about_of(m->about);
    f->all = m->all;
    for (; f->n < m->n_functions; f->n++)
        f->p[f->n] = function_of(m->functions[f->n]);
    *out = f;
    return TRACELAKE_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct tracelake_timed_call call_of(const Tracelake__V1__TimedCall *m)
{
    return (struct tracelake_timed_call){.name = m->name,
                                         .caller = m->caller,
                                         .from = m->begin,
                                         .to = m->to,
                                         .self = m->self,
                                         .time_from = m->time_begin,
                                         .time_to = m->time_to,
                                         .time = duration_of(m->time),
                                         .self_time = m->self_time,
                                         .interrupted = m->interrupted,
                                         .interruptions = m->interruptions,
                                         .switched_out = m->switched_out,
                                         .depth = m->depth,
                                         .cut = m->cut,
                                         .open = m->open};
}

void tracelake_calls_free(struct tracelake_calls *calls)
{
    if (!calls)
        return;
    protobuf_c_message_free_unpacked(calls->message, NULL);
    free(calls->p);
    free(calls);
}

static void calls_request(Tracelake__V1__CallsRequest *request,
                          const struct tracelake_calls_query *query)
{
    tracelake__v1__calls_request__init(request);
    request->trace = tl_ask_text(query->range.trace);
    request->stream = tl_ask_text(query->range.stream);
    request->unit = (Tracelake__V1__Unit)query->range.unit;
    request->begin = query->range.from;
    request->to = tl_ask_end_of(query->range.to);
    request->function = tl_ask_text(query->function);
    request->weight = (Tracelake__V1__Weight)query->weight;
    request->order = (Tracelake__V1__CallsOrder)query->order;
    request->least = query->least;
    request->most = query->most;
    request->lengths_in_ns = query->lengths_in_ns;
    request->skip = query->skip;
    request->limit = query->limit;
}

int tracelake_calls(struct tracelake *lake, const struct tracelake_calls_query *query,
                    struct tracelake_calls **out, struct tracelake_error *error)
{
    Tracelake__V1__CallsRequest request;
    Tracelake__V1__CallsReply *m;
    calls_request(&request, query);
    const int r = tl_ask_once(lake, "/tracelake.v1.Ranges/Calls", 0, &request.base,
                              &tracelake__v1__calls_reply__descriptor, &m, error);
    if (r < 0)
        return r;
    struct tracelake_calls *const c = calloc(1, sizeof *c);
    if (c)
        c->p = calloc(m->n_calls + 1, sizeof *c->p);
    if (!c || !c->p) {
        free(c);
        return no_memory(m, error);
    }
    c->message = m;
    c->about = about_of(m->about);
    c->what = m->what;
    c->all = m->all;
    for (; c->n < m->n_calls; c->n++)
        c->p[c->n] = call_of(m->calls[c->n]);
    *out = c;
    return TRACELAKE_OK;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static struct tracelake_exception_times exception_of(const Tracelake__V1__ExceptionTimes *m)
{
    return (struct tracelake_exception_times){.number = m->number,
                                              .interrupt = m->interrupt,
                                              .name = m->name,
                                              .handler = m->handler,
                                              .entered = m->entered,
                                              .ended = m->ended,
                                              .insns = lengths_of(m->insns),
                                              .time = lengths_of(m->time),
                                              .self = m->self,
                                              .self_time = m->self_time,
                                              .nested = m->nested,
                                              .deepest = m->deepest,
                                              .latencies = m->latencies,
                                              .latency_min = m->latency_min,
                                              .latency_max = m->latency_max,
                                              .latency_total = m->latency_total,
                                              .latency_worst = m->latency_worst,
                                              .periods = m->periods,
                                              .period_min = m->period_min,
                                              .period_max = m->period_max,
                                              .period_longest = m->period_longest,
                                              .period = m->period,
                                              .jitter = m->jitter};
}

void tracelake_exceptions_free(struct tracelake_exceptions *exceptions)
{
    if (!exceptions)
        return;
    protobuf_c_message_free_unpacked(exceptions->message, NULL);
    free(exceptions->p);
    free(exceptions);
}

int tracelake_exceptions(struct tracelake *lake, const struct tracelake_range *range,
                         struct tracelake_exceptions **out, struct tracelake_error *error)
{
    Tracelake__V1__ExceptionsRequest request = TRACELAKE__V1__EXCEPTIONS_REQUEST__INIT;
    Tracelake__V1__ExceptionsReply *m;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    const int r = tl_ask_once(lake, "/tracelake.v1.Ranges/Exceptions", 0, &request.base,
                              &tracelake__v1__exceptions_reply__descriptor, &m, error);
    if (r < 0)
        return r;
    struct tracelake_exceptions *const e = calloc(1, sizeof *e);
    if (e)
        e->p = calloc(m->n_exceptions + 1, sizeof *e->p);
    if (!e || !e->p) {
        free(e);
        return no_memory(m, error);
    }
    e->message = m;
    e->about = about_of(m->about);
    for (; e->n < m->n_exceptions; e->n++)
        e->p[e->n] = exception_of(m->exceptions[e->n]);
    *out = e;
    return TRACELAKE_OK;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

void tracelake_gaps_free(struct tracelake_gaps *gaps)
{
    if (!gaps)
        return;
    protobuf_c_message_free_unpacked(gaps->message, NULL);
    free(gaps->p);
    free(gaps);
}

int tracelake_gaps(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                   struct tracelake_gaps **out, struct tracelake_error *error)
{
    Tracelake__V1__GapsRequest request = TRACELAKE__V1__GAPS_REQUEST__INIT;
    Tracelake__V1__GapsReply *m;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    request.limit = limit;
    const int r = tl_ask_once(lake, "/tracelake.v1.Ranges/Gaps", 0, &request.base,
                              &tracelake__v1__gaps_reply__descriptor, &m, error);
    if (r < 0)
        return r;
    struct tracelake_gaps *const g = calloc(1, sizeof *g);
    if (g)
        g->p = calloc(m->n_gaps + 1, sizeof *g->p);
    if (!g || !g->p) {
        free(g);
        return no_memory(m, error);
    }
    g->message = m;
    g->about = about_of(m->about);
    g->all = m->all;
    for (; g->n < m->n_gaps; g->n++) {
        const Tracelake__V1__TimedGap *const gap = m->gaps[g->n];
        g->p[g->n] = (struct tracelake_timed_gap){.at = gap->at,
                                                  .time_from = gap->time_begin,
                                                  .time_to = gap->time_to,
                                                  .gaps = gap->gaps,
                                                  .off = gap->off,
                                                  .switched_out = gap->switched_out,
                                                  .reasons = gap->reasons,
                                                  .n_reasons = gap->n_reasons};
    }
    *out = g;
    return TRACELAKE_OK;
}

/* ---- rows as JSON ---------------------------------------------------------------------------- */

/* The repeated field that the rows are in. */
static const ProtobufCFieldDescriptor *rows_of(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &message->descriptor->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REPEATED && field->type == PROTOBUF_C_TYPE_MESSAGE)
            return field;
    }
    return NULL;
}

int tracelake_row_json(const void *message, size_t row, char **json, struct tracelake_error *error)
{
    const ProtobufCFieldDescriptor *const field = rows_of(message);
    const char *const p = message;
    struct tl_buf text = {0};
    struct tl_jsonout j = {.out = &text};
    if (!field || row >= *(const size_t *)(p + field->quantifier_offset))
        return tl_client_fail(error, TRACELAKE_USAGE, "the answer has no such row");
    tl_messagejson(&j, (*(ProtobufCMessage *const *const *)(p + field->offset))[row]);
    if (j.rc >= 0 && tl_buf_add(&text, "", 1) >= 0) {
        *json = (char *)text.p;
        return TRACELAKE_OK;
    }
    tl_buf_fini(&text);
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}
