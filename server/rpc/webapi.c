/* SPDX-License-Identifier: MIT */
/*
 * The HTTP interface to traces: rows, look-ups and ranges, described in docs/http.md. It only reads
 * arguments; answers are those of RPC as JSON.
 */
#include "rpc/webapi.h"

#include "base/timearg.h"

#include "rpc/rangefile.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 16

#define PAGE 1000 /* default traces per page */

/* The traces after a cursor, and the cursor of the next page. */
static int respond_page(struct tl_http_request *request, struct tl_http_response *response)
{
    const char *const cursor = tl_http_query(request, "cursor");
    struct tl_trace_list list = {0};
    struct tl_trace_place place;
    char next[TL_PLACE_TEXT];
    uint64_t limit = PAGE;
    int rc =
        tl_http_args(request, (const struct tl_http_arg[]){{"limit", TL_HTTP_U64, &limit}, {0}},
                     &response->fail);
    if (rc >= 0 && (limit == 0 || limit > TL_PAGE_MAX))
        rc = tl_fail_set(&response->fail, TL_USAGE, "limit is from 1 to %d", TL_PAGE_MAX);
    if (rc >= 0 && cursor && tl_place_read(cursor, &place) < 0)
        rc = tl_fail_set(&response->fail, TL_USAGE, "\"%.80s\" is no cursor", cursor);
    if (rc >= 0)
        rc = tl_scoped_page(tl_web_lake(request), request->scope, cursor ? &place : NULL, limit,
                            &list);
    if (rc < 0) {
        tl_trace_list_free(&list);
        return rc;
    }
    const bool more = rc > 0 && list.n > 0;
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_open(&json, '{');
    tl_jsonout_name(&json, "traces");
    tl_webjson_traces(&json, &list);
    tl_webjson_bool(&json, "more", more);
    if (more) {
        place = tl_trace_place_of(&list.rows[list.n - 1]);
        tl_place_write(next, &place);
        tl_webjson_text(&json, "cursor", next);
    }
    tl_jsonout_close(&json, '}');
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, &json);
}

int tl_web_traces(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_list list = {0};
    if (tl_http_query(request, "limit") || tl_http_query(request, "cursor"))
        return respond_page(request, response);
    const int rc = tl_scoped_traces(tl_web_lake(request), request->scope, &list);
    if (rc < 0)
        return rc;
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_webjson_traces(&json, &list);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, &json);
}

int tl_web_trace(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_list list = {0};
    const int rc = tl_lake_trace(tl_web_lake(request), request->part[0], &list);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_webjson_trace(&json, &list.rows[0]);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, &json);
}

int tl_web_functions(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_functions functions;
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    const int rc =
        tl_lake_functions(tl_web_lake(request), request->part[0], &functions, &response->fail);
    tl_jsonout_open(&json, '[');
    for (size_t i = 0; rc >= 0 && i < functions.n; i++) {
        tl_jsonout_line(&json);
        tl_webjson_function(&json, i, &functions.p[i]);
    }
    tl_jsonout_close(&json, ']');
    tl_functions_fini(&functions);
    if (rc >= 0)
        return tl_webjson_respond(response, &json);
    tl_buf_fini(&text);
    return tl_web_explain(request, response, rc);
}

/* ---- arguments -------------------------------------------------------------------------- */

/* The argument `unit`, also called `axis`; instructions if it is missing. TL_USAGE. */
static int web_unit(const struct tl_http_request *request, enum tl_range_unit *out,
                    struct tl_fail *fail)
{
    const char *const axis = tl_http_query(request, "axis"),
                      *const unit = tl_http_query(request, "unit"),
                      *const text = unit ? unit : axis;
    if (tl_unit_parse(text ? text : "insn", out) == TL_OK)
        return TL_OK;
    return tl_fail_set(fail, TL_USAGE, "%s=%.20s; it is insn, time, ns or byte",
                       unit ? "unit" : "axis", text);
}

int tl_unit_parse(const char *text, enum tl_range_unit *out)
{
    static const char *const names[] = {"insn", "time", "byte", "ns"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i])) {
            *out = (enum tl_range_unit)i;
            return TL_OK;
        }
    }
    return TL_USAGE;
}

