/* SPDX-License-Identifier: MIT */
/*
 * Threads and waiting jobs, which stand in one queue for each client. A thread takes the first job
 * of the first queue whose client may have another thread; the queue then goes to the end.
 */
#include "net/pool.h"

#include "net/waiter.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MS      10000
#define TURN_NS      (20 * TL_NS_PER_MS) /* for which a job keeps its thread although others wait */
#define PATIENT_NICE 5
#define REST_MS      100 /* for which it rests at most: it may hold something that others need */
#define STACK_BYTES                                                                                \
    (1u << 20) /* only touched pages count; decoders keep their state on the heap                  \
                */

struct job {
    struct job *next;
    void (*run)(void *argument);
    void *argument;
    struct tl_account *account; /* a reference */
    bool waits;                 /* until its client has taken answers */
    int64_t since;              /* by tl_monotonic_ns(): when it was queued, or its turn began */
};

/* The waiting jobs of a client that wait for the same. */
struct lane {
    struct lane *next;
    const struct tl_party *party;
    bool waits;
    struct job *head;
    struct job **tail;
};

struct tl_pool {
    struct tl_pool_options options; /* max_threads is guarded by the lock */
    struct tl_histogram waits;
    struct tl_waiter waiter; /* its lock guards everything below */
    struct lane *lanes;      /* the next one to be served first */
    unsigned queued;
    unsigned idle;
    unsigned threads;
    unsigned resting; /* of them, those in tl_pool_rest() */
    bool stopping;
};

/* The job of this thread. */
static _Thread_local struct tl_pool *here;
static _Thread_local struct job *mine;
static _Thread_local int64_t began;
static _Thread_local int64_t
    spent_before;                /* processor time when its first turn had passed; 0: not yet */
static _Thread_local bool tired; /* the thread has a lower priority since then, and for good */

static void set_limits(const struct tl_pool *pool, unsigned max_threads)
{
    const struct tl_pool_options *const o = &pool->options;
    tl_shares_limit(o->shares, TL_USE_CALLS + o->number, max_threads + o->max_queue, 0);
    tl_shares_limit(o->shares, TL_USE_THREADS + o->number, max_threads, 0);
}

int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options)
{
    struct tl_pool *const pool = calloc(1, sizeof *pool);
    if (!pool)
        return TL_NOMEM;
    pool->options = *options;
    tl_waiter_init(&pool->waiter);
    set_limits(pool, options->max_threads);
    *out = pool;
    return TL_OK;
}

/* ---- queues ------------------------------------------------------------------------------ */

static struct lane **last_link(struct tl_pool *pool)
{
    struct lane **link = &pool->lanes;
    while (*link)
        link = &(*link)->next;
    return link;
}

/* Append a job; false: out of memory. */
static bool queue_locked(struct tl_pool *pool, struct job *job)
{
    const struct tl_party *const party = tl_account_party(job->account);
    struct lane *lane = pool->lanes;
    while (lane && (lane->party != party || lane->waits != job->waits))
        lane = lane->next;
    if (!lane) {
        lane = calloc(1, sizeof *lane);
        if (!lane)
            return false;
        lane->party = party;
        lane->waits = job->waits;
        lane->tail = &lane->head;
        *last_link(pool) = lane;
    }
    *lane->tail = job;
    lane->tail = &job->next;
    pool->queued++;
    return true;
}

/* May the job have a thread? Then it is counted. */
static bool may_run(struct tl_pool *pool, const struct job *job)
{
    struct tl_account *const account = job->account;
    const unsigned threads = TL_USE_THREADS + pool->options.number;
    if (pool->stopping || !pool->options.max_queue) {
        tl_account_charge(account, threads, 1);
        return true;
    }
    if (!job->waits || tl_account_within(account, TL_USE_ANSWERS))
        return tl_account_try(account, threads, 1);
    atomic_store(&account->shares->starved, true);
    /* Otherwise they may have been taken before that was seen. */
    return tl_account_within(account, TL_USE_ANSWERS) && tl_account_try(account, threads, 1);
}

