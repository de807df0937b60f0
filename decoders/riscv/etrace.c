/* SPDX-License-Identifier: MIT */
/*
 * The E-Trace container: enveloped packets of one or several harts to a decoder per source number.
 */
#include "decode/ops.h"
#include "decode/stream_out.h"
#include "riscv/etrace_deframe.h"
#include "riscv/etrace_flow.h"

#include <stdio.h>
#include <stdlib.h>

/* Sources, at most. More are not from this capture: it is damaged. */
#define LANES 64

static const char UNNAMED[] = "source is not in the configuration; give --config";

/* A source. */
struct lane {
    struct tl_stream_out out; /* must be first */
    uint16_t src;
    struct tl_etrace_flow *flow; /* NULL: not in the setup, or refused; its packets are counted */
    char refused[160];           /* why there is none */
    uint64_t refused_at;
    uint64_t refused_bytes;
    char name[32];
};

struct etrace {
    struct tl_decode base;
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_decode_sink sink;
    struct tl_etrace_deframe deframe;
    struct lane *lanes[LANES]; /* in order of appearance */
    uint32_t n_lanes;
    uint32_t n_streams;
    bool is_long;    /* a payload was not as short as possible: this encoder does not care */
    uint64_t pushed; /* bytes */
};

/* ---- sources ---------------------------------------------------------------------------- */

static bool is_esp32(const struct etrace *e)
{
    return e->deframe.envelope.wrapping == TL_ETRACE_INDEXED;
}

static struct lane *find_lane(const struct etrace *e, uint16_t src)
{
    for (uint32_t i = 0; i < e->n_lanes; i++)
        if (e->lanes[i]->src == src)
            return e->lanes[i];
    return NULL;
}

/* The setup's source with this number. A capture without numbers has one, whatever its number. */
static const struct tl_source *source_of(const struct etrace *e, uint16_t src)
{
    const struct tl_source *const source = tl_setup_source(e->setup, src);
    if (!source && e->deframe.envelope.src_bits == 0 && e->setup->n_sources == 1)
        return &e->setup->sources[0];
    return source;
}

static int make_flow(struct etrace *e, struct lane *lane)
{
    struct tl_fail fail = {.text = "cannot be decoded"};
    const struct tl_stream_sink sink = tl_stream_out_sink(&lane->out, &e->base);
    const enum tl_etrace_unit unit = is_esp32(e) ? TL_ETRACE_ESP32 : TL_ETRACE_REFERENCE;
    const int rc =
        tl_etrace_flow_new(&lane->flow, lane->out.stream.source, e->image,
                           tl_setup_source_vmid(e->setup, lane->src), unit, &sink, &fail);
    if (rc == TL_NOMEM)
        return rc;
    if (rc < 0)
        snprintf(lane->refused, sizeof lane->refused, "%.150s", fail.text);
    return TL_OK;
}

/* The lane of a source, created on first use; *out is NULL if there are too many. */
static int lane_of(struct etrace *e, uint16_t src, uint64_t offset, struct lane **out)
{
    *out = find_lane(e, src);
    if (*out || e->n_lanes == LANES)
        return TL_OK;
    struct lane *const lane = calloc(1, sizeof *lane);
    if (!lane)
        return TL_NOMEM;
    e->lanes[e->n_lanes++] = *out = lane;
    lane->src = src;
    lane->refused_at = offset;
    lane->out.sink = &e->sink;
    const struct tl_source *const source = source_of(e, src);
    const bool known = source || e->setup->n_sources == 0;
    snprintf(lane->name, sizeof lane->name, "et.%x", src);
    if (source && source->name[0])
        snprintf(lane->name, sizeof lane->name, "%s", source->name);
    lane->out.stream = (struct tl_decode_stream){
        .index = known ? e->n_streams++ : UINT32_MAX,
        .name = lane->name,
        .protocol = TL_PROTO_E_TRACE,
        .source = source,
        .isa = is_esp32(e) ? TL_ISA_RV32 : tl_source_isa(TL_PROTO_E_TRACE, source),
    };
    if (!known) {
        snprintf(lane->refused, sizeof lane->refused, "%s", UNNAMED);
        return TL_OK;
    }
    const int rc = make_flow(e, lane);
    return rc < 0 || !e->sink.stream ? rc : e->sink.stream(e->sink.context, &lane->out.stream);
}

/* ---- frames ----------------------------------------------------------------------------- */

static enum tl_etrace_sense judge(void *context, const struct tl_etrace_frame *frame, bool strict)
{
    const struct etrace *const e = context;
    const struct lane *const lane = find_lane(e, frame->src);
    if (!lane && e->n_lanes == LANES)
        return TL_ETRACE_NONSENSE;
    const bool check = lane && lane->flow && !frame->is_data;
    if (check && !tl_etrace_flow_is_plausible(lane->flow, frame->payload))
        return TL_ETRACE_NONSENSE;
    if (strict && !e->is_long && !is_esp32(e) && !frame->is_data &&
        !tl_etrace_is_short(frame->payload))
        return TL_ETRACE_NONSENSE;
    return lane || source_of(e, frame->src) ? TL_ETRACE_SENSE : TL_ETRACE_STRANGER;
}

