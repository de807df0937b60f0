/* SPDX-License-Identifier: MIT */
/*
 * Questions over HTTP whose answers are messages. Which argument goes where follows from the
 * request's descriptor: an argument has the name that its field has in JSON. What is left are the
 * arguments that mean more than a number or a word.
 */
#include "rpc/weblookups.h"

#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webjson.h"
#include "json/messagejson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

/* The field's word, in any enum. */
static int take_word(const ProtobufCFieldDescriptor *field, const char *name, const char *text,
                     int *out, struct tl_fail *fail)
{
    const ProtobufCEnumDescriptor *const kind = field->descriptor;
    char word[TL_FIELD_NAME], known[128] = "";
    for (unsigned i = 0; i < kind->n_values; i++) {
        if (!strcmp(text, tl_messagejson_word(kind, &kind->values[i], word))) {
            *out = kind->values[i].value;
            return TL_OK;
        }
        const size_t n = strlen(known);
        if (n + strlen(word) + 4 < sizeof known)
            snprintf(known + n, sizeof known - n, "%s%s", n ? " or " : "", word);
    }
    return tl_fail_set(fail, TL_USAGE, "%s=%.20s; it is %s", name, text, known);
}

/* Set a field from the argument of its name, if there is one. */
static int take_field(const struct tl_http_request *request, const ProtobufCFieldDescriptor *field,
                      char *message, struct tl_fail *fail)
{
    char room[TL_FIELD_NAME];
    const char *const name = tl_messagejson_name(field, room), *const text =
                                                                   tl_http_query(request, name);
    void *const member = message + field->offset;
    struct tl_http_arg args[] = {{name, TL_HTTP_U64, member}, {0}};
    bool flag = false;
    if (!text)
        return TL_OK;
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64:
        return tl_http_args(request, args, fail);
    case PROTOBUF_C_TYPE_UINT32:
        args->kind = TL_HTTP_U32;
        return tl_http_args(request, args, fail);
    case PROTOBUF_C_TYPE_BOOL:
        args->kind = TL_HTTP_FLAG;
        args->value = &flag;
        const int rc = tl_http_args(request, args, fail);
        *(protobuf_c_boolean *)member = flag;
        return rc;
    case PROTOBUF_C_TYPE_ENUM:
        return take_word(field, name, text, member, fail);
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = (char *)(uintptr_t)text; /* only read */
        return TL_OK;
    default:
        return TL_OK;
    }
}

static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessage *message, const char *name)
{
    return protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
}

