/* SPDX-License-Identifier: MIT */
/*
 * Copies protocol messages to public structs, whose strings are owned by the caller. Messages are
 * freed with the reply, and their layout changes with the protocol, unlike that of the library.
 */
#include "rows.h"
#include "base/members.h"

#include <stdlib.h>
#include <string.h>

static void stream_fini(struct tracelake_stream *stream)
{
    free(stream->name);
    free(stream->protocol);
    free(stream->core);
    free(stream->device);
}

void tl_client_trace_fini(struct tracelake_trace *trace)
{
    free(trace->id);
    free(trace->rig);
    free(trace->format);
    free(trace->message);
    free(trace->content);
    for (size_t i = 0; i < trace->n_labels; i++) {
        free(trace->labels[i].key);
        free(trace->labels[i].value);
    }
    free(trace->labels);
    for (size_t i = 0; i < trace->n_streams; i++)
        stream_fini(&trace->streams[i]);
    free(trace->streams);
    *trace = (struct tracelake_trace){0};
}

static int copy_text(char **out, const char *from)
{
    *out = strdup(from ? from : "");
    return *out ? TRACELAKE_OK : TRACELAKE_NOMEM;
}

static int copy_stream(struct tracelake_stream *out, const Tracelake__V1__Stream *from)
{
    TL_COPY_MEMBERS(out, from, insns, sealed_insns, shards, outlined_insns, outlined_time,
                    time_step, time_first, time_last, events, gaps, lost_bytes, stored_bytes);
    TL_COPY_MEMBERS(out, from, has_time, time_unit_ns);
    if (from->clock)
        TL_COPY_MEMBERS(&out->clock, from->clock, pairs, at, unix_ns, rate, rate_error, spread_ns);
    int r = copy_text(&out->name, from->name);
    if (r >= 0)
        r = copy_text(&out->protocol, from->protocol);
    if (r >= 0)
        r = copy_text(&out->core, from->core);
    return r < 0 ? r : copy_text(&out->device, from->device);
}

static int copy_labels(struct tracelake_trace *out, const Tracelake__V1__Trace *from)
{
    if (!from->n_labels)
        return TRACELAKE_OK;
    out->labels = calloc(from->n_labels, sizeof *out->labels);
    if (!out->labels)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < from->n_labels; i++) {
        out->n_labels++;
        if (copy_text(&out->labels[i].key, from->labels[i]->key) < 0 ||
            copy_text(&out->labels[i].value, from->labels[i]->value) < 0)
            return TRACELAKE_NOMEM;
    }
    return TRACELAKE_OK;
}

static int copy_streams(struct tracelake_trace *out, const Tracelake__V1__Trace *from)
{
    if (!from->n_streams)
        return TRACELAKE_OK;
    out->streams = calloc(from->n_streams, sizeof *out->streams);
    if (!out->streams)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < from->n_streams; i++) {
        out->n_streams++;
        if (copy_stream(&out->streams[i], from->streams[i]) < 0)
            return TRACELAKE_NOMEM;
    }
    return TRACELAKE_OK;
}

static enum tracelake_state state_of(Tracelake__V1__TraceState state)
{
    switch (state) {
    case TRACELAKE__V1__TRACE_STATE__TRACE_STATE_LIVE:
        return TRACELAKE_LIVE;
    case TRACELAKE__V1__TRACE_STATE__TRACE_STATE_DECODING:
        return TRACELAKE_DECODING;
    case TRACELAKE__V1__TRACE_STATE__TRACE_STATE_SEALED:
        return TRACELAKE_SEALED;
    case TRACELAKE__V1__TRACE_STATE__TRACE_STATE_FAILED:
        return TRACELAKE_FAILED;
    default:
        return TRACELAKE_STATE_UNKNOWN;
    }
}

int tl_client_trace(struct tracelake_trace *out, const Tracelake__V1__Trace *from)
{
    *out = (struct tracelake_trace){.state = state_of(from->state)};
    TL_COPY_MEMBERS(out, from, created_ns, updated_ns, raw_bytes, decoded_bytes, generation,
                    revision, raw_removed, decoded_removed);
    if (copy_text(&out->id, from->id) < 0 || copy_text(&out->rig, from->rig) < 0 ||
        copy_text(&out->format, from->format) < 0 || copy_text(&out->message, from->message) < 0 ||
        copy_text(&out->content, from->content) < 0 || copy_labels(out, from) < 0 ||
        copy_streams(out, from) < 0) {
        tl_client_trace_fini(out);
        return TRACELAKE_NOMEM;
    }
    return TRACELAKE_OK;
}
