/* SPDX-License-Identifier: MIT */
/*
 * Worker threads for calls that may block. Threads are started on demand, up to a maximum, and end
 * after some idle time. Waiting calls are served in turn by client, and no client has all threads
 * (net/shares.h). Internally locked.
 */
#ifndef TL_NET_POOL_H
#define TL_NET_POOL_H

#include "base/prometheus.h"
#include "net/shares.h"

struct tl_pool;

struct tl_pool_options {
    const char *name;     /* of its threads, at most 15 characters, static storage */
    unsigned max_threads; /* at least 1 */
    unsigned max_queue;   /* jobs that may wait for a thread; 0: reject at once */
    unsigned number;      /* in TL_USE_CALLS and TL_USE_THREADS */
    struct tl_shares *shares;
    bool patient; /* its threads let others go first: tl_thread_patient() */
};

TL_MUST_USE int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options);

/* Run job(argument), charged to `account`, on a thread of the pool. `waits`: while its client has
 * more than its share of answers that it does not take. TL_LIMIT: full, or the client has its share
 * of calls; the job was rejected. TL_NOMEM. */
TL_MUST_USE int tl_pool_run(struct tl_pool *pool, struct tl_account *account, bool waits,
                            void (*job)(void *argument), void *argument);

/*
 * For struct tl_cancel: a job that has had its turn, some milliseconds, gives up its thread to
 * those of other clients, if some wait, and goes on when it has its share again, or after a short
 * time. On other threads it does nothing.
 */
void tl_pool_rest(void);

/*
 * For struct tl_cancel, called often: once a job has had its turn, its thread lets others go first
 * (tl_thread_patient()), so that a call which arrives now is not behind it. On other threads it
 * does nothing.
 */
void tl_pool_tire(void);
/* Give the calling thread a lower priority than the threads that answer short calls, for good. */
void tl_thread_patient(void);

/* Change the maximum number of threads; excess threads continue until they are idle. */
void tl_pool_limit(struct tl_pool *pool, unsigned max_threads);
/* Look again for a job that can run: its client has taken answers. */
void tl_pool_wake(struct tl_pool *pool);

/* Current load. */
struct tl_pool_use {
    const char *name;
    unsigned threads;           /* threads running jobs */
    unsigned queued;            /* jobs waiting for a thread */
    unsigned long long refused; /* jobs in total */
};
void tl_pool_use(struct tl_pool *pool, struct tl_pool_use *out);
/* Durations for which jobs waited for a thread. Borrowed. */
const struct tl_histogram *tl_pool_waits(const struct tl_pool *pool);

/* Is a job running or waiting? */
bool tl_pool_busy(struct tl_pool *pool);

/* Wait for all jobs, end all threads. Accepts NULL. */
void tl_pool_free(struct tl_pool *pool);

#endif
