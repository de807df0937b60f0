/* SPDX-License-Identifier: MIT */
/* Opening and closing the lake, and watchers. */
#include "base/crew.h"
#include "base/processors.h"
#include "ingest/decode_memory.h"
#include "ingest/repack.h"
#include "ingest/suspect.h"
#include "lake/jobs.h"
#include "lake/lakeint.h"
#include "query/debuginfo.h"
#include "rados/rados.h"
#include "share/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SHARD_INSNS      (UINT64_C(1) << 20) /* whole chunks */
#define MARK_BYTES       (4u << 10)
#define SUMMARY_BUCKETS  32768
#define CHECKPOINT_BYTES ((uint64_t)64 << 20)
#define MIN_FREE         (UINT64_C(256) << 20)
#define FILL_WAIT_NS     INT64_C(60000000000) /* for another server that is filling the catalog */

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

/* ---- opening -------------------------------------------------------------------------------- */

/* Fill the catalog from the store's objects if it is new but they are not. */
static int fill_catalog(struct tl_lake *lake, struct tl_fail *fail)
{
    struct tl_backend *backend = lake->backend;
    int r = lake->options.rebuild_catalog ? backend->ops->catalog_reset(backend, fail) : TL_OK;
    if (r >= 0)
        r = tl_catalog_open(&lake->catalog, backend, fail);
    if (r >= 0 && lake->catalog->ops->fresh(lake->catalog)) {
        r = lake->catalog->ops->clear(lake->catalog, fail);
        if (r >= 0)
            r = tl_lake_rebuild_catalog(lake, fail);
        if (r >= 0)
            r = lake->catalog->ops->ready(lake->catalog, fail);
    }
    return r;
}

