/* SPDX-License-Identifier: MIT */
/*
 * Counting hits. Each thread has counters of its own, which are added up at the end: shards are
 * searched in any order, and a sum does not depend on it.
 */
#include "query/seek_count.h"

#include "base/search.h"
#include "query/sweep.h"

#include <stdlib.h>
#include <string.h>

struct counter {
    struct tl_seek seek;
    bool begun;
    const struct counting *of;
    uint64_t *counts;
    size_t shard;    /* being searched */
    uint64_t *own;   /* its edges, if they are refined */
    bool is_refined; /* `own` is set for it */
    struct tl_fail *fail;
};

struct counting {
    const struct tl_sought *sought;
    const struct tl_cut *cut;
    const struct tl_seek_range *range;
    const struct tl_seek_edges *edges;
    size_t first;             /* shard */
    struct counter *counters; /* by worker */
};

/* The edges that hold for the shard. */
static int edges_here(struct counter *c, const uint64_t **out)
{
    const struct tl_seek_edges *const edges = c->of->edges;
    int r = TL_OK;
    *out = edges->refine ? c->own : edges->p;
    if (!edges->refine || c->is_refined)
        return TL_OK;
    memcpy(c->own, edges->p, edges->n * sizeof *c->own);
    r = edges->refine(edges->context, c->shard, c->own, c->fail);
    c->is_refined = r >= 0;
    return r;
}

static int count_hit(void *context, uint64_t position, uint64_t pc, const char *text)
{
    struct counter *const c = context;
    const uint64_t *edges;
    const int r = edges_here(c, &edges);
    (void)pc;
    (void)text;
    if (r >= 0)
        c->counts[tl_count_upto(edges, sizeof *edges, 0, c->of->edges->n, position)]++;
    return r;
}

static int count_hits(void *context, uint64_t position, uint32_t n, uint32_t hits)
{
    struct counter *const c = context;
    const uint64_t *edges;
    const int r = edges_here(c, &edges);
    if (r < 0)
        return r;
    const size_t k = tl_count_upto(edges, sizeof *edges, 0, c->of->edges->n, position);
    if (k < c->of->edges->n && position + n > edges[k])
        return TL_AGAIN;
    c->counts[k] += hits;
    return TL_OK;
}

static int keep_on(void *context)
{
    (void)context;
    return TL_OK;
}

static int count_shard(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    const struct counting *const c = context;
    struct counter *const counter = &c->counters[worker];
    if (!counter->begun) {
        const int r = tl_seek_init(&counter->seek, c->sought, c->cut);
        counter->begun = true;
        counter->seek.count = count_hits;
        counter->seek.sink = count_hit;
        counter->seek.context = counter;
        if (r < 0)
            return r;
    }
    /* Executions of a symbol are searched from the shard's begin. */
    const struct tl_shard_row *const row = &c->cut->rows[c->first + i];
    struct tl_seek_range range = *c->range;
    if (row->first > range.from)
        range.from = row->first;
    counter->seek.after = UINT64_MAX;
    counter->shard = c->first + i;
    counter->is_refined = false;
    counter->fail = fail;
    return tl_seek_shard(&counter->seek, c->first + i, &range, keep_on, fail);
}

int tl_seek_count_between(struct tl_lake *lake, const struct tl_sought *sought,
                          const struct tl_cut *cut, const struct tl_seek_range *range,
                          const struct tl_seek_edges *edges, uint64_t *counts, struct tl_fail *fail)
{
    const unsigned workers = tl_sweep_workers(lake);
    const size_t bins = edges->n + 1;
    struct counter *const counters = calloc(workers, sizeof *counters);
    uint64_t *const all = calloc(2 * workers * bins, sizeof *all); /* counts, then edges */
    struct counting c = {
        .sought = sought, .cut = cut, .range = range, .edges = edges, .counters = counters};
    int r = counters && all ? TL_OK : TL_NOMEM;
    for (unsigned i = 0; i < workers && r >= 0; i++) {
        counters[i].of = &c;
        counters[i].counts = all + i * bins;
        counters[i].own = all + (workers + i) * bins;
    }
    if (r >= 0) {
        size_t end;
        tl_seek_shards(cut, range, &c.first, &end);
        r = tl_sweep(lake, end - c.first, count_shard, &c, fail);
    }
    for (size_t i = 0; i < workers * bins && r >= 0; i++)
        counts[i % bins] += all[i];
    for (unsigned i = 0; counters && i < workers; i++)
        if (counters[i].begun)
            tl_seek_fini(&counters[i].seek);
    free(all);
    free(counters);
    return r;
}
