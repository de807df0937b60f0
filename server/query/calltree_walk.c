/* SPDX-License-Identifier: MIT */
/*
 * Call trees of sections of a stream. Each index chunk stores the call stack at its begin,
 * including where each call began, so shards can be processed in any order, and the begin of a call
 * in an earlier shard is known at its end.
 */
#include "builder/call_counter.h"
#include "query/calltree.h"
#include "query/kept.h"
#include "query/sweep.h"
#include "shard/savedstack.h"

#include <stdlib.h>

#define KEEP_MAX (48u << 20) /* cache size per stream, in bytes */

/* ---- a piece -------------------------------------------------------------------------------- */

struct piece {
    struct tl_call_counter counter;
    struct tl_callstack calls;
    struct tl_walk walk;
};

static int count_chunk(struct piece *p, struct tl_view *view, size_t chunk,
                       const struct tl_walk_range *range, const struct tl_image *image,
                       uint64_t from, struct tl_fail *fail)
{
    p->walk.detail = TL_WALK_FLOW;
    p->walk.image = image;
    int r = tl_walk_chunk(&p->walk, view, chunk, range, fail);
    if (r >= 0 && !p->counter.calls) {
        r = tl_walk_stack(&p->walk, &p->calls);
        tl_call_counter_begin(&p->counter, &p->calls, NULL, range->from, from);
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < p->walk.n && r >= 0; i++)
        r = tl_walk_follow(&p->walk, &p->calls, i);
    return r >= 0 && !p->counter.counting ? TL_NOMEM : r;
}

/* Count the part of the range that is in one shard. */
static int count_view(struct tl_calltree *tree, struct tl_view *view, const struct tl_cut *cut,
                      uint64_t from, uint64_t to, struct tl_fail *fail)
{
    const struct tl_image *const image = tl_gen_image(cut->gen);
    const struct tl_shard_index *const index = &view->index;
    const uint64_t end = index->row.first + index->row.n;
    struct piece *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    tl_callstack_init(&p->calls, image, 0, NULL, NULL);
    int r = TL_OK;
    for (size_t i = tl_shard_items_at(index, from);
         i < index->n_chunks && index->chunks[i].first < to && r >= 0; i++) {
        const struct tl_walk_range range = {
            .from = index->chunks[i].first, .to = to, .protocol = cut->lane->protocol};
        r = count_chunk(p, view, i, &range, image, from, fail);
    }
    tl_call_counter_end(&p->counter, to < end ? to : end);
    if (r >= 0) {
        *tree = p->counter.counts.tree;
        p->counter.counts.tree = (struct tl_calltree){0};
    }
    tl_call_counter_fini(&p->counter);
    tl_walk_fini(&p->walk);
    free(p);
    return r;
}

/* ---- cached shards -------------------------------------------------------------------------- */

static void forget(struct tl_calltree *tree)
{
    if (tree)
        tl_calltree_fini(tree);
    free(tree);
}

/* Cache the tree, taking it over. Best effort. */
static void remember(struct tl_lane *lane, size_t i, struct tl_calltree *tree)
{
    tl_calltree_slim(tree);
    const size_t size = tl_calltree_bytes(tree);
    pthread_mutex_lock(&lane->lock);
    if (lane->calltree_bytes + size <= KEEP_MAX &&
        tl_grow(&lane->calltrees, &lane->cap_calltrees, i + 1, sizeof *lane->calltrees) >= 0) {
        for (; lane->n_calltrees <= i; lane->n_calltrees++)
            lane->calltrees[lane->n_calltrees] = NULL;
        if (!lane->calltrees[i]) {
            lane->calltrees[i] = tree;
            lane->calltree_bytes += size;
            tree = NULL;
        }
    }
    pthread_mutex_unlock(&lane->lock);
    forget(tree);
}

/* ---- a range -------------------------------------------------------------------------------- */

struct range {
    const struct tl_cut *cut;
    uint64_t from, to;
    size_t first;               /* shard */
    struct tl_calltree **trees; /* of the shards processed */
};

static bool is_whole(const struct range *s, size_t i)
{
    const struct tl_shard_row *const row = &s->cut->rows[i];
    return i < s->cut->n_stored && row->first >= s->from && row->first + row->n <= s->to;
}

/*
 * The cached tree of a whole shard is independent of the range: it includes the items at its end.
 */
static int count_part(const struct range *s, size_t shard, struct tl_view *view,
                      struct tl_calltree *tree, struct tl_fail *fail)
{
    const bool whole = is_whole(s, shard);
    return count_view(tree, view, s->cut, whole ? 0 : s->from, whole ? UINT64_MAX : s->to, fail);
}

static int count_shard(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    struct range *const s = context;
    const size_t shard = s->first + i;
    struct tl_lane *const lane = s->cut->lane;
    struct tl_view *view;
    (void)worker;
    if (is_whole(s, shard)) {
        pthread_mutex_lock(&lane->lock);
        const bool known = shard < lane->n_calltrees && lane->calltrees[shard];
        pthread_mutex_unlock(&lane->lock);
        if (known)
            return TL_OK;
    }
    s->trees[i] = calloc(1, sizeof *s->trees[i]);
    int r = s->trees[i] ? TL_NOTFOUND : TL_NOMEM;
    if (r == TL_NOTFOUND && is_whole(s, shard))
        r = tl_kept_calls_get(s->cut, shard, s->trees[i]);
    if (r != TL_NOTFOUND)
        return r;
    r = tl_cut_view(s->cut, shard, &view, fail);
    if (r < 0)
        return r;
    r = count_part(s, shard, view, s->trees[i], fail);
    tl_view_put(view);
    return r;
}

