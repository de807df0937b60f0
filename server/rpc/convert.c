/* SPDX-License-Identifier: MIT */
/*
 * Converts rows of traces to messages that borrow their strings, as many as fit a reply. Texts are
 * made valid UTF-8 first, since a client rejects the whole message for one bad byte.
 */
#include "rpc/convert.h"
#include "rpc/scoped.h"

#include "base/members.h"
#include "base/utf8.h"
#include "rpc/rpcint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_labels_each(const char *labels,
                   int (*each)(void *context, const char *key, const char *value), void *context)
{
    char *const copy = labels ? strdup(labels) : NULL;
    int rc = labels && !copy ? TL_NOMEM : TL_OK;
    char *save = NULL;
    for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line && rc >= 0;
         line = strtok_r(NULL, "\n", &save)) {
        char *const equals = strchr(line, '=');
        if (!equals)
            continue;
        *equals = 0;
        rc = each(context, line, equals + 1);
    }
    free(copy);
    return rc < 0 ? rc : TL_OK;
}

/* One trace stays below TL_REPLY_BYTES, or nearly: a stream needs at most 240 bytes. */
#define LABELS_BYTES   (256u << 10)
#define LABEL_OVERHEAD 16
#define STREAMS        16384

/*
 * Make the texts of rows valid UTF-8, in place: messages require it, and a text may quote what a
 * rig sent, or be truncated in the middle of a character.
 */
static void clean_texts(struct tl_trace_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct tl_trace_row *const row = &list->rows[i];
        tl_utf8_clean(row->format);
        tl_utf8_clean(row->message);
        if (row->labels)
            tl_utf8_clean(row->labels);
        for (size_t k = 0; k < row->n_streams; k++)
            tl_utf8_clean(row->streams[k].name);
    }
}

struct labels {
    Tracelake__V1__Trace *trace;
    size_t bytes;
};

static int add_label(void *context, const char *key, const char *value)
{
    struct labels *const labels = context;
    Tracelake__V1__Trace *const trace = labels->trace;
    const size_t bytes = strlen(key) + strlen(value) + LABEL_OVERHEAD;
    if (bytes > LABELS_BYTES - labels->bytes) {
        trace->labels_left_out++;
        return TL_OK;
    }
    labels->bytes += bytes;
    Tracelake__V1__Trace__LabelsEntry *const entry = malloc(sizeof *entry);
    if (!entry)
        return TL_NOMEM;
    tracelake__v1__trace__labels_entry__init(entry);
    trace->labels[trace->n_labels++] = entry;
    entry->key = strdup(key);
    entry->value = strdup(value);
    return entry->key && entry->value ? TL_OK : TL_NOMEM;
}

static int convert_labels(const char *labels, Tracelake__V1__Trace *trace)
{
    size_t lines = 1;
    for (const char *p = labels; p && *p; p++)
        lines += *p == '\n';
    trace->labels = calloc(lines, sizeof *trace->labels);
    if (!trace->labels)
        return TL_NOMEM;
    return tl_labels_each(labels, add_label, &(struct labels){.trace = trace});
}

static Tracelake__V1__Stream *convert_stream(const struct tl_stream_row *row)
{
    struct {
        Tracelake__V1__Stream stream;
        Tracelake__V1__StreamClock clock;
    } *const both = malloc(sizeof *both);
    if (!both)
        return NULL;
    Tracelake__V1__Stream *const s = &both->stream;
    Tracelake__V1__StreamClock *const clock = &both->clock;
    tracelake__v1__stream__init(s);
    tracelake__v1__stream_clock__init(clock);
    TL_COPY_MEMBERS(clock, &row->clock, at, unix_ns, rate, rate_error, spread_ns, pairs);
    s->clock = clock->pairs > 0 ? clock : NULL;
    s->name = (char *)(uintptr_t)row->name;
    s->protocol = (char *)(uintptr_t)row->protocol;
    s->core = (char *)(uintptr_t)row->core;
    s->device = (char *)(uintptr_t)row->device;
    TL_COPY_MEMBERS(s, row, insns, sealed_insns, shards, outlined_insns, outlined_time, time_first,
                    time_last, time_step, has_time, time_unit_ns, events, gaps);
    TL_COPY_MEMBERS(s, row, lost_bytes, stored_bytes);
    return s;
}

