/* SPDX-License-Identifier: MIT */
/* The lake as an object: its members from their defaults to their end, watchers, and whether the
 * store works. opening/open.c makes one that does something. */
#include "lake/lakeint.h"

#include <assert.h>
#include <stdlib.h>

/* Defaults of struct tl_lake_options. */
#define SHARD_INSNS      (UINT64_C(1) << 20) /* whole chunks */
#define MARK_BYTES       (4u << 10)
#define SUMMARY_BUCKETS  32768
#define CHECKPOINT_BYTES ((uint64_t)64 << 20)
#define OUTLINE_BYTES    (UINT64_C(256) << 10)
#define LAG_BYTES        (UINT64_C(16) << 20)
#define MIN_FREE         (UINT64_C(256) << 20)

static_assert(SUMMARY_BUCKETS * sizeof(struct tl_bucket) == 10 << 20, "as the manual says");

#define OUTLINES_KEPT 512 /* complete shards of an outline in memory */
#define OUTLINE_PIECE (512u << 10)

/* ---- watchers ------------------------------------------------------------------------------- */

int tl_lake_watch(struct tl_lake *lake, void (*notify)(void *context), void *context)
{
    int handle = TL_LIMIT;
    pthread_mutex_lock(&lake->watch_lock);
    for (int i = 0; i < TL_WATCHERS && handle < 0; i++)
        if (!lake->watchers[i].notify) {
            lake->watchers[i] = (struct tl_watcher){notify, context};
            handle = i;
        }
    pthread_mutex_unlock(&lake->watch_lock);
    return handle;
}

void tl_lake_unwatch(struct tl_lake *lake, int handle)
{
    if (handle < 0 || handle >= TL_WATCHERS)
        return;
    pthread_mutex_lock(&lake->watch_lock);
    lake->watchers[handle] = (struct tl_watcher){0};
    pthread_mutex_unlock(&lake->watch_lock);
}

void tl_lake_notify(struct tl_lake *lake)
{
    atomic_fetch_add(&lake->revision, 1);
    pthread_mutex_lock(&lake->watch_lock);
    for (int i = 0; i < TL_WATCHERS; i++)
        if (lake->watchers[i].notify)
            lake->watchers[i].notify(lake->watchers[i].context);
    pthread_mutex_unlock(&lake->watch_lock);
}

/* ---- its life ------------------------------------------------------------------------------- */

static void set_defaults(struct tl_lake_options *o)
{
    o->dir = o->store = NULL;
    if (o->checkpoint_bytes == 0)
        o->checkpoint_bytes = CHECKPOINT_BYTES;
    if (o->mark_bytes == 0)
        o->mark_bytes = MARK_BYTES;
    if (o->summary_buckets == 0)
        o->summary_buckets = SUMMARY_BUCKETS;
    if (o->shard_insns == 0)
        o->shard_insns = SHARD_INSNS;
    if (o->outline_bytes == 0)
        o->outline_bytes = OUTLINE_BYTES;
    if (o->lag_bytes == 0)
        o->lag_bytes = LAG_BYTES;
    if (o->min_free_bytes == 0)
        o->min_free_bytes = MIN_FREE;
    if (o->segment_bytes == 0)
        o->segment_bytes = TL_SPOOL_SEGMENT_BYTES;
}

static void init_locks(struct tl_lake *lake)
{
    pthread_mutex_init(&lake->lock, NULL);
    pthread_mutex_init(&lake->retain_lock, NULL);
    pthread_mutex_init(&lake->clock_lock, NULL);
    pthread_mutex_init(&lake->images_lock, NULL);
    pthread_mutex_init(&lake->garbage_lock, NULL);
    pthread_mutex_init(&lake->reading, NULL);
    pthread_mutex_init(&lake->watch_lock, NULL);
    pthread_mutex_init(&lake->cache_lock, NULL);
    pthread_mutex_init(&lake->notes_lock, NULL);
    pthread_mutex_init(&lake->program_lock, NULL);
    pthread_mutex_init(&lake->debuginfo_lock, NULL);
    pthread_cond_init(&lake->idle, NULL);
}