/* The range in its unit; in a request 0 is the end. */
static int take_span(const struct tl_http_request *request, ProtobufCMessage *message,
                     const ProtobufCFieldDescriptor *unit, struct tl_fail *fail)
{
    char *const p = (char *)message;
    enum tl_range_unit as;
    uint64_t from, to;
    const int rc = tl_web_span(request, &as, &from, &to, fail);
    if (rc < 0)
        return rc;
    *(int *)(p + unit->offset) = (int)as; /* the enums have the same values */
    *(uint64_t *)(p + field_of(message, "begin")->offset) = from;
    *(uint64_t *)(p + field_of(message, "to")->offset) = to == UINT64_MAX ? 0 : to;
    return TL_OK;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static int take_arguments(const struct tl_http_request *request,
                          const struct tl_web_question *question, ProtobufCMessage *message,
                          struct tl_fail *fail)
{
    static const char *const span[] = {"begin", "to", "unit", "axis", NULL};
    const ProtobufCMessageDescriptor *const kind = message->descriptor;
    const ProtobufCFieldDescriptor *unit = field_of(message, "unit");
    unit = unit ? unit : field_of(message, "axis");
    int rc = unit ? take_span(request, message, unit, fail) : TL_OK;
    for (unsigned i = 0; rc >= 0 && i < kind->n_fields; i++) {
        const char *const name = kind->fields[i].name;
        if (!(unit && is_one_of(name, span)) && !is_one_of(name, question->own))
            rc = take_field(request, &kind->fields[i], (char *)message, fail);
    }
    return rc >= 0 && question->take ? question->take(request, message, fail) : rc;
}

/* ---- arguments that mean more ---------------------------------------------------------------- */

/* A range in any unit, of a question that knows instructions only. */
static int take_stats(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__StatsRequest *const r = message;
    if (!*r->stream)
        return TL_OK;
    const int rc = tl_web_insns_span(request, &r->begin, &r->to, fail);
    r->to = r->to == UINT64_MAX ? 0 : r->to;
    return rc;
}

/* The same, and a number of rows: as many as there are in the range, unless it has no end. */
static int take_insns(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__InsnsRequest *const r = message;
    uint64_t to;
    const int rc = tl_web_insns_span(request, &r->begin, &to, fail);
    const uint64_t all = to > r->begin ? to - r->begin : 0;
    if (to != UINT64_MAX && (all < r->count || !tl_http_query(request, "count")))
        r->count = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
    return rc >= 0 && all == 0 ? TL_EOF : rc;
}

static int take_call(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__CallRequest *const r = message;
    (void)fail;
    r->innermost = tl_http_query(request, "depth") == NULL;
    return TL_OK;
}

static int take_port(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__LogRequest *const r = message;
    (void)fail;
    r->one_port = tl_http_query(request, "port") != NULL;
    return TL_OK;
}

/* What is searched has the name that it has in `find`. */
static int take_hits(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__HitsRequest *const r = message;
    const char *const q = tl_http_query(request, "q");
    if (!q)
        return tl_fail_set(fail, TL_USAGE, "hits of what? Give q=TEXT");
    r->text = (char *)(uintptr_t)q; /* only read */
    return TL_OK;
}

/* The arguments that are lengths: instructions, or time, which may have a unit. By time unless
 * they say otherwise. */
static int take_calls(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__CallsRequest *const r = message;
    const char *const of = tl_http_query(request, "of");
    const bool time = r->weight == TRACELAKE__V1__WEIGHT__WEIGHT_TIME;
    enum tl_range_unit least = time ? TL_UNIT_TIME : TL_UNIT_INSN, most = least;
    r->function = of ? (char *)(uintptr_t)of : r->function; /* only read */
    int rc = tl_web_place(request, "least", &least, &r->least, fail);
    if (rc >= 0)
        rc = tl_web_place(request, "most", &most, &r->most, fail);
    r->lengths_in_ns = least == TL_UNIT_NS || most == TL_UNIT_NS;
    if (rc >= 0 && least != most && r->least > 0 && r->most > 0)
        rc = tl_fail_set(fail, TL_USAGE, "least and most both have a unit, or neither has");
    return rc;
}

/* "with=TRACE/STREAM", whose trace may not contain a slash. */
static int take_other(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    static const char what[] = "compare with what? Give with=TRACE/STREAM";
    Tracelake__V1__CompareSide *const other = ((Tracelake__V1__CompareRequest *)message)->other;
    const char *const with = tl_http_query(request, "with"), *const slash =
                                                                 with ? strchr(with, '/') : NULL;
    const struct tl_http_arg args[] = {
        {"with_from", TL_HTTP_U64, &other->begin}, {"with_to", TL_HTTP_U64, &other->to}, {0}};
    const size_t n = slash ? (size_t)(slash - with) : 0;
    if (!slash || n >= TL_WEB_TRACE)
        return tl_fail_set(fail, TL_USAGE, what);
    memcpy(other->trace, with, n);
    other->trace[n] = '\0';
    other->stream = (char *)(uintptr_t)(slash + 1); /* only read */
    return tl_http_args(request, args, fail);
}

#define NONE                                                                                       \
    (const char *const[])                                                                          \
    {                                                                                              \
        NULL                                                                                       \
    }
#define OWN(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define QUESTION(name, message, ...)                                                               \
    const struct tl_web_question tl_question_##name = {                                            \
        .request = &tracelake__v1__##message##__descriptor,                                        \
        .answer = tl_answer_##name,                                                                \
        __VA_ARGS__}

QUESTION(stats, stats_request, .own = OWN("begin", "to"), .take = take_stats);
QUESTION(insns, insns_request, .own = OWN("begin"), .take = take_insns, .rows = true);
QUESTION(source, source_request, .own = NONE);
QUESTION(call, call_request, .own = OWN("innermost"), .take = take_call);
QUESTION(profile, profile_request, .own = NONE);
QUESTION(compare, compare_request, .own = NONE, .take = take_other);
QUESTION(slices, lane_request, .own = NONE);
QUESTION(states, lane_request, .own = NONE);
QUESTION(counters, lane_request, .own = NONE);
QUESTION(hits, hits_request, .own = OWN("text"), .take = take_hits);
QUESTION(log, log_request, .own = OWN("one_port"), .take = take_port);
QUESTION(functions, functions_request, .own = NONE, .by_time = true);
QUESTION(calls, calls_request, .own = OWN("function", "least", "most"), .take = take_calls,
         .by_time = true);
