/* SPDX-License-Identifier: MIT */
/*
 * Complete shards on their way from the decode job into the store: a few at a time, since those
 * share a sync of their folder and a transaction; by a thread of their own, since a medium is slow.
 * The decode job waits for it only when too many shards are on their way.
 */
#include "decoding/store_shards.h"

#include "base/cancel.h"
#include "base/now.h"
#include "decoding/decode_job.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define AGAIN_NS    INT64_C(500000000) /* until a shard is stored that could not be */
#define EDGE_SHARDS 64 /* complete shards of a live edge, which another server stores */

/* ---- into the store ------------------------------------------------------------------------- */

/* Number of shards stored together, which share a sync of their folder and a transaction. Virtual
 * ones are small, and produced quickly. */
#define TOGETHER_VIRTUAL 24

static size_t together(const struct tl_decode_job *job)
{
    return job->gen->is_virtual ? TOGETHER_VIRTUAL : TOGETHER;
}

/* A complete shard to be stored. */
struct sealing {
    struct tl_lane *lane;
    struct tl_view *view;
    struct tl_shard_row row;
    struct tl_buf file, summary, counts, calls;
    char key[192], counts_key[192], calls_key[192];
};

/* Collect the oldest complete shards of the first `n_lanes` lanes, at most together(). */
static size_t gather(struct tl_decode_job *job, size_t n_lanes, struct sealing *out)
{
    const size_t most = together(job);
    size_t n = 0;
    for (size_t i = 0; i < n_lanes && n < most; i++) {
        struct tl_lane *lane = tl_gen_lane_at(job->gen, i);
        pthread_mutex_lock(&lane->lock);
        for (size_t k = 0; k < lane->n_pending && n < most; k++)
            out[n++] = (struct sealing){.lane = lane, .view = tl_view_get(lane->pending[k])};
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

static void drop(struct sealing *shards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tl_view_put(shards[i].view);
        tl_buf_fini(&shards[i].file);
        tl_buf_fini(&shards[i].summary);
        tl_buf_fini(&shards[i].counts);
        tl_buf_fini(&shards[i].calls);
    }
}

static int encode(struct tl_decode_job *job, struct sealing *shard, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const struct tl_view *view = shard->view;
    shard->row = view->index.row;
    int r = job->packer ? TL_OK : tl_packer_new(&job->packer);
    if (r >= 0 && gen->is_virtual) {
        tl_virtual_key(shard->key, gen->trace, gen->number, shard->lane->name, shard->row.number);
        r = tl_view_encode_index(view, job->packer, &shard->file, fail);
    } else if (r >= 0) {
        tl_shard_key(shard->key, gen->trace, gen->number, shard->lane->name, shard->row.number);
        r = tl_view_encode(view, TL_CHUNK_MARKERS, job->packer, &shard->file, fail);
    }
    shard->row.size = shard->file.n;
    const bool kept = r >= 0 && tl_gen_keeps_counts(gen, gen->is_virtual, &shard->row);
    if (kept && view->counts) {
        tl_shard_object_key(shard->counts_key, gen->trace, gen->number, shard->lane->name,
                            shard->row.number, TL_CODECOUNT_KIND);
        r = tl_codecount_encode(view->counts, job->packer, &shard->counts);
    }
    if (kept && r >= 0 && view->calls) {
        tl_shard_object_key(shard->calls_key, gen->trace, gen->number, shard->lane->name,
                            shard->row.number, TL_CALLTREE_KIND);
        r = tl_shard_calls_encode(view->calls, job->packer, &shard->calls);
        if (shard->calls.n > TL_KEPT_MAX)
            tl_buf_reset(&shard->calls);
    }
    return r < 0 ? r : tl_shard_summary_encode(&view->index, &shard->summary);
}

/* Write shards to the store, then to the catalog. */
static int store_shards(struct tl_decode_job *job, struct sealing *shards, size_t n,
                        struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    struct tl_backend *backend = gen->lake->backend;
    struct tl_object objects[3 * TOGETHER_VIRTUAL];
    struct tl_catalog_shard rows[TOGETHER_VIRTUAL];
    uint64_t bytes = 0;
    size_t n_objects = 0;
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct sealing *const s = &shards[i];
        r = encode(job, s, fail);
        objects[n_objects++] = (struct tl_object){s->key, {s->file.p, s->file.n}};
        if (s->counts.n > 0)
            objects[n_objects++] = (struct tl_object){s->counts_key, {s->counts.p, s->counts.n}};
        if (s->calls.n > 0)
            objects[n_objects++] = (struct tl_object){s->calls_key, {s->calls.p, s->calls.n}};
        rows[i] = (struct tl_catalog_shard){
            .stream = s->lane->index, .row = s->row, .summary = {s->summary.p, s->summary.n}};
        bytes += s->file.n;
    }
    tl_wait_begins();
    if (r >= 0)
        r = backend->ops->put_all(backend, objects, n_objects, fail);
    if (r >= 0)
        r = gen->lake->catalog->ops->add_shards(gen->lake->catalog, gen->trace, gen->number, rows,
                                                n, fail);
    tl_wait_ends();
    if (r >= 0) {
        atomic_fetch_add(&gen->lake->shards_sealed, n);
        atomic_fetch_add(&gen->lake->bytes_sealed, bytes);
    }
    return r;
}

static int move_on(struct tl_lane *lane, const struct tl_shard_row *row)
{
    pthread_mutex_lock(&lane->lock);
    const int r = tl_lane_stored_locked(lane, row);
    pthread_mutex_unlock(&lane->lock);
    return r;
}

