/* SPDX-License-Identifier: MIT */
/*
 * Queries with JSON answers. The server sends messages; JSON is made of them here by their
 * descriptors, so that both forms have the same members.
 */
#include "lookups.h"
#include "json/messagejson.h"

/* Make JSON of an answer, of its rows if it consists of them, and free it. */
static int json_of(void *reply, char **json, struct tracelake_error *error)
{
    ProtobufCMessage *const message = reply;
    struct tl_buf text = {0};
    struct tl_jsonout j = {.out = &text};
    if (message->descriptor == &tracelake__v1__insns_reply__descriptor)
        tl_messagejson_rows(&j, message);
    else
        tl_messagejson(&j, message);
    protobuf_c_message_free_unpacked(message, NULL);
    if (j.rc >= 0 && tl_buf_add(&text, "\n", 2) >= 0) {
        *json = (char *)text.p;
        return TRACELAKE_OK;
    }
    tl_buf_fini(&text);
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

static int ask_json(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                    const ProtobufCMessageDescriptor *kind, char **json,
                    struct tracelake_error *error)
{
    void *reply;
    const int result = tl_ask_once(lake, method, 0, request, kind, &reply, error);
    return result < 0 ? result : json_of(reply, json, error);
}

int tracelake_stats(struct tracelake *lake, const char *trace, const char *stream, uint64_t from,
                    uint64_t to, char **json, struct tracelake_error *error)
{
    Tracelake__V1__StatsRequest request = TRACELAKE__V1__STATS_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.to = tl_ask_end_of(to);
    return ask_json(lake, "/tracelake.v1.Lookups/Stats", &request.base,
                    &tracelake__v1__stats_reply__descriptor, json, error);
}

int tl_lookup_call(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t depth, Tracelake__V1__CallReply **reply, struct tracelake_error *error)
{
    Tracelake__V1__CallRequest request = TRACELAKE__V1__CALL_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.at = insn;
    request.innermost = depth == TRACELAKE_INNERMOST;
    request.depth = depth;
    return tl_ask_once(lake, "/tracelake.v1.Lookups/Call", 0, &request.base,
                       &tracelake__v1__call_reply__descriptor, reply, error);
}

int tracelake_call(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t depth, char **json, struct tracelake_error *error)
{
    Tracelake__V1__CallReply *reply;
    const int result = tl_lookup_call(lake, trace, stream, insn, depth, &reply, error);
    return result < 0 ? result : json_of(reply, json, error);
}

/* A call that is asked for data of a lane. */
static int ask_lane(struct tracelake *lake, const char *call, const struct tracelake_range *range,
                    uint32_t columns, const ProtobufCMessageDescriptor *kind, void *reply,
                    struct tracelake_error *error)
{
    Tracelake__V1__LaneRequest request = TRACELAKE__V1__LANE_REQUEST__INIT;
    TL_ASK_RANGE(&request, axis, range);
    request.columns = columns;
    return tl_ask_once(lake, call, 0, &request.base, kind, reply, error);
}

int tl_lookup_slices(struct tracelake *lake, const struct tracelake_range *range, uint32_t columns,
                     Tracelake__V1__SlicesReply **reply, struct tracelake_error *error)
{
    return ask_lane(lake, "/tracelake.v1.Lookups/Slices", range, columns,
                    &tracelake__v1__slices_reply__descriptor, reply, error);
}

int tl_lookup_counters(struct tracelake *lake, const struct tracelake_range *range,
                       uint32_t columns, Tracelake__V1__CountersReply **reply,
                       struct tracelake_error *error)
{
    return ask_lane(lake, "/tracelake.v1.Lookups/Counters", range, columns,
                    &tracelake__v1__counters_reply__descriptor, reply, error);
}

int tracelake_slices(struct tracelake *lake, const struct tracelake_range *range, uint32_t columns,
                     char **json, struct tracelake_error *error)
{
    Tracelake__V1__SlicesReply *reply;
    const int result = tl_lookup_slices(lake, range, columns, &reply, error);
    return result < 0 ? result : json_of(reply, json, error);
}

int tracelake_disassembly(struct tracelake *lake, const char *trace, const char *stream,
                          uint64_t from, uint32_t count, char **json, struct tracelake_error *error)
{
    Tracelake__V1__InsnsRequest request = TRACELAKE__V1__INSNS_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.count = count;
    return ask_json(lake, "/tracelake.v1.Lookups/Insns", &request.base,
                    &tracelake__v1__insns_reply__descriptor, json, error);
}

int tracelake_source(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                     uint32_t frame, char **json, struct tracelake_error *error)
{
    Tracelake__V1__SourceRequest request = TRACELAKE__V1__SOURCE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.at = insn;
    request.frame = frame;
    return ask_json(lake, "/tracelake.v1.Lookups/Source", &request.base,
                    &tracelake__v1__source_reply__descriptor, json, error);
}

int tl_lookup_log(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                  bool last, Tracelake__V1__LogReply **reply, struct tracelake_error *error)
{
    Tracelake__V1__LogRequest request = TRACELAKE__V1__LOG_REQUEST__INIT;
    TL_ASK_RANGE(&request, unit, range);
    request.limit = limit;
    request.last = last;
    return tl_ask_once(lake, "/tracelake.v1.Lookups/Log", 0, &request.base,
                       &tracelake__v1__log_reply__descriptor, reply, error);
}

int tracelake_log(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                  bool last, char **json, struct tracelake_error *error)
{
    Tracelake__V1__LogReply *reply;
    const int result = tl_lookup_log(lake, range, limit, last, &reply, error);
    return result < 0 ? result : json_of(reply, json, error);
}

int tracelake_profile(struct tracelake *lake, const struct tracelake_range *range, bool callers,
                      uint32_t nodes, char **json, struct tracelake_error *error)
{
    return tracelake_profile_by(lake, range, TRACELAKE_BY_INSNS, callers, nodes, json, error);
}

int tl_lookup_profile(struct tracelake *lake, const struct tracelake_range *range,
                      enum tracelake_weight weight, bool callers, uint32_t nodes,
                      Tracelake__V1__ProfileReply **reply, struct tracelake_error *error)
{
    Tracelake__V1__ProfileRequest request = TRACELAKE__V1__PROFILE_REQUEST__INIT;
    TL_ASK_RANGE(&request, unit, range);
    request.weight = (Tracelake__V1__Weight)weight;
    request.callers = callers;
    request.nodes = nodes;
    return tl_ask_once(lake, "/tracelake.v1.Lookups/Profile", 0, &request.base,
                       &tracelake__v1__profile_reply__descriptor, reply, error);
}

int tracelake_profile_by(struct tracelake *lake, const struct tracelake_range *range,
                         enum tracelake_weight weight, bool callers, uint32_t nodes, char **json,
                         struct tracelake_error *error)
{
    Tracelake__V1__ProfileReply *reply;
    const int result = tl_lookup_profile(lake, range, weight, callers, nodes, &reply, error);
    return result < 0 ? result : json_of(reply, json, error);
}

int tracelake_compare(struct tracelake *lake, const struct tracelake_range *a,
                      const struct tracelake_range *b, bool calls, uint32_t hunks, char **json,
                      struct tracelake_error *error)
{
    return tracelake_compare_by(lake, a, b, calls, TRACELAKE_BY_INSNS, hunks, json, error);
}

int tracelake_compare_by(struct tracelake *lake, const struct tracelake_range *a,
                         const struct tracelake_range *b, bool calls, enum tracelake_weight weight,
                         uint32_t hunks, char **json, struct tracelake_error *error)
{
    Tracelake__V1__CompareRequest request = TRACELAKE__V1__COMPARE_REQUEST__INIT;
    Tracelake__V1__CompareSide other = TRACELAKE__V1__COMPARE_SIDE__INIT;
    if (a->unit != TRACELAKE_INSN || b->unit != TRACELAKE_INSN)
        return tl_client_fail(error, TRACELAKE_USAGE, "ranges of instructions are compared");
    request.trace = tl_ask_text(a->trace);
    request.stream = tl_ask_text(a->stream);
    request.begin = a->from;
    request.to = tl_ask_end_of(a->to);
    other.trace = tl_ask_text(b->trace);
    other.stream = tl_ask_text(b->stream);
    other.begin = b->from;
    other.to = tl_ask_end_of(b->to);
    request.other = &other;
    request.calls = calls;
    request.hunks = hunks;
    request.weight = (Tracelake__V1__Weight)weight;
    return ask_json(lake, "/tracelake.v1.Lookups/Compare", &request.base,
                    &tracelake__v1__compare_reply__descriptor, json, error);
}
