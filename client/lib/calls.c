/* SPDX-License-Identifier: MIT */
/* Queries with JSON answers, which are made here: the server sends messages. */
#include "ask.h"
#include "tracelake/v1/lookups.pb-c.h"
#include "json/messagejson.h"

/* Ask, and make JSON of the answer; of its rows if it consists of them. */
static int ask_json(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                    const ProtobufCMessageDescriptor *kind, char **json,
                    struct tracelake_error *error)
{
    ProtobufCMessage *reply;
    struct tl_buf text = {0};
    const int result = tl_ask_once(lake, method, 0, request, kind, &reply, error);
    if (result < 0)
        return result;
    struct tl_jsonout j = {.out = &text};
    if (kind == &tracelake__v1__insns_reply__descriptor)
        tl_messagejson_rows(&j, reply);
    else
        tl_messagejson(&j, reply);
    protobuf_c_message_free_unpacked(reply, NULL);
    if (j.rc >= 0 && tl_buf_add(&text, "\n", 2) >= 0) {
        *json = (char *)text.p;
        return TRACELAKE_OK;
    }
    tl_buf_fini(&text);
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
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

int tracelake_call(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t depth, char **json, struct tracelake_error *error)
{
    Tracelake__V1__CallRequest request = TRACELAKE__V1__CALL_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.at = insn;
    request.innermost = depth == TRACELAKE_INNERMOST;
    request.depth = depth;
    return ask_json(lake, "/tracelake.v1.Lookups/Call", &request.base,
                    &tracelake__v1__call_reply__descriptor, json, error);
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
    return ask_json(lake, "/tracelake.v1.Lookups/Slices", &request.base,
                    &tracelake__v1__slices_reply__descriptor, json, error);
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
    return ask_json(lake, "/tracelake.v1.Lookups/Log", &request.base,
                    &tracelake__v1__log_reply__descriptor, json, error);
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
    return ask_json(lake, "/tracelake.v1.Lookups/Profile", &request.base,
                    &tracelake__v1__profile_reply__descriptor, json, error);
}

int tracelake_compare(struct tracelake *lake, const struct tracelake_range *a,
                      const struct tracelake_range *b, bool calls, uint32_t hunks, char **json,
                      struct tracelake_error *error)
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
    return ask_json(lake, "/tracelake.v1.Lookups/Compare", &request.base,
                    &tracelake__v1__compare_reply__descriptor, json, error);
}
