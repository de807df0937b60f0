/* SPDX-License-Identifier: MIT */
/*
 * The HTTP interface to traces: rows, look-ups and ranges, described in docs/http.md. It only reads
 * arguments; answers are those of RPC as JSON.
 */
#include "rpc/webapi.h"

#include "rpc/convert.h"
#include "rpc/rangefile.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 1000 /* default traces per page */

/* Messages, each of which has as many traces as fit; together they are one. */
static int respond_messages(struct tl_http_response *response, struct tl_trace_list *list,
                            bool more)
{
    int rc = TL_OK;
    size_t next = 0;
    do {
        Tracelake__V1__ListTracesReply reply;
        rc = tl_traces_pb(list, &next, 0, more, &reply);
        if (rc < 0)
            break;
        char *const token = reply.next_page_token;
        if (next < list->n) /* what follows is in this answer, too */
            reply.next_page_token = (char *)(uintptr_t)protobuf_c_empty_string;
        rc = tl_web_pack(response, &reply.base);
        reply.next_page_token = token;
        tl_traces_pb_free(&reply);
    } while (rc >= 0 && next < list->n);
    tl_trace_list_free(list);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

/* The traces after a cursor, and the cursor of the next page. */
static int respond_page(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__ListTracesRequest r = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
    struct tl_trace_list list = {0};
    struct tl_trace_place place;
    char next[TL_PLACE_TEXT];
    r.page_size = PAGE;
    int rc = tl_web_fill(request, &r, &response->fail);
    if (rc >= 0 && (r.page_size == 0 || r.page_size > TL_PAGE_MAX))
        rc = tl_fail_set(&response->fail, TL_USAGE, "limit is from 1 to %d", TL_PAGE_MAX);
    if (rc >= 0 && *r.page_token && tl_place_read(r.page_token, &place) < 0)
        rc = tl_fail_set(&response->fail, TL_USAGE, "\"%.80s\" is no cursor", r.page_token);
    if (rc >= 0)
        rc = tl_scoped_page(tl_web_lake(request), request->scope, *r.page_token ? &place : NULL,
                            r.page_size, &list);
    if (rc < 0) {
        tl_trace_list_free(&list);
        return rc;
    }
    const bool more = rc > 0 && list.n > 0;
    if (tl_web_wants_protobuf(request))
        return respond_messages(response, &list, more);
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
    if (tl_web_wants_protobuf(request))
        return respond_messages(response, &list, false);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_webjson_traces(&json, &list);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, &json);
}

/* The message of a single trace. */
static int respond_message(struct tl_http_response *response, struct tl_trace_list *list)
{
    Tracelake__V1__ListTracesReply reply;
    int rc = tl_traces_pb(list, &(size_t){0}, 1, false, &reply);
    if (rc >= 0) {
        rc = tl_web_pack(response, &reply.traces[0]->base);
        tl_traces_pb_free(&reply);
    }
    tl_trace_list_free(list);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

int tl_web_trace(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_trace_list list = {0};
    const int rc = tl_lake_trace(tl_web_lake(request), request->part[0], &list);
    if (rc == TL_NOTFOUND)
        return tl_fail_set(&response->fail, rc, "there is no trace %.63s", request->part[0]);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    if (tl_web_wants_protobuf(request))
        return respond_message(response, &list);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_webjson_trace(&json, &list.rows[0]);
    tl_trace_list_free(&list);
    return tl_webjson_respond(response, &json);
}

/* ---- answers ------------------------------------------------------------------------------ */

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
    const bool first = response->body.n == 0;
    response->body.n += protobuf_c_message_pack(message, response->body.p + response->body.n);
    response->compress = true;
    return first ? tl_http_type(response, "application/x-protobuf") : TL_OK;
}

int tl_web_respond_nothing(struct tl_http_response *response)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_raw(&json, "{}", 2);
    return tl_webjson_respond(response, &json);
}

/* ---- range ------------------------------------------------------------------------------ */

struct format {
    const char *type;
    const char *suffix;
};

/* In the order of enum tl_range_format. */
static const struct format formats[] = {
    {"application/octet-stream", "zstf"}, {"application/octet-stream", "stf"},
    {"text/plain; charset=utf-8", "txt"}, {"application/json", "json"},
    {"text/plain; charset=utf-8", "txt"},
};

struct puller {
    struct tl_lake *lake;
    struct tl_range_request request; /* its names are the HTTP request's, which outlives this */
    struct tl_range_filter filter;   /* so are its */
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
    const int rc = tl_rangefile_open(p->lake, &p->request, &p->filter, &p->range, NULL);
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
    Tracelake__V1__FetchRequest r = TRACELAKE__V1__FETCH_REQUEST__INIT;
    int rc = tl_web_fill(request, &r, &response->fail);
    if (rc < 0)
        return rc;
    const struct tl_range_request range = {.trace = r.trace,
                                           .stream = r.stream,
                                           .unit = (enum tl_range_unit)r.unit,
                                           .from = r.begin,
                                           .to = r.to ? r.to : UINT64_MAX,
                                           .format = (enum tl_range_format)r.format};
    struct puller *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    p->lake = tl_web_lake(request);
    p->request = range;
    p->filter = (struct tl_range_filter){.mode = tl_http_query(request, "mode"),
                                         .process = tl_http_query(request, "process"),
                                         .thread = tl_http_query(request, "thread")};
    rc = tl_rangefile_open(p->lake, &range, &p->filter, &p->range, &response->fail);
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