static int on_frame(void *context, const struct tl_etrace_frame *frame)
{
    struct etrace *const e = context;
    struct lane *lane;
    const int rc = lane_of(e, frame->src, frame->offset, &lane);
    if (rc < 0 || !lane)
        return rc;
    e->is_long |= !frame->is_data && !tl_etrace_is_short(frame->payload);
    if (lane->flow)
        return frame->is_data ? TL_OK : tl_etrace_flow_packet(lane->flow, frame);
    lane->refused_bytes += frame->size;
    return TL_OK;
}

static int report_loss(const struct etrace *e, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {NULL, reason, offset, bytes, tl_loss_is_fault(reason)};
    return e->sink.loss ? e->sink.loss(e->sink.context, &loss) : TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct etrace *const e = context;
    for (uint32_t i = 0; i < e->n_lanes; i++)
        if (e->lanes[i]->flow)
            tl_etrace_flow_lost(e->lanes[i]->flow, TL_GAP_TRANSPORT, offset);
    return report_loss(e, reason, offset, bytes);
}

/* ---- tl_decode_ops ---------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct etrace *const e = (struct etrace *)decode;
    if (!e)
        return;
    for (uint32_t i = 0; i < e->n_lanes; i++) {
        tl_etrace_flow_free(e->lanes[i]->flow);
        free(e->lanes[i]);
    }
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
    e->image = image;
    e->sink = *sink;
    const struct tl_etrace_deframe_sink frames = {e, judge, on_frame, on_loss};
    tl_etrace_deframe_init(&e->deframe, &envelope, &frames);
    *out = &e->base;
    return TL_OK;
}

static int flush(struct tl_decode *decode)
{
    const struct etrace *const e = (const struct etrace *)decode;
    int rc = TL_OK;
    for (uint32_t i = 0; rc >= 0 && i < e->n_lanes; i++)
        if (e->lanes[i]->flow)
            rc = tl_etrace_flow_flush(e->lanes[i]->flow);
    return rc;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct etrace *const e = (struct etrace *)decode;
    const struct tl_run run = {.p = p, .n = n, .base = e->pushed};
    e->pushed += n;
    int rc = e->sink.bytes ? e->sink.bytes(e->sink.context, NULL, &run) : TL_OK;
    if (rc >= 0)
        rc = tl_etrace_deframe_push(&e->deframe, p, n);
    return rc < 0 ? rc : flush(decode);
}

static int lost(struct tl_decode *decode, uint64_t n)
{
    struct etrace *const e = (struct etrace *)decode;
    const uint64_t offset = e->pushed;
    e->pushed += n;
    int rc = tl_etrace_deframe_finish(&e->deframe, e->pushed);
    if (rc >= 0)
        rc = on_loss(e, TL_LOSS_STORED, offset, n);
    return rc < 0 ? rc : flush(decode);
}

/* A source that the setup does not name: a fault only if nothing else was decoded. */
static int report_unnamed(const struct etrace *e, const struct lane *lane)
{
    const struct tl_decode_loss loss = {NULL, lane->refused, lane->refused_at, lane->refused_bytes,
                                        e->n_streams == 0};
    return e->sink.loss ? e->sink.loss(e->sink.context, &loss) : TL_OK;
}

static int finish(struct tl_decode *decode)
{
    struct etrace *const e = (struct etrace *)decode;
    int rc = tl_etrace_deframe_finish(&e->deframe, e->pushed);
    for (uint32_t i = 0; rc >= 0 && i < e->n_lanes; i++) {
        struct lane *const lane = e->lanes[i];
        if (lane->flow)
            rc = tl_etrace_flow_finish(lane->flow);
        else if (lane->out.stream.index != UINT32_MAX)
            rc = tl_stream_out_loss(&lane->out, lane->refused, lane->refused_at,
                                    lane->refused_bytes);
        else
            rc = report_unnamed(e, lane);
    }
    return rc;
}

/* ---- saved state ------------------------------------------------------------------------ */

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct etrace *const e = (struct etrace *)decode;
    uint32_t n = e->n_lanes;
    tl_state_check(s, n == 0 && e->pushed == 0);
    tl_state_u64(s, &e->pushed);
    tl_state_bool(s, &e->is_long);
    tl_etrace_deframe_state(&e->deframe, s);
    tl_state_u32(s, &n);
    for (uint32_t i = 0; i < n && s->rc >= 0; i++) {
        struct lane *lane = tl_state_loads(s) ? NULL : e->lanes[i];
        uint16_t src = lane ? lane->src : 0;
        tl_state_u16(s, &src);
        tl_state_check(s, !find_lane(e, src));
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, lane_of(e, src, 0, &lane));
        tl_state_check(s, lane != NULL);
        if (s->rc < 0)
            return;
        tl_state_u64(s, &lane->refused_at);
        tl_state_u64(s, &lane->refused_bytes);
        if (lane->flow)
            tl_etrace_flow_state(lane->flow, s);
    }
}

const struct tl_decode_ops tl_etrace_ops = {
    .name = "e-trace",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
