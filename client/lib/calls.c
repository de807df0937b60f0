/* SPDX-License-Identifier: MIT */
/* Queries with JSON answers. */
#include "ask.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <string.h>

static int ask_json(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                    char **json, struct tracelake_error *error)
{
    Tracelake__V1__JsonReply *reply;
    const int result = tl_ask_once(lake, method, 0, request, &tracelake__v1__json_reply__descriptor,
                                   &reply, error);
    if (result < 0)
        return result;
    *json = strdup(reply->json);
    tracelake__v1__json_reply__free_unpacked(reply, NULL);
    return *json ? TRACELAKE_OK : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

int tracelake_call(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t depth, char **json, struct tracelake_error *error)
{
    Tracelake__V1__CallRequest request = TRACELAKE__V1__CALL_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.at = insn;
    request.innermost = depth == TRACELAKE_INNERMOST;
    request.depth = depth;
    return ask_json(lake, "/tracelake.v1.Ranges/Call", &request.base, json, error);
}

int tracelake_slices(struct tracelake *lake, const struct tracelake_range *range, uint32_t columns,
                     char **json, struct tracelake_error *error)
{
    Tracelake__V1__LaneRequest request = TRACELAKE__V1__LANE_REQUEST__INIT;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.axis = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    request.columns = columns;
    return ask_json(lake, "/tracelake.v1.Ranges/Slices", &request.base, json, error);
}

int tracelake_disassembly(struct tracelake *lake, const char *trace, const char *stream,
                          uint64_t from, uint32_t count, char **json, struct tracelake_error *error)
{
    Tracelake__V1__InsnsRequest request = TRACELAKE__V1__INSNS_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.count = count;
    return ask_json(lake, "/tracelake.v1.Ranges/Insns", &request.base, json, error);
}

int tracelake_source(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                     uint32_t frame, char **json, struct tracelake_error *error)
{
    Tracelake__V1__SourceRequest request = TRACELAKE__V1__SOURCE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.at = insn;
    request.frame = frame;
    return ask_json(lake, "/tracelake.v1.Ranges/Source", &request.base, json, error);
}

int tracelake_log(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                  bool last, char **json, struct tracelake_error *error)
{
    Tracelake__V1__LogRequest request = TRACELAKE__V1__LOG_REQUEST__INIT;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    request.limit = limit;
    request.last = last;
    return ask_json(lake, "/tracelake.v1.Ranges/Log", &request.base, json, error);
}

int tracelake_profile(struct tracelake *lake, const struct tracelake_range *range, bool callers,
                      uint32_t nodes, char **json, struct tracelake_error *error)
{
    return tracelake_profile_by(lake, range, TRACELAKE_BY_INSNS, callers, nodes, json, error);
}

int tracelake_profile_by(struct tracelake *lake, const struct tracelake_range *range,
                         enum tracelake_weight weight, bool callers, uint32_t nodes, char **json,
                         struct tracelake_error *error)
{
    Tracelake__V1__ProfileRequest request = TRACELAKE__V1__PROFILE_REQUEST__INIT;
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    request.weight = (Tracelake__V1__Weight)weight;
    request.callers = callers;
    request.nodes = nodes;
    return ask_json(lake, "/tracelake.v1.Ranges/Profile", &request.base, json, error);
}

int tracelake_compare(struct tracelake *lake, const struct tracelake_range *a,
                      const struct tracelake_range *b, bool calls, uint32_t hunks, char **json,
                      struct tracelake_error *error)
{
    Tracelake__V1__CompareRequest request = TRACELAKE__V1__COMPARE_REQUEST__INIT;
    Tracelake__V1__CompareSide with = TRACELAKE__V1__COMPARE_SIDE__INIT;
    if (a->unit != TRACELAKE_INSN || b->unit != TRACELAKE_INSN)
        return tl_client_fail(error, TRACELAKE_USAGE, "ranges of instructions are compared");
    request.trace = tl_ask_text(a->trace);
    request.stream = tl_ask_text(a->stream);
    request.begin = a->from;
    request.to = tl_ask_end_of(a->to);
    with.trace = tl_ask_text(b->trace);
    with.stream = tl_ask_text(b->stream);
    with.begin = b->from;
    with.to = tl_ask_end_of(b->to);
    request.with = &with;
    request.calls = calls;
    request.hunks = hunks;
    return ask_json(lake, "/tracelake.v1.Ranges/Compare", &request.base, json, error);
}