/* Take the first job of `*link`, whose queue goes to the end. */
static struct job *take_from_locked(struct tl_pool *pool, struct lane **link)
{
    struct lane *const lane = *link;
    struct job *const job = lane->head;
    lane->head = job->next;
    *link = lane->next;
    lane->next = NULL;
    if (lane->head)
        *last_link(pool) = lane;
    else
        free(lane);
    pool->queued--;
    return job;
}

static struct job *take_locked(struct tl_pool *pool)
{
    for (struct lane **link = &pool->lanes; *link; link = &(*link)->next)
        if (may_run(pool, (*link)->head))
            return take_from_locked(pool, link);
    return NULL;
}

/* ---- threads ----------------------------------------------------------------------------- */

/* The calling thread already counts as idle. */
static struct job *next_job_locked(struct tl_pool *pool)
{
    struct job *job;
    while (!(job = take_locked(pool)) && !pool->stopping)
        if (!tl_waiter_wait_until_locked(&pool->waiter, tl_monotonic_ms() + IDLE_MS) &&
            !pool->queued)
            break;
    pool->idle--;
    return job;
}

static void run_job(struct tl_pool *pool, struct job *job)
{
    const int64_t now = tl_monotonic_ns();
    tl_histogram_add(&pool->waits, (uint64_t)(now - job->since));
    job->since = now;
    here = pool;
    mine = job;
    began = now;
    spent_before = 0;
    job->run(job->argument);
    here = NULL;
    tl_account_release(job->account, TL_USE_THREADS + pool->options.number, 1);
    tl_account_release(job->account, TL_USE_CALLS + pool->options.number, 1);
    tl_account_put(job->account);
    free(job);
}

void tl_thread_patient(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), PATIENT_NICE);
}

void tl_pool_tire(void)
{
    const int64_t now = here && !tired && !here->options.patient ? tl_monotonic_ns() : 0;
    if (!now || now - began < TURN_NS)
        return;
    /* It may have waited all the time: what counts is what it computes from here on. */
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const int64_t spent = (int64_t)t.tv_sec * TL_NS_PER_S + t.tv_nsec;
    if (spent_before && spent - spent_before >= TURN_NS) {
        tired = true;
        tl_thread_patient();
    }
    if (!spent_before)
        spent_before = spent;
}

static bool start_thread_locked(struct tl_pool *pool);

/* A thread cannot get its priority back: another one takes its place. */
static void replace_locked(struct tl_pool *pool)
{
    pool->idle--;
    if (pool->queued > pool->idle)
        (void)!start_thread_locked(pool);
}

