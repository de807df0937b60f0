/* SPDX-License-Identifier: MIT */
/*
 * The live edge of a trace that another server decodes. While clients read it here it is also
 * decoded here, from the durable raw bytes and starting at the other server's last checkpoint: the
 * same bytes give the same shards. Nothing of this is stored; a complete shard stays in memory
 * until the catalog contains it. The generation is served once it has caught up with the raw bytes,
 * and is removed when it is no longer read, when the trace is sealed, or when this server takes
 * over the trace. It is served in place of the owner's, not joined to it as an outline is: it has
 * an index, so every answer reads one generation, as at the owner.
 */
#include "decoding/edge_job.h"

#include "decoding/decode_job.h"
#include "lake/lakeint.h"

#include <stdlib.h>

#define AGAIN_NS INT64_C(10000000000) /* pause before a restart if it cannot keep up */
#define RETRY_NS INT64_C(1000000000)  /* after an error of the store */
#define FAR      (UINT64_C(64) << 20) /* raw bytes by which it may lag behind */

/* Begin one, in addition to the served generation. */
static struct tl_gen *begin_edge(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool begins = tl_edge_exists_locked(trace) && trace->edge.read_ns &&
                        tl_monotonic_ns() >= trace->edge.after_ns;
    const uint64_t number = trace->serving->number;
    char *const setup = begins ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    struct tl_gen *const gen = tl_decode_job_beside(trace, number, setup, TL_DECODE_EDGE);
    if (!gen)
        return NULL;
    pthread_mutex_lock(&trace->lock);
    if (!trace->edge.gen && tl_edge_exists_locked(trace) && trace->serving->number == number)
        trace->edge.gen = tl_gen_get(gen);
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

/* The lane's oldest complete shard is now in the store. */
static int take_stored(void *context, const struct tl_shard_row *row)
{
    struct tl_lane *const lane = context;
    int r = TL_OK;
    pthread_mutex_lock(&lane->lock);
    if (row->number == lane->rows.n && lane->n_pending > 0) {
        const struct tl_shard_row *const own = &lane->pending[0]->index.row;
        r = own->first == row->first && own->n == row->n
                ? tl_lane_stored_locked(lane, row)
                : TL_BAD; /* decoded by another server version */
    }
    pthread_mutex_unlock(&lane->lock);
    return r;
}

/* Complete shards that are in the catalog by now are read from the store. */
static int let_go_of_stored(struct tl_gen *gen)
{
    int r = TL_OK;
    struct tl_lane *lane;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        const bool any = lane->n_pending > 0;
        pthread_mutex_unlock(&lane->lock);
        if (any)
            r = gen->lake->catalog->ops->shards(gen->lake->catalog, gen->trace, gen->number,
                                                lane->index, take_stored, lane, NULL);
    }
    return r;
}

/* It cannot keep up, or is from another server version: show the sealed shards, as without it. */
static void give_up(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_gen *ended = NULL;
    pthread_mutex_lock(&trace->lock);
    if (trace->edge.gen == gen)
        ended = tl_edge_end_locked(trace);
    trace->edge.after_ns = tl_monotonic_ns() + AGAIN_NS;
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(ended);
}

/* It has caught up with the raw bytes: serve it. */
static void serve(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_gen *before = NULL;
    pthread_mutex_lock(&trace->lock);
    if (trace->edge.gen == gen && trace->serving != gen && tl_edge_exists_locked(trace)) {
        before = trace->serving;
        trace->serving = tl_gen_get(gen);
    }
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(before);
}

int64_t tl_edge_run(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = trace->edge.gen ? tl_gen_get(trace->edge.gen) : NULL;
    const uint64_t end = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    if (!gen && !(gen = begin_edge(trace)))
        return -1;
    struct tl_fail fail = {0};
    int64_t again = -1;
    int r = tl_decode_job_run(gen->job, trace, end, false, &fail);
    if (r == TL_EOF) {
        serve(trace, gen);
        r = let_go_of_stored(gen);
    } else if (r == TL_OK) {
        const uint64_t at = atomic_load(&gen->decoded);
        r = at < end && end - at > FAR ? TL_BAD : TL_OK;
        again = 0;
    }
    if (r == TL_IO || r == TL_NOSPACE || r == TL_NOTFOUND)
        again = RETRY_NS;
    else if (r < 0 && r != TL_CANCELLED)
        give_up(trace, gen);
    tl_gen_put(gen);
    tl_trace_changed(trace);
    return r < 0 && again != RETRY_NS ? -1 : again;
}
