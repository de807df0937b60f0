/* SPDX-License-Identifier: MIT */
#include "rpc/webjson.h"

#include "rpc/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT (UINT64_C(1) << 53) /* below, a double holds every integer */

cJSON *tl_webjson_number(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return value < EXACT ? cJSON_CreateRaw(text) : cJSON_CreateString(text);
}

static bool add(cJSON *object, const char *name, cJSON *item)
{
    if (item && cJSON_AddItemToObject(object, name, item))
        return true;
    cJSON_Delete(item);
    return false;
}

bool tl_webjson_u64(cJSON *object, const char *name, uint64_t value)
{
    return add(object, name, tl_webjson_number(value));
}

bool tl_webjson_i64(cJSON *object, const char *name, int64_t value)
{
    if (value >= 0)
        return tl_webjson_u64(object, name, (uint64_t)value);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return add(object, name,
               value > -(int64_t)EXACT ? cJSON_CreateRaw(text) : cJSON_CreateString(text));
}

bool tl_webjson_address(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    return add(object, name, cJSON_CreateString(text));
}

bool tl_webjson_text(cJSON *object, const char *name, const char *text)
{
    char *const clean = strdup(text);
    if (!clean)
        return false;
    tl_utf8_clean(clean);
    const bool ok = add(object, name, cJSON_CreateString(clean));
    free(clean);
    return ok;
}

static cJSON *stream(const struct tl_stream_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    const bool ok =
        o && tl_webjson_text(o, "name", row->name) &&
        tl_webjson_text(o, "protocol", row->protocol) && tl_webjson_u64(o, "insns", row->insns) &&
        tl_webjson_u64(o, "sealed_insns", row->sealed_insns) &&
        tl_webjson_u64(o, "shards", row->shards) &&
        tl_webjson_u64(o, "time_first", row->time_first) &&
        tl_webjson_u64(o, "time_last", row->time_last) &&
        cJSON_AddBoolToObject(o, "has_time", row->has_time) &&
        cJSON_AddBoolToObject(o, "time_unit_ns", row->time_unit_ns) &&
        tl_webjson_u64(o, "events", row->events) && tl_webjson_u64(o, "gaps", row->gaps) &&
        tl_webjson_u64(o, "lost_bytes", row->lost_bytes) &&
        tl_webjson_u64(o, "stored_bytes", row->stored_bytes);
    if (ok)
        return o;
    cJSON_Delete(o);
    return NULL;
}

static int add_label(void *context, const char *key, const char *value)
{
    return tl_webjson_text(context, key, value) ? TL_OK : TL_NOMEM;
}

/* Bucket widths are powers of four from one position on, on both axes. */
static bool add_tile_base(cJSON *trace)
{
    cJSON *const o = cJSON_AddObjectToObject(trace, "tile_base");
    return o && tl_webjson_u64(o, "insn", 0) && tl_webjson_u64(o, "time", 0);
}

static const char *state_name(uint8_t state)
{
    static const char *const names[] = {"live", "decoding", "sealed", "failed"};
    return state < sizeof names / sizeof *names ? names[state] : "failed";
}

static bool fill_trace(cJSON *o, const struct tl_trace_row *row)
{
    if (!(tl_webjson_text(o, "id", row->id) && tl_webjson_text(o, "rig", row->rig) &&
          tl_webjson_text(o, "state", state_name(row->state)) &&
          tl_webjson_text(o, "format", row->format) &&
          tl_webjson_i64(o, "created_ns", row->created_ns) &&
          tl_webjson_i64(o, "updated_ns", row->updated_ns) &&
          tl_webjson_u64(o, "raw_bytes", row->raw_bytes) &&
          tl_webjson_u64(o, "decoded_bytes", row->decoded_bytes) &&
          tl_webjson_u64(o, "generation", row->generation) &&
          tl_webjson_u64(o, "revision", row->revision) &&
          tl_webjson_text(o, "message", row->message) &&
          cJSON_AddBoolToObject(o, "raw_removed", row->raw_removed) &&
          cJSON_AddBoolToObject(o, "decoded_removed", row->decoded_removed) && add_tile_base(o)))
        return false;
    cJSON *const labels = cJSON_AddObjectToObject(o, "labels");
    if (!labels || tl_labels_each(row->labels, add_label, labels) < 0)
        return false;
    cJSON *const streams = cJSON_AddArrayToObject(o, "streams");
    for (size_t i = 0; streams && i < row->n_streams; i++) {
        cJSON *const item = stream(&row->streams[i]);
        if (!item || !cJSON_AddItemToArray(streams, item))
            return false;
    }
    return streams != NULL;
}

cJSON *tl_webjson_trace(const struct tl_trace_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    if (o && fill_trace(o, row))
        return o;
    cJSON_Delete(o);
    return NULL;
}

cJSON *tl_webjson_traces(const struct tl_trace_list *list)
{
    cJSON *const array = cJSON_CreateArray();
    for (size_t i = 0; array && i < list->n; i++) {
        cJSON *const item = tl_webjson_trace(&list->rows[i]);
        if (!item || !cJSON_AddItemToArray(array, item)) {
            cJSON_Delete(array);
            return NULL;
        }
    }
    return array;
}

cJSON *tl_webjson_position(const struct tl_position *at)
{
    cJSON *const o = cJSON_CreateObject();
    if (o && tl_webjson_u64(o, "insn", at->insn) && tl_webjson_u64(o, "byte", at->byte) &&
        cJSON_AddBoolToObject(o, "has_time", at->has_time) &&
        (!at->has_time || tl_webjson_u64(o, "time", at->time)))
        return o;
    cJSON_Delete(o);
    return NULL;
}

int tl_webjson_respond_text(struct tl_http_response *response, struct tl_buf *text)
{
    tl_buf_fini(&response->body);
    response->body = *text;
    *text = (struct tl_buf){0};
    response->compress = true;
    const int rc = tl_http_type(response, "application/json");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

int tl_webjson_respond(struct tl_http_response *response, cJSON *json)
{
    char *const text = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return TL_NOMEM;
    const size_t n = strlen(text);
    struct tl_buf body = {(uint8_t *)text, n, n + 1}; /* cJSON's memory is malloc's */
    const int rc = tl_buf_add(&body, "\n", 1);
    if (rc < 0) {
        tl_buf_fini(&body);
        return rc;
    }
    return tl_webjson_respond_text(response, &body);
}
