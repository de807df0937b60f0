/* SPDX-License-Identifier: MIT */
/* The HTTP interface to traces: rows, look-ups and ranges, described in docs/http.md. */
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

#define MAX_INSNS   4096
#define MAX_STREAMS 16

/* Respond with what was written row by row, or with the error. */
static int respond_rows(const struct tl_http_request *request, struct tl_http_response *response,
                        struct tl_buf *json, int rc)
{
    if (rc >= 0)
        rc = tl_buf_add(json, "]\n", 2);
    if (rc >= 0)
        return tl_webjson_respond_text(response, json);
    tl_buf_fini(json);
    return tl_web_explain(request, response, rc);
}

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
    cJSON *const json = tl_webjson_some_traces(&list, more);
    bool ok = json != NULL;
    if (more) {
        place = tl_trace_place_of(&list.rows[list.n - 1]);
        tl_place_write(next, &place);
        ok = ok && tl_webjson_text(json, "cursor", next);
    }
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, tl_webjson_complete(json, ok));
}

int tl_web_traces(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_list list = {0};
    if (tl_http_query(request, "limit") || tl_http_query(request, "cursor"))
        return respond_page(request, response);
    const int rc = tl_scoped_traces(tl_web_lake(request), request->scope, &list);
    if (rc < 0)
        return rc;
    cJSON *const json = tl_webjson_traces(&list);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, json);
}

int tl_web_trace(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_list list = {0};
    const int rc = tl_lake_trace(tl_web_lake(request), request->part[0], &list);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    cJSON *const json = tl_webjson_trace(&list.rows[0]);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, json);
}

