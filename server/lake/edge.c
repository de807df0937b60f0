/* SPDX-License-Identifier: MIT */
/*
 * The live edge of a trace that another server decodes, as the lake's objects know it: whether
 * there is one, who reads it, and when it is over. Decoding it is in decoding/edge_job.c.
 */
#include "lake/lakeint.h"

#define KEEP_NS   INT64_C(30000000000) /* how long decoding continues after the last read */
#define REPORT_NS INT64_C(1000000000)  /* between two messages to the server that owns the trace */

/* Does the trace have a live edge at another server? */
bool tl_edge_exists_locked(const struct tl_trace *trace)
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
    const bool is = tl_edge_exists_locked(trace);
    const bool reports =
        is && (!trace->edge.reported_ns || now - trace->edge.reported_ns >= REPORT_NS);
    const bool begins = is && !trace->edge.gen && now >= trace->edge.after_ns;
    if (is)
        trace->edge.read_ns = now;
    if (reports)
        trace->edge.reported_ns = now;
    pthread_mutex_unlock(&trace->lock);
    if (reports)
        lake->backend->ops->report(lake->backend, TL_NEWS_READ, trace->id);
    if (begins)
        tl_lake_queue(lake, trace, 0);
}

/* Drop the edge; it may be served until another generation is. Called with trace->lock held;
 * returns a reference that the caller must put after releasing the lock. */
struct tl_gen *tl_edge_end_locked(struct tl_trace *trace)
{
    struct tl_gen *const edge = trace->edge.gen;
    if (edge)
        atomic_store(&edge->abandoned, true);
    trace->edge.gen = NULL;
    return edge;
}

bool tl_edge_continues(struct tl_trace *trace, const struct tl_catalog_trace *row)
{
    struct tl_gen *ended = NULL;
    pthread_mutex_lock(&trace->lock);
    const bool continues =
        trace->edge.gen && tl_edge_exists_locked(trace) && row->state < TL_TRACE_SEALED &&
        row->generation == trace->edge.gen->number && row->wanted == row->generation &&
        tl_monotonic_ns() - trace->edge.read_ns < KEEP_NS;
    const bool serves = continues && trace->serving == trace->edge.gen;
    if (!continues)
        ended = tl_edge_end_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    tl_gen_put(ended);
    return serves;
}

void tl_edge_wake(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool is = trace->edge.gen;
    pthread_mutex_unlock(&trace->lock);
    if (is)
        tl_lake_queue(trace->lake, trace, 0);
}
