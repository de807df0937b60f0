/* SPDX-License-Identifier: MIT */
/*
 * Worker threads for calls that may block. Threads are started when needed, up to a maximum,
 * and end when idle for a while. Internally locked.
 */
#ifndef TL_NET_POOL_H
#define TL_NET_POOL_H

#include "base/err.h"

struct tl_pool;

struct tl_pool_options {
    const char *name;     /* of its threads, at most 15 characters, static storage */
    unsigned max_threads; /* at least 1 */
    unsigned max_queue;   /* jobs that may wait for a thread; 0: refuse at once */
};

TL_MUST_USE int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options);

/* Run job(argument) on a thread of the pool. TL_LIMIT: full, the job was not taken. */
TL_MUST_USE int tl_pool_run(struct tl_pool *pool, void (*job)(void *argument), void *argument);

/* Is a job running or waiting? */
bool tl_pool_busy(struct tl_pool *pool);

/* Wait for all jobs, end all threads. NULL is fine. */
void tl_pool_free(struct tl_pool *pool);

#endif