int tl_web_functions(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_functions functions;
    struct tl_buf json = {0};
    int rc = tl_lake_functions(tl_web_lake(request), request->part[0], &functions, &response->fail);
    if (rc >= 0)
        rc = tl_buf_add(&json, "[", 1);
    for (size_t i = 0; i < functions.n && rc >= 0; i++)
        rc = tl_webjson_row(&json, i, tl_webjson_function(i, &functions.p[i]));
    tl_functions_fini(&functions);
    return respond_rows(request, response, &json, rc);
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

int tl_web_weight(const struct tl_http_request *request, enum tl_weight *out, struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, "weight");
    if (text && strcmp(text, "insns") != 0 && strcmp(text, "time") != 0)
        return tl_fail_set(fail, TL_USAGE, "weight=%.20s; it is insns or time", text);
    if (text)
        *out = *text == 't' ? TL_WEIGHT_TIME : TL_WEIGHT_INSNS;
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

static bool wants_protobuf(const struct tl_http_request *request)
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
    if (!wants_protobuf(request))
        return tl_webjson_respond(response, tl_webjson_position(&at));
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

static int respond_stats(struct tl_http_request *request, struct tl_http_response *response,
                         const char *stream, uint64_t from, uint64_t to)
{
    struct tl_stats stats;
    uint64_t functions = TL_WEBJSON_FUNCTIONS;
    int rc = tl_http_args(request,
                          (const struct tl_http_arg[]){{"functions", TL_HTTP_U64, &functions}, {0}},
                          &response->fail);
    if (rc < 0)
        return rc;
    rc = tl_lake_stats(tl_web_lake(request), request->part[0], stream, from, to, &stats,
                       &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_stats(&stats, functions));
    tl_stats_fini(&stats);
    return rc;
}

int tl_web_stats(struct tl_http_request *request, struct tl_http_response *response)
{
    uint64_t from = 0;
    uint64_t to = 0;
    const int rc = tl_web_insns_span(request, &from, &to, &response->fail);
    return rc < 0 ? tl_web_explain(request, response, rc)
                  : respond_stats(request, response, request->part[1], from, to);
}

int tl_web_trace_stats(struct tl_http_request *request, struct tl_http_response *response)
{
    return respond_stats(request, response, NULL, 0, UINT64_MAX);
}

static int slices_request(const struct tl_http_request *request, struct tl_slices_request *slices,
                          struct tl_fail *fail)
{
    const struct tl_http_arg columns[] = {{"columns", TL_HTTP_U32, &slices->columns}, {0}};
    *slices = (struct tl_slices_request){.trace = request->part[0], .axis = TL_UNIT_INSN};
    int rc = tl_web_span(request, &slices->axis, &slices->from, &slices->to, fail);
    if (rc == TL_OK)
        rc = tl_http_args(request, columns, fail);
    return rc;
}

/* Write a stream's slices to `*out`. */
static int json_slices(const struct tl_http_request *request, const char *stream, void *context,
                       cJSON **out, struct tl_fail *fail)
{
    struct tl_slices_request *const wanted = context;
    struct tl_slices slices;
    wanted->stream = stream;
    int rc = tl_lake_slices(tl_web_lake(request), wanted, &slices, fail);
    if (rc >= 0 && !(*out = tl_webjson_slices(&slices)))
        rc = TL_NOMEM;
    tl_slices_fini(&slices);
    return rc;
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

struct stream_objects {
    cJSON *all;
    tl_web_stream *each;
    void *context;
};

static int add_object(const struct tl_http_request *request, const char *stream, void *context,
                      struct tl_fail *fail)
{
    const struct stream_objects *const objects = context;
    cJSON *one = NULL;
    const int rc = objects->each(request, stream, objects->context, &one, fail);
    if (rc < 0 || cJSON_AddItemToObject(objects->all, stream, one))
        return rc;
    cJSON_Delete(one);
    return TL_NOMEM;
}

int tl_web_each_stream(struct tl_http_request *request, struct tl_http_response *response,
                       tl_web_stream *each, void *context)
{
    cJSON *const json = cJSON_CreateObject();
    struct stream_objects objects = {cJSON_AddObjectToObject(json, "streams"), each, context};
    const int rc =
        objects.all ? tl_web_streams(request, add_object, &objects, &response->fail) : TL_NOMEM;
    if (rc == TL_OK)
        return tl_webjson_respond(response, json);
    cJSON_Delete(json);
    return tl_web_explain(request, response, rc);
}

int tl_web_trace_slices(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_slices_request slices;
    const int rc = slices_request(request, &slices, &response->fail);
    return rc < 0 ? rc : tl_web_each_stream(request, response, json_slices, &slices);
}

int tl_web_slices(struct tl_http_request *request, struct tl_http_response *response)
{
    cJSON *json = NULL;
    struct tl_slices_request slices;
    int rc = slices_request(request, &slices, &response->fail);
    if (rc == TL_OK)
        rc = json_slices(request, request->part[1], &slices, &json, &response->fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_webjson_respond(response, json);
}

struct rows {
    struct tl_buf json;
    size_t n;
};

static int add_insn(void *context, const struct tl_insn_row *row)
{
    struct rows *const rows = context;
    return tl_webjson_row(&rows->json, rows->n++, tl_webjson_insn(row));
}

int tl_web_insns(struct tl_http_request *request, struct tl_http_response *response)
{
    struct rows rows = {0};
    uint64_t from = 0, to = 0;
    uint32_t count = 0;
    const struct tl_http_arg args[] = {{"count", TL_HTTP_U32, &count}, {0}};
    int rc = tl_web_insns_span(request, &from, &to, &response->fail);
    const uint64_t all = to > from ? to - from : 0;
    count = to == UINT64_MAX ? 100 : all < MAX_INSNS ? (uint32_t)all : MAX_INSNS;
    if (rc == TL_OK)
        rc = tl_http_args(request, args, &response->fail);
    if (count > MAX_INSNS)
        count = MAX_INSNS;
    if (count > all)
        count = (uint32_t)all;
    if (rc == TL_OK)
        rc = tl_buf_add(&rows.json, "[", 1);
    if (rc == TL_OK)
        rc = tl_lake_insns(tl_web_lake(request), request->part[0], request->part[1], from, count,
                           add_insn, &rows, &response->fail);
    return respond_rows(request, response, &rows.json, rc);
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
