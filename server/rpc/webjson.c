/* SPDX-License-Identifier: MIT */
/*
 * Builds the JSON of the HTTP interface, one function for each kind of answer. Numbers from 2^53 on
 * are strings, because readers with doubles would silently change them.
 */
#include "rpc/webjson.h"

#include "base/utf8.h"
#include "rpc/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT (UINT64_C(1) << 53) /* below this a double represents every integer */

cJSON *tl_webjson_number(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return value < EXACT ? cJSON_CreateRaw(text) : cJSON_CreateString(text);
}

bool tl_webjson_add(cJSON *object, const char *name, cJSON *item)
{
    if (item && cJSON_AddItemToObject(object, name, item))
        return true;
    cJSON_Delete(item);
    return false;
}

bool tl_webjson_u64(cJSON *object, const char *name, uint64_t value)
{
    return tl_webjson_add(object, name, tl_webjson_number(value));
}

bool tl_webjson_i64(cJSON *object, const char *name, int64_t value)
{
    if (value >= 0)
        return tl_webjson_u64(object, name, (uint64_t)value);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return tl_webjson_add(
        object, name, value > -(int64_t)EXACT ? cJSON_CreateRaw(text) : cJSON_CreateString(text));
}

bool tl_webjson_address(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    return tl_webjson_add(object, name, cJSON_CreateString(text));
}

bool tl_webjson_text(cJSON *object, const char *name, const char *text)
{
    return tl_webjson_bytes(object, name, text, strlen(text));
}

/* NULL: out of memory. */
static cJSON *text_item(const char *text, size_t n)
{
    char *const clean = strndup(text, n);
    if (clean)
        tl_utf8_clean(clean);
    cJSON *const item = clean ? cJSON_CreateString(clean) : NULL;
    free(clean);
    return item;
}

bool tl_webjson_bytes(cJSON *object, const char *name, const char *text, size_t n)
{
    return tl_webjson_add(object, name, text_item(text, n));
}

