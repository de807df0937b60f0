/* SPDX-License-Identifier: MIT */
/*
 * Indexes shards ahead of their turn. A decoder begins at a mark before the first of them, and
 * their indexes stay in the cache of views, which bounds them: until the index behind the outline
 * has come so far, whoever looks there again finds them.
 */
#include "virtual/early.h"

#include "base/now.h"
#include "lake/lakeint.h"
#include "virtual/rerun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_NS                                                                                  \
    (150 * TL_NS_PER_MS)  /* processor time for a question; another one goes on there */
#define SLICE (32u << 10) /* raw bytes between two looks at the clock */

/* Processor time of this thread; how long a question waits for a processor does not limit it. */
static int64_t spent_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0
               ? 0
               : (int64_t)t.tv_sec * TL_NS_PER_S + t.tv_nsec;
}

struct early {
    struct tl_rerun run;
    struct tl_lane *lane;
    struct tl_view **views; /* to be replaced */
    size_t n, done;
    int64_t until;
};

/* Not that of the stored shard: an index from here lacks calls. */
static void early_key(char out[static 192], const struct tl_lane *lane, uint64_t number)
{
    tl_virtual_key(out, lane->gen->trace, lane->gen->number, lane->name, number);
    const size_t n = strlen(out);
    snprintf(out + n, 192 - n, "#early");
}

static void drop_calls(struct tl_view *view)
{
    if (view->calls)
        tl_shard_calls_fini(view->calls);
    free(view->calls);
    view->calls = NULL;
}

/* Put a view, which it takes over, in the place of the next one. */
static void replace(struct early *e, struct tl_view *view)
{
    tl_view_put(e->views[e->done]);
    e->views[e->done++] = view;
}

static bool is_over(const struct early *e)
{
    return e->done == e->n || spent_ns() > e->until;
}

/* A complete shard: is it the next one that is wanted? */
static int on_seal(void *context, struct tl_view *view)
{
    struct early *const e = context;
    const struct tl_shard_row *const want = e->done < e->n ? &e->views[e->done]->index.row : NULL,
                                     *const row = &view->index.row;
    if (!want || row->number != want->number || row->first != want->first) {
        tl_view_put(view);
        return TL_BAD;
    }
    drop_calls(view);
    tl_lane_make_virtual(e->lane, view);
    early_key(view->key, e->lane, row->number);
    tl_views_keep(e->lane->gen->lake, e->lane->gen->lake->cache, TL_VIEW_CACHE, view);
    replace(e, view);
    return is_over(e) ? TL_EOF : TL_OK;
}

/* The growing shard is the last one that is wanted: is what was seen of it decoded again? */
static int look_at_growing(struct early *e)
{
    struct tl_build_totals totals;
    struct tl_view *view = NULL;
    if (e->done + 1 != e->n || !e->views[e->done]->open || !e->run.build)
        return TL_OK;
    const struct tl_shard_row *const want = &e->views[e->done]->index.row;
    tl_build_totals(e->run.build, &totals);
    if (totals.position < want->first + want->n)
        return TL_OK;
    const int r = tl_build_view(e->run.build, &view);
    if (r < 0 || !view)
        return r;
    if (view->index.row.number != want->number || view->index.row.n < want->n) {
        tl_view_put(view);
        return TL_OK;
    }
    drop_calls(view);
    tl_lane_make_virtual(e->lane, view);
    replace(e, view);
    return TL_EOF;
}

static void decode(struct early *e)
{
    const uint64_t end = tl_rerun_end(e->lane->gen, true);
    int r = TL_OK;
    while (r >= 0 && !is_over(e) && !e->run.finished) {
        if (e->run.at < end)
            r = tl_rerun_step(&e->run, end, SLICE, NULL);
        else if (e->views[e->n - 1]->open)
            break;
        else
            r = tl_rerun_finish(&e->run);
        if (r >= 0)
            r = look_at_growing(e);
    }
}

/* Those that are in the cache. */
static void take_known(struct early *e)
{
    struct tl_lake *const lake = e->lane->gen->lake;
    char key[192];
    struct tl_view *known;
    while (e->done < e->n) {
        early_key(key, e->lane, e->views[e->done]->index.row.number);
        known = tl_views_find(lake, lake->cache, TL_VIEW_CACHE, key);
        if (!known)
            return;
        replace(e, known);
    }
}

/* Index from the next one up to the first that is known, or to the end. */
static void index_unknown(struct early *e)
{
    const struct tl_shard_row *const row = &e->views[e->done]->index.row;
    const struct tl_build_options how = {.index_only = true,
                                         .seal = on_seal,
                                         .context = e,
                                         .axis = tl_lane_axis(e->lane),
                                         .sealed = row->number,
                                         .sealed_position = row->first};
    const struct tl_rerun_place place = {.shard = row->number, .offset = row->byte_first};
    if (tl_rerun_begin(&e->run, e->lane, &how, &place, NULL) >= 0)
        decode(e);
    tl_rerun_fini(&e->run);
}

size_t tl_index_early(struct tl_lane *lane, struct tl_view **views, size_t n)
{
    struct early e = {.lane = lane,
                      .views = views,
                      .n = n < TL_VIEW_CACHE / 2 ? n : TL_VIEW_CACHE / 2,
                      .until = spent_ns() + BUDGET_NS};
    take_known(&e);
    if (is_over(&e))
        return e.done;
    pthread_mutex_lock(&lane->make_lock);
    take_known(&e); /* others may have been here */
    if (!is_over(&e))
        index_unknown(&e);
    pthread_mutex_unlock(&lane->make_lock);
    return e.done;
}
