/* SPDX-License-Identifier: MIT */
/*
 * The streams of a perf.data file and what is reported about it as a whole. They are found by name,
 * since several areas may feed one, and one file may be decoded with a setup that names them.
 */
#include "perf/container.h"

#include <stdio.h>
#include <stdlib.h>

int tl_perf_report_loss(struct tl_perf_decode *d, const struct tl_perf_stream *stream,
                        const char *reason, uint64_t offset, uint64_t bytes, bool fault)
{
    const struct tl_decode_loss loss = {
        .stream = stream ? &stream->out.stream : NULL,
        .reason = reason,
        .offset = offset,
        .bytes = bytes,
        .fault = fault,
    };
    return d->sink.loss ? d->sink.loss(d->sink.context, &loss) : TL_OK;
}

/* Deliver a CPU stream's items to the stream of its current thread too. */
static int deliver_to_thread(struct tl_stream_out *out, const struct tl_item *items, size_t n)
{
    struct tl_perf_stream *const s = (struct tl_perf_stream *)out;
    const int rc = tl_perf_thread_alternate(s, items->offset);
    tl_perf_thread_keep(s, items, n);
    return rc < 0 || !s->thread ? rc : tl_stream_out_items(&s->thread->out, items, n);
}

struct tl_perf_stream *tl_perf_stream_of(struct tl_perf_decode *d, const char *name)
{
    for (size_t i = 0; i < d->n_streams; i++)
        if (!strcmp(d->streams[i]->name, name))
            return d->streams[i];
    if (tl_grow(&d->streams, &d->cap_streams, d->n_streams + 1, sizeof(void *)) < 0)
        return NULL;
    struct tl_perf_stream *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->owner = d;
    s->out.sink = &d->sink;
    s->out.also = d->setup->threads ? deliver_to_thread : NULL;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->source.name, sizeof s->source.name, "%.31s", name);
    s->out.stream = (struct tl_decode_stream){
        .index = (uint32_t)d->n_streams, .name = s->name, .source = &s->source};
    d->streams[d->n_streams++] = s;
    return s;
}

static void overlay(struct tl_source *to, const struct tl_source *from)
{
    if (from->protocol != TL_PROTO_NONE)
        to->protocol = from->protocol;
    if (from->core[0])
        memcpy(to->core, from->core, sizeof to->core);
    if (from->type[0])
        memcpy(to->type, from->type, sizeof to->type);
    if (from->device[0])
        memcpy(to->device, from->device, sizeof to->device);
    if (from->clock_hz)
        to->clock_hz = from->clock_hz;
    for (size_t i = 0; i < from->n_regs; i++)
        if (tl_source_set_reg(to, from->regs[i].name, from->regs[i].value) < 0)
            break; /* no more space */
}

void tl_perf_source_overlay(const struct tl_perf_decode *d, struct tl_source *source)
{
    for (size_t i = 0; i < d->setup->n_sources; i++)
        if (!strcmp(d->setup->sources[i].name, source->name))
            overlay(source, &d->setup->sources[i]);
}

int tl_perf_stream_announce(struct tl_perf_stream *s)
{
    const struct tl_decode_sink *const sink = &s->owner->sink;
    tl_perf_source_overlay(s->owner, &s->source);
    s->out.stream.protocol = (enum tl_protocol)s->source.protocol;
    s->out.stream.isa = tl_source_isa(s->out.stream.protocol, &s->source);
    return sink->stream ? sink->stream(sink->context, &s->out.stream) : TL_OK;
}

int tl_perf_stream_decoder(struct tl_perf_stream *s, struct tl_stream_decoder **out)
{
    struct tl_perf_decode *const d = s->owner;
    struct tl_fail fail = {.text = "cannot be decoded"};
    const int rc = tl_stream_out_decoder(&s->out, &d->base, d->image, out, &fail);
    return rc == TL_OK || rc == TL_NOMEM ? rc : tl_perf_report_loss(d, s, fail.text, 0, 0, true);
}
