/* SPDX-License-Identifier: MIT */
/*
 * Virtual shards: their index is stored, the rest is regenerated from raw bytes when it is read.
 * The most recently regenerated ones are cached.
 */
#include "virtual/virtual.h"
#include "base/cancel.h"
#include "lake/lakeint.h"
#include "virtual/find_marks.h"
#include "virtual/remake.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS    (100 * TL_NS_PER_MS) /* between looks whether the request was cancelled */
#define WAIT_MAX_S 60                   /* waiting for another generation */

/* Cache key: a whole shard by its key, a single frame with its number appended; a growing shard's
 * frame with its present extent. */
static void made_key(char out[static 192], const struct tl_lane *lane, const struct tl_view *view,
                     size_t from, size_t to)
{
    const struct tl_shard_index *const index = &view->index;
    tl_shard_key(out, lane->gen->trace, lane->gen->number, lane->name, index->row.number);
    const size_t n = strlen(out);
    if (view->open) {
        const struct tl_chunk *const last = &index->chunks[index->n_chunks - 1];
        snprintf(out + n, 192 - n, "#%zu-%zu+%llu.%u", from, to, (unsigned long long)index->row.n,
                 last->items_plain);
    } else if (from > 0 || to < index->n_frames) {
        snprintf(out + n, 192 - n, "#%zu-%zu", from, to);
    }
}

static struct tl_view *find_made(struct tl_lane *lane, const struct tl_view *view, size_t from,
                                 size_t to)
{
    struct tl_lake *const lake = lane->gen->lake;
    char key[192];
    made_key(key, lane, view, from, to);
    struct tl_view *const found = tl_views_find(lake, lake->made, TL_MADE_CACHE, key);
    if (found || view->open)
        return found;
    made_key(key, lane, view, 0, view->index.n_frames);
    return tl_views_find(lake, lake->made, TL_MADE_CACHE, key);
}

/* Callback for the views of a lane. One reader builds, others of the lane wait and use the result.
 * Large uncompressed results take too much memory to be kept. */
int tl_lane_make(void *context, struct tl_view *view, size_t from, size_t to, bool packed,
                 struct tl_view **out, struct tl_fail *fail)
{
    struct tl_lane *lane = context;
    struct tl_lake *lake = lane->gen->lake;
    int r = TL_OK;
    *out = find_made(lane, view, from, to);
    if (*out)
        return TL_OK;
    pthread_mutex_lock(&lane->make_lock);
    *out = find_made(lane, view, from, to);
    if (!*out) {
        r = tl_remake_shard(lane, view, from, to, packed, out, fail);
        atomic_fetch_add(&lake->shards_made, 1);
        if (r >= 0) {
            if ((*out)->incomplete)
                tl_lane_note_incomplete(lane, view->index.row.number);
            made_key((*out)->key, lane, view, from, to);
            if (packed || to - from <= 1)
                tl_views_keep(lake, lake->made, TL_MADE_CACHE, *out);
        }
    }
    pthread_mutex_unlock(&lane->make_lock);
    return r;
}

/* Are the shards of a generation that an earlier run has decoded virtual? */
static bool has_foreign(struct tl_gen *gen)
{
    struct tl_lane *lane;
    struct tl_fail fail = {0};
    char key[192];
    uint64_t size;
    if (atomic_load(&gen->ours))
        return false;
    bool foreign = false;
    for (size_t i = 0; !foreign && (lane = tl_gen_lane_at(gen, i)); i++) {
        tl_virtual_key(key, gen->trace, gen->number, lane->name, 0);
        foreign = gen->lake->backend->ops->size(gen->lake->backend, key, &size, &fail) >= 0 &&
                  !tl_marks_are_ours(gen);
    }
    pthread_mutex_lock(&gen->lock);
    const bool known = gen->whose[0]; /* not if an image is damaged */
    pthread_mutex_unlock(&gen->lock);
    atomic_store(&gen->ours, !foreign && known);
    return foreign;
}

/* Is another generation being made that will replace this one? */
static bool is_replaced(struct tl_trace *trace, const struct tl_gen *gen)
{
    pthread_mutex_lock(&trace->lock);
    const bool is = trace->serving == gen && trace->making && trace->making != gen &&
                    trace->state != TL_TRACE_FAILED && !trace->deleted;
    pthread_mutex_unlock(&trace->lock);
    return is;
}

struct tl_gen *tl_trace_settled(struct tl_trace *trace)
{
    struct tl_lake *const lake = trace->lake;
    struct tl_gen *gen = tl_trace_serving(trace);
    if (!has_foreign(gen) || tl_gen_renew(gen, NULL) < 0)
        return gen;
    const int64_t end = tl_monotonic_ns() + WAIT_MAX_S * TL_NS_PER_S;
    while (is_replaced(trace, gen) && tl_monotonic_ns() < end && tl_cancel_check() >= 0 &&
           !atomic_load(&lake->closing)) {
        pthread_mutex_lock(&lake->lock);
        (void)tl_cond_wait_until(&lake->idle, &lake->lock, tl_monotonic_ns() + LOOK_NS);
        pthread_mutex_unlock(&lake->lock);
    }
    tl_gen_put(gen);
    return tl_trace_serving(trace);
}

static int lane_has_virtual(struct tl_lane *lane, bool *has, struct tl_fail *fail)
{
    const struct tl_gen *gen = lane->gen;
    struct tl_backend *backend = gen->lake->backend;
    char key[192];
    uint64_t size;
    pthread_mutex_lock(&lane->lock);
    const size_t n = lane->rows.n;
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
