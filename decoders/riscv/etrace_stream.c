/* SPDX-License-Identifier: MIT */
/*
 * E-Trace packets of one source that another container carries, such as CoreSight frames: over ATB
 * they have the standard's envelope, and the container's ID names the source. Frames are found and
 * judged as in the container of E-Trace alone; only the offsets are this container's.
 */
#include "riscv/etrace_deframe.h"
#include "riscv/etrace_flow.h"
#include "riscv/source.h"

#include <stdlib.h>

#define PIECE (TL_ETRACE_BUFFER / 2) /* bytes per push into the deframer */

struct stream {
    struct tl_stream_decoder base; /* must be first */
    struct tl_stream_sink sink;
    struct tl_stream_decoder *flow; /* a struct tl_etrace_flow */
    struct tl_etrace_deframe deframe;
    uint64_t pushed; /* bytes of the source */
    /* The source's bytes are scattered over the capture: where the last ones are, by their number
     * modulo the size. The deframer holds back TL_ETRACE_BUFFER at most. */
    uint64_t places[2 * TL_ETRACE_BUFFER];
};

static uint64_t *place_of(struct stream *t, uint64_t at)
{
    return &t->places[at % (sizeof t->places / sizeof *t->places)];
}

static struct tl_etrace_flow *flow_of(const struct stream *t)
{
    return (struct tl_etrace_flow *)t->flow;
}

/* ---- for the deframer ------------------------------------------------------------------- */

static uint64_t find_place(void *context, uint64_t at)
{
    return *place_of(context, at);
}

static enum tl_etrace_sense judge(void *context, const struct tl_etrace_frame *frame, bool strict)
{
    struct tl_etrace_flow *const flow = flow_of(context);
    const bool makes_sense = frame->is_data ? tl_etrace_flow_has_data(flow)
                                            : tl_etrace_flow_is_plausible(flow, frame, strict);
    return makes_sense ? TL_ETRACE_SENSE : TL_ETRACE_NONSENSE;
}

static int on_frame(void *context, const struct tl_etrace_frame *frame)
{
    return tl_etrace_flow_packet(flow_of(context), frame);
}

static int take(void *context, const struct tl_etrace_frame *frame)
{
    if (!frame->is_data)
        return tl_etrace_flow_take(flow_of(context), frame);
    const enum tl_etrace_sense sense = judge(context, frame, false);
    const int rc = sense == TL_ETRACE_SENSE ? on_frame(context, frame) : TL_OK;
    return rc < 0 ? rc : (int)sense;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct stream *const t = context;
    tl_etrace_flow_lost(flow_of(t), NULL, TL_GAP_TRANSPORT, offset);
    return t->sink.loss(t->sink.context, reason, offset, bytes);
}

/* ---- tl_stream_ops ---------------------------------------------------------------------- */

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct stream *const t = (struct stream *)decoder;
    for (size_t i = 0; i < run->n;) {
        const size_t n = run->n - i < PIECE ? run->n - i : PIECE;
        for (size_t k = 0; k < n; k++)
            *place_of(t, t->pushed++) = tl_run_offset(run, i + k);
        const int rc = tl_etrace_deframe_push(&t->deframe, run->p + i, n);
        if (rc < 0)
            return rc;
        i += n;
    }
    return TL_OK;
}

static int flush(struct tl_stream_decoder *decoder)
{
    const struct stream *const t = (struct stream *)decoder;
    return t->flow->ops->flush(t->flow);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct stream *const t = (struct stream *)decoder;
    const int rc = tl_etrace_deframe_finish(&t->deframe, t->pushed, cut);
    return rc < 0 ? rc : t->flow->ops->finish(t->flow, cut);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct stream *const t = (struct stream *)decoder;
    if (t && t->flow)
        t->flow->ops->destroy(t->flow);
    free(t);
}

/* The places of the bytes that the deframer holds back. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *s)
{
    struct stream *const t = (struct stream *)decoder;
    tl_state_u64(s, &t->pushed);
    tl_etrace_deframe_state(&t->deframe, s);
    for (uint64_t at = t->pushed - t->deframe.n; at != t->pushed; at++)
        tl_state_u64(s, place_of(t, at));
    t->flow->ops->state(t->flow, s);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_etrace_envelope envelope;
    int rc = tl_etrace_source_envelope(&envelope, source, fail);
    if (rc < 0)
        return rc;
    struct stream *const t = calloc(1, sizeof *t);
    if (!t)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    t->base.ops = &tl_etrace_stream_ops;
    t->sink = *sink;
    rc = tl_etrace_flow_new(&t->flow, source, image, sink, fail);
    if (rc < 0) {
        free(t);
        return rc;
    }
    const struct tl_etrace_deframe_sink frames = {.context = t,
                                                  .judge = judge,
                                                  .frame = on_frame,
                                                  .take = take,
                                                  .loss = on_loss,
                                                  .place = find_place};
    tl_etrace_deframe_init(&t->deframe, &envelope, &frames);
    *out = &t->base;
    return TL_OK;
}

const struct tl_stream_ops tl_etrace_stream_ops = {
    .name = "e-trace",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
};
