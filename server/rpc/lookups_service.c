/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Lookups, and what Ranges answers in the same way. The methods that Lookups has taken
 * over from Ranges replied with JSON in a message; who still calls them there is told so, instead
 * of being sent what it cannot read.
 */
#include "rpc/lookups_service.h"

#include "rpc/lookups.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <string.h>

/* The text field of this name, "" if the request has none. */
static const char *text_of(const ProtobufCMessage *request, const char *name)
{
    const ProtobufCFieldDescriptor *const field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, name);
    return field ? *(char *const *)((const char *)request + field->offset) : "";
}

int tl_call_answer(struct tl_call *call, const void *request, tl_answer *answer)
{
    enum { MOST = (4 << 20) - 4096 }; /* bytes of a message */
    const struct tl_asker asker = {tl_call_rpc(call)->lake, tl_call_scope(call)};
    struct tl_fail *const fail = tl_call_fail(call);
    struct tl_reply reply = {0};
    int rc = answer(&asker, request, &reply, fail);
    if (rc >= 0 && protobuf_c_message_get_packed_size(reply.message) > MOST)
        rc = tl_fail_set(fail, TL_LIMIT, "the answer is too large for a message");
    if (rc >= 0)
        rc = tl_call_send(call, reply.message);
    tl_reply_free(&reply);
    const char *const trace = text_of(request, "trace");
    return *trace ? tl_explain(fail, rc, trace, text_of(request, "stream")) : rc;
}

#define DOOR(name)                                                                                 \
    static int run_##name(struct tl_call *call, const void *request)                               \
    {                                                                                              \
        return tl_call_answer(call, request, tl_answer_##name);                                    \
    }
DOOR(stats)
DOOR(insns)
DOOR(slices)
DOOR(source)
DOOR(log)
DOOR(states)
DOOR(counters)
DOOR(hits)
DOOR(call)
DOOR(profile)
DOOR(compare)
DOOR(find)
DOOR(locate)
DOOR(functions)
DOOR(calls)
DOOR(exceptions)
DOOR(gaps)
DOOR(extremes)

/* ---- representative regions ------------------------------------------------------------------ */

#define VECTORS_FIELD 3 /* SimPointsReply.vectors */
#define PIECE         (64u << 10)

struct vectors {
    struct tl_call *call;
    struct tl_buf lines;
};

static int send_lines(struct vectors *v)
{
    const Tracelake__V1__SimPointsReply reply = TRACELAKE__V1__SIM_POINTS_REPLY__INIT;
    return v->lines.n ? tl_call_send_data(v->call, &reply.base, VECTORS_FIELD, &v->lines) : TL_OK;
}

static int add_line(void *context, struct tl_bytes line)
{
    struct vectors *const v = context;
    const int rc = tl_buf_add(&v->lines, line.p, line.n);
    return rc < 0 || v->lines.n < PIECE ? rc : send_lines(v);
}

static int send_regions(struct tl_call *call, const struct tl_simpoints_request *request)
{
    Tracelake__V1__SimPointsReply m = TRACELAKE__V1__SIM_POINTS_REPLY__INIT;
    struct vectors *const vectors = request->context;
    struct tl_reply reply = {0};
    int rc = tl_answer_simpoints(tl_call_rpc(call)->lake, request, &reply, tl_call_fail(call));
    if (rc >= 0)
        rc = send_lines(vectors);
    m.found = (Tracelake__V1__SimPoints *)reply.message;
    if (rc >= 0)
        rc = tl_call_send(call, &m.base);
    tl_reply_free(&reply);
    return rc;
}

static int run_simpoints(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SimPointsRequest *const r = message;
    struct vectors vectors = {.call = call};
    const struct tl_simpoints_request request = {.trace = r->trace,
                                                 .stream = r->stream,
                                                 .from = r->begin,
                                                 .to = tl_end_of(r->end),
                                                 .interval = r->interval,
                                                 .most = r->most ? r->most : TL_SIMPOINTS,
                                                 .vector = r->vectors ? add_line : NULL,
                                                 .context = &vectors};
    const int rc = send_regions(call, &request);
    tl_buf_fini(&vectors.lines);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int run_moved(struct tl_call *call, const void *request)
{
    (void)request;
    return tl_fail_set(tl_call_fail(call), TL_UNSUPPORTED,
                       "this method is in tracelake.v1.Lookups now, with a typed reply; the client "
                       "is older than the server");
}

#define ANSWER(method, name, message)                                                              \
    {                                                                                              \
        "/tracelake.v1." method, &tracelake__v1__##message##__descriptor, TL_UNARY, TL_ROLE_READ,  \
            run_##name, TL_LONG                                                                    \
    }

const struct tl_method tl_lookups_methods[] = {
    ANSWER("Lookups/Stats", stats, stats_request),
    ANSWER("Lookups/Insns", insns, insns_request),
    ANSWER("Lookups/Slices", slices, lane_request),
    ANSWER("Lookups/Source", source, source_request),
    ANSWER("Lookups/Log", log, log_request),
    ANSWER("Lookups/States", states, lane_request),
    ANSWER("Lookups/Counters", counters, lane_request),
    ANSWER("Lookups/Hits", hits, hits_request),
    ANSWER("Lookups/Call", call, call_request),
    ANSWER("Lookups/Profile", profile, profile_request),
    ANSWER("Lookups/Compare", compare, compare_request),
    {"/tracelake.v1.Lookups/SimPoints", &tracelake__v1__sim_points_request__descriptor,
     TL_SERVER_STREAM, TL_ROLE_READ, run_simpoints, TL_LONG},
    {NULL, NULL, 0, 0, NULL},
};

/* The request is not looked at: any message will do. */
#define MOVED(method)                                                                              \
    {                                                                                              \
        "/tracelake.v1.Ranges/" method, &tracelake__v1__lane_request__descriptor, TL_UNARY,        \
            TL_ROLE_READ, run_moved, TL_SHORT, TL_REACH_NONE                                       \
    }

const struct tl_method tl_answering_methods[] = {
    ANSWER("Ranges/Find", find, find_request),
    ANSWER("Ranges/Locate", locate, locate_request),
    ANSWER("Ranges/Functions", functions, functions_request),
    ANSWER("Ranges/Calls", calls, calls_request),
    ANSWER("Ranges/Exceptions", exceptions, exceptions_request),
    ANSWER("Ranges/Gaps", gaps, gaps_request),
    ANSWER("Ranges/Extremes", extremes, extremes_request),
    MOVED("Stats"),
    MOVED("Insns"),
    MOVED("Slices"),
    MOVED("Source"),
    MOVED("Log"),
    MOVED("States"),
    MOVED("Counters"),
    MOVED("Call"),
    MOVED("Profile"),
    MOVED("Compare"),
    MOVED("SimPoints"),
    {NULL, NULL, 0, 0, NULL},
};
