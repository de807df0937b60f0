/* SPDX-License-Identifier: MIT */
/* Whose time it was, over gRPC and HTTP: both fill in the same request, docs/http.md. */
#include "rpc/messagejson.h"
#include "rpc/rangejson.h"
#include "rpc/rpcint.h"
#include "rpc/timing.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <string.h>

/* ---- gRPC ------------------------------------------------------------------------------------ */

static int run(struct tl_call *call, tl_timing_answer *answer, const void *request,
               const char *trace, const char *stream)
{
    struct tl_timing_reply reply = {0};
    int rc = answer(tl_call_rpc(call)->lake, request, &reply, tl_call_fail(call));
    if (rc >= 0)
        rc = tl_call_send(call, reply.message);
    tl_timing_reply_free(&reply);
    return tl_explain(tl_call_fail(call), rc, trace, stream);
}

int tl_run_functions(struct tl_call *call, const void *message)
{
    const Tracelake__V1__FunctionsRequest *const r = message;
    return run(call, tl_timing_functions, r, r->trace, r->stream);
}

int tl_run_calls(struct tl_call *call, const void *message)
{
    const Tracelake__V1__CallsRequest *const r = message;
    return run(call, tl_timing_calls, r, r->trace, r->stream);
}

int tl_run_exceptions(struct tl_call *call, const void *message)
{
    const Tracelake__V1__ExceptionsRequest *const r = message;
    return run(call, tl_timing_exceptions, r, r->trace, r->stream);
}

int tl_run_gaps(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GapsRequest *const r = message;
    return run(call, tl_timing_gaps, r, r->trace, r->stream);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static int respond(struct tl_http_request *request, struct tl_http_response *response,
                   tl_timing_answer *answer, const void *asked)
{
    struct tl_timing_reply reply = {0};
    int rc = answer(tl_web_lake(request), asked, &reply, &response->fail);
    rc = rc < 0 ? tl_web_explain(request, response, rc)
                : tl_webjson_respond(response, tl_messagejson(reply.message));
    tl_timing_reply_free(&reply);
    return rc;
}

/* Trace and stream of the path, which are only read. */
static void take_names(const struct tl_http_request *request, char **trace, char **stream)
{
    *trace = (char *)(uintptr_t)request->part[0];
    *stream = (char *)(uintptr_t)request->part[1];
}

/* The arguments of the range; in a request 0 is the end. */
static int range_of(const struct tl_http_request *request, Tracelake__V1__Unit *unit,
                    uint64_t *begin, uint64_t *to, struct tl_fail *fail)
{
    enum tl_range_unit as;
    const int rc = tl_web_span(request, &as, begin, to, fail);
    *unit = (Tracelake__V1__Unit)as;
    *to = *to == UINT64_MAX ? 0 : *to;
    return rc;
}

/* The argument `name`, one of `n` words; unchanged if it is missing. */
static int word_of(const struct tl_http_request *request, const char *name,
                   const char *const *words, unsigned n, unsigned *out, struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, name);
    for (unsigned i = 0; text && i < n; i++)
        if (!strcmp(text, words[i])) {
            *out = i;
            return TL_OK;
        }
    return text ? tl_fail_set(fail, TL_USAGE, "%s=%.20s; it is %s, …", name, text, words[0])
                : TL_OK;
}

/* The argument `weight`: time unless it says insns. */
static int weight_of(const struct tl_http_request *request, Tracelake__V1__Weight *out,
                     struct tl_fail *fail)
{
    enum tl_weight weight = TL_WEIGHT_TIME;
    const int rc = tl_web_weight(request, &weight, fail);
    *out = (Tracelake__V1__Weight)weight; /* the enums have the same values */
    return rc;
}

int tl_web_function_times(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__FunctionsRequest r = TRACELAKE__V1__FUNCTIONS_REQUEST__INIT;
    const struct tl_http_arg args[] = {{"limit", TL_HTTP_U32, &r.limit}, {0}};
    take_names(request, &r.trace, &r.stream);
    int rc = range_of(request, &r.unit, &r.begin, &r.to, &response->fail);
    if (rc >= 0)
        rc = weight_of(request, &r.weight, &response->fail);
    if (rc >= 0)
        rc = tl_http_args(request, args, &response->fail);
    return rc < 0 ? rc : respond(request, response, tl_timing_functions, &r);
}

/* The arguments that are lengths: instructions, or time, which may have a unit. */
static int lengths_of(const struct tl_http_request *request, Tracelake__V1__CallsRequest *r,
                      struct tl_fail *fail)
{
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

int tl_web_calls_of(struct tl_http_request *request, struct tl_http_response *response)
{
    static const char *const orders[] = {"longest", "shortest", "first"};
    Tracelake__V1__CallsRequest r = TRACELAKE__V1__CALLS_REQUEST__INIT;
    const char *const of = tl_http_query(request, "of");
    const struct tl_http_arg args[] = {
        {"skip", TL_HTTP_U64, &r.skip}, {"limit", TL_HTTP_U32, &r.limit}, {0}};
    unsigned order = 0;
    take_names(request, &r.trace, &r.stream);
    r.function = (char *)(uintptr_t)(of ? of : ""); /* only read */
    int rc = range_of(request, &r.unit, &r.begin, &r.to, &response->fail);
    if (rc >= 0)
        rc = weight_of(request, &r.weight, &response->fail);
    if (rc >= 0)
        rc = word_of(request, "order", orders, 3, &order, &response->fail);
    if (rc >= 0)
        rc = lengths_of(request, &r, &response->fail);
    if (rc >= 0)
        rc = tl_http_args(request, args, &response->fail);
    r.order = (Tracelake__V1__CallsOrder)order;
    return rc < 0 ? rc : respond(request, response, tl_timing_calls, &r);
}

int tl_web_interrupts(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__ExceptionsRequest r = TRACELAKE__V1__EXCEPTIONS_REQUEST__INIT;
    take_names(request, &r.trace, &r.stream);
    const int rc = range_of(request, &r.unit, &r.begin, &r.to, &response->fail);
    return rc < 0 ? rc : respond(request, response, tl_timing_exceptions, &r);
}

int tl_web_gaps(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__GapsRequest r = TRACELAKE__V1__GAPS_REQUEST__INIT;
    const struct tl_http_arg args[] = {{"limit", TL_HTTP_U32, &r.limit}, {0}};
    take_names(request, &r.trace, &r.stream);
    int rc = range_of(request, &r.unit, &r.begin, &r.to, &response->fail);
    if (rc >= 0)
        rc = tl_http_args(request, args, &response->fail);
    return rc < 0 ? rc : respond(request, response, tl_timing_gaps, &r);
}
