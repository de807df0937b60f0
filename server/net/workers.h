/* SPDX-License-Identifier: MIT */
/*
 * The threads that run handlers, partitioned by required role and duration, so that no kind of call
 * can take the threads of another: public calls have few, long-lasting work never delays a short
 * call, and readers never prevent a rig from pushing. Internally locked.
 */
#ifndef TL_NET_WORKERS_H
#define TL_NET_WORKERS_H

#include "net/net.h"

struct tl_workers;

/* Pools by the role that a call requires. */
enum tl_role_class { TL_FOR_PUBLIC, TL_FOR_READ, TL_FOR_PUSH, TL_FOR_ADMIN, TL_ROLE_CLASSES };

static inline enum tl_role_class tl_role_class(unsigned role)
{
    return role & TL_ROLE_ADMIN  ? TL_FOR_ADMIN
           : role & TL_ROLE_PUSH ? TL_FOR_PUSH
           : role & TL_ROLE_READ ? TL_FOR_READ
                                 : TL_FOR_PUBLIC;
}

/* `max_lasting`: concurrent TL_LASTING calls that need read, and the same number that need push. */
TL_MUST_USE int tl_workers_new(struct tl_workers **out, unsigned max_lasting);

/*
 * Run job(argument), a call that requires `role`, on a thread. TL_LIMIT: too many of its kind are
 * running and waiting, the job was rejected; TL_NOMEM.
 */
TL_MUST_USE int tl_workers_run(struct tl_workers *workers, unsigned role, enum tl_effort effort,
                               void (*job)(void *argument), void *argument);

/* Change `max_lasting`; excess calls continue. */
void tl_workers_limit(struct tl_workers *workers, unsigned max_lasting);

/* Append Prometheus text: busy threads, waiting jobs, and their waiting times. TL_NOMEM. */
TL_MUST_USE int tl_workers_metrics(const struct tl_workers *workers, struct tl_buf *out);

/* Is a job running or waiting? */
bool tl_workers_busy(struct tl_workers *workers);

/* Wait for all jobs, end all threads. Accepts NULL. */
void tl_workers_free(struct tl_workers *workers);

#endif
