/* SPDX-License-Identifier: MIT */
/*
 * The E-Trace container: enveloped packets of one or several harts to a decoder per source number.
 * More sources than a capture can have are a sign of damage, and are not created.
 */
#include "riscv/etrace_deframe.h"
#include "riscv/etrace_flow.h"
#include "riscv/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Sources, at most. More are not from this capture: it is damaged. */
#define SOURCES 64

struct etrace {
    struct tl_decode base;
    const struct tl_setup *setup;
    struct tl_feeds feeds; /* their decoders are struct tl_etrace_flow */
    struct tl_etrace_deframe deframe;
    uint64_t pushed; /* bytes */
};

/* ---- sources ---------------------------------------------------------------------------- */

static bool is_esp32(const struct etrace *e)
{
    return e->deframe.envelope.wrapping == TL_ETRACE_INDEXED;
}

static int add_source(struct tl_decode *decode, uint16_t src, uint64_t offset, struct tl_feed **out)
{
    struct etrace *const e = (struct etrace *)decode;
    struct tl_source otherwise = {.id = src, .protocol = TL_PROTO_E_TRACE};
    snprintf(otherwise.name, sizeof otherwise.name, "et.%u", src);
    if (is_esp32(e)) {
        const bool named = !strncasecmp(e->setup->core, "esp32", 5);
        snprintf(otherwise.type, sizeof otherwise.type, "%.23s", named ? e->setup->core : "esp32");
        snprintf(otherwise.core, sizeof otherwise.core, "rv32");
    }
    return tl_riscv_add_source(&e->feeds, e->setup, e->deframe.envelope.src_bits, &otherwise,
                               offset, out);
}

static int make_flow(struct tl_decode *decode, struct tl_feed *feed, struct tl_fail *fail)
{
    const struct etrace *const e = (struct etrace *)decode;
    const struct tl_source *const source = feed->out.stream.source;
    const struct tl_stream_sink sink = tl_stream_out_sink(&feed->out, decode);
    if (source->protocol != TL_PROTO_E_TRACE)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "[source %s]: its protocol is %s; in format %.40s it is e-trace",
                           source->name, tl_format_of(source->protocol)->name, e->setup->format);
    return tl_etrace_flow_new(&feed->decoder, source, e->feeds.image, &sink, fail);
}

static struct tl_etrace_flow *flow_of(const struct tl_feed *feed)
{
    return feed ? (struct tl_etrace_flow *)feed->decoder : NULL;
}

/* ---- frames ----------------------------------------------------------------------------- */

static enum tl_etrace_sense judge(void *context, const struct tl_etrace_frame *frame, bool strict)
{
    struct etrace *const e = context;
    const struct tl_feed *const feed = tl_feeds_find(&e->feeds, frame->src);
    struct tl_etrace_flow *const flow = flow_of(feed);
    if (!feed && e->feeds.n == SOURCES)
        return TL_ETRACE_NONSENSE;
    if (flow && frame->is_data && !tl_etrace_flow_has_data(flow))
        return TL_ETRACE_NONSENSE;
    if (flow && !frame->is_data && !tl_etrace_flow_is_plausible(flow, frame, strict))
        return TL_ETRACE_NONSENSE;
    return feed || tl_riscv_source(e->setup, e->deframe.envelope.src_bits, frame->src)
               ? TL_ETRACE_SENSE
               : TL_ETRACE_STRANGER;
}

static int on_frame(void *context, const struct tl_etrace_frame *frame)
{
    struct etrace *const e = context;
    struct tl_feed *feed = tl_feeds_find(&e->feeds, frame->src);
    const int rc = feed ? TL_OK : add_source(&e->base, frame->src, frame->offset, &feed);
    if (rc < 0)
        return rc;
    if (feed->decoder)
        return tl_etrace_flow_packet(flow_of(feed), frame);
    tl_feed_skip(feed, frame->size);
    return TL_OK;
}

