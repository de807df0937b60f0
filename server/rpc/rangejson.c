/* SPDX-License-Identifier: MIT */
/*
 * Answers RPC calls with the JSON that HTTP gives for the same query. Both are written by the same
 * functions, so that one interface cannot disagree with the other.
 */
#include "rpc/rangejson.h"

#include "rpc/scoped.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

/* `text` receives the JSON and its NUL. */
static int write_json(struct tl_buf *text, cJSON *json)
{
    const int rc = tl_webjson_append(text, json);
    return rc < 0 ? rc : tl_buf_add(text, "\n", 2);
}

static int send_json(struct tl_call *call, cJSON *json)
{
    Tracelake__V1__JsonReply reply = TRACELAKE__V1__JSON_REPLY__INIT;
    struct tl_buf text = {0};
    int rc = write_json(&text, json);
    if (rc == TL_OK) {
        reply.json = (char *)text.p;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&text);
    return rc;
}

int tl_run_stats(struct tl_call *call, const void *message)
{
    const Tracelake__V1__StatsRequest *const r = message;
    Tracelake__V1__StatsReply reply = TRACELAKE__V1__STATS_REPLY__INIT;
    struct tl_stats stats;
    struct tl_buf json = {0};
    int rc = tl_lake_stats(tl_call_rpc(call)->lake, r->trace, r->stream, r->begin,
                           r->to ? r->to : UINT64_MAX, &stats, tl_call_fail(call));
    if (rc == TL_OK)
        rc = write_json(&json, tl_webjson_stats(&stats, TL_WEBJSON_FUNCTIONS));
    if (rc == TL_OK) {
        reply.json = (char *)json.p;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&json);
    tl_stats_fini(&stats);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

struct rows {
    struct tl_buf json;
    size_t n;
};

static int add_insn(void *context, const struct tl_insn_row *row)
{
    struct rows *const rows = context;
    if (rows->json.n > TL_REPLY_BYTES)
        return TL_EOF;
    return tl_webjson_row(&rows->json, rows->n++, tl_webjson_insn(row));
}

int tl_run_insns(struct tl_call *call, const void *message)
{
    const Tracelake__V1__InsnsRequest *const r = message;
    Tracelake__V1__JsonReply reply = TRACELAKE__V1__JSON_REPLY__INIT;
    struct rows rows = {0};
    int rc = tl_buf_add(&rows.json, "[", 1);
    if (rc == TL_OK)
        rc = tl_lake_insns(tl_call_rpc(call)->lake, r->trace, r->stream, r->begin,
                           r->count ? r->count : 100, add_insn, &rows, tl_call_fail(call));
    if (rc == TL_OK || rc == TL_EOF)
        rc = tl_buf_add(&rows.json, "]\n", 3);
    if (rc == TL_OK) {
        reply.json = (char *)rows.json.p;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&rows.json);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_slices(struct tl_call *call, const void *message)
{
    const Tracelake__V1__LaneRequest *const r = message;
    const struct tl_slices_request request = {.trace = r->trace,
                                              .stream = r->stream,
                                              .axis = (enum tl_range_unit)r->axis,
                                              .from = r->begin,
                                              .to = r->to ? r->to : UINT64_MAX,
                                              .columns = r->columns};
    struct tl_slices slices = {0};
    if ((unsigned)r->axis >= TL_UNITS || r->axis == TRACELAKE__V1__UNIT__UNIT_BYTE)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "the axis is instructions or time");
    int rc = tl_lake_slices(tl_call_rpc(call)->lake, &request, &slices, tl_call_fail(call));
    if (rc >= 0)
        rc = send_json(call, tl_webjson_slices(&slices));
    tl_slices_fini(&slices);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_source(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SourceRequest *const r = message;
    struct tl_source_file source;
    int rc = tl_lake_source(tl_call_rpc(call)->lake, r->trace, r->stream, r->at, r->frame, &source,
                            tl_call_fail(call));
    if (rc == TL_OK && source.text.n > TL_REPLY_BYTES)
        rc = tl_fail_set(tl_call_fail(call), TL_LIMIT, "the source is too large for an answer");
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_source(&source));
    tl_source_file_fini(&source);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_log(struct tl_call *call, const void *message)
{
    const Tracelake__V1__LogRequest *const r = message;
    const struct tl_soft_request request = {.trace = r->trace,
                                            .stream = r->stream,
                                            .unit = (enum tl_range_unit)r->unit,
                                            .from = r->begin,
                                            .to = r->to ? r->to : UINT64_MAX,
                                            .limit = r->limit,
                                            .last = r->last,
                                            .one_channel = r->one_port,
                                            .channel = r->port};
    struct tl_soft_log log = {0};
    int rc =
        (unsigned)r->unit >= TL_UNITS
            ? tl_fail_set(tl_call_fail(call), TL_USAGE, "unit %u is not known", (unsigned)r->unit)
            : tl_lake_log(tl_call_rpc(call)->lake, &request, &log, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_log(&log));
    tl_soft_log_fini(&log);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

static struct tl_lane_request lane_request(const Tracelake__V1__LaneRequest *r)
{
    return (struct tl_lane_request){
        .trace = r->trace,
        .stream = r->stream,
        .axis = (unsigned)r->axis < TL_UNITS ? (enum tl_range_unit)r->axis : TL_UNIT_BYTE,
        .from = r->begin,
        .to = r->to ? r->to : UINT64_MAX,
        .columns = r->columns};
}

int tl_run_states(struct tl_call *call, const void *message)
{
    const Tracelake__V1__LaneRequest *const r = message;
    const struct tl_lane_request request = lane_request(r);
    struct tl_states states = {0};
    int rc = tl_lake_states(tl_call_rpc(call)->lake, &request, &states, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_states(&states));
    tl_states_fini(&states);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_counters(struct tl_call *call, const void *message)
{
    const Tracelake__V1__LaneRequest *const r = message;
    const struct tl_lane_request request = lane_request(r);
    struct tl_counters counters = {0};
    int rc = tl_lake_counters(tl_call_rpc(call)->lake, &request, &counters, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_counters(&counters));
    tl_counters_fini(&counters);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_call(struct tl_call *call, const void *message)
{
    const Tracelake__V1__CallRequest *const r = message;
    struct tl_call_info info;
    int rc = tl_lake_call(tl_call_rpc(call)->lake, r->trace, r->stream, r->at,
                          r->innermost ? TL_CALL_INNERMOST : r->depth, &info, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_call(&info));
    tl_call_info_fini(&info);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_profile(struct tl_call *call, const void *message)
{
    const Tracelake__V1__ProfileRequest *const r = message;
    const struct tl_profile_request request = {.trace = r->trace,
                                               .stream = r->stream,
                                               .unit = (enum tl_range_unit)r->unit,
                                               .from = r->begin,
                                               .to = r->to ? r->to : UINT64_MAX,
                                               .weight = (enum tl_weight)r->weight,
                                               .callers = r->callers,
                                               .nodes = r->nodes};
    struct tl_profile profile = {0};
    int rc = TL_OK;
    if ((unsigned)r->unit >= TL_UNITS || (unsigned)r->weight >= TL_WEIGHTS)
        rc = tl_fail_set(tl_call_fail(call), TL_USAGE, "unit %u or weight %u is not known",
                         (unsigned)r->unit, (unsigned)r->weight);
    if (rc == TL_OK)
        rc = tl_lake_profile(tl_call_rpc(call)->lake, &request, &profile, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_profile(&profile));
    tl_profile_fini(&profile);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}

int tl_run_compare(struct tl_call *call, const void *message)
{
    const Tracelake__V1__CompareRequest *const r = message;
    const Tracelake__V1__CompareSide *const with = r->with;
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    struct tl_compare compare = {0};
    if (!with)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "compare with what?");
    /* The dispatcher has checked the first trace. */
    int rc = tl_scoped_covers(lake, tl_call_scope(call), with->trace, tl_call_fail(call));
    if (rc < 0)
        return rc;
    const struct tl_compare_request request = {
        .a = {r->trace, r->stream, r->begin, r->to ? r->to : UINT64_MAX},
        .b = {with->trace, with->stream, with->begin, with->to ? with->to : UINT64_MAX},
        .calls = r->calls,
        .hunks = r->hunks};
    rc = tl_lake_compare(lake, &request, &compare, tl_call_fail(call));
    if (rc == TL_OK)
        rc = send_json(call, tl_webjson_compare(&request, &compare));
    tl_compare_fini(&compare);
    return tl_explain(tl_call_fail(call), rc, r->trace, r->stream);
}
