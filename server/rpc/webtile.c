/* SPDX-License-Identifier: MIT */
/* Tiles: protobuf as the lake encodes them, JSON for people and scripts. */
#include "rpc/rpcint.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LANES 16

struct tile_request {
    const char *trace;
    enum tl_range_unit axis;
    uint64_t level, index, lane_from, lane_to, generation;
};

static int parse_lanes(const struct tl_http_request *request, struct tile_request *t,
                       struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, "lanes");
    char copy[48];
    t->lane_from = 0;
    t->lane_to = MAX_LANES - 1;
    if (!text)
        return TL_OK;
    snprintf(copy, sizeof copy, "%s", text);
    char *const dash = strchr(copy, '-');
    if (dash)
        *dash = 0;
    int rc = tl_http_parse_number(copy, "lanes", &t->lane_from, fail);
    t->lane_to = t->lane_from;
    if (rc == TL_OK && dash)
        rc = tl_http_parse_number(dash + 1, "lanes", &t->lane_to, fail);
    if (rc == TL_OK && (t->lane_to < t->lane_from || t->lane_to - t->lane_from >= MAX_LANES ||
                        t->lane_to > UINT32_MAX))
        rc = tl_fail_set(fail, TL_USAGE, "lanes=%.20s; write FROM-TO, at most %d lanes", text,
                         MAX_LANES);
    return rc;
}

static int parse(const struct tl_http_request *request, struct tile_request *t,
                 struct tl_fail *fail)
{
    t->trace = request->part[0];
    if (tl_unit_parse(request->part[1], &t->axis) < 0 || t->axis == TL_UNIT_BYTE)
        return tl_fail_set(fail, TL_USAGE, "axis %.20s; it is insn or time", request->part[1]);
    int rc = tl_http_parse_number(request->part[2], "level", &t->level, fail);
    if (rc == TL_OK)
        rc = tl_http_parse_number(request->part[3], "index", &t->index, fail);
    if (rc == TL_OK && t->level > 31)
        rc = tl_fail_set(fail, TL_USAGE, "level %llu; there are 0 to 31",
                         (unsigned long long)t->level);
    if (rc == TL_OK)
        rc = parse_lanes(request, t, fail);
    return rc == TL_OK ? tl_http_number(request, "gen", 0, &t->generation, fail) : rc;
}

/* ---- JSON ------------------------------------------------------------------------------- */

static bool add_bytes(cJSON *o, const char *name, const ProtobufCBinaryData *data)
{
    cJSON *const array = cJSON_AddArrayToObject(o, name);
    for (size_t i = 0; array && i < data->len; i++) {
        cJSON *const item = tl_webjson_number(data->data[i]);
        if (!item || !cJSON_AddItemToArray(array, item))
            return false;
    }
    return array != NULL;
}

static bool add_u64s(cJSON *o, const char *name, const uint64_t *values, size_t n)
{
    cJSON *const array = cJSON_AddArrayToObject(o, name);
    for (size_t i = 0; array && i < n; i++) {
        cJSON *const item = tl_webjson_number(values[i]);
        if (!item || !cJSON_AddItemToArray(array, item))
            return false;
    }
    return array != NULL;
}

static bool add_u32s(cJSON *o, const char *name, const uint32_t *values, size_t n)
{
    cJSON *const array = cJSON_AddArrayToObject(o, name);
    for (size_t i = 0; array && i < n; i++) {
        cJSON *const item = tl_webjson_number(values[i]);
        if (!item || !cJSON_AddItemToArray(array, item))
            return false;
    }
    return array != NULL;
}

static bool fill_lane(cJSON *o, const Tracelake__V1__Lane *lane)
{
    return tl_webjson_u64(o, "lane", lane->lane) &&
           add_u64s(o, "insns", lane->insns, lane->n_insns) &&
           add_bytes(o, "coverage", &lane->coverage) &&
           add_u32s(o, "function", lane->function, lane->n_function) &&
           add_bytes(o, "share", &lane->share) &&
           add_u32s(o, "function2", lane->function2, lane->n_function2) &&
           add_bytes(o, "share2", &lane->share2) && add_bytes(o, "distinct", &lane->distinct) &&
           add_u64s(o, "page", lane->page, lane->n_page) &&
           add_bytes(o, "privilege", &lane->privilege) &&
           add_bytes(o, "branches", &lane->branches) &&
           add_u32s(o, "event_mask", lane->event_mask, lane->n_event_mask) &&
           add_u32s(o, "event_count", lane->event_count, lane->n_event_count) &&
           add_bytes(o, "flags", &lane->flags) && add_bytes(o, "depth_min", &lane->depth_min) &&
           add_bytes(o, "depth_max", &lane->depth_max);
}

