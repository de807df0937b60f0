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
    uint64_t at = 0;
    uint32_t depth = TL_CALL_INNERMOST;
    const struct tl_http_arg args[] = {
        {"at", TL_HTTP_U64, &at}, {"depth", TL_HTTP_U32, &depth}, {0}};
    int rc = tl_http_args(request, args, &response->fail);
    if (rc >= 0)
        rc = tl_lake_call(tl_web_lake(request), request->part[0], request->part[1], at, depth,
                          &call, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_call(&call));
    tl_call_info_fini(&call);
    return rc;
}

int tl_web_profile(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_profile_request wanted = {.trace = request->part[0],
                                        .stream = request->n_parts > 1 ? request->part[1] : NULL,
                                        .to = UINT64_MAX};
    struct tl_profile profile = {0};
    const struct tl_http_arg args[] = {
        {"callers", TL_HTTP_FLAG, &wanted.callers}, {"nodes", TL_HTTP_U32, &wanted.nodes}, {0}};
    int rc = tl_web_span(request, &wanted.unit, &wanted.from, &wanted.to, &response->fail);
    if (rc >= 0)
        rc = tl_web_weight(request, &wanted.weight, &response->fail);
    if (rc >= 0)
        rc = tl_http_args(request, args, &response->fail);
    if (rc >= 0)
        rc = tl_lake_profile(tl_web_lake(request), &wanted, &profile, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_profile(&profile));
    tl_profile_fini(&profile);
    return rc;
}

int tl_web_source(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_source_file source = {0};
    uint64_t at = 0;
    uint32_t frame = 0;
    const struct tl_http_arg args[] = {
        {"at", TL_HTTP_U64, &at}, {"frame", TL_HTTP_U32, &frame}, {0}};
    int rc = tl_http_args(request, args, &response->fail);
    if (rc >= 0)
        rc = tl_lake_source(tl_web_lake(request), request->part[0], request->part[1], at, frame,
                            &source, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_webjson_source(&source));
    tl_source_file_fini(&source);
    return rc;
}

/* ---- two runs compared ---------------------------------------------------------------------- */

int tl_web_compare(struct tl_http_request *request, struct tl_http_response *response)
{
    const char *const with = tl_http_query(request, "with");
    struct tl_compare_request wanted = {
        .a = {.trace = request->part[0], .stream = request->part[1], .to = UINT64_MAX},
        .b = {.to = UINT64_MAX}};
    const struct tl_http_arg args[] = {{"from", TL_HTTP_U64, &wanted.a.from},
                                       {"to", TL_HTTP_U64, &wanted.a.to},
                                       {"with_from", TL_HTTP_U64, &wanted.b.from},
                                       {"with_to", TL_HTTP_U64, &wanted.b.to},
                                       {"calls", TL_HTTP_FLAG, &wanted.calls},
                                       {"hunks", TL_HTTP_U32, &wanted.hunks},
                                       {0}};
    struct tl_compare compare = {0};
    const char *const slash = with ? strchr(with, '/') : NULL;
    if (!slash)
        return tl_fail_set(&response->fail, TL_USAGE, "compare with what? Give with=TRACE/STREAM");
    char *const trace = strndup(with, (size_t)(slash - with));
    if (!trace)
        return TL_NOMEM;
    wanted.b.trace = trace;
    wanted.b.stream = slash + 1;
    int rc = tl_http_args(request, args, &response->fail);
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
