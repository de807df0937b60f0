/* SPDX-License-Identifier: MIT */
/*
 * Indexes are read in parallel and added in order. Shards without one are counted together with
 * those that follow them without one, because times continue from shard to shard.
 */
#include "query/callindexes.h"

#include "lake/recount_calls.h"
#include "query/kept.h"
#include "query/sweep.h"

#include <stdlib.h>

struct adding {
    const struct tl_cut *cut;
    size_t first;
    struct tl_call_index *v; /* of the shards */
    bool *known;
    struct tl_kept kept;
};

static int read_one(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    struct adding *const a = context;
    (void)worker, (void)fail;
    const int r = tl_kept_index_get(a->cut, a->first + i, &a->v[i]);
    a->known[i] = r >= 0;
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int take_counted(void *context, size_t row, struct tl_shard_calls *calls)
{
    struct adding *const a = context;
    int r = tl_call_index_merge(&a->v[row - a->first], &calls->index);
    if (r >= 0)
        r = tl_kept_calls_replace(&a->kept, a->cut, row, calls);
    return r;
}

/* Count those that are not known. */
static int count_rest(struct adding *a, size_t n, struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = 0, end; i < n && r >= 0; i = end) {
        for (end = i + 1; end < n && a->known[end] == a->known[i];)
            end++;
        if (!a->known[i])
            r = tl_recount_calls(a->cut, a->first + i, a->first + end, take_counted, a, fail);
    }
    return r;
}

int tl_call_indexes_add(struct tl_call_index *into, const struct tl_cut *cut, size_t first,
                        size_t end, struct tl_fail *fail)
{
    const size_t n = end > first ? end - first : 0;
    struct adding a = {.cut = cut, .first = first};
    a.v = calloc(n + 1, sizeof *a.v);
    a.known = calloc(n + 1, sizeof *a.known);
    int r = a.v && a.known ? tl_sweep(cut->gen->lake, n, read_one, &a, fail) : TL_NOMEM;
    if (r >= 0)
        r = count_rest(&a, n, fail);
    for (size_t i = 0; a.v && i < n; i++) {
        if (r >= 0)
            r = tl_call_index_merge(into, &a.v[i]);
        tl_call_index_fini(&a.v[i]);
    }
    tl_kept_store(&a.kept, cut);
    free(a.v);
    free(a.known);
    return r;
}