/* Ends of a range of time. */
static int times(const struct tl_http_request *request, enum tl_range_unit *unit, uint64_t *from,
                 uint64_t *to, struct tl_fail *fail)
{
    const char *const begin = tl_http_query(request, "from"), *const end =
                                                                  tl_http_query(request, "to");
    struct tl_time_range range;
    char length[64];
    /* The '+' of a length, unless it was escaped, has become a blank. */
    snprintf(length, sizeof length, "+%s", end && *end == ' ' ? end + 1 : "");
    if (tl_time_ends_parse(begin, end && *end == ' ' ? length : end, &range) < 0)
        return tl_fail_set(fail, TL_USAGE, "from=%.40s, to=%.40s is not " TL_TIME_RANGE_EXPECTED,
                           begin ? begin : "", end ? end : "");
    *unit = range.ns ? TL_UNIT_NS : TL_UNIT_TIME;
    *from = range.from;
    *to = range.to;
    return TL_OK;
}

int tl_web_span(const struct tl_http_request *request, enum tl_range_unit *unit, uint64_t *from,
                uint64_t *to, struct tl_fail *fail)
{
    const struct tl_http_arg args[] = {{"from", TL_HTTP_U64, from}, {"to", TL_HTTP_U64, to}, {0}};
    *from = 0;
    *to = UINT64_MAX;
    const int rc = web_unit(request, unit, fail);
    if (rc >= 0 && *unit == TL_UNIT_TIME)
        return times(request, unit, from, to, fail);
    return rc < 0 ? rc : tl_http_args(request, args, fail);
}

int tl_web_place(const struct tl_http_request *request, const char *name, enum tl_range_unit *unit,
                 uint64_t *at, struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, name);
    struct tl_time_arg time;
    if (!text || *unit != TL_UNIT_TIME)
        return tl_http_args(request, (const struct tl_http_arg[]){{name, TL_HTTP_U64, at}, {0}},
                            fail);
    if (tl_time_parse(text, &time) < 0)
        return tl_fail_set(fail, TL_USAGE, "%s=%.40s; it is " TL_TIME_EXPECTED, name, text);
    if (time.ns)
        *unit = TL_UNIT_NS;
    *at = time.value;
    return TL_OK;
}

int tl_web_insns_span(const struct tl_http_request *request, uint64_t *from, uint64_t *to,
                      struct tl_fail *fail)
{
    enum tl_range_unit unit;
    uint64_t *const ends[] = {from, to};
    int rc = tl_web_span(request, &unit, from, to, fail);
    for (size_t i = 0; i < 2 && rc >= 0 && unit != TL_UNIT_INSN; i++) {
        struct tl_position at;
        if (*ends[i] == UINT64_MAX)
            continue;
        rc = tl_lake_locate(tl_web_lake(request), request->part[0], request->part[1], unit,
                            *ends[i], &at, fail);
        *ends[i] = rc < 0 ? 0 : at.insn;
    }
    return rc;
}

bool tl_web_wants_protobuf(const struct tl_http_request *request)
{
    return tl_http_accepts(request, "application/x-protobuf") ||
           tl_http_accepts(request, "application/protobuf");
}

int tl_web_pack(struct tl_http_response *response, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    const int rc = tl_buf_reserve(&response->body, n + 1);
    if (rc < 0)
        return rc;
    response->body.n = protobuf_c_message_pack(message, response->body.p);
    response->compress = true;
    return tl_http_type(response, "application/x-protobuf");
}

int tl_web_respond_nothing(struct tl_http_response *response)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_raw(&json, "{}", 2);
    return tl_webjson_respond(response, &json);
}

/* ---- look-ups --------------------------------------------------------------------------- */

int tl_web_locate(struct tl_http_request *request, struct tl_http_response *response)
{
    enum tl_range_unit unit = TL_UNIT_INSN;
    struct tl_position at = {0};
    uint64_t where = 0;
    int rc = web_unit(request, &unit, &response->fail);
    if (rc == TL_OK && !tl_http_query(request, "at"))
        rc =
            tl_fail_set(&response->fail, TL_USAGE, "say at=POSITION, with unit=insn, time or byte");
    if (rc == TL_OK)
        rc = tl_web_place(request, "at", &unit, &where, &response->fail);
    if (rc == TL_OK)
        rc = tl_lake_locate(tl_web_lake(request), request->part[0], request->part[1], unit, where,
                            &at, &response->fail);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    if (!tl_web_wants_protobuf(request)) {
        struct tl_buf text = {0};
        struct tl_jsonout json = {.out = &text};
        tl_jsonout_open(&json, '{');
        tl_webjson_position(&json, &at);
        tl_jsonout_close(&json, '}');
        return tl_webjson_respond(response, &json);
    }
    Tracelake__V1__Position message = TRACELAKE__V1__POSITION__INIT;
    message.insn = at.insn;
    message.time = at.time;
    message.byte = at.byte;
    message.has_time = at.has_time;
    message.time_from = at.time_from;
    message.time_to = at.time_to == UINT64_MAX ? 0 : at.time_to;
    rc = tl_web_pack(response, &message.base);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

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
                 ? each(request, name, context, fail)
                 : tl_fail_set(fail, TL_USAGE, "no more than %d streams at once", MAX_STREAMS);
    free(names);
    return rc;
}