static void *worker(void *argument)
{
    struct tl_pool *const pool = argument;
    struct job *job;
    if (pool->options.patient)
        tl_thread_patient();
    pthread_mutex_lock(&pool->waiter.lock);
    while ((job = next_job_locked(pool))) {
        pthread_mutex_unlock(&pool->waiter.lock);
        run_job(pool, job);
        pthread_mutex_lock(&pool->waiter.lock);
        pool->idle++;
        /* One thread more is free, which raises the shares of the others, too. */
        if (pool->resting)
            pthread_cond_broadcast(&pool->waiter.cond);
        else if (pool->lanes && pool->lanes->next)
            pthread_cond_signal(&pool->waiter.cond);
        if (tired) {
            replace_locked(pool);
            break;
        }
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
    if (pool->threads - pool->resting < pool->options.max_threads && start_thread_locked(pool))
        return true;
    return pool->queued - pool->idle < pool->options.max_queue;
}

static bool others_wait_locked(const struct tl_pool *pool, const struct tl_party *party)
{
    for (const struct lane *lane = pool->lanes; lane; lane = lane->next)
        if (lane->party != party)
            return true;
    return false;
}

static void rest_locked(struct tl_pool *pool, struct tl_account *account)
{
    const unsigned threads = TL_USE_THREADS + pool->options.number;
    const int64_t until = tl_monotonic_ms() + REST_MS;
    tl_account_release(account, threads, 1);
    pool->resting++;
    if (!pool->idle)
        start_thread_locked(pool);
    pthread_cond_broadcast(&pool->waiter.cond);
    while (others_wait_locked(pool, tl_account_party(account)) &&
           tl_waiter_wait_until_locked(&pool->waiter, until))
        ;
    bool again;
    while (!(again = tl_account_try(account, threads, 1)) && !pool->stopping &&
           tl_waiter_wait_until_locked(&pool->waiter, until))
        ;
    if (!again)
        tl_account_charge(account, threads, 1);
    pool->resting--;
}

void tl_pool_rest(void)
{
    struct tl_pool *const pool = here;
    if (!pool || !pool->options.max_queue || tl_monotonic_ns() - mine->since < TURN_NS)
        return;
    pthread_mutex_lock(&pool->waiter.lock);
    if (!pool->stopping && others_wait_locked(pool, tl_account_party(mine->account)))
        rest_locked(pool, mine->account);
    pthread_mutex_unlock(&pool->waiter.lock);
    mine->since = tl_monotonic_ns();
}

/* If not, it is taken by a thread that ends a job: waking one now would be in vain. */
static bool could_run(const struct tl_pool *pool, const struct tl_account *account)
{
    return !pool->options.max_queue ||
           tl_account_room(account, TL_USE_THREADS + pool->options.number);
}

static bool enqueue(struct tl_pool *pool, struct job *job)
{
    pthread_mutex_lock(&pool->waiter.lock);
    const bool admitted = !pool->stopping && admit_locked(pool) && queue_locked(pool, job);
    if (admitted && pool->resting) /* who rests must not get the only signal */
        pthread_cond_broadcast(&pool->waiter.cond);
    else if (admitted && could_run(pool, job->account))
        pthread_cond_signal(&pool->waiter.cond);
    pthread_mutex_unlock(&pool->waiter.lock);
    return admitted;
}

int tl_pool_run(struct tl_pool *pool, struct tl_account *account, bool waits,
                void (*run)(void *argument), void *argument)
{
    const unsigned calls = TL_USE_CALLS + pool->options.number;
    if (!tl_account_take(account, calls, 1))
        return TL_LIMIT;
    struct job *const job = malloc(sizeof *job);
    if (job)
        *job = (struct job){.run = run,
                            .argument = argument,
                            .account = tl_account_get(account),
                            .waits = waits,
                            .since = tl_monotonic_ns()};
    if (job && enqueue(pool, job))
        return TL_OK;
    tl_account_release(account, calls, 1);
    if (job)
        tl_account_put(account);
    free(job);
    return job ? TL_LIMIT : TL_NOMEM;
}

void tl_pool_wake(struct tl_pool *pool)
{
    pthread_mutex_lock(&pool->waiter.lock);
    if (pool->queued)
        pthread_cond_broadcast(&pool->waiter.cond);
    pthread_mutex_unlock(&pool->waiter.lock);
}

void tl_pool_limit(struct tl_pool *pool, unsigned max_threads)
{
    pthread_mutex_lock(&pool->waiter.lock);
    pool->options.max_threads = max_threads;
    set_limits(pool, max_threads);
    pthread_mutex_unlock(&pool->waiter.lock);
}

void tl_pool_use(struct tl_pool *pool, struct tl_pool_use *out)
{
    const struct tl_resource *const calls =
        &pool->options.shares->of[TL_USE_CALLS + pool->options.number];
    pthread_mutex_lock(&pool->waiter.lock);
    *out = (struct tl_pool_use){pool->options.name, pool->threads - pool->idle, pool->queued,
                                atomic_load(&calls->refused)};
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
