/* SPDX-License-Identifier: MIT */
/*
 * The threads that run handlers, dealt out by what a call needs and how long it takes, so that no
 * kind of call can take the threads of another: those that anyone may make are few, work that lasts
 * never delays a short call, and readers never keep a rig from pushing. Internally locked.
 */
#ifndef TL_NET_WORKERS_H
#define TL_NET_WORKERS_H

#include "net/net.h"

struct tl_workers;

/* Pools by the role that a call needs. */
enum tl_role_class { TL_FOR_PUBLIC, TL_FOR_READ, TL_FOR_PUSH, TL_FOR_ADMIN, TL_ROLE_CLASSES };

static inline enum tl_role_class tl_role_class(unsigned role)
{
    return role & TL_ROLE_ADMIN  ? TL_FOR_ADMIN
           : role & TL_ROLE_PUSH ? TL_FOR_PUSH
           : role & TL_ROLE_READ ? TL_FOR_READ
                                 : TL_FOR_PUBLIC;
}

/* `max_lasting`: TL_LASTING calls at a time that need read, and as many that need push. */
TL_MUST_USE int tl_workers_new(struct tl_workers **out, unsigned max_lasting);

/*
 * Run job(argument), a call that needs `role`, on a thread. TL_LIMIT: too many of its kind run and
 * wait already, the job was not taken; TL_NOMEM.
 */
TL_MUST_USE int tl_workers_run(struct tl_workers *workers, unsigned role, enum tl_effort effort,
                               void (*job)(void *argument), void *argument);

/* Another `max_lasting` from now on; calls above it go on. */
void tl_workers_limit(struct tl_workers *workers, unsigned max_lasting);

/* Append Prometheus text: threads at work, jobs that wait, and how long they waited. TL_NOMEM. */
TL_MUST_USE int tl_workers_metrics(const struct tl_workers *workers, struct tl_buf *out);

/* Is a job running or waiting? */
bool tl_workers_busy(struct tl_workers *workers);

/* Wait for all jobs, end all threads. NULL is fine. */
void tl_workers_free(struct tl_workers *workers);

#endif
