/* SPDX-License-Identifier: MIT */
/*
 * Jobs form a ring: [head, next) are being compressed or done, [next, tail) are pending. Only the
 * adding thread changes `head` and `tail` and returns chunks; from claim to `done` a job belongs to
 * the thread that claimed it. All indices are protected by the lock.
 */
#include "stf/zstf_pool.h"

#include <pthread.h>
#include <stdlib.h>

#define JOBS_A_THREAD 4
#define JOBS_MAX      32
#define PLAIN_MAX     ((size_t)6 << 20) /* limit of chunk bytes in the pool, besides one chunk */
#define FRAME_MAX     ((size_t)4 << 20) /* maximum capacity of a frame buffer kept for reuse */

struct slot {
    struct tl_zstf_job job;
    int rc;
    bool done;
};

/* An unused packer. */
struct spare {
    struct spare *next;
    struct tl_zstf_packer *packer;
};

struct tl_zstf_pool {
    int level;
    tl_zstf_packed *packed;
    pthread_mutex_t lock;
    pthread_cond_t done; /* signals the adding thread */
    struct spare *spares;
    struct slot *slots; /* [n_slots], job i is at i % n_slots */
    size_t n_slots;
    size_t head, next, tail;
    size_t plain; /* bytes of the chunks in [head, tail) */
    size_t idle;  /* capacity of the other slots' buffers; only for the adding thread */
};

int tl_zstf_pool_new(struct tl_zstf_pool **out, int level, unsigned threads, tl_zstf_packed *packed)
{
    struct tl_zstf_pool *const pool = calloc(1, sizeof *pool);
    if (!pool)
        return TL_NOMEM;
    pool->level = level;
    pool->packed = packed;
    pool->n_slots = threads < 2                          ? 1
                    : threads < JOBS_MAX / JOBS_A_THREAD ? (size_t)threads * JOBS_A_THREAD
                                                         : JOBS_MAX;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->slots = calloc(pool->n_slots, sizeof *pool->slots);
    if (!pool->slots) {
        tl_zstf_pool_free(pool);
        return TL_NOMEM;
    }
    *out = pool;
    return TL_OK;
}

void tl_zstf_pool_free(struct tl_zstf_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; pool->slots && i < pool->n_slots; i++) {
        tl_buf_fini(&pool->slots[i].job.stf);
        tl_buf_fini(&pool->slots[i].job.frame);
    }
    free(pool->slots);
    while (pool->spares) {
        struct spare *const spare = pool->spares;
        pool->spares = spare->next;
        tl_zstf_packer_free(spare->packer);
        free(spare);
    }
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->done);
    free(pool);
}

static struct spare *make_spare(int level)
{
    struct spare *const spare = calloc(1, sizeof *spare);
    if (spare && tl_zstf_packer_new(&spare->packer, level) == TL_OK)
        return spare;
    free(spare);
    return NULL;
}

/*
 * Compress the oldest pending chunk; returns false if there is none. Releases the lock meanwhile.
 */
static bool work_locked(struct tl_zstf_pool *pool)
{
    if (pool->next == pool->tail)
        return false;
    struct slot *const slot = &pool->slots[pool->next++ % pool->n_slots];
    struct spare *spare = pool->spares;
    if (spare)
        pool->spares = spare->next;
    pthread_mutex_unlock(&pool->lock);
    if (!spare)
        spare = make_spare(pool->level);
    struct tl_zstf_job *const job = &slot->job;
    slot->rc =
        spare ? tl_zstf_pack(spare->packer, (struct tl_bytes){job->stf.p, job->stf.n}, &job->frame)
              : TL_NOMEM;
    pthread_mutex_lock(&pool->lock);
    if (spare) {
        spare->next = pool->spares;
        pool->spares = spare;
    }
    slot->done = true;
    pthread_cond_signal(&pool->done);
    return true;
}

bool tl_zstf_pool_work(struct tl_zstf_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const bool worked = work_locked(pool);
    pthread_mutex_unlock(&pool->lock);
    return worked;
}

/* Empty a job's buffers; keep their memory for reuse, within limits. */
static void empty(struct tl_zstf_pool *pool, struct tl_zstf_job *job)
{
    if (job->stf.cap > PLAIN_MAX - pool->idle)
        tl_buf_fini(&job->stf);
    pool->idle += job->stf.cap;
    tl_buf_reset(&job->stf);
    if (job->frame.cap > FRAME_MAX)
        tl_buf_fini(&job->frame);
    tl_buf_reset(&job->frame);
}

/*
 * Return the first chunk; returns false if it is not done. With `wait`, wait for it and compress
 * meanwhile. Releases the lock meanwhile.
 */
static bool retire_locked(struct tl_zstf_pool *pool, bool wait, int *rc)
{
    struct slot *const slot = &pool->slots[pool->head % pool->n_slots];
    while (!slot->done && wait)
        if (!work_locked(pool))
            pthread_cond_wait(&pool->done, &pool->lock);
    if (!slot->done)
        return false;
    pthread_mutex_unlock(&pool->lock);
    const size_t plain = slot->job.stf.n;
    *rc = slot->rc < 0 ? slot->rc : pool->packed(&slot->job);
    empty(pool, &slot->job);
    pthread_mutex_lock(&pool->lock);
    pool->plain -= plain;
    pool->head++;
    return true;
}

int tl_zstf_pool_add(struct tl_zstf_pool *pool, struct tl_zstf_job *job)
{
    int rc = TL_OK;
    pthread_mutex_lock(&pool->lock);
    while (rc >= 0 && pool->head < pool->tail &&
           retire_locked(pool, pool->tail - pool->head == pool->n_slots || pool->plain > PLAIN_MAX,
                         &rc))
        ;
    if (rc >= 0) {
        struct slot *const slot = &pool->slots[pool->tail % pool->n_slots];
        const struct tl_zstf_job empty = slot->job;
        slot->job = *job;
        slot->job.frame = empty.frame;
        slot->done = false;
        job->stf = empty.stf;
        pool->idle -= job->stf.cap;
        pool->plain += slot->job.stf.n;
        pool->tail++;
        if (pool->n_slots == 1 && retire_locked(pool, true, &rc) && job->stf.cap == 0) {
            job->stf = slot->job.stf; /* it is in the cache */
            slot->job.stf = (struct tl_buf){0};
            pool->idle -= job->stf.cap;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return rc < 0 ? rc : TL_OK;
}

int tl_zstf_pool_drain(struct tl_zstf_pool *pool)
{
    int rc = TL_OK;
    pthread_mutex_lock(&pool->lock);
    while (rc >= 0 && pool->head < pool->tail)
        retire_locked(pool, true, &rc);
    pthread_mutex_unlock(&pool->lock);
    return rc < 0 ? rc : TL_OK;
}
