/* SPDX-License-Identifier: MIT */
/*
 * Software trace over HTTP, as JSON and as CSV, described in docs/http.md. JSON is the answer of
 * RPC; CSV has rows of all streams and is made here.
 */
#include "base/csv.h"
#include "rpc/rpcint.h"
#include "rpc/webargs.h"
#include "rpc/weblookups.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- CSV ------------------------------------------------------------------------------------- */

struct csv {
    struct tl_lake *lake;
    struct tl_soft_request *wanted;
    struct tl_buf *out;
};

/* "12,1200,0.000001200," */
static int put_place(struct tl_buf *out, const struct tl_soft_entry *e, bool is_ns)
{
    enum { SECOND = 1000000000 };
    int rc = tl_buf_printf(out, "%" PRIu64 ",", e->at);
    if (rc >= 0 && e->has_time)
        rc = tl_buf_printf(out, "%" PRIu64, e->time);
    if (rc >= 0)
        rc = tl_buf_add(out, ",", 1);
    if (rc >= 0 && e->has_time && is_ns)
        rc = tl_buf_printf(out, "%" PRIu64 ".%09" PRIu64, e->time / SECOND, e->time % SECOND);
    return rc < 0 ? rc : tl_buf_add(out, ",", 1);
}

static int put_row(struct tl_buf *out, const char *stream, const struct tl_soft_entry *e,
                   bool is_ns)
{
    char channel[TL_SOFT_CHANNEL];
    int rc = tl_csv_field(out, stream, ',');
    if (rc >= 0)
        rc = put_place(out, e, is_ns);
    if (rc >= 0)
        rc = tl_csv_field(out, e->source, ',');
    if (rc >= 0)
        rc = tl_csv_field(out, e->has_channel ? tl_soft_channel(e, channel) : "", ',');
    if (rc >= 0)
        rc = tl_csv_field(out, tl_port_form_name(e->form), ',');
    return rc < 0 ? rc : tl_csv_field(out, e->text, '\n');
}

static int csv_log(const char *stream, void *context, struct tl_fail *fail)
{
    struct csv *const csv = context;
    struct tl_soft_log log;
    csv->wanted->stream = stream;
    int rc = tl_lake_log(csv->lake, csv->wanted, &log, fail);
    for (size_t i = 0; i < log.n && rc >= 0; i++)
        rc = put_row(csv->out, stream, &log.entries[i], log.time_is_ns);
    tl_soft_log_fini(&log);
    return rc;
}

static int respond_csv(struct tl_http_request *request, struct tl_http_response *response,
                       struct tl_soft_request *wanted)
{
    struct csv csv = {tl_web_lake(request), wanted, &response->body};
    int rc =
        tl_buf_printf(&response->body, "stream,position,time,seconds,source,channel,form,text\n");
    if (rc >= 0)
        rc = tl_web_streams(request, csv_log, &csv, &response->fail);
    if (rc < 0) {
        tl_buf_fini(&response->body);
        return tl_web_explain(request, response, rc);
    }
    response->compress = true;
    rc = tl_http_type(response, "text/csv; charset=utf-8");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

/* ---- requests -------------------------------------------------------------------------------- */

int tl_web_log(struct tl_http_request *request, struct tl_http_response *response)
{
    const char *const format = tl_http_query(request, "format");
    Tracelake__V1__LogRequest r = TRACELAKE__V1__LOG_REQUEST__INIT;
    if (!format || strcmp(format, "json") == 0)
        return tl_web_ask_streams(request, response);
    if (strcmp(format, "csv") != 0)
        return tl_fail_set(&response->fail, TL_USAGE, "format=%.20s; it is json or csv", format);
    const int rc = tl_web_fill(request, &r, &response->fail);
    struct tl_soft_request log;
    tl_log_of(&r, &log);
    return rc < 0 ? rc : respond_csv(request, response, &log);
}
