/* SPDX-License-Identifier: MIT */
/*
 * Most calls from a path have the same destination as the previous one. So a path is looked up by
 * function only when it changes. Calls are counted by function, which paths have the number of;
 * only what paths are asked for themselves is summed up at the end.
 */
#include "builder/call_paths.h"

#include <stdlib.h>

int64_t tl_call_paths_add_function(struct tl_call_paths *p, uint32_t function)
{
    const size_t known = p->index.n_functions;
    const int64_t place = tl_call_index_function(&p->index, function);
    if (place >= (int64_t)known)
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS; weight++)
            p->index.functions[place].by[weight] = TL_CALL_SUMS_OPEN;
    return place;
}

/* Extend the counters to the tree's newest paths. */
static int know_paths(struct tl_call_paths *p)
{
    const size_t n = p->tree.n_nodes;
    int r = tl_grow(&p->known, &p->cap_known, n, sizeof *p->known);
    for (; r >= 0 && p->n_known < n; p->n_known++) {
        const int64_t function = tl_call_paths_add_function(p, p->tree.nodes[p->n_known].function);
        if (function < 0)
            return TL_NOMEM;
        p->known[p->n_known] = (struct tl_call_path){.function = (uint32_t)function};
    }
    return r;
}

int tl_call_paths_begin(struct tl_call_paths *p)
{
    const int r = tl_calltree_root(&p->tree);
    return r < 0 ? r : know_paths(p);
}

void tl_call_paths_fini(struct tl_call_paths *p)
{
    free(p->known);
    tl_calltree_fini(&p->tree);
    tl_call_index_fini(&p->index);
    tl_timed_rows_fini(&p->rows);
    *p = (struct tl_call_paths){0};
}

int64_t tl_call_paths_search(struct tl_call_paths *p, uint32_t parent, uint32_t function)
{
    const int64_t path = tl_calltree_path(&p->tree, parent, function);
    if (path < 0 || (path >= (int64_t)p->n_known && know_paths(p) < 0))
        return TL_NOMEM;
    if ((uint32_t)path != parent) { /* otherwise the tree is full */
        p->known[parent].callee = function;
        p->known[parent].child = (uint32_t)path;
    }
    return path;
}

/* The function's totals in the tree. */
static int report_function(struct tl_call_paths *p, const struct tl_function_calls *f)
{
    const struct tl_call_sums *const sums = &f->by[TL_BY_INSNS];
    if (sums->calls == 0 && sums->ended == 0)
        return TL_OK;
    const int64_t place = tl_calltree_function(&p->tree, f->function);
    if (place < 0)
        return TL_NOMEM;
    tl_calltree_add_function(&p->tree.functions[place],
                             &(struct tl_calltree_function){
                                 .function = f->function,
                                 .calls = sums->calls,
                                 .ended = sums->ended,
                                 .total = sums->total,
                                 .min = sums->ended > 0 ? sums->min : UINT64_MAX,
                                 .max = sums->max,
                                 .longest = sums->longest,
                             });
    return TL_OK;
}

int tl_call_paths_report(struct tl_call_paths *p)
{
    int r = TL_OK;
    for (size_t i = 0; i < p->n_known; i++) {
        const struct tl_call_path *const known = &p->known[i];
        struct tl_call_sums *const by = p->index.functions[known->function].by;
        p->tree.nodes[i].self = known->self;
        p->tree.nodes[i].calls = known->calls;
        p->tree.nodes[i].time = known->time;
        by[TL_BY_INSNS].self += known->self;
        by[TL_BY_INSNS].calls += known->calls;
        by[TL_BY_TIME].self += known->time;
        by[TL_BY_TIME].calls += known->timed_calls;
    }
    for (size_t i = 0; i < p->index.n_functions; i++)
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS; weight++)
            tl_call_sums_close(&p->index.functions[i].by[weight]);
    for (size_t i = 0; i < p->index.n_functions && r >= 0; i++)
        r = report_function(p, &p->index.functions[i]);
    p->n_known = 0;
    return r;
}
