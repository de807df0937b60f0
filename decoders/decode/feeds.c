/* SPDX-License-Identifier: MIT */
/*
 * A source's configuration that cannot be decoded refuses that source alone, since one unknown
 * trace unit must not cost the trace of all others. State is saved with the sources in order of
 * appearance, so that streams keep their numbers when it is loaded.
 */
#include "decode/feeds.h"

#include <stdio.h>
#include <stdlib.h>

struct tl_feed *tl_feeds_search(struct tl_feeds *l, uint16_t id)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->v[i]->id == id)
            return l->recent[id % 128] = l->v[i];
    return NULL;
}

/* A decoder for a stream; none if its configuration cannot be decoded. */
static int make_decoder(struct tl_feeds *l, struct tl_feed *feed, uint64_t offset)
{
    struct tl_fail fail = {.text = "cannot be decoded"};
    feed->refused_at = offset;
    feed->out.image = l->image;
    if (!feed->out.stream.source)
        return TL_OK;
    const int rc =
        l->create ? l->create(l->decode, feed, &fail)
                  : tl_stream_out_decoder(&feed->out, l->decode, l->image, &feed->decoder, &fail);
    if (rc == TL_NOMEM || rc == TL_OK)
        return rc;
    snprintf(feed->refused, sizeof feed->refused, "%.150s", fail.text);
    return TL_OK;
}

int tl_feeds_add(struct tl_feeds *l, struct tl_feed *feed, const struct tl_source *source,
                 uint64_t offset)
{
    if (tl_grow(&l->v, &l->cap, l->n + 1, sizeof(struct tl_feed *)) < 0) {
        free(feed);
        return TL_NOMEM;
    }
    l->v[l->n++] = feed;
    l->recent[feed->id % 128] = feed;
    if (source && source->name[0])
        snprintf(feed->name, sizeof feed->name, "%s", source->name);
    feed->out.sink = &l->sink;
    feed->out.stream = (struct tl_decode_stream){
        .index = source ? l->n_streams++ : UINT32_MAX,
        .name = feed->name,
        .protocol = tl_source_stream(source),
        .source = source,
    };
    feed->out.stream.isa = tl_source_isa(feed->out.stream.protocol, source);
    const int rc = make_decoder(l, feed, offset);
    return rc < 0 || !source || !l->sink.stream
               ? rc
               : l->sink.stream(l->sink.context, &feed->out.stream);
}

int tl_feeds_push(struct tl_feeds *l, struct tl_feed *feed, const struct tl_run *run)
{
    if (!feed->decoder) {
        tl_feed_skip(feed, run->n);
        return TL_OK;
    }
    const int rc = l->sink.bytes ? l->sink.bytes(l->sink.context, &feed->out.stream, run) : TL_OK;
    return rc < 0 ? rc : feed->decoder->ops->push(feed->decoder, run);
}

int tl_feeds_flush(struct tl_feeds *l)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++) {
        struct tl_stream_decoder *const d = l->v[i]->decoder;
        if (d && d->ops->flush)
            rc = d->ops->flush(d);
    }
    return rc;
}

static int restart(struct tl_feeds *l, struct tl_feed *feed, uint64_t offset, const char *cut)
{
    struct tl_stream_decoder *const last = feed->decoder;
    int rc = last->ops->finish(last, cut);
    feed->decoder = NULL;
    if (rc == TL_OK)
        rc = make_decoder(l, feed, offset);
    if (feed->decoder && last->ops->resume)
        last->ops->resume(feed->decoder, last);
    last->ops->destroy(last);
    return rc;
}

int tl_feeds_restart(struct tl_feeds *l, uint64_t offset, const char *cut)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++)
        if (l->v[i]->decoder)
            rc = restart(l, l->v[i], offset, cut);
    return rc;
}

int tl_feeds_report_gap(struct tl_feeds *l, uint64_t offset, const char *note)
{
    const struct tl_item items[] = {
        {.kind = TL_ITEM_NOTE, .text = note, .offset = offset},
        {.kind = TL_ITEM_GAP, .sub = TL_GAP_TRANSPORT, .offset = offset},
    };
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++)
        if (l->v[i]->decoder)
            rc = tl_stream_out_items(&l->v[i]->out, items + !note, 2 - !note);
    return rc;
}

/* Sources that are not in the configuration: a fault only if nothing else was decoded. No board has
 * more than UNLIKELY of them. */
static int report_unnamed(const struct tl_feeds *l)
{
    enum { UNLIKELY = 32 };
    const struct tl_feed *first = NULL;
    uint64_t bytes = 0;
    unsigned n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct tl_feed *const feed = l->v[i];
        if (feed->out.stream.source)
            continue;
        n++;
        bytes += feed->refused_bytes;
        first = first && first->refused_at <= feed->refused_at ? first : feed;
    }
    if (!first || !l->sink.loss)
        return TL_OK;
    char text[200];
    if (n > UNLIKELY)
        snprintf(text, sizeof text,
                 "%u trace sources are not in the configuration; so many are none: memory that was "
                 "never written, or another sync= or src_bits= of the format",
                 n);
    else
        snprintf(
            text, sizeof text,
            "%u trace source%s not in the configuration; --config needs a section [source %s]%s", n,
            n > 1 ? "s are" : " is", first->name, n > 1 ? " and others" : "");
    const struct tl_decode_loss loss = {NULL, text, first->refused_at, bytes, l->n_streams == 0};
    return l->sink.loss(l->sink.context, &loss);
}

int tl_feeds_finish(struct tl_feeds *l)
{
    int rc = TL_OK;
    for (uint32_t i = 0; rc == TL_OK && i < l->n; i++) {
        struct tl_feed *const feed = l->v[i];
        if (feed->decoder)
            rc = feed->decoder->ops->finish(feed->decoder, TL_LOSS_CUT_OFF);
        if (feed->decoder && rc >= 0)
            rc = tl_stream_out_doubt(&feed->out);
        else if (feed->out.stream.source && feed->refused_bytes)
            rc = tl_stream_out_loss(&feed->out, feed->refused, feed->refused_at,
                                    feed->refused_bytes);
    }
    return rc < 0 ? rc : report_unnamed(l);
}

void tl_feeds_fini(struct tl_feeds *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->v[i]->decoder)
            l->v[i]->decoder->ops->destroy(l->v[i]->decoder);
        free(l->v[i]);
    }
    free(l->v);
}

void tl_feeds_state(struct tl_feeds *l, struct tl_state *s)
{
    uint32_t n = l->n;
    tl_state_check(s, n == 0);
    tl_state_u32(s, &n);
    for (uint32_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_feed *feed = tl_state_loads(s) ? NULL : l->v[i];
        uint16_t id = feed ? feed->id : 0;
        tl_state_u16(s, &id);
        tl_state_check(s, feed || !tl_feeds_find(l, id));
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, l->add(l->decode, id, 0, &feed));
        tl_state_check(s, feed != NULL);
        if (s->rc < 0)
            return;
        tl_state_u64(s, &feed->refused_at);
        tl_state_u64(s, &feed->refused_bytes);
        tl_doubts_state(&feed->out.doubts, &feed->out.way, s);
        if (feed->decoder && feed->decoder->ops->state)
            feed->decoder->ops->state(feed->decoder, s);
        else if (feed->decoder)
            tl_state_fail(s, TL_UNSUPPORTED);
    }
}

size_t tl_feeds_bytes(const struct tl_feeds *l)
{
    size_t n = 0;
    for (uint32_t i = 0; i < l->n; i++)
        n += sizeof *l->v[i] + tl_stream_bytes(l->v[i]->decoder);
    return n;
}
