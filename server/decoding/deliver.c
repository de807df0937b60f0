/* SPDX-License-Identifier: MIT */
/*
 * Items go to their lane's builder under the lane's lock, so that readers can copy what it has at
 * any time. A stream that an earlier run of the server had found keeps its lane.
 */
#include "decoding/deliver.h"

#include "decode/ops.h"
#include "decoding/decode_job.h"
#include "decoding/store_shards.h"
#include "lake/lakeint.h"

#include <stdlib.h>
#include <string.h>

static int on_seal(void *context, struct tl_view *view)
{
    struct tl_lane *lane = context;
    const int r =
        tl_grow(&lane->pending, &lane->cap_pending, lane->n_pending + 1, sizeof(struct tl_view *));
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    if (lane->gen->is_virtual)
        tl_lane_make_virtual(lane, view);
    lane->pending[lane->n_pending++] = view;
    lane->gen->job->completed++;
    return TL_OK;
}

/* Find a lane left in the catalog by an earlier run, or add a new one. */
static int lane_of(struct tl_decode_job *job, const struct tl_decode_stream *stream,
                   struct tl_lane **out)
{
    struct tl_gen *const gen = job->gen;
    *out = tl_gen_lane(gen, stream->name);
    if (*out)
        return TL_OK;
    job->unsaved = true;
    return tl_gen_add_lane(gen, stream->name, stream->protocol, out);
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct tl_decode_job *job = context;
    struct tl_gen *const gen = job->gen;
    struct tl_lane *lane;
    int r = lane_of(job, stream, &lane);
    if (r < 0)
        return r;
    r = tl_grow(&job->by_stream, &job->cap_by_stream, stream->index + 1, sizeof(struct tl_lane *));
    if (r < 0)
        return r;
    while (job->n_by_stream <= stream->index)
        job->by_stream[job->n_by_stream++] = NULL;
    job->by_stream[stream->index] = lane;
    pthread_mutex_lock(&lane->lock);
    const struct tl_build_options options = {
        .protocol = stream->protocol,
        .isa = stream->isa,
        .shard_insns = gen->lake->options.shard_insns,
        .image = gen->program ? gen->program->image : NULL,
        .axis = tl_lane_axis(lane),
        .packing = gen->lake->packing,
        .index_only = gen->is_virtual,
        .outline = job->role == TL_DECODE_OUTLINE,
        .seal = on_seal,
        .context = lane,
        .sealed = lane->rows.n,
        .sealed_position = tl_lane_sealed_locked(lane),
    };
    tl_build_free(lane->build);
    lane->build = NULL;
    lane->lost_bytes = 0;
    free(lane->fit);
    lane->fit = calloc(1, sizeof(*lane->fit));
    r = lane->fit ? tl_build_new(&lane->build, &options) : TL_NOMEM;
    pthread_mutex_unlock(&lane->lock);
    return r;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct tl_decode_job *job = context;
    struct tl_lane *lane = stream->index < job->n_by_stream ? job->by_stream[stream->index] : NULL;
    if (!lane)
        return TL_BAD;
    const size_t before = job->completed;
    pthread_mutex_lock(&lane->lock);
    const int r = tl_build_items(lane->build, items, n);
    pthread_mutex_unlock(&lane->lock);
    atomic_fetch_add_explicit(&job->gen->lake->items_decoded, n, memory_order_relaxed);
    return r < 0 || job->completed == before ? r : tl_store_shards_within(job);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct tl_decode_job *job = context;
    struct tl_gen *const gen = job->gen;
    struct tl_lane *lane = NULL;
    if (loss->stream && loss->stream->index < job->n_by_stream)
        lane = job->by_stream[loss->stream->index];
    if (lane) {
        pthread_mutex_lock(&lane->lock);
        lane->lost_bytes += loss->bytes;
        pthread_mutex_unlock(&lane->lock);
    }
    const bool is_note = strcmp(loss->reason, TL_LOSS_TIME_RESTART) == 0 ||
                         strcmp(loss->reason, TL_LOSS_CUT_OFF) == 0;
    /* Neither a capture's normal begin nor an overflow. */
    if (loss->fault || (is_note && !tl_gen_has_said(gen)))
        tl_gen_say(gen, "%s: offset 0x%llx: %s", loss->stream ? loss->stream->name : "container",
                   (unsigned long long)loss->offset, loss->reason);
    pthread_mutex_lock(&gen->lock);
    gen->lost_bytes += lane ? 0 : loss->bytes;
    pthread_mutex_unlock(&gen->lock);
    return TL_OK;
}

struct tl_decode_sink tl_deliver(struct tl_decode_job *job)
{
    return (struct tl_decode_sink){
        .context = job, .stream = on_stream, .items = on_items, .loss = on_loss};
}