bool tl_webjson_add_row(cJSON *array, cJSON *item)
{
    if (item && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

cJSON *tl_webjson_complete(cJSON *o, bool complete)
{
    if (o && complete)
        return o;
    cJSON_Delete(o);
    return NULL;
}

int tl_webjson_append(struct tl_buf *out, cJSON *json)
{
    char *const text = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    const int rc = text ? tl_buf_add(out, text, strlen(text)) : TL_NOMEM;
    free(text);
    return rc;
}

int tl_webjson_row(struct tl_buf *out, size_t row, cJSON *json)
{
    const int rc = row ? tl_buf_add(out, ",\n", 2) : tl_buf_add(out, "\n", 1);
    if (rc >= 0)
        return tl_webjson_append(out, json);
    cJSON_Delete(json);
    return rc;
}

static bool add_clock(cJSON *stream, const struct tl_stream_clock *clock)
{
    if (clock->pairs == 0)
        return true;
    cJSON *const o = cJSON_AddObjectToObject(stream, "clock");
    return o && tl_webjson_u64(o, "at", clock->at) &&
           tl_webjson_u64(o, "unix_ns", clock->unix_ns) &&
           cJSON_AddNumberToObject(o, "rate", clock->rate) &&
           cJSON_AddNumberToObject(o, "rate_error", clock->rate_error) &&
           tl_webjson_u64(o, "spread_ns", clock->spread_ns) &&
           tl_webjson_u64(o, "pairs", clock->pairs);
}

static cJSON *stream(const struct tl_stream_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_text(o, "name", row->name) && tl_webjson_text(o, "protocol", row->protocol) &&
               (!row->core[0] || tl_webjson_text(o, "core", row->core)) &&
               (!row->device[0] || tl_webjson_text(o, "device", row->device)) &&
               tl_webjson_u64(o, "insns", row->insns) &&
               tl_webjson_u64(o, "sealed_insns", row->sealed_insns) &&
               tl_webjson_u64(o, "shards", row->shards) &&
               tl_webjson_u64(o, "time_first", row->time_first) &&
               tl_webjson_u64(o, "time_last", row->time_last) &&
               cJSON_AddBoolToObject(o, "has_time", row->has_time) &&
               cJSON_AddBoolToObject(o, "time_unit_ns", row->time_unit_ns) &&
               add_clock(o, &row->clock) && tl_webjson_u64(o, "events", row->events) &&
               tl_webjson_u64(o, "gaps", row->gaps) &&
               tl_webjson_u64(o, "lost_bytes", row->lost_bytes) &&
               tl_webjson_u64(o, "stored_bytes", row->stored_bytes));
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

static bool fill_trace(cJSON *o, const struct tl_trace_row *row)
{
    if (!(tl_webjson_text(o, "id", row->id) && tl_webjson_text(o, "rig", row->rig) &&
          tl_webjson_text(o, "state", tl_trace_state_name(row->state)) &&
          tl_webjson_text(o, "format", row->format) &&
          tl_webjson_i64(o, "created_ns", row->created_ns) &&
          tl_webjson_i64(o, "updated_ns", row->updated_ns) &&
          tl_webjson_u64(o, "raw_bytes", row->raw_bytes) &&
          tl_webjson_u64(o, "decoded_bytes", row->decoded_bytes) &&
          tl_webjson_u64(o, "generation", row->generation) &&
          tl_webjson_u64(o, "revision", row->revision) &&
          tl_webjson_text(o, "message", row->message) && tl_webjson_u64(o, "notes", row->notes) &&
          cJSON_AddBoolToObject(o, "raw_removed", row->raw_removed) &&
          cJSON_AddBoolToObject(o, "decoded_removed", row->decoded_removed) &&
          tl_webjson_text(o, "content", row->content) && add_tile_base(o)))
        return false;
    cJSON *const labels = cJSON_AddObjectToObject(o, "labels");
    if (!labels || tl_labels_each(row->labels, add_label, labels) < 0)
        return false;
    cJSON *const streams = cJSON_AddArrayToObject(o, "streams");
    for (size_t i = 0; i < row->n_streams; i++)
        if (!tl_webjson_add_row(streams, stream(&row->streams[i])))
            return false;
    return streams != NULL;
}

cJSON *tl_webjson_trace(const struct tl_trace_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(o, fill_trace(o, row));
}

cJSON *tl_webjson_traces(const struct tl_trace_list *list)
{
    cJSON *const array = cJSON_CreateArray();
    bool ok = true;
    for (size_t i = 0; ok && i < list->n; i++)
        ok = tl_webjson_add_row(array, tl_webjson_trace(&list->rows[i]));
    return tl_webjson_complete(array, ok);
}

cJSON *tl_webjson_some_traces(const struct tl_trace_list *list, bool more)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const rows = tl_webjson_traces(list);
    if (!cJSON_AddItemToObject(o, "traces", rows))
        cJSON_Delete(rows);
    return tl_webjson_complete(o, cJSON_HasObjectItem(o, "traces") &&
                                      cJSON_AddBoolToObject(o, "more", more));
}

/* ---- look-ups --------------------------------------------------------------------------- */

cJSON *tl_webjson_image(const struct tl_image_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(o, tl_webjson_text(o, "sha256", row->hash) &&
                                      tl_webjson_text(o, "name", row->name) &&
                                      tl_webjson_text(o, "build_id", row->build_id) &&
                                      tl_webjson_u64(o, "size", row->size));
}

cJSON *tl_webjson_position(const struct tl_position *at)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "insn", at->insn) && tl_webjson_u64(o, "byte", at->byte) &&
               cJSON_AddBoolToObject(o, "has_time", at->has_time) &&
               (!at->has_time || tl_webjson_u64(o, "time", at->time)) &&
               (!at->has_time || !at->time_to || tl_webjson_u64(o, "time_from", at->time_from)) &&
               (!at->has_time || !at->time_to || at->time_to == UINT64_MAX ||
                tl_webjson_u64(o, "time_to", at->time_to)));
}

static cJSON *hit_row(const struct tl_hit *hit)
{
    cJSON *const o = tl_webjson_position(&hit->at);
    return tl_webjson_complete(o, tl_webjson_address(o, "pc", hit->pc) &&
                                      tl_webjson_text(o, "stream", hit->stream) &&
                                      tl_webjson_text(o, "text", hit->text));
}

cJSON *tl_webjson_found(const struct tl_found *found, bool counted)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = tl_webjson_text(o, "what", found->what);
    cJSON *const rows = cJSON_AddArrayToObject(o, "hits");
    if (ok && found->functions > 0)
        ok = tl_webjson_u64(o, "functions", found->functions);
    ok = ok && cJSON_AddBoolToObject(o, "more", found->more);
    if (ok && found->more && found->n > 0)
        ok = tl_webjson_u64(o, "skip", found->hits[found->n - 1].nth);
    if (ok && counted)
        ok = tl_webjson_u64(o, "total", found->total) && tl_webjson_u64(o, "before", found->before);
    for (size_t i = 0; ok && i < found->n; i++)
        ok = tl_webjson_add_row(rows, hit_row(&found->hits[i]));
    return tl_webjson_complete(o, ok);
}

static cJSON *stats_function(const struct tl_stats_function *f)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(o, tl_webjson_text(o, "name", f->name ? f->name : "(no symbol)") &&
                                      tl_webjson_address(o, "pc", f->pc) &&
                                      tl_webjson_u64(o, "insns", f->insns) &&
                                      tl_webjson_u64(o, "calls", f->calls));
}

