/* SPDX-License-Identifier: MIT */
/*
 * Answers about time: functions, calls, exceptions and gaps as C structs. An answer keeps the
 * message that its texts are in, so that they need not be copied.
 */
#include "ask.h"
#include "tracelake/v1/ranges.pb-c.h"
#include "json/messagejson.h"

#include <stdlib.h>
#include <string.h>

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

/*
 * Ask, and make room for the answer: a struct of `size` bytes, and behind it `row` bytes for each
 * row of the reply. `reply` and `out` receive pointers to them.
 */
static int ask_rows(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                    const ProtobufCMessageDescriptor *kind, size_t size, size_t row, void *reply,
                    void *out, struct tracelake_error *error)
{
    ProtobufCMessage *m;
    const int r = tl_ask_once(lake, method, 0, request, kind, &m, error);
    if (r < 0)
        return r;
    const size_t n = *(const size_t *)((const char *)m + rows_of(m)->quantifier_offset);
    void *const answer = calloc(1, size + n * row);
    if (!answer) {
        protobuf_c_message_free_unpacked(m, NULL);
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    }
    memcpy(reply, &m, sizeof m);
    memcpy(out, &answer, sizeof answer);
    return TRACELAKE_OK;
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
    if (functions)
        protobuf_c_message_free_unpacked(functions->message, NULL);
    free(functions);
}

int tracelake_functions(struct tracelake *lake, const struct tracelake_range *range,
                        enum tracelake_weight weight, uint32_t limit,
                        struct tracelake_functions **out, struct tracelake_error *error)
{
    Tracelake__V1__FunctionsRequest request = TRACELAKE__V1__FUNCTIONS_REQUEST__INIT;
    Tracelake__V1__FunctionsReply *m;
    TL_ASK_RANGE(&request, unit, range);
    request.weight = (Tracelake__V1__Weight)weight;
    request.limit = limit;
    struct tracelake_functions *f;
    const int r = ask_rows(lake, "/tracelake.v1.Ranges/Functions", &request.base,
                           &tracelake__v1__functions_reply__descriptor, sizeof *f, sizeof *f->p, &m,
                           &f, error);
    if (r < 0)
        return r;
    f->message = m;
    f->p = (void *)(f + 1);
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
    if (calls)
        protobuf_c_message_free_unpacked(calls->message, NULL);
    free(calls);
}

static void calls_request(Tracelake__V1__CallsRequest *request,
                          const struct tracelake_calls_query *query)
{
    tracelake__v1__calls_request__init(request);
    TL_ASK_RANGE(request, unit, &query->range);
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
    struct tracelake_calls *c;
    const int r =
        ask_rows(lake, "/tracelake.v1.Ranges/Calls", &request.base,
                 &tracelake__v1__calls_reply__descriptor, sizeof *c, sizeof *c->p, &m, &c, error);
    if (r < 0)
        return r;
    c->message = m;
    c->p = (void *)(c + 1);
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
    if (exceptions)
        protobuf_c_message_free_unpacked(exceptions->message, NULL);
    free(exceptions);
}

int tracelake_exceptions(struct tracelake *lake, const struct tracelake_range *range,
                         struct tracelake_exceptions **out, struct tracelake_error *error)
{
    Tracelake__V1__ExceptionsRequest request = TRACELAKE__V1__EXCEPTIONS_REQUEST__INIT;
    Tracelake__V1__ExceptionsReply *m;
    TL_ASK_RANGE(&request, unit, range);
    struct tracelake_exceptions *e;
    const int r = ask_rows(lake, "/tracelake.v1.Ranges/Exceptions", &request.base,
                           &tracelake__v1__exceptions_reply__descriptor, sizeof *e, sizeof *e->p,
                           &m, &e, error);
    if (r < 0)
        return r;
    e->message = m;
    e->p = (void *)(e + 1);
    e->about = about_of(m->about);
    for (; e->n < m->n_exceptions; e->n++)
        e->p[e->n] = exception_of(m->exceptions[e->n]);
    *out = e;
    return TRACELAKE_OK;
}

/* ---- gaps ------------------------------------------------------------------------------------ */

void tracelake_gaps_free(struct tracelake_gaps *gaps)
{
    if (gaps)
        protobuf_c_message_free_unpacked(gaps->message, NULL);
    free(gaps);
}

int tracelake_gaps(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                   struct tracelake_gaps **out, struct tracelake_error *error)
{
    Tracelake__V1__GapsRequest request = TRACELAKE__V1__GAPS_REQUEST__INIT;
    Tracelake__V1__GapsReply *m;
    TL_ASK_RANGE(&request, unit, range);
    request.limit = limit;
    struct tracelake_gaps *g;
    const int r =
        ask_rows(lake, "/tracelake.v1.Ranges/Gaps", &request.base,
                 &tracelake__v1__gaps_reply__descriptor, sizeof *g, sizeof *g->p, &m, &g, error);
    if (r < 0)
        return r;
    g->message = m;
    g->p = (void *)(g + 1);
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
