/* SPDX-License-Identifier: MIT */
/* Calls, call trees and sources over HTTP, described in docs/http.md. */
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include <stdlib.h>
#include <string.h>

int tl_web_call(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_call_info call = {0};
    uint64_t at, depth;
    int rc = tl_http_number(request, "at", 0, &at, &response->fail);
    if (rc >= 0)
        rc = tl_http_number(request, "depth", TL_CALL_INNERMOST, &depth, &response->fail);
    if (rc >= 0)
        rc = tl_lake_call(tl_web_lake(request), request->part[0], request->part[1], at,
                          depth < TL_CALL_INNERMOST ? (uint32_t)depth : TL_CALL_INNERMOST, &call,
                          &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_call(&call));
    tl_call_info_fini(&call);
    return rc;
}

int tl_web_profile(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_profile_request wanted = {.trace = request->part[0],
                                        .stream = request->n_parts > 1 ? request->part[1] : NULL};
    struct tl_profile profile = {0};
    uint64_t callers, nodes;
    const char *const unit = tl_http_query(request, "unit");
    int rc = tl_http_number(request, "from", 0, &wanted.from, &response->fail);
    if (rc >= 0)
        rc = tl_http_number(request, "to", UINT64_MAX, &wanted.to, &response->fail);
    if (rc >= 0)
        rc = tl_http_number(request, "callers", 0, &callers, &response->fail);
    if (rc >= 0)
        rc = tl_http_number(request, "nodes", 0, &nodes, &response->fail);
    if (rc >= 0 && unit && tl_unit_parse(unit, &wanted.unit) < 0)
        rc = tl_fail_set(&response->fail, TL_USAGE, "unit=%.20s; it is insn, time or byte", unit);
    if (rc >= 0) {
        wanted.callers = callers != 0;
        wanted.nodes = nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
        rc = tl_lake_profile(tl_web_lake(request), &wanted, &profile, &response->fail);
    }
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_profile(&profile));
    tl_profile_fini(&profile);
    return rc;
}

int tl_web_source(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_source_file source = {0};
    uint64_t at, frame;
    int rc = tl_http_number(request, "at", 0, &at, &response->fail);
    if (rc >= 0)
        rc = tl_http_number(request, "frame", 0, &frame, &response->fail);
    if (rc >= 0)
        rc = tl_lake_source(tl_web_lake(request), request->part[0], request->part[1], at,
                            frame < UINT32_MAX ? (uint32_t)frame : UINT32_MAX, &source,
                            &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_source(&source));
    tl_source_file_fini(&source);
    return rc;
}

/* ---- two runs compared ---------------------------------------------------------------------- */

static int compare_request(const struct tl_http_request *request, struct tl_compare_request *out,
                           struct tl_fail *fail)
{
    uint64_t calls = 0, hunks = 0;
    int rc = tl_http_number(request, "from", 0, &out->a.from, fail);
    if (rc >= 0)
        rc = tl_http_number(request, "to", UINT64_MAX, &out->a.to, fail);
    if (rc >= 0)
        rc = tl_http_number(request, "with_from", 0, &out->b.from, fail);
    if (rc >= 0)
        rc = tl_http_number(request, "with_to", UINT64_MAX, &out->b.to, fail);
    if (rc >= 0)
        rc = tl_http_number(request, "calls", 0, &calls, fail);
    if (rc >= 0)
        rc = tl_http_number(request, "hunks", 0, &hunks, fail);
    out->calls = calls != 0;
    out->hunks = hunks < UINT32_MAX ? (uint32_t)hunks : UINT32_MAX;
    return rc;
}

int tl_web_compare(struct tl_http_request *request, struct tl_http_response *response)
{
    const char *const with = tl_http_query(request, "with");
    struct tl_compare_request wanted = {
        .a = {.trace = request->part[0], .stream = request->part[1]}};
    struct tl_compare compare = {0};
    const char *const slash = with ? strchr(with, '/') : NULL;
    if (!slash)
        return tl_fail_set(&response->fail, TL_USAGE, "compare with what? Give with=TRACE/STREAM");
    char *const trace = strndup(with, (size_t)(slash - with));
    if (!trace)
        return TL_NOMEM;
    wanted.b.trace = trace;
    wanted.b.stream = slash + 1;
    int rc = compare_request(request, &wanted, &response->fail);
    /* The route has checked the first trace. */
    if (rc >= 0)
        rc = tl_scoped_covers(tl_web_lake(request), request->scope, trace, &response->fail);
    if (rc >= 0)
        rc = tl_lake_compare(tl_web_lake(request), &wanted, &compare, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_compare(&wanted, &compare));
    tl_compare_fini(&compare);
    free(trace);
    return rc;
}
