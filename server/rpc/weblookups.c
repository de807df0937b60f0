/* SPDX-License-Identifier: MIT */
/*
 * Questions over HTTP whose answers are messages. The table of paths says which field an argument
 * fills, so that what is left here are the arguments that mean more than that.
 */
#include "rpc/weblookups.h"

#include "rpc/rpcint.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"
#include "json/messagejson.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 16

/* ---- arguments that mean more ---------------------------------------------------------------- */

static int take_locate(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    (void)message;
    return tl_http_query(request, "at")
               ? TL_OK
               : tl_fail_set(fail, TL_USAGE, "say at=POSITION, with unit=insn, time or byte");
}

static int take_moments(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    (void)message;
    return tl_http_query(request, "time") ? TL_OK : tl_fail_set(fail, TL_USAGE, "say time=TIME");
}

static int take_hits(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    (void)message;
    return tl_http_query(request, "q") ? TL_OK
                                       : tl_fail_set(fail, TL_USAGE, "hits of what? Give q=TEXT");
}

/* By time, unless an argument says otherwise. */
static void functions_by_time(const struct tl_http_request *request, struct tl_reply *memory,
                              void *message)
{
    (void)request;
    (void)memory;
    ((Tracelake__V1__FunctionsRequest *)message)->weight = TRACELAKE__V1__WEIGHT__WEIGHT_TIME;
}

static void calls_by_time(const struct tl_http_request *request, struct tl_reply *memory,
                          void *message)
{
    (void)request;
    (void)memory;
    ((Tracelake__V1__CallsRequest *)message)->weight = TRACELAKE__V1__WEIGHT__WEIGHT_TIME;
}

/* The arguments that are lengths: instructions, or time, which may have a unit. */
static int take_calls(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__CallsRequest *const r = message;
    const bool time = r->weight == TRACELAKE__V1__WEIGHT__WEIGHT_TIME;
    enum tl_range_unit least = time ? TL_UNIT_TIME : TL_UNIT_INSN, most = least;
    int rc = tl_web_place(request, "least", &least, &r->least, fail);
    if (rc >= 0)
        rc = tl_web_place(request, "most", &most, &r->most, fail);
    r->lengths_in_ns = least == TL_UNIT_NS || most == TL_UNIT_NS;
    if (rc >= 0 && least != most && r->least > 0 && r->most > 0)
        rc = tl_fail_set(fail, TL_USAGE, "least and most both have a unit, or neither has");
    return rc;
}

static void begin_compare(const struct tl_http_request *request, struct tl_reply *memory,
                          void *message)
{
    const char *const with = tl_http_query(request, "with");
    Tracelake__V1__CompareSide *const other =
        tl_reply_new(memory, &tracelake__v1__compare_side__descriptor);
    ((Tracelake__V1__CompareRequest *)message)->other = other;
    if (other && with)
        other->trace = tl_reply_text(memory, with);
}

/* "with=TRACE/STREAM", of which `other` has a copy; a trace's name has no slash. */
static int take_other(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    Tracelake__V1__CompareSide *const other = ((Tracelake__V1__CompareRequest *)message)->other;
    char *const slash = strchr(other->trace, '/');
    (void)request;
    if (!slash)
        return tl_fail_set(fail, TL_USAGE, "compare with what? Give with=TRACE/STREAM");
    *slash = '\0';
    other->stream = slash + 1;
    return TL_OK;
}

static void begin_regions(const struct tl_http_request *request, struct tl_reply *memory,
                          void *message)
{
    (void)request;
    (void)memory;
    ((Tracelake__V1__SimPointsRequest *)message)->interval = 10000000;
}

#define QUESTION(name, ...)                                                                        \
    const struct tl_web_question tl_question_##name = {.answer = tl_answer_##name, __VA_ARGS__}
#define BY_STREAM(message) .by_stream = &tracelake__v1__##message##__descriptor

QUESTION(stats);
QUESTION(insns, .rows = true);
QUESTION(source);
QUESTION(call);
QUESTION(profile);
QUESTION(compare, .begin = begin_compare, .take = take_other);
QUESTION(slices, BY_STREAM(slices_of_streams));
QUESTION(states, BY_STREAM(states_of_streams));
QUESTION(counters, BY_STREAM(counters_of_streams));
QUESTION(hits, .take = take_hits, BY_STREAM(hits_of_streams));
QUESTION(log, BY_STREAM(log_of_streams));
QUESTION(moments, .take = take_moments, BY_STREAM(moments_of_streams));
QUESTION(functions, .begin = functions_by_time);
QUESTION(calls, .begin = calls_by_time, .take = take_calls);
QUESTION(exceptions);
QUESTION(gaps);
QUESTION(extremes);
QUESTION(regions, .begin = begin_regions);
QUESTION(locate, .take = take_locate);
QUESTION(names, .rows = true);
QUESTION(images, .rows = true);
QUESTION(notes, .rows = true);

/* ---- answers --------------------------------------------------------------------------------- */