static int take(void *context, const struct tl_etrace_frame *frame)
{
    struct etrace *const e = context;
    struct tl_etrace_flow *const flow = flow_of(tl_feeds_find(&e->feeds, frame->src));
    if (flow && !frame->is_data)
        return tl_etrace_flow_take(flow, frame);
    const enum tl_etrace_sense sense = judge(context, frame, false);
    const int rc = sense == TL_ETRACE_SENSE ? on_frame(context, frame) : TL_OK;
    return rc < 0 ? rc : (int)sense;
}

static int report_loss(const struct etrace *e, const struct tl_decode_hole *hole, uint64_t offset)
{
    const struct tl_decode_sink *const sink = &e->feeds.sink;
    const struct tl_decode_loss loss = {NULL, hole->reason, offset, hole->n,
                                        tl_loss_is_fault(hole->reason)};
    for (uint32_t i = 0; i < e->feeds.n; i++)
        if (e->feeds.v[i]->decoder)
            tl_etrace_flow_lost(flow_of(e->feeds.v[i]), hole->note, TL_GAP_TRANSPORT, offset);
    return sink->loss ? sink->loss(sink->context, &loss) : TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return report_loss(context, &(struct tl_decode_hole){bytes, reason, NULL}, offset);
}

/* ---- tl_decode_ops ---------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct etrace *const e = (struct etrace *)decode;
    if (e)
        tl_feeds_fini(&e->feeds);
    free(e);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_etrace_envelope envelope;
    const int rc = tl_etrace_envelope(&envelope, setup, fail);
    if (rc < 0)
        return rc;
    struct etrace *const e = calloc(1, sizeof *e);
    if (!e)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    e->base.ops = &tl_etrace_ops;
    e->setup = setup;
    e->feeds = (struct tl_feeds){
        .decode = &e->base, .image = image, .sink = *sink, .add = add_source, .create = make_flow};
    const struct tl_etrace_deframe_sink frames = {
        .context = e, .judge = judge, .frame = on_frame, .take = take, .loss = on_loss};
    tl_etrace_deframe_init(&e->deframe, &envelope, &frames);
    *out = &e->base;
    return TL_OK;
}

static int flush(struct tl_decode *decode)
{
    return tl_feeds_flush(&((struct etrace *)decode)->feeds);
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct etrace *const e = (struct etrace *)decode;
    const struct tl_run run = {.p = p, .n = n, .base = e->pushed};
    e->pushed += n;
    int rc = e->feeds.sink.bytes ? e->feeds.sink.bytes(e->feeds.sink.context, NULL, &run) : TL_OK;
    if (rc >= 0)
        rc = tl_etrace_deframe_push(&e->deframe, p, n);
    return rc < 0 ? rc : flush(decode);
}

static int lost(struct tl_decode *decode, const struct tl_decode_hole *hole)
{
    struct etrace *const e = (struct etrace *)decode;
    const uint64_t offset = e->pushed;
    e->pushed += hole->n;
    int rc = tl_etrace_deframe_finish(&e->deframe, e->pushed, TL_LOSS_NO_END);
    if (rc >= 0)
        rc = report_loss(e, hole, offset);
    return rc < 0 ? rc : flush(decode);
}

static int finish(struct tl_decode *decode)
{
    struct etrace *const e = (struct etrace *)decode;
    const int rc = tl_etrace_deframe_finish(&e->deframe, e->pushed, TL_LOSS_CUT_OFF);
    return rc < 0 ? rc : tl_feeds_finish(&e->feeds);
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct etrace *const e = (struct etrace *)decode;
    tl_state_check(s, e->pushed == 0);
    tl_state_u64(s, &e->pushed);
    tl_etrace_deframe_state(&e->deframe, s);
    tl_feeds_state(&e->feeds, s);
}

static size_t bytes(struct tl_decode *decode)
{
    return sizeof(struct etrace) + tl_feeds_bytes(&((struct etrace *)decode)->feeds);
}

const struct tl_decode_ops tl_etrace_ops = {
    .bytes = bytes,
    .name = "e-trace",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