static bool fill_tile(cJSON *o, const Tracelake__V1__Tile *tile)
{
    static const char *const axes[] = {"insn", "time", "byte"};
    const unsigned axis = (unsigned)tile->axis < 3 ? (unsigned)tile->axis : 0;
    cJSON *const lanes = cJSON_AddArrayToObject(o, "lanes");
    bool ok = lanes && tl_webjson_text(o, "axis", axes[axis]) &&
              tl_webjson_u64(o, "level", tile->level) && tl_webjson_u64(o, "index", tile->index) &&
              tl_webjson_u64(o, "bucket", tile->bucket) &&
              tl_webjson_u64(o, "first", tile->first) &&
              cJSON_AddBoolToObject(o, "sealed", tile->sealed) &&
              tl_webjson_u64(o, "generation", tile->generation);
    for (size_t i = 0; ok && i < tile->n_lanes; i++) {
        cJSON *const lane = cJSON_CreateObject();
        ok = lane && fill_lane(lane, tile->lanes[i]) && cJSON_AddItemToArray(lanes, lane);
        if (!ok)
            cJSON_Delete(lane);
    }
    return ok;
}

static int to_json(struct tl_buf *tile)
{
    Tracelake__V1__Tile *const message = tracelake__v1__tile__unpack(NULL, tile->n, tile->p);
    cJSON *const o = message ? cJSON_CreateObject() : NULL;
    char *const text = o && fill_tile(o, message) ? cJSON_PrintUnformatted(o) : NULL;
    cJSON_Delete(o);
    if (message)
        tracelake__v1__tile__free_unpacked(message, NULL);
    if (!text)
        return TL_NOMEM;
    tl_buf_fini(tile);
    tile->p = (uint8_t *)text;
    tile->n = strlen(text);
    tile->cap = tile->n + 1;
    return TL_OK;
}

/* ---- the handler ------------------------------------------------------------------------ */

/* A sealed tile never changes within its generation, so its address is its identity. */
static int cache_headers(const struct tile_request *t, const struct tl_tile_meta *meta, bool json,
                         bool dated, struct tl_http_response *response)
{
    const bool immutable = meta->sealed && dated;
    int rc = tl_fields_addf(
        &response->headers, "etag", "\"%llx-%llx%s\"", (unsigned long long)t->generation,
        (unsigned long long)(meta->sealed ? 0 : meta->revision + 1), json ? "-j" : "");
    if (rc == TL_OK)
        rc = tl_fields_add(&response->headers, "cache-control",
                           immutable ? "public, max-age=31536000, immutable" : "no-cache");
    return rc == TL_OK ? tl_fields_add(&response->headers, "vary", "accept") : rc;
}

int tl_web_tile(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_lake *const lake = ((struct tl_rpc *)request->context)->lake;
    struct tl_tile_meta meta = {0};
    struct tile_request t = {0};
    struct tl_fail *const fail = &response->fail;
    int rc = parse(request, &t, fail);
    const bool dated = t.generation != 0; /* else the address means "the present one" */
    if (rc == TL_OK && !dated)
        rc = tl_generation_of(lake, t.trace, &t.generation);
    if (rc == TL_OK)
        rc = tl_lake_tile(lake, t.trace, t.axis, (unsigned)t.level, t.index, (unsigned)t.lane_from,
                          (unsigned)t.lane_to, t.generation, &response->body, &meta, fail);
    if (rc < 0 && !fail->text[0])
        return tl_fail_set(fail, (enum tl_err)rc, "trace \"%.63s\", generation %llu: %s", t.trace,
                           (unsigned long long)t.generation, tl_err_name(rc));
    if (rc < 0)
        return rc;
    const bool json = tl_http_accepts(request, "application/json");
    if (json && (rc = to_json(&response->body)) < 0)
        return rc;
    response->compress = true;
    rc = tl_http_type(response, json ? "application/json" : "application/x-protobuf");
    return rc == TL_OK ? cache_headers(&t, &meta, json, dated, response) : rc;
}
