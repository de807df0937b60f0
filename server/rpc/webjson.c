/* SPDX-License-Identifier: MIT */
/*
 * Rows of traces as JSON. One function for each kind of object, written straight into the answer: a
 * list of traces may have megabytes, and a tree of it would have many times that.
 */
#include "rpc/webjson.h"

#include "rpc/convert.h"

/* ---- members -------------------------------------------------------------------------------- */

void tl_webjson_u64(struct tl_jsonout *j, const char *name, uint64_t value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_u64(j, value);
}

static void put_i64(struct tl_jsonout *j, const char *name, int64_t value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_i64(j, value);
}

static void write_double(struct tl_jsonout *j, const char *name, double value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_double(j, value);
}

void tl_webjson_bool(struct tl_jsonout *j, const char *name, bool value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_bool(j, value);
}

void tl_webjson_address(struct tl_jsonout *j, const char *name, uint64_t value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_address(j, value);
}

void tl_webjson_text(struct tl_jsonout *j, const char *name, const char *text)
{
    tl_jsonout_name(j, name);
    tl_jsonout_text(j, text);
}

void tl_webjson_open(struct tl_jsonout *j, const char *name, char bracket)
{
    tl_jsonout_name(j, name);
    tl_jsonout_open(j, bracket);
}

/* ---- traces --------------------------------------------------------------------------------- */

static void write_clock(struct tl_jsonout *j, const struct tl_stream_clock *clock)
{
    if (clock->pairs == 0)
        return;
    tl_webjson_open(j, "clock", '{');
    tl_webjson_u64(j, "at", clock->at);
    tl_webjson_u64(j, "unix_ns", clock->unix_ns);
    write_double(j, "rate", clock->rate);
    write_double(j, "rate_error", clock->rate_error);
    tl_webjson_u64(j, "spread_ns", clock->spread_ns);
    tl_webjson_u64(j, "pairs", clock->pairs);
    tl_jsonout_close(j, '}');
}

static void write_stream(struct tl_jsonout *j, const struct tl_stream_row *row)
{
    tl_jsonout_open(j, '{');
    tl_webjson_text(j, "name", row->name);
    tl_webjson_text(j, "protocol", row->protocol);
    if (row->core[0])
        tl_webjson_text(j, "core", row->core);
    if (row->device[0])
        tl_webjson_text(j, "device", row->device);
    tl_webjson_u64(j, "insns", row->insns);
    tl_webjson_u64(j, "sealed_insns", row->sealed_insns);
    tl_webjson_u64(j, "shards", row->shards);
    if (row->outlined_insns > 0) {
        tl_webjson_u64(j, "outlined_insns", row->outlined_insns);
        tl_webjson_u64(j, "outlined_time", row->outlined_time);
    }
    tl_webjson_u64(j, "time_first", row->time_first);
    tl_webjson_u64(j, "time_last", row->time_last);
    tl_webjson_bool(j, "has_time", row->has_time);
    tl_webjson_bool(j, "time_unit_ns", row->time_unit_ns);
    if (row->time_step > 0)
        tl_webjson_u64(j, "time_step", row->time_step);
    write_clock(j, &row->clock);
    tl_webjson_u64(j, "events", row->events);
    tl_webjson_u64(j, "gaps", row->gaps);
    tl_webjson_u64(j, "lost_bytes", row->lost_bytes);
    tl_webjson_u64(j, "stored_bytes", row->stored_bytes);
    tl_jsonout_close(j, '}');
}

static int write_label(void *context, const char *key, const char *value)
{
    struct tl_jsonout *const j = context;
    tl_webjson_text(j, key, value);
    return j->rc;
}

/* Bucket widths are powers of four from one position on, on both axes. */
static void write_tile_base(struct tl_jsonout *j)
{
    tl_webjson_open(j, "tile_base", '{');
    tl_webjson_u64(j, "insn", 0);
    tl_webjson_u64(j, "time", 0);
    tl_jsonout_close(j, '}');
}

void tl_webjson_trace(struct tl_jsonout *j, const struct tl_trace_row *row)
{
    tl_jsonout_open(j, '{');
    tl_webjson_text(j, "id", row->id);
    tl_webjson_text(j, "rig", row->rig);
    tl_webjson_text(j, "state", tl_trace_state_name(row->state));
    tl_webjson_text(j, "format", row->format);
    put_i64(j, "created_ns", row->created_ns);
    put_i64(j, "updated_ns", row->updated_ns);
    tl_webjson_u64(j, "raw_bytes", row->raw_bytes);
    tl_webjson_u64(j, "decoded_bytes", row->decoded_bytes);
    tl_webjson_u64(j, "generation", row->generation);
    tl_webjson_u64(j, "revision", row->revision);
    tl_webjson_text(j, "message", row->message);
    tl_webjson_u64(j, "notes", row->notes);
    tl_webjson_bool(j, "raw_removed", row->raw_removed);
    tl_webjson_bool(j, "decoded_removed", row->decoded_removed);
    tl_webjson_text(j, "content", row->content);
    write_tile_base(j);
    tl_webjson_open(j, "labels", '{');
    if (tl_labels_each(row->labels, write_label, j) < 0)
        j->rc = TL_NOMEM;
    tl_jsonout_close(j, '}');
    tl_webjson_open(j, "streams", '[');
    for (size_t i = 0; i < row->n_streams; i++)
        write_stream(j, &row->streams[i]);
    tl_jsonout_close(j, ']');
    tl_jsonout_close(j, '}');
}

void tl_webjson_traces(struct tl_jsonout *j, const struct tl_trace_list *list)
{
    tl_jsonout_open(j, '[');
    for (size_t i = 0; i < list->n && j->rc >= 0; i++)
        tl_webjson_trace(j, &list->rows[i]);
    tl_jsonout_close(j, ']');
}

/* ---- responses ------------------------------------------------------------------------------ */

int tl_webjson_respond(struct tl_http_response *response, struct tl_jsonout *j)
{
    int rc = j->rc < 0 ? j->rc : tl_buf_add(j->out, "\n", 1);
    if (rc < 0) {
        tl_buf_fini(j->out);
        return rc;
    }
    tl_buf_fini(&response->body);
    response->body = *j->out;
    *j->out = (struct tl_buf){0};
    response->compress = true;
    rc = tl_http_type(response, "application/json");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}
