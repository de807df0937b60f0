/* SPDX-License-Identifier: MIT */
/*
 * The live edge of a trace that another server decodes. While clients read it here it is also
 * decoded here, from the durable raw bytes and starting at the other server's last checkpoint: the
 * same bytes give the same shards. Nothing of this is stored; a complete shard stays in memory
 * until the catalog contains it. The generation is served once it has caught up with the raw bytes,
 * and is removed when it is no longer read, when the trace is sealed, or when this server takes
 * over the trace.
 */
#include "ingest/decode_job.h"
#include "share/share.h"

#include <stdlib.h>

#define KEEP_NS   INT64_C(30000000000) /* how long decoding continues after the last read */
#define REPORT_NS INT64_C(1000000000)  /* between two messages to the server that owns the trace */
#define AGAIN_NS  INT64_C(10000000000) /* pause before a restart if it cannot keep up */
#define RETRY_NS  INT64_C(1000000000)  /* after an error of the store */
#define FAR       (UINT64_C(64) << 20) /* raw bytes by which it may lag behind */

/* Does the trace have a live edge at another server? */
static bool has_edge_locked(const struct tl_trace *trace)
{
    return trace->lake->shared && !trace->lease && !trace->deleted &&
           trace->state < TL_TRACE_SEALED && trace->wanted == trace->serving->number;
}

void tl_edge_read(struct tl_trace *trace)
{
    struct tl_lake *const lake = trace->lake;
    if (!lake->shared)
        return;
    const int64_t now = tl_monotonic_ns();
    pthread_mutex_lock(&trace->lock);
    const bool is = has_edge_locked(trace);
    const bool reports =
        is && (!trace->edge_reported_ns || now - trace->edge_reported_ns >= REPORT_NS);
    const bool begins = is && !trace->edge && now >= trace->edge_after_ns;
    if (is)
        trace->edge_read_ns = now;
    if (reports)
        trace->edge_reported_ns = now;
    pthread_mutex_unlock(&trace->lock);
    if (reports)
        lake->backend->ops->report(lake->backend, TL_NEWS_READ, trace->id);
    if (begins)
        tl_lake_queue(lake, trace, 0);
}

/* Drop the edge; it may be served until another generation is. Called with trace->lock held;
 * returns a reference that the caller must put after releasing the lock. */
static struct tl_gen *end_locked(struct tl_trace *trace)
{
    struct tl_gen *const edge = trace->edge;
    if (edge)
        atomic_store(&edge->abandoned, true);
    trace->edge = NULL;
    return edge;
}

bool tl_edge_continues(struct tl_trace *trace, const struct tl_catalog_trace *row)
{
    struct tl_gen *ended = NULL;
    pthread_mutex_lock(&trace->lock);
    const bool continues = trace->edge && has_edge_locked(trace) && row->state < TL_TRACE_SEALED &&
                           row->generation == trace->edge->number &&
                           row->wanted == row->generation &&
                           tl_monotonic_ns() - trace->edge_read_ns < KEEP_NS;
    const bool serves = continues && trace->serving == trace->edge;
    if (!continues)
        ended = end_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(ended);
    return serves;
}

void tl_edge_wake(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool is = trace->edge;
    pthread_mutex_unlock(&trace->lock);
    if (is)
        tl_lake_queue(trace->lake, trace, 0);
}

/* ---- its decode job ------------------------------------------------------------------------- */

/* Begin one, in addition to the served generation. */
static struct tl_gen *begin(struct tl_trace *trace)
{
    struct tl_gen *gen = NULL;
    pthread_mutex_lock(&trace->lock);
    const bool begins =
        has_edge_locked(trace) && trace->edge_read_ns && tl_monotonic_ns() >= trace->edge_after_ns;
    const uint64_t number = trace->serving->number;
    char *const setup = begins ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    int r = setup ? tl_gen_new(&gen, trace->lake, trace->id, number, setup, NULL) : TL_NOTFOUND;
    free(setup);
    if (r >= 0) {
        gen->is_edge = true;
        r = tl_gen_load(gen, NULL);
    }
    if (r < 0) {
        tl_gen_put(gen);
        return NULL;
    }
    pthread_mutex_lock(&trace->lock);
    if (!trace->edge && has_edge_locked(trace) && trace->serving->number == number)
        trace->edge = tl_gen_get(gen);
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
    if (trace->edge == gen)
        ended = end_locked(trace);
    trace->edge_after_ns = tl_monotonic_ns() + AGAIN_NS;
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(ended);
}

/* It has caught up with the raw bytes: serve it. */
static void serve(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_gen *before = NULL;
    pthread_mutex_lock(&trace->lock);
    if (trace->edge == gen && trace->serving != gen && has_edge_locked(trace)) {
        before = trace->serving;
        trace->serving = tl_gen_get(gen);
    }
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(before);
}

int64_t tl_edge_run(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = trace->edge ? tl_gen_get(trace->edge) : NULL;
    const uint64_t end = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    if (!gen && !(gen = begin(trace)))
        return -1;
    struct tl_fail fail = {0};
    int64_t again = -1;
    int r = tl_gen_decode(gen, end, false, &fail);
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
