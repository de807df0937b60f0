/* SPDX-License-Identifier: MIT */
/* Additional lane data over HTTP, described in docs/http.md. */
#include "rpc/rpcint.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include <inttypes.h>
#include <stdio.h>

int tl_web_lane_span(const struct tl_http_request *request, enum tl_range_unit *axis,
                     uint64_t *from, uint64_t *to, struct tl_fail *fail)
{
    const int rc = tl_web_span(request, axis, from, to, fail);
    if (rc < 0 || *axis != TL_UNIT_BYTE)
        return rc;
    return tl_fail_set(fail, TL_USAGE, "axis=byte; it is insn or time");
}

/* ---- what runs at a time --------------------------------------------------------------------- */

struct moment {
    enum tl_range_unit unit; /* of `time` */
    uint64_t time;
    cJSON *row;
};

static int take_row(void *context, const struct tl_insn_row *row)
{
    struct moment *const moment = context;
    moment->row = tl_webjson_insn(row);
    return moment->row ? TL_OK : TL_NOMEM;
}

/* The last instruction executed at a time: its position and its row. */
static int json_at(const struct tl_http_request *request, const char *stream, void *context,
                   cJSON **out, struct tl_fail *fail)
{
    struct moment *const moment = context;
    struct tl_position at = {0};
    moment->row = NULL;
    int rc = tl_lake_locate(tl_web_lake(request), request->part[0], stream, moment->unit,
                            moment->time, &at, fail);
    if (rc >= 0 && at.insn > 0 && at.time > moment->time)
        rc = tl_lake_locate(tl_web_lake(request), request->part[0], stream, TL_UNIT_INSN,
                            at.insn - 1, &at, fail);
    if (rc >= 0)
        rc = tl_lake_insns(tl_web_lake(request), request->part[0], stream, at.insn, 1, take_row,
                           moment, fail);
    cJSON *const o = rc >= 0 ? tl_webjson_position(&at) : NULL;
    const bool ok = o && (!moment->row || tl_webjson_add(o, "row", moment->row));
    if (!ok && !o)
        cJSON_Delete(moment->row);
    *out = tl_webjson_complete(o, ok);
    return rc < 0 ? rc : *out ? TL_OK : TL_NOMEM;
}

int tl_web_at(struct tl_http_request *request, struct tl_http_response *response)
{
    struct moment moment = {.unit = TL_UNIT_TIME};
    const int rc = tl_web_place(request, "time", &moment.unit, &moment.time, &response->fail);
    return rc < 0 ? rc : tl_web_each_stream(request, response, json_at, &moment);
}

/* ---- states ---------------------------------------------------------------------------------- */

static cJSON *state_row(const struct tl_state_run *run)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "from", run->from) && tl_webjson_u64(o, "to", run->to) &&
               (!run->has_mode || tl_webjson_text(o, "mode", run->mode_text)) &&
               (!run->has_context || tl_webjson_address(o, "context", run->context)) &&
               (!run->has_vmid || tl_webjson_address(o, "vmid", run->vmid)) &&
               (!run->name[0] || tl_webjson_text(o, "name", run->name)) &&
               (!run->mixed || cJSON_AddTrueToObject(o, "mixed")));
}

cJSON *tl_webjson_states(const struct tl_states *states)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = cJSON_AddBoolToObject(o, "sampled", states->sampled) != NULL;
    cJSON *const rows = cJSON_AddArrayToObject(o, "runs");
    for (size_t i = 0; ok && i < states->n; i++)
        ok = tl_webjson_add_row(rows, state_row(&states->runs[i]));
    return tl_webjson_complete(o, ok && rows);
}

static int lane_request(const struct tl_http_request *request, struct tl_lane_request *out,
                        struct tl_fail *fail)
{
    const struct tl_http_arg columns[] = {{"columns", TL_HTTP_U32, &out->columns}, {0}};
    *out = (struct tl_lane_request){.trace = request->part[0]};
    int rc = tl_web_lane_span(request, &out->axis, &out->from, &out->to, fail);
    if (rc >= 0)
        rc = tl_http_args(request, columns, fail);
    return rc;
}

static int json_states(const struct tl_http_request *request, const char *stream, void *context,
                       cJSON **out, struct tl_fail *fail)
{
    struct tl_lane_request *const wanted = context;
    struct tl_states states;
    wanted->stream = stream;
    int rc = tl_lake_states(tl_web_lake(request), wanted, &states, fail);
    if (rc >= 0 && !(*out = tl_webjson_states(&states)))
        rc = TL_NOMEM;
    tl_states_fini(&states);
    return rc;
}

int tl_web_states(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_lane_request wanted;
    const int rc = lane_request(request, &wanted, &response->fail);
    return rc < 0 ? rc : tl_web_each_stream(request, response, json_states, &wanted);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Add an array with one member of each column. */
static bool add_column(cJSON *o, const char *name, const struct tl_counters *counters,
                       size_t member)
{
    cJSON *const array = cJSON_AddArrayToObject(o, name);
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < counters->n; i++) {
        const char *const column = (const char *)&counters->p[i];
        ok = tl_webjson_add_row(array, tl_webjson_number(*(const uint64_t *)(column + member)));
    }
    return ok;
}

cJSON *tl_webjson_counters(const struct tl_counters *counters)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o,
        cJSON_AddBoolToObject(o, "sampled", counters->sampled) &&
            tl_webjson_u64(o, "from", counters->from) && tl_webjson_u64(o, "to", counters->to) &&
            add_column(o, "insns", counters, offsetof(struct tl_counter, insns)) &&
            (!counters->has_time ||
             add_column(o, "time", counters, offsetof(struct tl_counter, time))) &&
            (!counters->has_cycles ||
             (add_column(o, "cycles", counters, offsetof(struct tl_counter, cycles)) &&
              add_column(o, "cycle_insns", counters, offsetof(struct tl_counter, cycle_insns)))));
}

static int json_counters(const struct tl_http_request *request, const char *stream, void *context,
                         cJSON **out, struct tl_fail *fail)
{
    struct tl_lane_request *const wanted = context;
    struct tl_counters counters;
    wanted->stream = stream;
    int rc = tl_lake_counters(tl_web_lake(request), wanted, &counters, fail);
    if (rc >= 0 && !(*out = tl_webjson_counters(&counters)))
        rc = TL_NOMEM;
    tl_counters_fini(&counters);
    return rc;
}

int tl_web_counters(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_lane_request wanted;
    const int rc = lane_request(request, &wanted, &response->fail);
    return rc < 0 ? rc : tl_web_each_stream(request, response, json_counters, &wanted);
}
