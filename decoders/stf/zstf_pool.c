/* SPDX-License-Identifier: MIT */
/*
 * Jobs are a ring: [head, next) are being compressed or are done, [next, tail) wait. Only the
 * adding thread moves `head` and `tail`, and gives chunks back; a job from its claim to `done`
 * belongs to who claimed it. All numbers are under the lock.
 */
#include "stf/zstf_pool.h"

#include <pthread.h>
#include <stdlib.h>

#define JOBS_A_THREAD 4
#define JOBS_MOST     32
#define PLAIN_MOST    ((size_t)6 << 20) /* bytes of chunks in the pool, but for one */
#define FRAME_MOST    ((size_t)4 << 20) /* bytes of a frame's buffer that is kept for the next one */

struct slot {
    struct tl_zstf_job job;
    int rc;
    bool done;
};

/* A packer that nobody uses. */
struct spare {
    struct spare *next;
    struct tl_zstf_packer *packer;
};

struct tl_zstf_pool {
    int level;
    tl_zstf_packed *packed;
    pthread_mutex_t lock;
    pthread_cond_t done; /* for the adding thread */
    struct spare *spares;
    struct slot *slots; /* [n_slots], job i in i % n_slots */
    size_t n_slots;
    size_t head, next, tail;
    size_t plain; /* bytes of the chunks in [head, tail) */
    size_t idle;  /* bytes of the buffers of the other slots; the adding thread's */
};

int tl_zstf_pool_new(struct tl_zstf_pool **out, int level, unsigned threads, tl_zstf_packed *packed)
{
    struct tl_zstf_pool *const pool = calloc(1, sizeof *pool);
    if (!pool)
        return TL_NOMEM;
    pool->level = level;
    pool->packed = packed;
    pool->n_slots = threads < 2                           ? 1
                    : threads < JOBS_MOST / JOBS_A_THREAD ? (size_t)threads * JOBS_A_THREAD
                                                          : JOBS_MOST;
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

/* Work on the chunk that waits longest; false: none does. The lock is left meanwhile. */
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

/* Memory that was written to is worth keeping, as far as all of it is not too much. */
static void empty(struct tl_zstf_pool *pool, struct tl_zstf_job *job)
{
    if (job->stf.cap > PLAIN_MOST - pool->idle)
        tl_buf_fini(&job->stf);
    pool->idle += job->stf.cap;
    tl_buf_reset(&job->stf);
    if (job->frame.cap > FRAME_MOST)
        tl_buf_fini(&job->frame);
    tl_buf_reset(&job->frame);
}

/*
 * Give the first chunk back; false: it is not done. If `wait`, wait for it, and work meanwhile. The
 * lock is left meanwhile.
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
           retire_locked(pool, pool->tail - pool->head == pool->n_slots || pool->plain > PLAIN_MOST,
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
        if (pool->n_slots == 1)
            retire_locked(pool, true, &rc);
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
