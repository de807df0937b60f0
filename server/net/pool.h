/* SPDX-License-Identifier: MIT */
/*
 * Worker threads for calls that may block. Threads are started on demand, up to a maximum, and end
 * after some idle time. Internally locked.
 */
#ifndef TL_NET_POOL_H
#define TL_NET_POOL_H

#include "base/prometheus.h"

struct tl_pool;

struct tl_pool_options {
    const char *name;     /* of its threads, at most 15 characters, static storage */
    unsigned max_threads; /* at least 1 */
    unsigned max_queue;   /* jobs that may wait for a thread; 0: reject at once */
};

TL_MUST_USE int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options);

/* Run job(argument) on a thread of the pool. TL_LIMIT: full, the job was rejected. */
TL_MUST_USE int tl_pool_run(struct tl_pool *pool, void (*job)(void *argument), void *argument);

/* Change the maximum number of threads; excess threads continue until they are idle. */
void tl_pool_limit(struct tl_pool *pool, unsigned max_threads);

/* Current load. */
struct tl_pool_use {
    const char *name;
    unsigned threads; /* threads running jobs */
    unsigned queued;  /* jobs waiting for a thread */
};
void tl_pool_use(struct tl_pool *pool, struct tl_pool_use *out);
/* Durations for which jobs waited for a thread. Borrowed. */
const struct tl_histogram *tl_pool_waits(const struct tl_pool *pool);

/* Is a job running or waiting? */
bool tl_pool_busy(struct tl_pool *pool);

/* Wait for all jobs, end all threads. Accepts NULL. */
void tl_pool_free(struct tl_pool *pool);

#endif