QUESTION(exceptions, exceptions_request, .own = NONE);
QUESTION(gaps, gaps_request, .own = NONE);
QUESTION(extremes, extremes_request, .own = NONE);

/* ---- answers --------------------------------------------------------------------------------- */

/* A request of any kind, and what it points to. */
union asked {
    ProtobufCMessage base;
    Tracelake__V1__StatsRequest stats;
    Tracelake__V1__InsnsRequest insns;
    Tracelake__V1__SourceRequest source;
    Tracelake__V1__CallRequest call;
    Tracelake__V1__ProfileRequest profile;
    Tracelake__V1__CompareRequest compare;
    Tracelake__V1__LaneRequest lane;
    Tracelake__V1__HitsRequest hits;
    Tracelake__V1__LogRequest log;
    Tracelake__V1__FunctionsRequest functions;
    Tracelake__V1__CallsRequest calls;
    Tracelake__V1__ExceptionsRequest exceptions;
    Tracelake__V1__GapsRequest gaps;
    Tracelake__V1__ExtremesRequest extremes;
};

static void set_text(ProtobufCMessage *message, const char *name, const char *text)
{
    *(char **)((char *)message + field_of(message, name)->offset) = (char *)(uintptr_t)text;
}

static int respond_empty(struct tl_http_response *response)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_raw(&json, "[]", 2);
    return tl_webjson_respond(response, &json);
}

static int respond_with(const struct tl_http_request *request, struct tl_http_response *response,
                        const struct tl_web_question *question, const ProtobufCMessage *message)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    if (tl_web_wants_protobuf(request)) {
        const int rc = tl_web_pack(response, message);
        return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
    }
    if (question->rows)
        tl_messagejson_rows(&json, message);
    else
        tl_messagejson(&json, message);
    return tl_webjson_respond(response, &json);
}