/* Add {"name":count,…} of a group. */
static bool add_counts(cJSON *o, const char *title, const struct tl_stats *stats,
                       enum tl_stats_group group)
{
    cJSON *const counts = cJSON_AddObjectToObject(o, title);
    bool ok = counts != NULL;
    for (size_t i = 0; ok && i < stats->n_counts; i++)
        if (stats->counts[i].group == group)
            ok = tl_webjson_u64(counts, stats->counts[i].name, stats->counts[i].n);
    return ok;
}

/* Add {"overflow":{"n","total","longest","longest_at"},…} of reasons that cover time. */
static bool add_lost(cJSON *o, const struct tl_stats *stats)
{
    cJSON *const lost = cJSON_AddObjectToObject(o, "lost");
    bool ok = lost != NULL;
    for (size_t i = 0; ok && i < stats->n_lost; i++) {
        const struct tl_stats_lost *const l = &stats->lost[i];
        cJSON *const one = cJSON_AddObjectToObject(lost, l->name);
        ok = one && tl_webjson_u64(one, "n", l->n) && tl_webjson_u64(one, "total", l->total) &&
             tl_webjson_u64(one, "longest", l->longest) &&
             tl_webjson_u64(one, "longest_at", l->longest_at);
    }
    return ok;
}

/* Add [{"name","device"},…]. */
static bool add_silent(cJSON *o, const struct tl_stats *stats)
{
    cJSON *const silent = cJSON_AddArrayToObject(o, "silent");
    bool ok = silent != NULL;
    for (size_t i = 0; ok && i < stats->n_silent; i++) {
        cJSON *const one = cJSON_CreateObject();
        ok = tl_webjson_add_row(
            silent,
            tl_webjson_complete(one, tl_webjson_text(one, "name", stats->silent[i].name) &&
                                         tl_webjson_text(one, "device", stats->silent[i].device)));
    }
    return ok;
}

static bool add_memory(cJSON *o, const struct tl_stats *stats)
{
    cJSON *const memory = cJSON_AddObjectToObject(o, "memory");
    return tl_webjson_u64(memory, "reads", stats->reads) &&
           tl_webjson_u64(memory, "writes", stats->writes);
}

cJSON *tl_webjson_stats(const struct tl_stats *s, size_t most)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = tl_webjson_u64(o, "from", s->from) && tl_webjson_u64(o, "to", s->to) &&
              tl_webjson_u64(o, "insns", s->insns) && tl_webjson_u64(o, "taken", s->taken);
    cJSON *const functions = cJSON_AddArrayToObject(o, "functions");
    for (size_t i = 0; ok && i < s->n_functions && i < most; i++)
        ok = tl_webjson_add_row(functions, stats_function(&s->functions[i]));
    ok = ok && tl_webjson_u64(o, "functions_run", s->n_run) &&
         add_counts(o, "mix", s, TL_STATS_MIX) && add_counts(o, "modes", s, TL_STATS_MODE) &&
         add_counts(o, "items", s, TL_STATS_ITEM) && add_counts(o, "gaps", s, TL_STATS_GAP) &&
         add_lost(o, s);
    if (s->reads + s->writes > 0)
        ok = ok && add_memory(o, s);
    if (s->n_silent > 0)
        ok = ok && add_silent(o, s);
    if (s->n_counts > 0 && s->counts[s->n_counts - 1].group == TL_STATS_RECORD)
        ok = ok && add_counts(o, "records", s, TL_STATS_RECORD);
    return tl_webjson_complete(o, ok && functions);
}

/* Add "main", "exception 5 vector", "interrupt vector" (its number is unknown), or its address. */
static bool add_slice_name(cJSON *o, const struct tl_stack_slice *s)
{
    char text[512], number[16] = "";
    if (!s->is_exception)
        return *s->name ? tl_webjson_text(o, "name", s->name)
                        : tl_webjson_address(o, "name", s->pc);
    if (s->exception >= 0)
        snprintf(number, sizeof number, " %d", s->exception);
    snprintf(text, sizeof text, "%s%s%s%s", s->interrupt ? "interrupt" : "exception", number,
             *s->name ? " " : "", s->name);
    return tl_webjson_text(o, "name", text);
}

static cJSON *slice_row(const struct tl_stack_slice *s)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "depth", s->depth) && tl_webjson_u64(o, "from", s->from) &&
               tl_webjson_u64(o, "to", s->to) && (s->exact || cJSON_AddFalseToObject(o, "exact")) &&
               add_slice_name(o, s));
}