/* ---- range ------------------------------------------------------------------------------ */

struct format {
    const char *name;
    const char *type;
    const char *suffix;
};

/* In the order of enum tl_range_format. */
static const struct format formats[] = {
    {"zstf", "application/octet-stream", "zstf"},
    {"stf", "application/octet-stream", "stf"},
    {"text", "text/plain; charset=utf-8", "txt"},
    {"json", "application/json", "json"},
};

struct puller {
    struct tl_lake *lake;
    struct tl_range_request request; /* its names are the HTTP request's, which outlives this */
    struct tl_rangefile *range;
    struct tl_buf first; /* read before the head was sent, so that errors get a status */
    int rc;
};

static int pull(void *context, struct tl_buf *out)
{
    struct puller *const p = context;
    if (p->first.n || p->rc != TL_OK) {
        tl_buf_fini(out);
        *out = p->first;
        p->first = (struct tl_buf){0};
        return p->rc;
    }
    return tl_rangefile_next(p->range, out, NULL);
}

/* If the stream has grown meanwhile the body differs. */
static int rewind_range(void *context)
{
    struct puller *const p = context;
    uint64_t extent[2];
    uint64_t now[2];
    tl_rangefile_extent(p->range, &extent[0], &extent[1]);
    tl_rangefile_close(p->range);
    p->range = NULL;
    p->rc = TL_OK;
    tl_buf_reset(&p->first);
    const int rc = tl_rangefile_open(p->lake, &p->request, &p->range, NULL);
    if (rc < 0)
        return rc;
    tl_rangefile_extent(p->range, &now[0], &now[1]);
    return memcmp(extent, now, sizeof now) ? TL_AGAIN : TL_OK;
}

static void release(void *context)
{
    struct puller *const p = context;
    tl_rangefile_close(p->range);
    tl_buf_fini(&p->first);
    free(p);
}

static int parse_range(const struct tl_http_request *request, struct tl_range_request *range,
                       struct tl_fail *fail)
{
    const char *const name = tl_http_query(request, "format");
    const size_t n = sizeof formats / sizeof *formats;
    size_t i = 0;
    *range = (struct tl_range_request){.trace = request->part[0], .stream = request->part[1]};
    while (name && i < n && strcmp(formats[i].name, name))
        i++;
    if (i == n)
        return tl_fail_set(fail, TL_USAGE, "format=%.20s; it is zstf, stf, text or json", name);
    range->format = (enum tl_range_format)i;
    return tl_web_span(request, &range->unit, &range->from, &range->to, fail);
}

static int range_headers(const struct tl_range_request *range, const struct tl_rangefile *opened,
                         struct tl_http_response *response)
{
    const struct format *const format = &formats[range->format];
    const bool file = range->format <= TL_FORMAT_STF;
    uint64_t first;
    uint64_t count;
    tl_rangefile_extent(opened, &first, &count);
    int rc = tl_http_type(response, format->type);
    if (rc == TL_OK)
        rc = tl_fields_addf(&response->headers, "content-disposition",
                            "%s; filename=\"%.63s-%.31s-%llu.%s\"", file ? "attachment" : "inline",
                            range->trace, range->stream, (unsigned long long)first, format->suffix);
    if (rc == TL_OK)
        rc = tl_fields_addf(&response->headers, "tracelake-first", "%llu",
                            (unsigned long long)first);
    if (rc == TL_OK)
        rc = tl_fields_addf(&response->headers, "tracelake-count", "%llu",
                            (unsigned long long)count);
    return rc == TL_OK ? tl_fields_add(&response->headers, "cache-control", "no-store") : rc;
}

int tl_web_range(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_range_request range;
    int rc = parse_range(request, &range, &response->fail);
    if (rc < 0)
        return rc;
    struct puller *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    p->lake = tl_web_lake(request);
    p->request = range;
    rc = tl_rangefile_open(p->lake, &range, &p->range, &response->fail);
    if (rc < 0) {
        free(p);
        return tl_web_explain(request, response, rc);
    }
    response->producer = p;
    response->release = release;
    p->rc = tl_rangefile_next(p->range, &p->first, &response->fail);
    if (p->rc < 0 && p->rc != TL_EOF)
        return tl_web_explain(request, response, p->rc);
    response->produce = pull;
    response->holds = TL_RANGE_HOLDS;
    response->rewind = rewind_range;
    response->ranges = true;
    return range_headers(&range, p->range, response);
}
