/* SPDX-License-Identifier: MIT */
/*
 * Worker threads for calls that may block. Threads are started when needed, up to a maximum,
 * and end when idle for a while. Internally locked.
 */
#ifndef TL_NET_POOL_H
#define TL_NET_POOL_H

#include "base/prometheus.h"

struct tl_pool;

struct tl_pool_options {
    const char *name;     /* of its threads, at most 15 characters, static storage */
    unsigned max_threads; /* at least 1 */
    unsigned max_queue;   /* jobs that may wait for a thread; 0: refuse at once */
};

TL_MUST_USE int tl_pool_new(struct tl_pool **out, const struct tl_pool_options *options);

/* Run job(argument) on a thread of the pool. TL_LIMIT: full, the job was not taken. */
TL_MUST_USE int tl_pool_run(struct tl_pool *pool, void (*job)(void *argument), void *argument);

/* At most so many threads from now on; those above it go on until they are idle. */
void tl_pool_limit(struct tl_pool *pool, unsigned max_threads);

/* What goes on in it now. */
struct tl_pool_use {
    const char *name;
    unsigned threads; /* that run jobs */
    unsigned queued;  /* jobs that wait for one */
};
void tl_pool_use(struct tl_pool *pool, struct tl_pool_use *out);
/* How long jobs waited for a thread. Borrowed. */
const struct tl_histogram *tl_pool_waits(const struct tl_pool *pool);

/* Is a job running or waiting? */
bool tl_pool_busy(struct tl_pool *pool);

/* Wait for all jobs, end all threads. NULL is fine. */
void tl_pool_free(struct tl_pool *pool);

#endif
