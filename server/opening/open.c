/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing a lake: it is put together from its rooms here, the only place that knows all
 * of them. What is opened later is closed earlier.
 */
#include "opening/open.h"

#include "base/crew.h"
#include "base/memory.h"
#include "base/processors.h"
#include "decoding/run.h"
#include "decoding/suspect.h"
#include "ingest/repack.h"
#include "ingest/session.h"
#include "lake/jobs.h"
#include "lake/lakeint.h"
#include "lake_sql.h"
#include "opening/start.h"
#include "query/debuginfo.h"
#include "rados/rados.h"
#include "share/share.h"
#include "upkeep/backfill.h"
#include "upkeep/housekeeper.h"
#include "upkeep/rebuild.h"
#include "virtual/early.h"
#include "virtual/remake.h"
#include "virtual/virtual.h"

#include <unistd.h>

#define FILL_WAIT_NS INT64_C(60000000000) /* for another server that is filling the catalog */

static const struct tl_lake_rooms rooms = {
    .run_job = tl_trace_run_job,
    .make = tl_lane_make,
    .index_early = tl_index_early,
    .settled = tl_trace_settled,
    .put_image = tl_lake_put_image,
    .evict = tl_ingest_evict,
};

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

/* What it stores in, and what it computes with. */
static int open_stores(struct tl_lake *lake, struct tl_fail *fail)
{
    struct tl_backend *const backend = lake->backend;
    const struct tl_spool_options spool = {.segment_bytes = lake->segment_bytes,
                                           .min_free = lake->options.min_free_bytes};
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
    return r;
}

static int start_threads(struct tl_lake *lake, struct tl_fail *fail)
{
    int r = tl_jobs_start(lake, fail);
    if (r >= 0)
        r = tl_housekeeper_start(lake, fail);
    if (r >= 0)
        r = tl_repack_start(lake, fail);
    if (r >= 0)
        r = tl_share_start(lake, fail);
    if (r >= 0)
        r = tl_backfill_start(lake, fail);
    return r;
}

/* How many large questions in SQL may be answered at once. */
static unsigned count_sql_seats(uint64_t bytes)
{
    const uint64_t n = (bytes ? bytes : tl_usable_memory() / 8) / TL_SQL_MEMORY;
    return n < 1 ? 1 : n > UINT16_MAX ? UINT16_MAX : (unsigned)n;
}

int tl_lake_open_on(struct tl_lake **out, struct tl_backend *backend,
                    const struct tl_lake_options *options, struct tl_fail *fail)
{
    struct tl_lake *const lake = tl_lake_new(backend, options, &rooms);
    if (!lake)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    tl_lake_sql_count();
    lake->decode_limit = options->decode_memory ? options->decode_memory : tl_usable_memory() / 2;
    lake->program_limit =
        lake->decode_limit / 8 < TL_PROGRAM_BYTES ? lake->decode_limit / 8 : TL_PROGRAM_BYTES;
    tl_seats_init(&lake->sql_seats, count_sql_seats(options->sql_memory));
    int r = open_stores(lake, fail);
    if (r >= 0)
        tl_suspects_open(lake);
    if (r >= 0)
        r = tl_lake_begin(lake, fail);
    if (r >= 0)
        r = start_threads(lake, fail);
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

void tl_lake_close(struct tl_lake *lake)
{
    if (!lake)
        return;
    tl_chore_stop(&lake->look, lake);
    tl_backfill_stop(lake);
    tl_housekeeper_stop(lake);
    tl_lake_clock_close(lake);
    tl_repack_stop(lake);
    tl_share_stop(lake);
    tl_jobs_stop(lake);
    tl_suspects_close(lake);
    tl_lake_put_all(lake);
    tl_packing_free(lake->packing);
    tl_crew_free(lake->crew);
    tl_spool_free(lake->spool);
    tl_catalog_close(lake->catalog);
    tl_lake_forget_views(lake, "");
    tl_lake_forget_readers(lake);
    tl_housekeeper_free(lake);
    tl_debuginfo_drop(lake);
    if (lake->lease)
        lake->backend->ops->lease_release(lake->lease);
    tl_lake_free(lake);
}