/* Write the streams' names and numbers. */
int tl_store_streams(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    int r = TL_OK;
    struct tl_lane *lane;
    if (job->role != TL_DECODE_STORED)
        return TL_OK;
    tl_wait_begins();
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        const struct tl_catalog_stream row = {.index = lane->index,
                                              .name = lane->name,
                                              .protocol = lane->protocol,
                                              .lost_bytes = lane->lost_bytes,
                                              .clock = lane->clock};
        pthread_mutex_unlock(&lane->lock);
        r = gen->lake->catalog->ops->put_stream(gen->lake->catalog, gen->trace, gen->number, &row,
                                                fail);
    }
    tl_wait_ends();
    if (r >= 0)
        job->unsaved = false;
    return r;
}

/* Store complete shards of the first `n_lanes` lanes, each lane's in order, as long as there are at
 * least `min` of them. */
static int store_lanes(struct tl_decode_job *job, size_t n_lanes, size_t min, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    struct sealing shards[TOGETHER_VIRTUAL];
    bool enough = true;
    int r = TL_OK;
    while (r >= 0 && enough) {
        if (tl_gen_abandoned(gen))
            return TL_CANCELLED;
        const size_t n = gather(job, n_lanes, shards);
        enough = n >= min;
        if (enough)
            r = store_shards(job, shards, n, fail);
        for (size_t i = 0; r >= 0 && enough && i < n; i++)
            r = move_on(shards[i].lane, &shards[i].row);
        drop(shards, n);
    }
    if (r < 0)
        atomic_fetch_add(&gen->lake->seal_failures, 1);
    return r;
}

size_t tl_gen_lane_count(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const size_t n = gen->n_lanes;
    pthread_mutex_unlock(&gen->lock);
    return n;
}

int tl_store_shards_all(struct tl_decode_job *job, struct tl_fail *fail)
{
    if (job->role != TL_DECODE_STORED)
        return TL_OK;
    /* The catalog needs a shard's stream first. */
    const int r = job->unsaved ? tl_store_streams(job, fail) : TL_OK;
    return r < 0 ? r : store_lanes(job, tl_gen_lane_count(job->gen), 1, fail);
}

/* ---- the sealing thread --------------------------------------------------------------------- */

/* Number of complete shards that are not in the store. */
static size_t backlog(struct tl_decode_job *job)
{
    size_t n = 0;
    struct tl_lane *lane;
    for (size_t i = 0; (lane = tl_gen_lane_at(job->gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        n += lane->n_pending;
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

static void *run_sealer(void *context)
{
    struct tl_decode_job *job = context;
    job->seal_result = store_lanes(job, job->seal_lanes, together(job), &job->seal_fail);
    atomic_store(&job->seal_over, true);
    return NULL;
}

/* Wait until the sealing thread is idle; returns its result. */
int tl_store_shards_wait(struct tl_decode_job *job, struct tl_fail *fail)
{
    if (!job->sealing)
        return TL_OK;
    tl_wait_begins();
    pthread_join(job->sealer, NULL);
    tl_wait_ends();
    job->sealing = false;
    if (job->seal_result < 0 && fail)
        *fail = job->seal_fail;
    return job->seal_result;
}

/* Start storing complete shards in parallel with decoding, if there are enough; wait if there are
 * too many. */
int tl_store_shards_beside(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const size_t waiting = job->role != TL_DECODE_STORED ? 0 : backlog(job);
    int r = TL_OK;
    /* With this many pending, decoding waits for the store. */
    if (job->sealing && (waiting >= 2 * together(job) || atomic_load(&job->seal_over)))
        r = tl_store_shards_wait(job, fail);
    if (r < 0 || job->sealing || waiting < together(job))
        return r;
    /* Only this thread writes streams to the catalog; later ones wait. */
    r = job->unsaved ? tl_store_streams(job, fail) : TL_OK;
    if (r < 0)
        return r;
    job->seal_lanes = tl_gen_lane_count(gen);
    job->seal_fail = (struct tl_fail){0};
    atomic_store(&job->seal_over, false);
    job->sealing = pthread_create(&job->sealer, NULL, run_sealer, job) == 0;
    return job->sealing ? TL_OK : tl_store_shards_all(job, fail);
}

/* Why shards cannot be stored now, if that is for lack of space. */
static int check_space(struct tl_lake *lake, struct tl_fail *fail)
{
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    return left < atomic_load(&lake->min_free) / 2
               ? tl_fail_set(fail, TL_NOSPACE, "only %llu MiB are free",
                             (unsigned long long)(left >> 20))
               : TL_OK;
}

/* Pause in the middle of a push. TL_CANCELLED: it is not wanted any more. */
static int wait_midway(struct tl_decode_job *job)
{
    const int64_t until = tl_monotonic_ns() + AGAIN_NS;
    int r = tl_give_way();
    while (r >= 0 && tl_monotonic_ns() < until) {
        tl_wait_begins();
        usleep(20000);
        tl_wait_ends();
        r = tl_give_way();
    }
    return r;
}

/* A shard was completed, somewhere within a push, which cannot be left: wait until it can be
 * stored, or until enough others have been. */
int tl_store_shards_within(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_fail fail = {0};
    bool waited = false;
    int r;
    if (job->role == TL_DECODE_OUTLINE) /* its memory is limited between pieces */
        return TL_OK;
    if (job->role != TL_DECODE_STORED)
        return backlog(job) > EDGE_SHARDS ? TL_LIMIT : TL_OK;
    do {
        r = check_space(gen->lake, &fail);
        if (r >= 0)
            r = tl_store_shards_beside(job, &fail);
        if (r != TL_NOSPACE && r != TL_IO)
            break;
        tl_gen_wait(gen, fail.text);
        waited = true;
        r = wait_midway(job);
    } while (r >= 0);
    if (waited && r >= 0)
        tl_gen_wait(gen, NULL);
    return r;
}
