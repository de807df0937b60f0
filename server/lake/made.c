/* SPDX-License-Identifier: MIT */
/*
 * Virtual shards: their index is stored, the rest is made from raw bytes when somebody reads it.
 * The last ones that were made are kept.
 */
#include "ingest/remake.h"
#include "lake/lakeint.h"

static struct tl_view *find_made(struct tl_lake *lake, const char *key)
{
    return tl_views_find(lake, lake->made, TL_MADE_CACHE, key);
}

static void keep_made(void *context, struct tl_view *view)
{
    struct tl_lake *lake = context;
    tl_views_keep(lake, lake->made, TL_MADE_CACHE, view);
}

/* For the views of a lane. One reader makes, others of the lane wait and find it made. */
static int make(void *context, const struct tl_view *view, struct tl_view **out,
                struct tl_fail *fail)
{
    struct tl_lane *lane = context;
    struct tl_gen *gen = lane->gen;
    struct tl_lake *lake = gen->lake;
    char key[192];
    tl_shard_key(key, gen->trace, gen->number, lane->name, view->index.row.number);
    *out = find_made(lake, key);
    if (*out)
        return TL_OK;
    pthread_mutex_lock(&lane->make_lock);
    *out = find_made(lake, key);
    int r = TL_OK;
    if (!*out) {
        r = tl_remake(gen, lane, &view->index.row, keep_made, lake, out, fail);
        atomic_fetch_add(&lake->shards_made, 1);
    }
    pthread_mutex_unlock(&lane->make_lock);
    return r;
}

void tl_lane_make_virtual(struct tl_lane *lane, struct tl_view *view)
{
    tl_view_make_virtual(view, make, lane);
}

int tl_lane_open_virtual(struct tl_lane *lane, uint64_t number, struct tl_view **out,
                         struct tl_fail *fail)
{
    char key[192];
    tl_virtual_key(key, lane->gen->trace, lane->gen->number, lane->name, number);
    const int r = tl_view_open(out, lane->gen->lake->backend, key, fail);
    if (r < 0)
        return r;
    (*out)->make = make;
    (*out)->maker = lane;
    return TL_OK;
}

bool tl_trace_is_virtual(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool is = tl_label_is(trace->labels, TL_LABEL_SHARDS "=virtual");
    pthread_mutex_unlock(&trace->lock);
    return is;
}

static int lane_has_virtual(struct tl_lane *lane, bool *has, struct tl_fail *fail)
{
    const struct tl_gen *gen = lane->gen;
    struct tl_backend *backend = gen->lake->backend;
    char key[192];
    uint64_t size;
    pthread_mutex_lock(&lane->lock);
    const size_t n = lane->n_rows;
    pthread_mutex_unlock(&lane->lock);
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n && !*has; i++) {
        tl_virtual_key(key, gen->trace, gen->number, lane->name, i);
        r = backend->ops->size(backend, key, &size, fail);
        *has = r >= 0;
        if (r == TL_NOTFOUND)
            r = TL_OK;
    }
    return r;
}

int tl_gen_has_virtual(struct tl_gen *gen, bool *has, struct tl_fail *fail)
{
    struct tl_lane *lane;
    int r = TL_OK;
    *has = false;
    for (size_t i = 0; r >= 0 && !*has && (lane = tl_gen_lane_at(gen, i)); i++)
        r = lane_has_virtual(lane, has, fail);
    return r;
}
