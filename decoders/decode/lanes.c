/* SPDX-License-Identifier: MIT */
#include "decode/lanes.h"

#include <stdio.h>
#include <stdlib.h>

struct tl_lane *tl_lanes_search(struct tl_lanes *l, uint16_t id)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->v[i]->id == id)
            return l->recent[id % 128] = l->v[i];
    return NULL;
}

/* A decoder for a stream; none if its configuration cannot be decoded. */
static int make_decoder(struct tl_lanes *l, struct tl_lane *lane, uint64_t offset)
{
    struct tl_fail fail = {.text = "cannot be decoded"};
    lane->refused_at = offset;
    if (!lane->out.stream.source)
        return TL_OK;
    const int rc =
        l->create ? l->create(l->decode, lane, &fail)
                  : tl_stream_out_decoder(&lane->out, l->decode, l->image, &lane->decoder, &fail);
    if (rc == TL_NOMEM || rc == TL_OK)
        return rc;
    snprintf(lane->refused, sizeof lane->refused, "%.150s", fail.text);
    return TL_OK;
}

int tl_lanes_add(struct tl_lanes *l, struct tl_lane *lane, const struct tl_source *source,
                 uint64_t offset)
{
    if (tl_grow(&l->v, &l->cap, l->n + 1, sizeof(struct tl_lane *)) < 0) {
        free(lane);
        return TL_NOMEM;
    }
    l->v[l->n++] = lane;
    l->recent[lane->id % 128] = lane;
    if (source && source->name[0])
        snprintf(lane->name, sizeof lane->name, "%s", source->name);
    lane->out.sink = &l->sink;
    lane->out.stream = (struct tl_decode_stream){
        .index = source ? l->n_streams++ : UINT32_MAX,
        .name = lane->name,
        .protocol = source ? (enum tl_protocol)source->protocol : TL_PROTO_NONE,
        .source = source,
    };
    lane->out.stream.isa = tl_source_isa(lane->out.stream.protocol, source);
    const int rc = make_decoder(l, lane, offset);
    return rc < 0 || !source || !l->sink.stream
               ? rc
               : l->sink.stream(l->sink.context, &lane->out.stream);
}

int tl_lanes_push(struct tl_lanes *l, struct tl_lane *lane, const struct tl_run *run)
{
    if (!lane->decoder) {
        tl_lane_skip(lane, run->n);
        return TL_OK;
    }
    const int rc = l->sink.bytes ? l->sink.bytes(l->sink.context, &lane->out.stream, run) : TL_OK;
    return rc < 0 ? rc : lane->decoder->ops->push(lane->decoder, run);
}

int tl_lanes_flush(struct tl_lanes *l)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++) {
        struct tl_stream_decoder *const d = l->v[i]->decoder;
        if (d && d->ops->flush)
            rc = d->ops->flush(d);
    }
    return rc;
}

int tl_lanes_restart(struct tl_lanes *l, uint64_t offset)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++) {
        struct tl_lane *const lane = l->v[i];
        if (!lane->decoder)
            continue;
        rc = lane->decoder->ops->finish(lane->decoder);
        lane->decoder->ops->destroy(lane->decoder);
        lane->decoder = NULL;
        if (rc == TL_OK)
            rc = make_decoder(l, lane, offset);
    }
    return rc;
}

int tl_lanes_gap(struct tl_lanes *l, uint64_t offset)
{
    const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = TL_GAP_TRANSPORT, .offset = offset};
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++)
        if (l->v[i]->decoder)
            rc = tl_stream_out_items(&l->v[i]->out, &gap, 1);
    return rc;
}

/* Sources that are not in the configuration: a fault only if nothing else was decoded. */
static int report_unnamed(const struct tl_lanes *l)
{
    const struct tl_lane *first = NULL;
    uint64_t bytes = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tl_lane *const lane = l->v[i];
        if (lane->out.stream.source)
            continue;
        n++;
        bytes += lane->refused_bytes;
        first = first && first->refused_at <= lane->refused_at ? first : lane;
    }
    if (!first || !l->sink.loss)
        return TL_OK;
    char text[160];
    snprintf(text, sizeof text,
             "%u trace source%s not in the configuration; --config needs a section [source %s]%s",
             n, n > 1 ? "s are" : " is", first->name, n > 1 ? " and others" : "");
    const struct tl_decode_loss loss = {NULL, text, first->refused_at, bytes, l->n_streams == 0};
    return l->sink.loss(l->sink.context, &loss);
}

int tl_lanes_finish(struct tl_lanes *l)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++) {
        struct tl_lane *const lane = l->v[i];
        if (lane->decoder)
            rc = lane->decoder->ops->finish(lane->decoder);
        else if (lane->out.stream.source && lane->refused_bytes)
            rc = tl_stream_out_loss(&lane->out, lane->refused, lane->refused_at,
                                    lane->refused_bytes);
    }
    return rc < 0 ? rc : report_unnamed(l);
}

void tl_lanes_fini(struct tl_lanes *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->v[i]->decoder)
            l->v[i]->decoder->ops->destroy(l->v[i]->decoder);
        free(l->v[i]);
    }
    free(l->v);
}

void tl_lanes_state(struct tl_lanes *l, struct tl_state *s)
{
    uint32_t n = l->n;
    tl_state_check(s, n == 0);
    tl_state_u32(s, &n);
    for (uint32_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_lane *lane = tl_state_loads(s) ? NULL : l->v[i];
        uint16_t id = lane ? lane->id : 0;
        tl_state_u16(s, &id);
        tl_state_check(s, lane || !tl_lanes_find(l, id));
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, l->add(l->decode, id, 0, &lane));
        tl_state_check(s, lane != NULL);
        if (s->rc < 0)
            return;
        tl_state_u64(s, &lane->refused_at);
        tl_state_u64(s, &lane->refused_bytes);
        if (lane->decoder && lane->decoder->ops->state)
            lane->decoder->ops->state(lane->decoder, s);
        else if (lane->decoder)
            tl_state_fail(s, TL_UNSUPPORTED);
    }
}
