/* SPDX-License-Identifier: MIT */
#include "net/pool.h"

#include "net/waiter.h"

#include <pthread.h>
#include <stdlib.h>

#define IDLE_MS 10000
#define STACK_BYTES                                                                                \
    (1u << 20) /* only touched pages count; decoders keep their state on the heap                  \
                */

struct job {
    struct job *next;
    void (*run)(void *argument);
    void *argument;
    int64_t since; /* by tl_monotonic_ns(): when it was queued */
};

struct tl_pool {
    struct tl_pool_options options; /* max_threads is guarded by the lock */
    struct tl_histogram waits;
    struct tl_waiter waiter; /* its lock guards everything below */
    struct job *head;
    struct job **tail;
    unsigned queued;
    unsigned idle;
    unsigned threads;
    bool stopping;
};

int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options)
{
    struct tl_pool *const pool = calloc(1, sizeof *pool);
    if (!pool)
        return TL_NOMEM;
    pool->options = *options;
    pool->tail = &pool->head;
    tl_waiter_init(&pool->waiter);
    *out = pool;
    return TL_OK;
}

static struct job *take_locked(struct tl_pool *pool)
{
    struct job *const job = pool->head;
    if (job) {
        pool->head = job->next;
        if (!pool->head)
            pool->tail = &pool->head;
        pool->queued--;
    }
    return job;
}

/* The calling thread already counts as idle. */
static struct job *next_job_locked(struct tl_pool *pool)
{
    const int64_t until = tl_monotonic_ms() + IDLE_MS;
    struct job *job;
    while (!(job = take_locked(pool)) && !pool->stopping)
        if (!tl_waiter_wait_until_locked(&pool->waiter, until) && !pool->head)
            break;
    pool->idle--;
    return job;
}

static void *worker(void *argument)
{
    struct tl_pool *const pool = argument;
    struct job *job;
    pthread_mutex_lock(&pool->waiter.lock);
    while ((job = next_job_locked(pool))) {
        pthread_mutex_unlock(&pool->waiter.lock);
        tl_histogram_add(&pool->waits, (uint64_t)(tl_monotonic_ns() - job->since));
        job->run(job->argument);
        free(job);
        pthread_mutex_lock(&pool->waiter.lock);
        pool->idle++;
    }
    pool->threads--;
    pthread_cond_broadcast(&pool->waiter.cond);
    pthread_mutex_unlock(&pool->waiter.lock);
    return NULL;
}

static bool start_thread_locked(struct tl_pool *pool)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const bool ok = !pthread_create(&thread, &attributes, worker, pool);
    pthread_attr_destroy(&attributes);
    if (ok) {
        pthread_setname_np(thread, pool->options.name);
        pool->threads++;
        pool->idle++; /* from the start: a job may rely on it */
    }
    return ok;
}

/* Can a waiting job get a thread, or stay in the queue? */
static bool admit_locked(struct tl_pool *pool)
{
    if (pool->queued < pool->idle)
        return true;
    if (pool->threads < pool->options.max_threads && start_thread_locked(pool))
        return true;
    return pool->queued - pool->idle < pool->options.max_queue;
}

int tl_pool_run(struct tl_pool *pool, void (*run)(void *argument), void *argument)
{
    struct job *const job = malloc(sizeof *job);
    if (!job)
        return TL_NOMEM;
    *job = (struct job){.run = run, .argument = argument, .since = tl_monotonic_ns()};
    pthread_mutex_lock(&pool->waiter.lock);
    const bool admitted = !pool->stopping && admit_locked(pool);
    if (admitted) {
        *pool->tail = job;
        pool->tail = &job->next;
        pool->queued++;
        pthread_cond_signal(&pool->waiter.cond);
    }
    pthread_mutex_unlock(&pool->waiter.lock);
    if (!admitted)
        free(job);
    return admitted ? TL_OK : TL_LIMIT;
}

void tl_pool_limit(struct tl_pool *pool, unsigned max_threads)
{
    pthread_mutex_lock(&pool->waiter.lock);
    pool->options.max_threads = max_threads;
    pthread_mutex_unlock(&pool->waiter.lock);
}

void tl_pool_use(struct tl_pool *pool, struct tl_pool_use *out)
{
    pthread_mutex_lock(&pool->waiter.lock);
    *out = (struct tl_pool_use){pool->options.name, pool->threads - pool->idle, pool->queued};
    pthread_mutex_unlock(&pool->waiter.lock);
}

const struct tl_histogram *tl_pool_waits(const struct tl_pool *pool)
{
    return &pool->waits;
}

bool tl_pool_busy(struct tl_pool *pool)
{
    pthread_mutex_lock(&pool->waiter.lock);
    const bool busy = pool->queued || pool->idle < pool->threads;
    pthread_mutex_unlock(&pool->waiter.lock);
    return busy;
}

void tl_pool_free(struct tl_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->waiter.lock);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->waiter.cond);
    while (pool->threads)
        tl_waiter_wait_until_locked(&pool->waiter, -1);
    pthread_mutex_unlock(&pool->waiter.lock);
    tl_waiter_fini(&pool->waiter);
    free(pool);
}