int tl_web_respond(const struct tl_http_request *request, struct tl_http_response *response,
                   const ProtobufCMessage *message, bool rows)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    if (tl_web_wants_protobuf(request)) {
        const int rc = tl_web_pack(response, message);
        return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
    }
    if (rows)
        tl_messagejson_rows(&json, message);
    else
        tl_messagejson(&json, message);
    return tl_webjson_respond(response, &json);
}

/* The question as a message in `memory`. TL_EOF, TL_NOMEM, or what is wrong with it. */
static int ask(const struct tl_http_request *request, struct tl_reply *memory, void **asked,
               struct tl_fail *fail)
{
    const struct tl_web_question *const question = request->route->detail;
    *asked = tl_reply_new(memory, request->route->message);
    if (*asked && question->begin)
        question->begin(request, memory, *asked);
    int rc = memory->failed ? TL_NOMEM : tl_web_fill(request, *asked, fail);
    if (rc >= 0 && question->take)
        rc = question->take(request, *asked, fail);
    return rc;
}

int tl_web_ask(struct tl_http_request *request, struct tl_http_response *response)
{
    const struct tl_web_question *const question = request->route->detail;
    const struct tl_asker asker = {tl_web_lake(request), request->scope};
    struct tl_reply memory = {0}, reply = {0};
    void *asked;
    int rc = ask(request, &memory, &asked, &response->fail);
    if (rc >= 0)
        rc = question->answer(&asker, asked, &reply, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_web_respond(request, response, reply.message, question->rows);
    tl_reply_free(&reply);
    tl_reply_free(&memory);
    return rc;
}

/* ---- of several streams ---------------------------------------------------------------------- */

/* Call `each` for each name in `streams=NAME,NAME…`, until a result < 0, which is returned. */
int tl_web_streams(const struct tl_http_request *request, tl_web_stream_call *each, void *context,
                   struct tl_fail *fail)
{
    const char *const streams = tl_http_query(request, "streams");
    if (!streams || !*streams)
        return tl_fail_set(fail, TL_USAGE,
                           "streams= is missing; name the streams, separated by commas");
    char *const names = strdup(streams);
    int rc = names ? TL_OK : TL_NOMEM;
    unsigned n = 0;
    char *rest = names;
    for (char *name; rc == TL_OK && (name = strsep(&rest, ","));)
        rc = n++ < MAX_STREAMS
                 ? each(name, context, fail)
                 : tl_fail_set(fail, TL_USAGE, "no more than %d streams at once", MAX_STREAMS);
    free(names);
    return rc;
}

struct streams {
    const struct tl_web_question *question;
    struct tl_asker asker;
    void *asked;
    struct tl_reply memory;                 /* of the question and the answer */
    struct tl_reply replies[MAX_STREAMS];   /* by stream */
    ProtobufCMessage *entries[MAX_STREAMS]; /* of the map */
    size_t n;
};

static void *member_of(void *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

static int ask_stream(const char *stream, void *context, struct tl_fail *fail)
{
    struct streams *const s = context;
    const ProtobufCMessageDescriptor *const entry = s->question->by_stream->fields[0].descriptor;
    struct tl_reply *const reply = &s->replies[s->n];
    char *const name = tl_reply_text(&s->memory, stream);
    ProtobufCMessage *const m = tl_reply_new(&s->memory, entry);
    if (!name || !m)
        return TL_NOMEM;
    s->entries[s->n++] = m;
    *(const char **)((char *)s->asked + protobuf_c_message_descriptor_get_field_by_name(
                                            ((ProtobufCMessage *)s->asked)->descriptor, "stream")
                                            ->offset) = stream;
    const int rc = s->question->answer(&s->asker, s->asked, reply, fail);
    *(const char **)member_of(m, &entry->fields[0]) = name;
    *(ProtobufCMessage **)member_of(m, &entry->fields[1]) = reply->message;
    return rc;
}

/* The answers as one message: a map. */
static int respond_streams(const struct tl_http_request *request, struct tl_http_response *response,
                           struct streams *s)
{
    const ProtobufCFieldDescriptor *const map = &s->question->by_stream->fields[0];
    void *const m = tl_reply_new(&s->memory, s->question->by_stream);
    if (!m)
        return TL_NOMEM;
    *(ProtobufCMessage ***)member_of(m, map) = s->entries;
    *(size_t *)((char *)m + map->quantifier_offset) = s->n;
    return tl_web_respond(request, response, m, false);
}

int tl_web_ask_streams(struct tl_http_request *request, struct tl_http_response *response)
{
    struct streams s = {.question = request->route->detail,
                        .asker = {tl_web_lake(request), request->scope}};
    int rc = ask(request, &s.memory, &s.asked, &response->fail);
    if (rc >= 0)
        rc = tl_web_streams(request, ask_stream, &s, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc) : respond_streams(request, response, &s);
    for (size_t i = 0; i < s.n; i++)
        tl_reply_free(&s.replies[i]);
    tl_reply_free(&s.memory);
    return rc;
}