static int convert_trace(const struct tl_trace_row *row, Tracelake__V1__Trace *t)
{
    t->id = (char *)(uintptr_t)row->id;
    t->rig = (char *)(uintptr_t)row->rig;
    t->state = (Tracelake__V1__TraceState)(row->state + 1); /* 0 is "unspecified" */
    t->format = (char *)(uintptr_t)row->format;
    TL_COPY_MEMBERS(t, row, notes, created_ns, updated_ns, raw_bytes, decoded_bytes, generation,
                    revision, raw_removed, decoded_removed);
    t->message = (char *)(uintptr_t)row->message;
    t->content = (char *)(uintptr_t)row->content;
    t->streams = calloc(row->n_streams + 1, sizeof *t->streams);
    if (!t->streams)
        return TL_NOMEM;
    const size_t n = row->n_streams < STREAMS ? row->n_streams : STREAMS;
    t->streams_left_out = (uint32_t)(row->n_streams - n);
    for (; t->n_streams < n; t->n_streams++)
        if (!(t->streams[t->n_streams] = convert_stream(&row->streams[t->n_streams])))
            return TL_NOMEM;
    return convert_labels(row->labels, t);
}

static void free_trace(Tracelake__V1__Trace *t)
{
    for (size_t k = 0; k < t->n_labels; k++) {
        if (t->labels[k]->key != protobuf_c_empty_string)
            free(t->labels[k]->key);
        if (t->labels[k]->value != protobuf_c_empty_string)
            free(t->labels[k]->value);
        free(t->labels[k]);
    }
    for (size_t k = 0; k < t->n_streams; k++)
        free(t->streams[k]);
    free(t->labels);
    free(t->streams);
    free(t);
}

static int add_trace(const struct tl_trace_row *row, Tracelake__V1__ListTracesReply *out,
                     size_t *bytes)
{
    Tracelake__V1__Trace *const trace = malloc(sizeof *trace);
    if (!trace)
        return TL_NOMEM;
    tracelake__v1__trace__init(trace);
    const int rc = convert_trace(row, trace);
    *bytes += rc < 0 ? 0 : tracelake__v1__trace__get_packed_size(trace) + LABEL_OVERHEAD;
    if (rc < 0 || (out->n_traces > 0 && *bytes > TL_REPLY_BYTES)) {
        free_trace(trace);
        return rc < 0 ? rc : TL_LIMIT;
    }
    out->traces[out->n_traces++] = trace;
    return TL_OK;
}

static int set_token(const struct tl_trace_row *row, Tracelake__V1__ListTracesReply *out)
{
    const struct tl_trace_place place = tl_trace_place_of(row);
    char text[TL_PLACE_TEXT];
    tl_place_write(text, &place);
    char *const token = strdup(text);
    if (!token)
        return TL_NOMEM;
    out->next_page_token = token;
    return TL_OK;
}

int tl_traces_pb(struct tl_trace_list *list, size_t *next, size_t most, bool more,
                 Tracelake__V1__ListTracesReply *out)
{
    const size_t first = *next;
    size_t n = list->n - first;
    size_t bytes = 0;
    clean_texts(list);
    tracelake__v1__list_traces_reply__init(out);
    out->revision = list->revision;
    if (most && most < n)
        n = most;
    out->traces = calloc(n + 1, sizeof *out->traces);
    int rc = out->traces ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        rc = add_trace(&list->rows[first + i], out, &bytes);
    if (rc == TL_LIMIT) /* the next page begins with it */
        rc = TL_OK;
    *next = first + out->n_traces;
    if (rc == TL_OK && *next > 0 && (more || *next < list->n))
        rc = set_token(&list->rows[*next - 1], out);
    if (rc < 0)
        tl_traces_pb_free(out);
    return rc;
}

void tl_traces_pb_free(Tracelake__V1__ListTracesReply *reply)
{
    for (size_t i = 0; i < reply->n_traces; i++)
        free_trace(reply->traces[i]);
    if (reply->next_page_token != protobuf_c_empty_string)
        free(reply->next_page_token);
    free(reply->traces);
    tracelake__v1__list_traces_reply__init(reply);
}