int tl_web_ask(struct tl_http_request *request, struct tl_http_response *response)
{
    const struct tl_web_question *const question = request->route->detail;
    const struct tl_asker asker = {tl_web_lake(request), request->scope};
    struct tl_reply reply = {0};
    Tracelake__V1__CompareSide other = TRACELAKE__V1__COMPARE_SIDE__INIT;
    char other_trace[TL_WEB_TRACE];
    union asked asked;
    protobuf_c_message_init(question->request, &asked);
    set_text(&asked.base, "trace", request->part[0]);
    if (request->n_parts > 1)
        set_text(&asked.base, "stream", request->part[1]);
    if (question == &tl_question_compare) {
        other.trace = other_trace;
        asked.compare.other = &other;
    }
    if (question->by_time)
        *(int *)((char *)&asked + field_of(&asked.base, "weight")->offset) =
            TRACELAKE__V1__WEIGHT__WEIGHT_TIME;
    int rc = take_arguments(request, question, &asked.base, &response->fail);
    if (rc == TL_EOF)
        return respond_empty(response);
    if (rc >= 0)
        rc = question->answer(&asker, &asked, &reply, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : respond_with(request, response, question, reply.message);
    tl_reply_free(&reply);
    return rc;
}

/* ---- of several streams ---------------------------------------------------------------------- */

/* Answer {"streams":{…}}, whose members `each` writes to `json`. */
static int each_stream(struct tl_http_request *request, struct tl_http_response *response,
                       struct tl_jsonout *json, tl_web_stream_call *each, void *context)
{
    tl_jsonout_open(json, '{');
    tl_jsonout_name(json, "streams");
    tl_jsonout_open(json, '{');
    int rc = tl_web_streams(request, each, context, &response->fail);
    tl_jsonout_close(json, '}');
    tl_jsonout_close(json, '}');
    if (rc >= 0)
        return tl_webjson_respond(response, json);
    tl_buf_fini(json->out);
    return tl_web_explain(request, response, rc);
}

struct streams {
    const struct tl_web_question *question;
    union asked *asked;
    struct tl_jsonout json;
};

static int ask_stream(const struct tl_http_request *request, const char *stream, void *context,
                      struct tl_fail *fail)
{
    struct streams *const s = context;
    const struct tl_asker asker = {tl_web_lake(request), request->scope};
    struct tl_reply reply = {0};
    set_text(&s->asked->base, "stream", stream);
    const int rc = s->question->answer(&asker, s->asked, &reply, fail);
    if (rc >= 0) {
        tl_jsonout_name(&s->json, stream);
        tl_messagejson(&s->json, reply.message);
    }
    tl_reply_free(&reply);
    return rc < 0 ? rc : s->json.rc;
}

int tl_web_ask_streams(struct tl_http_request *request, struct tl_http_response *response)
{
    const struct tl_web_question *const question = request->route->detail;
    struct tl_buf text = {0};
    union asked asked;
    struct streams streams = {question, &asked, {.out = &text}};
    protobuf_c_message_init(question->request, &asked);
    set_text(&asked.base, "trace", request->part[0]);
    int rc = take_arguments(request, question, &asked.base, &response->fail);
    return rc < 0 ? rc : each_stream(request, response, &streams.json, ask_stream, &streams);
}

/* ---- what runs at a time --------------------------------------------------------------------- */

struct moment {
    enum tl_range_unit unit; /* of `time` */
    uint64_t time;
    struct tl_jsonout json;
};

static int write_row(void *context, const struct tl_insn_row *row)
{
    struct moment *const moment = context;
    struct tl_reply reply = {0};
    Tracelake__V1__Insn *const m = tl_reply_begin(&reply, &tracelake__v1__insn__descriptor);
    if (m)
        tl_fill_insn(&reply, m, row);
    if (!reply.failed) {
        tl_jsonout_name(&moment->json, "row");
        tl_messagejson(&moment->json, reply.message);
    }
    const int rc = tl_reply_done(&reply, moment->json.rc);
    tl_reply_free(&reply);
    return rc;
}

/* The last instruction executed at a time: its position and its row. */
static int write_moment(const struct tl_http_request *request, const char *stream, void *context,
                        struct tl_fail *fail)
{
    struct moment *const moment = context;
    struct tl_lake *const lake = tl_web_lake(request);
    const char *const trace = request->part[0];
    struct tl_position at = {0};
    int rc = tl_lake_locate(lake, trace, stream, moment->unit, moment->time, &at, fail);
    if (rc >= 0 && at.insn > 0 && at.time > moment->time)
        rc = tl_lake_locate(lake, trace, stream, TL_UNIT_INSN, at.insn - 1, &at, fail);
    if (rc < 0)
        return rc;
    tl_jsonout_name(&moment->json, stream);
    tl_jsonout_open(&moment->json, '{');
    tl_webjson_position(&moment->json, &at);
    rc = tl_lake_insns(lake, trace, stream, at.insn, 1, write_row, moment, fail);
    tl_jsonout_close(&moment->json, '}');
    return rc < 0 ? rc : moment->json.rc;
}

int tl_web_at(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_buf text = {0};
    struct moment moment = {.unit = TL_UNIT_TIME, .json = {.out = &text}};
    const int rc = tl_web_place(request, "time", &moment.unit, &moment.time, &response->fail);
    return rc < 0 ? rc : each_stream(request, response, &moment.json, write_moment, &moment);
}

/* ---- representative regions ------------------------------------------------------------------ */

int tl_web_simpoints(struct tl_http_request *request, struct tl_http_response *response)
{
    static const struct tl_web_question question = {0};
    struct tl_simpoints_request wanted = {.trace = request->part[0],
                                          .stream = request->part[1],
                                          .to = UINT64_MAX,
                                          .interval = 10000000,
                                          .most = TL_SIMPOINTS};
    const struct tl_http_arg args[] = {{"from", TL_HTTP_U64, &wanted.from},
                                       {"to", TL_HTTP_U64, &wanted.to},
                                       {"interval", TL_HTTP_U64, &wanted.interval},
                                       {"most", TL_HTTP_U32, &wanted.most},
                                       {0}};
    struct tl_reply reply = {0};
    int rc = tl_http_args(request, args, &response->fail);
    if (rc >= 0)
        rc = tl_answer_simpoints(tl_web_lake(request), &wanted, &reply, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : respond_with(request, response, &question, reply.message);
    tl_reply_free(&reply);
    return rc;
}
