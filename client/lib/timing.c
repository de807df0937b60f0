/* SPDX-License-Identifier: MIT */
/*
 * Answers about time: functions, calls, exceptions and gaps as C structs. An answer keeps the
 * message that its texts are in, so that they need not be copied.
 */
#include "ask.h"
#include "base/members.h"
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
    struct tracelake_timing about = {0};
    if (!m)
        return about;
    TL_COPY_MEMBERS(&about, m, to, has_time, time_unit_ns, time_to, time, ran, lost, off,
                    switched_out, time_step);
    about.from = m->begin;
    about.time_from = m->time_begin;
    about.behind = m->opt_behind_case && m->behind;
    return about;
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

static void fill_function(struct tracelake_function_times *f, const Tracelake__V1__FunctionTimes *m)
{
    TL_COPY_MEMBERS(f, m, name, pc, calls, ended, self, total, total_time);
    f->self_time = duration_of(m->self_time);
    f->insns = lengths_of(m->insns);
    f->time = lengths_of(m->time);
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
        fill_function(&f->p[f->n], m->functions[f->n]);
    *out = f;
    return TRACELAKE_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void fill_call(struct tracelake_timed_call *call, const Tracelake__V1__TimedCall *m)
{
    TL_COPY_MEMBERS(call, m, name, caller, to, self, time_to, self_time, interrupted, interruptions,
                    switched_out, depth, cut, open);
    call->from = m->begin;
    call->time_from = m->time_begin;
    call->time = duration_of(m->time);
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
    TL_COPY_MEMBERS(request, query, least, most, lengths_in_ns, skip, limit);
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
        fill_call(&c->p[c->n], m->calls[c->n]);
    *out = c;
    return TRACELAKE_OK;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static void fill_exception(struct tracelake_exception_times *e,
                           const Tracelake__V1__ExceptionTimes *m)
{
    TL_COPY_MEMBERS(e, m, number, interrupt, name, handler, entered, ended, self, self_time, nested,
                    deepest, latencies, latency_min);
    TL_COPY_MEMBERS(e, m, latency_max, latency_total, latency_worst, periods, period_min,
                    period_max, period_longest, period, jitter);
    e->insns = lengths_of(m->insns);
    e->time = lengths_of(m->time);
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
        fill_exception(&e->p[e->n], m->exceptions[e->n]);
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
        TL_COPY_MEMBERS(&g->p[g->n], gap, at, time_to, gaps, off, switched_out, reasons, n_reasons);
        g->p[g->n].time_from = gap->time_begin;
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
