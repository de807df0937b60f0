/* SPDX-License-Identifier: MIT */
/*
 * The live edge of a trace that another server decodes. While somebody reads it here it is decoded
 * here as well, from the raw bytes that are durable and the other server's last checkpoint on: the
 * same bytes give the same shards. Nothing of it is stored; a complete shard stays in memory until
 * the catalog has it. The generation serves once it has come as far as the raw bytes, and goes
 * when nobody reads it any more, when the trace is sealed, or when it becomes this server's.
 */
#include "ingest/decode_job.h"
#include "lake/share.h"

#include <stdlib.h>

#define KEEP_NS  INT64_C(30000000000) /* that it is decoded for, once it was read */
#define TELL_NS  INT64_C(1000000000)  /* between two words to the server that has the trace */
#define AGAIN_NS INT64_C(10000000000) /* until it is begun again where it cannot keep up */
#define RETRY_NS INT64_C(1000000000)  /* where the store refuses */
#define FAR      (UINT64_C(64) << 20) /* raw bytes that it may be behind */

/* Has the trace one, at another server? */
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
    const bool tells = is && (!trace->edge_told_ns || now - trace->edge_told_ns >= TELL_NS);
    const bool begins = is && !trace->edge && now >= trace->edge_after_ns;
    if (is)
        trace->edge_read_ns = now;
    if (tells)
        trace->edge_told_ns = now;
    pthread_mutex_unlock(&trace->lock);
    if (tells)
        lake->backend->ops->tell(lake->backend, TL_NEWS_READ, trace->id);
    if (begins)
        tl_lake_queue(lake, trace, 0);
}

/* Forget it; it may go on serving until another generation does. With trace->lock held; returns a
 * reference for the caller to put without the lock. */
static struct tl_gen *end_locked(struct tl_trace *trace)
{
    struct tl_gen *const edge = trace->edge;
    if (edge)
        atomic_store(&edge->abandoned, true);
    trace->edge = NULL;
    return edge;
}

bool tl_edge_goes_on(struct tl_trace *trace, const struct tl_catalog_trace *row)
{
    struct tl_gen *ended = NULL;
    pthread_mutex_lock(&trace->lock);
    const bool goes_on = trace->edge && has_edge_locked(trace) && row->state < TL_TRACE_SEALED &&
                         row->generation == trace->edge->number && row->wanted == row->generation &&
                         tl_monotonic_ns() - trace->edge_read_ns < KEEP_NS;
    const bool serves = goes_on && trace->serving == trace->edge;
    if (!goes_on)
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

/* Begin one, beside what serves. */
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
    uint64_t next; /* number of the first shard that the lane had not as stored */
};

/* The lane's oldest complete shard is in the store now. */
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
                : TL_BAD; /* decoded by another program */
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

/* Complete shards that the catalog has by now are read from the store. */
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
            r = tl_catalog_shards(gen->lake->catalog, gen->trace, gen->number, lane->index,
                                  take_stored, &s, NULL);
    }
    return r;
}

/* It cannot keep up, or is another program's: sealed shards are shown, as without it. */
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

/* It is as far as the raw bytes: it serves. */
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
