/* SPDX-License-Identifier: MIT */
/*
 * The live edge of a trace that another server decodes. While clients read it here it is also
 * decoded here, from the durable raw bytes and starting at the other server's last checkpoint: the
 * same bytes give the same shards. Nothing of this is stored; a complete shard stays in memory
 * until the catalog contains it. The generation is served once it has caught up with the raw bytes,
 * and is removed when it is no longer read, when the trace is sealed, or when this server takes
 * over the trace.
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
    struct tl_gen *gen = NULL;
    pthread_mutex_lock(&trace->lock);
    const bool begins = tl_edge_exists_locked(trace) && trace->edge.read_ns &&
                        tl_monotonic_ns() >= trace->edge.after_ns;
    const uint64_t number = trace->serving->number;
    char *const setup = begins ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    int r = setup ? tl_gen_new(&gen, trace->lake, trace->id, number, setup, NULL) : TL_NOTFOUND;
    free(setup);
    if (r >= 0)
        r = tl_gen_load(gen, NULL);
    struct tl_decode_job *const job = r >= 0 ? tl_decode_job_of(gen) : NULL;
    if (r >= 0 && !job)
        r = TL_NOMEM;
    if (job)
        job->role = TL_DECODE_EDGE;
    if (r < 0) {
        tl_gen_put(gen);
        return NULL;
    }
    pthread_mutex_lock(&trace->lock);
    if (!trace->edge.gen && tl_edge_exists_locked(trace) && trace->serving->number == number)
        trace->edge.gen = tl_gen_get(gen);
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

struct stored {
    struct tl_lane *lane;
    uint64_t next; /* number of the lane's first shard that is not yet known to be stored */
};

/* The lane's oldest complete shard is now in the store. */
static int take_stored(void *context, const struct tl_shard_row *row)
{
    struct stored *const s = context;
    struct tl_lane *const lane = s->lane;
    int r = TL_OK;
    struct tl_view *view = NULL;
    pthread_mutex_lock(&lane->lock);
    if (row->number == lane->rows.n && lane->n_pending > 0) {
        view = lane->pending[0];
        r = view->index.row.first == row->first && view->index.row.n == row->n
                ? tl_rows_add(&lane->rows, row, lane->gen->lake->backend)
                : TL_BAD; /* decoded by another program version */
        if (r >= 0) {
            lane->n_pending--;
            memmove(lane->pending, lane->pending + 1, lane->n_pending * sizeof(*lane->pending));
        }
    }
    pthread_mutex_unlock(&lane->lock);
    if (view && r >= 0)
        tl_view_put(view);
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
        struct stored s = {.lane = lane};
        if (any)
            r = gen->lake->catalog->ops->shards(gen->lake->catalog, gen->trace, gen->number,
                                                lane->index, take_stored, &s, NULL);
    }
    return r;
}

/* It cannot keep up, or is from another program version: show the sealed shards, as without it. */
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