/* Add the cached tree of a shard. TL_AGAIN: not cached any more. */
static int recall(struct tl_calltree *tree, struct tl_lane *lane, size_t shard)
{
    pthread_mutex_lock(&lane->lock);
    const struct tl_calltree *const known =
        shard < lane->n_calltrees ? lane->calltrees[shard] : NULL;
    const int r = known ? tl_calltree_merge(tree, known) : TL_AGAIN;
    pthread_mutex_unlock(&lane->lock);
    return r;
}

static int merge_shard(struct tl_calltree *tree, struct range *s, size_t i, struct tl_kept *kept,
                       struct tl_fail *fail)
{
    int r = TL_OK;
    if (!s->trees[i])
        r = recall(tree, s->cut->lane, s->first + i);
    if (r == TL_AGAIN) { /* evicted meanwhile */
        s->trees[i] = calloc(1, sizeof *s->trees[i]);
        struct tl_view *view;
        r = s->trees[i] ? tl_cut_view(s->cut, s->first + i, &view, fail) : TL_NOMEM;
        if (r >= 0) {
            r = count_part(s, s->first + i, view, s->trees[i], fail);
            tl_view_put(view);
        }
    }
    if (r < 0 || !s->trees[i])
        return r;
    r = tl_calltree_merge(tree, s->trees[i]);
    if (r >= 0 && is_whole(s, s->first + i) && !s->trees[i]->stored)
        r = tl_kept_calls_add(kept, s->cut, s->first + i, s->trees[i]);
    if (r >= 0 && is_whole(s, s->first + i)) {
        remember(s->cut->lane, s->first + i, s->trees[i]);
        s->trees[i] = NULL;
    }
    return r;
}

int tl_calltree_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from, uint64_t to,
                    struct tl_fail *fail)
{
    struct range s = {.cut = cut, .from = from, .to = to < cut->end ? to : cut->end};
    s.first = tl_cut_items_at(cut, from);
    /* Items at a shard's end belong to the shard. */
    if (s.first < cut->n_rows && cut->rows[s.first].first < from &&
        cut->rows[s.first].first + cut->rows[s.first].n == from)
        s.first++;
    size_t n = 0;
    while (s.first + n < cut->n_rows && cut->rows[s.first + n].first < s.to)
        n++;
    s.trees = calloc(n + 1, sizeof *s.trees);
    if (!s.trees)
        return TL_NOMEM;
    struct tl_kept kept = {0};
    int r = tl_sweep(cut->gen->lake, n, count_shard, &s, fail);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            r = merge_shard(tree, &s, i, &kept, fail);
        forget(s.trees[i]);
    }
    tl_kept_store(&kept, cut);
    free(s.trees);
    return r;
}

bool tl_calltree_none(const struct tl_cut *cut, size_t shard, uint32_t function)
{
    struct tl_lane *const lane = cut->lane;
    pthread_mutex_lock(&lane->lock);
    const struct tl_calltree *const known =
        shard < lane->n_calltrees ? lane->calltrees[shard] : NULL;
    const struct tl_calltree_function *const f = known ? tl_calltree_find(known, function) : NULL;
    const bool none = known && (!f || f->calls == 0);
    pthread_mutex_unlock(&lane->lock);
    return none;
}

int tl_calltree_calls_before(const struct tl_cut *cut, uint32_t function, uint64_t to,
                             uint64_t *calls, struct tl_fail *fail)
{
    const struct tl_calltree_function *f;
    struct tl_calltree last = {0};
    const size_t shard = tl_cut_shard_at(cut, to);
    *calls = 0;
    for (size_t i = 0; i < shard; i++) {
        struct tl_calltree one = {0};
        pthread_mutex_lock(&cut->lane->lock);
        const struct tl_calltree *const known =
            i < cut->lane->n_calltrees ? cut->lane->calltrees[i] : NULL;
        f = known ? tl_calltree_find(known, function) : NULL;
        *calls += f ? f->calls : 0;
        pthread_mutex_unlock(&cut->lane->lock);
        if (known)
            continue;
        const struct tl_shard_row *const row = &cut->rows[i];
        const int r = tl_calltree_add(&one, cut, row->first, row->first + row->n, fail);
        f = r >= 0 ? tl_calltree_find(&one, function) : NULL;
        *calls += f ? f->calls : 0;
        tl_calltree_fini(&one);
        if (r < 0)
            return r;
    }
    if (shard == cut->n_rows || to == cut->rows[shard].first)
        return TL_OK;
    const int r = tl_calltree_add(&last, cut, cut->rows[shard].first, to, fail);
    f = r >= 0 ? tl_calltree_find(&last, function) : NULL;
    *calls += f ? f->calls : 0;
    tl_calltree_fini(&last);
    return r;
}