cJSON *tl_webjson_slices(const struct tl_slices *slices)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = cJSON_AddBoolToObject(o, "truncated", slices->truncated) &&
              tl_webjson_u64(o, "resolution", slices->resolution);
    cJSON *const rows = cJSON_AddArrayToObject(o, "slices");
    for (size_t i = 0; ok && i < slices->n; i++)
        ok = tl_webjson_add_row(rows, slice_row(&slices->p[i]));
    return tl_webjson_complete(o, ok && rows);
}

static cJSON *log_row(const struct tl_soft_entry *e)
{
    char channel[TL_SOFT_CHANNEL];
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "at", e->at) && tl_webjson_u64(o, "last", e->last) &&
               (!e->has_time || tl_webjson_u64(o, "time", e->time)) &&
               tl_webjson_text(o, "source", e->source) &&
               (!e->has_channel || tl_webjson_text(o, "channel", tl_soft_channel(e, channel))) &&
               (!e->form || tl_webjson_text(o, "form", tl_port_form_name(e->form))) &&
               tl_webjson_u64(o, "records", e->records) &&
               (e->is_text || tl_webjson_u64(o, "size", e->size)) &&
               tl_webjson_text(o, e->is_text ? "text" : "value", e->text));
}

cJSON *tl_webjson_log(const struct tl_soft_log *log)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = cJSON_AddBoolToObject(o, "more", log->more) != NULL;
    cJSON *const rows = cJSON_AddArrayToObject(o, "entries");
    for (size_t i = 0; ok && i < log->n; i++)
        ok = tl_webjson_add_row(rows, log_row(&log->entries[i]));
    return tl_webjson_complete(o, ok && rows);
}

static bool add_events(cJSON *o, const char *lines)
{
    cJSON *const events = cJSON_AddArrayToObject(o, "events");
    bool ok = events != NULL;
    for (size_t n; ok && *lines; lines += n + 1) {
        n = strcspn(lines, "\n");
        ok = tl_webjson_add_row(events, text_item(lines, n));
    }
    return ok;
}

static bool add_inlined(cJSON *o, const struct tl_insn_row *row)
{
    cJSON *const array = cJSON_AddArrayToObject(o, "inlined");
    bool ok = array != NULL;
    for (size_t i = 0; ok && i < row->n_inlined; i++) {
        const struct tl_insn_inlined *const inlined = &row->inlined[i];
        cJSON *const one = cJSON_CreateObject();
        ok = tl_webjson_add_row(
            array, tl_webjson_complete(
                       one, tl_webjson_text(one, "function", inlined->function) &&
                                (!*inlined->file || (tl_webjson_text(one, "file", inlined->file) &&
                                                     tl_webjson_u64(one, "line", inlined->line)))));
    }
    return ok;
}

static bool add_source(cJSON *o, const struct tl_insn_row *row)
{
    return (!*row->file ||
            (tl_webjson_text(o, "file", row->file) && tl_webjson_u64(o, "line", row->line) &&
             (!row->column || tl_webjson_u64(o, "column", row->column)))) &&
           (row->n_inlined == 0 || add_inlined(o, row));
}

cJSON *tl_webjson_source(const struct tl_source_file *source)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_text(o, "file", source->file) && tl_webjson_u64(o, "line", source->line) &&
               (!source->has_text ||
                tl_webjson_bytes(o, "text", (const char *)source->text.p, source->text.n)) &&
               (!*source->why || tl_webjson_text(o, "why", source->why)));
}

cJSON *tl_webjson_insn(const struct tl_insn_row *row)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(
        o, tl_webjson_u64(o, "insn", row->insn) && tl_webjson_address(o, "pc", row->pc) &&
               (!*row->function || tl_webjson_text(o, "function", row->function)) &&
               (!*row->mode || tl_webjson_text(o, "mode", row->mode)) &&
               (!*row->encoding || tl_webjson_text(o, "encoding", row->encoding)) &&
               tl_webjson_text(o, "text", row->text) &&
               (!row->has_time || tl_webjson_u64(o, "time", row->time)) && add_source(o, row) &&
               (!*row->events || add_events(o, row->events)));
}

cJSON *tl_webjson_function(size_t id, const struct tl_function *function)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(o, tl_webjson_u64(o, "id", id) &&
                                      tl_webjson_text(o, "name", function->name) &&
                                      tl_webjson_address(o, "pc", function->pc));
}

/* ---- responses -------------------------------------------------------------------------- */

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
    struct tl_buf body = {0};
    int rc = tl_webjson_append(&body, json);
    if (rc >= 0)
        rc = tl_buf_add(&body, "\n", 1);
    if (rc >= 0)
        return tl_webjson_respond_text(response, &body);
    tl_buf_fini(&body);
    return rc;
}