static void destroy_locks(struct tl_lake *lake)
{
    pthread_mutex_destroy(&lake->lock);
    pthread_mutex_destroy(&lake->retain_lock);
    pthread_mutex_destroy(&lake->clock_lock);
    pthread_mutex_destroy(&lake->images_lock);
    pthread_mutex_destroy(&lake->garbage_lock);
    pthread_mutex_destroy(&lake->reading);
    pthread_mutex_destroy(&lake->watch_lock);
    pthread_mutex_destroy(&lake->cache_lock);
    pthread_mutex_destroy(&lake->notes_lock);
    pthread_mutex_destroy(&lake->program_lock);
    pthread_mutex_destroy(&lake->debuginfo_lock);
    pthread_cond_destroy(&lake->idle);
}

struct tl_lake *tl_lake_new(struct tl_backend *backend, const struct tl_lake_options *options,
                            const struct tl_lake_rooms *rooms)
{
    struct tl_lake *const lake = calloc(1, sizeof(*lake));
    if (!lake)
        return NULL;
    if (tl_image_pool_new(&lake->image_pool) < 0) {
        free(lake);
        return NULL;
    }
    lake->rooms = rooms;
    lake->backend = backend;
    lake->shared = backend->ops->lease_ask != NULL;
    lake->options = *options;
    set_defaults(&lake->options);
    lake->segment_bytes = lake->options.segment_bytes;
    atomic_init(&lake->min_free, lake->options.min_free_bytes);
    atomic_init(&lake->index_end, UINT64_MAX);
    atomic_init(&lake->outline_piece, OUTLINE_PIECE);
    atomic_init(&lake->outlines_kept, OUTLINES_KEPT);
    tl_job_queue_init(&lake->queue);
    init_locks(lake);
    tl_verified_init(&lake->verified);
    tl_chore_init(&lake->look);
    tl_chore_init(&lake->house);
    tl_chore_init(&lake->repack);
    tl_chore_init(&lake->share);
    tl_chore_init(&lake->backfill);
    return lake;
}

void tl_lake_put_all(struct tl_lake *lake)
{
    tl_job_queue_fini(&lake->queue);
    for (struct tl_trace *t = lake->traces, *next; t; t = next) {
        next = t->next;
        tl_trace_put(t);
    }
}

void tl_lake_free(struct tl_lake *lake)
{
    if (lake->owns_backend)
        tl_backend_free(lake->backend);
    tl_chore_fini(&lake->look);
    tl_chore_fini(&lake->house);
    tl_chore_fini(&lake->repack);
    tl_chore_fini(&lake->share);
    tl_chore_fini(&lake->backfill);
    tl_verified_fini(&lake->verified);
    tl_seats_fini(&lake->sql_seats);
    tl_image_unused_fini(&lake->unused);
    tl_image_pool_free(lake->image_pool);
    destroy_locks(lake);
    free(lake);
}

int tl_lake_usable(struct tl_lake *lake, struct tl_fail *fail)
{
    return lake->backend->ops->usable(lake->backend, fail);
}

int tl_lake_writable(struct tl_lake *lake, struct tl_fail *fail)
{
    const struct tl_backend_ops *const store = lake->backend->ops;
    const struct tl_catalog_ops *const catalog = lake->catalog->ops;
    const int r = store->writable ? store->writable(lake->backend, fail) : TL_OK;
    return r < 0 || !catalog->writable ? r : catalog->writable(lake->catalog, fail);
}

void tl_lake_set_min_free(struct tl_lake *lake, uint64_t bytes)
{
    const uint64_t min_free = bytes ? bytes : MIN_FREE;
    atomic_store(&lake->min_free, min_free);
    tl_spool_limit(lake->spool, min_free);
}