/* If several servers start together, one fills it. */
static int open_catalog(struct tl_lake *lake, struct tl_fail *fail)
{
    const struct tl_backend_ops *const ops = lake->backend->ops;
    const int64_t until = tl_monotonic_ns() + FILL_WAIT_NS;
    if (!lake->shared)
        return fill_catalog(lake, fail);
    struct tl_lease *lease;
    int r;
    while ((r = ops->lease(lake->backend, "catalog", &lease, fail)) == TL_DENIED &&
           tl_monotonic_ns() < until)
        usleep(50000);
    if (r < 0)
        return r;
    r = fill_catalog(lake, fail);
    ops->lease_release(lease);
    return r;
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

int tl_lake_open_on(struct tl_lake **out, struct tl_backend *backend,
                    const struct tl_lake_options *options, struct tl_fail *fail)
{
    struct tl_lake *lake = calloc(1, sizeof(*lake));
    if (!lake)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    if (tl_image_pool_new(&lake->image_pool) < 0) {
        free(lake);
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    }
    lake->backend = backend;
    lake->options = *options;
    lake->options.dir = lake->options.store = NULL;
    if (lake->options.checkpoint_bytes == 0)
        lake->options.checkpoint_bytes = CHECKPOINT_BYTES;
    if (lake->options.mark_bytes == 0)
        lake->options.mark_bytes = MARK_BYTES;
    if (lake->options.summary_buckets == 0)
        lake->options.summary_buckets = SUMMARY_BUCKETS;
    if (lake->options.shard_insns == 0)
        lake->options.shard_insns = SHARD_INSNS;
    if (lake->options.min_free_bytes == 0)
        lake->options.min_free_bytes = MIN_FREE;
    lake->last_job = &lake->jobs;
    lake->last_turn = &lake->turns;
    pthread_mutex_init(&lake->lock, NULL);
    pthread_mutex_init(&lake->retain_lock, NULL);
    pthread_mutex_init(&lake->clock_lock, NULL);
    pthread_mutex_init(&lake->images_lock, NULL);
    pthread_mutex_init(&lake->garbage_lock, NULL);
    pthread_mutex_init(&lake->reading, NULL);
    tl_chore_init(&lake->look);
    tl_chore_init(&lake->house);
    tl_chore_init(&lake->repack);
    tl_chore_init(&lake->share);
    pthread_mutex_init(&lake->watch_lock, NULL);
    pthread_mutex_init(&lake->cache_lock, NULL);
    tl_verified_init(&lake->verified);
    pthread_mutex_init(&lake->notes_lock, NULL);
    pthread_mutex_init(&lake->program_lock, NULL);
    pthread_mutex_init(&lake->debuginfo_lock, NULL);
    pthread_cond_init(&lake->work, NULL);
    pthread_cond_init(&lake->idle, NULL);
    atomic_init(&lake->min_free, lake->options.min_free_bytes);
    lake->decode_limit =
        options->decode_memory ? options->decode_memory : tl_decode_memory_default();
    lake->program_limit =
        lake->decode_limit / 8 < TL_PROGRAM_BYTES ? lake->decode_limit / 8 : TL_PROGRAM_BYTES;
    lake->segment_bytes = options->segment_bytes ? options->segment_bytes : TL_SPOOL_SEGMENT_BYTES;
    const struct tl_spool_options spool = {.segment_bytes = lake->segment_bytes,
                                           .min_free = lake->options.min_free_bytes};
    lake->shared = backend->ops->lease_ask != NULL;
    int r = lake->shared ? TL_OK : backend->ops->lease(backend, TL_LEASE_ALL, &lake->lease, fail);
    if (r == TL_DENIED)
        tl_fail_set(fail, TL_DENIED,
                    "another server uses this data folder: stop it first, or use another folder");
    if (r >= 0)
        tl_lake_clock_open(lake);
    if (r >= 0)
        r = open_catalog(lake, fail);
    if (r >= 0 && lake->shared)
        backend->ops->require_leases(backend);
    if (r >= 0)
        r = tl_spool_new(&lake->spool, backend, &spool, fail);
    /* With a single processor, the decoding thread packs its own output. */
    if (r >= 0 &&
        (tl_crew_new(&lake->crew, tl_processors()) < 0 ||
         (tl_crew_threads(lake->crew) > 0 && tl_packing_new(&lake->packing, lake->crew) < 0)))
        r = tl_fail_set(fail, TL_NOMEM, "no memory");
    if (r >= 0)
        tl_suspects_open(lake);
    if (r >= 0)
        r = tl_lake_begin(lake, fail);
    if (r >= 0)
        r = tl_jobs_start(lake, fail);
    if (r >= 0)
        r = tl_housekeeper_start(lake, fail);
    if (r >= 0)
        r = tl_repack_start(lake, fail);
    if (r >= 0)
        r = tl_share_start(lake, fail);
    if (r < 0) {
        tl_lake_close(lake);
        return r;
    }
    *out = lake;
    return TL_OK;
}

int tl_lake_open(struct tl_lake **out, const struct tl_lake_options *options, struct tl_fail *fail)
{
    struct tl_backend *backend;
    int r = options->store ? tl_backend_rados(&backend, options->store, fail)
                           : tl_backend_folder(&backend, options->dir, fail);
    if (r < 0)
        return r;
    r = tl_lake_open_on(out, backend, options, fail);
    if (r < 0) {
        tl_backend_free(backend);
        return r;
    }
    (*out)->owns_backend = true;
    return TL_OK;
}

void tl_lake_set_min_free(struct tl_lake *lake, uint64_t bytes)
{
    const uint64_t min_free = bytes ? bytes : MIN_FREE;
    atomic_store(&lake->min_free, min_free);
    tl_spool_limit(lake->spool, min_free);
}

void tl_lake_close(struct tl_lake *lake)
{
    if (!lake)
        return;
    tl_chore_stop(&lake->look, lake);
    tl_housekeeper_stop(lake);
    tl_lake_clock_close(lake);
    tl_repack_stop(lake);
    tl_share_stop(lake);
    tl_jobs_stop(lake);
    tl_suspects_close(lake);
    for (struct tl_trace *t = lake->jobs, *next; t; t = next) {
        next = t->next_job;
        tl_trace_put(t);
    }
    for (struct tl_trace *t = lake->traces, *next; t; t = next) {
        next = t->next;
        tl_trace_put(t);
    }
    tl_packing_free(lake->packing);
    tl_crew_free(lake->crew);
    tl_spool_free(lake->spool);
    tl_catalog_close(lake->catalog);
    tl_lake_forget_views(lake, "");
    tl_lake_forget_readers(lake);
    tl_housekeeper_free(lake);
    if (lake->lease)
        lake->backend->ops->lease_release(lake->lease);
    if (lake->owns_backend)
        tl_backend_free(lake->backend);
    pthread_mutex_destroy(&lake->lock);
    pthread_mutex_destroy(&lake->retain_lock);
    pthread_mutex_destroy(&lake->images_lock);
    tl_image_unused_fini(&lake->unused);
    pthread_mutex_destroy(&lake->clock_lock);
    pthread_mutex_destroy(&lake->garbage_lock);
    pthread_mutex_destroy(&lake->reading);
    tl_chore_fini(&lake->look);
    tl_chore_fini(&lake->house);
    tl_chore_fini(&lake->repack);
    tl_chore_fini(&lake->share);
    pthread_mutex_destroy(&lake->watch_lock);
    pthread_mutex_destroy(&lake->cache_lock);
    pthread_mutex_destroy(&lake->notes_lock);
    tl_verified_fini(&lake->verified);
    pthread_mutex_destroy(&lake->program_lock);
    tl_image_pool_free(lake->image_pool);
    tl_debuginfo_drop(lake);
    pthread_mutex_destroy(&lake->debuginfo_lock);
    pthread_cond_destroy(&lake->work);
    pthread_cond_destroy(&lake->idle);
    free(lake);
}
