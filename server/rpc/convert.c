/* SPDX-License-Identifier: MIT */
#include "rpc/convert.h"

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

/* Length of the UTF-8 sequence at `p`, 0 if it is none. Source: RFC 3629, section 4. */
static size_t utf8_length(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    const size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0; /* also at the end of the text */
    const bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    const bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

void tl_utf8_clean(char *text)
{
    while (*text) {
        const size_t n = utf8_length((const unsigned char *)text);
        if (!n)
            *text = '?';
        text += n ? n : 1;
    }
}

void tl_traces_clean(struct tl_trace_list *list)
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

static int add_label(void *context, const char *key, const char *value)
{
    Tracelake__V1__Trace *const trace = context;
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
    return tl_labels_each(labels, add_label, trace);
}

static Tracelake__V1__Stream *convert_stream(const struct tl_stream_row *row)
{
    Tracelake__V1__Stream *const s = malloc(sizeof *s);
    if (!s)
        return NULL;
    tracelake__v1__stream__init(s);
    s->name = (char *)(uintptr_t)row->name;
    s->protocol = (char *)(uintptr_t)row->protocol;
    s->insns = row->insns;
    s->sealed_insns = row->sealed_insns;
    s->shards = row->shards;
    s->time_first = row->time_first;
    s->time_last = row->time_last;
    s->has_time = row->has_time;
    s->time_unit_ns = row->time_unit_ns;
    s->events = row->events;
    s->gaps = row->gaps;
    s->lost_bytes = row->lost_bytes;
    s->stored_bytes = row->stored_bytes;
    return s;
}

static int convert_trace(const struct tl_trace_row *row, Tracelake__V1__Trace *t)
{
    t->id = (char *)(uintptr_t)row->id;
    t->rig = (char *)(uintptr_t)row->rig;
    t->state = (Tracelake__V1__TraceState)(row->state + 1); /* 0 is "unspecified" */
    t->format = (char *)(uintptr_t)row->format;
    t->created_ns = row->created_ns;
    t->updated_ns = row->updated_ns;
    t->raw_bytes = row->raw_bytes;
    t->decoded_bytes = row->decoded_bytes;
    t->generation = row->generation;
    t->revision = row->revision;
    t->message = (char *)(uintptr_t)row->message;
    t->raw_removed = row->raw_removed;
    t->decoded_removed = row->decoded_removed;
    t->streams = calloc(row->n_streams + 1, sizeof *t->streams);
    if (!t->streams)
        return TL_NOMEM;
    for (; t->n_streams < row->n_streams; t->n_streams++)
        if (!(t->streams[t->n_streams] = convert_stream(&row->streams[t->n_streams])))
            return TL_NOMEM;
    return convert_labels(row->labels, t);
}

int tl_traces_pb(struct tl_trace_list *list, Tracelake__V1__ListTracesReply *out)
{
    tl_traces_clean(list);
    tracelake__v1__list_traces_reply__init(out);
    out->revision = list->revision;
    out->traces = calloc(list->n + 1, sizeof *out->traces);
    int rc = out->traces ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < list->n && rc == TL_OK; i++) {
        Tracelake__V1__Trace *const trace = malloc(sizeof *trace);
        if (!trace) {
            rc = TL_NOMEM;
            break;
        }
        tracelake__v1__trace__init(trace);
        out->traces[out->n_traces++] = trace;
        rc = convert_trace(&list->rows[i], trace);
    }
    if (rc < 0)
        tl_traces_pb_free(out);
    return rc;
}

void tl_traces_pb_free(Tracelake__V1__ListTracesReply *reply)
{
    for (size_t i = 0; i < reply->n_traces; i++) {
        Tracelake__V1__Trace *const t = reply->traces[i];
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
    free(reply->traces);
    tracelake__v1__list_traces_reply__init(reply);
}
