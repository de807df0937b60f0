/* SPDX-License-Identifier: MIT */
/*
 * The threads that run handlers, partitioned by required role and duration, so that no kind of call
 * can take the threads of another: public calls have few, long-lasting work never delays a short
 * call, and readers never prevent a rig from pushing. Internally locked.
 */
#ifndef TL_NET_WORKERS_H
#define TL_NET_WORKERS_H

#include "net/net.h"
#include "net/shares.h"

struct tl_workers;

/* The class of a call by the role that it requires. */
static inline enum tl_role_class tl_role_class(unsigned role)
{
    return role & TL_ROLE_HEALTH  ? TL_FOR_HEALTH
           : role & TL_ROLE_ADMIN ? TL_FOR_ADMIN
           : role & TL_ROLE_PUSH  ? TL_FOR_PUSH
           : role & TL_ROLE_READ  ? TL_FOR_READ
                                  : TL_FOR_PUBLIC;
}

/* The calls of a pool as a resource. */
static inline unsigned tl_use_of_calls(unsigned role, enum tl_effort effort)
{
    return TL_USE_CALLS + tl_role_class(role) * TL_EFFORTS + effort;
}

/* `max_lasting`: concurrent TL_LASTING calls that need read, and the same number that need push. */
TL_MUST_USE int tl_workers_new(struct tl_workers **out, struct tl_shares *shares,
                               unsigned max_lasting);

/*
 * Run job(argument), a call that requires `role` and is charged to `account`, on a thread; `waits`
 * as in net/pool.h.
 * TL_LIMIT: too many of its kind are running and waiting, or the client has its share; the job was
 * rejected; TL_NOMEM.
 */
TL_MUST_USE int tl_workers_run(struct tl_workers *workers, struct tl_account *account,
                               unsigned role, enum tl_effort effort, bool waits,
                               void (*job)(void *argument), void *argument);

/* Change `max_lasting`; excess calls continue. */
void tl_workers_limit(struct tl_workers *workers, unsigned max_lasting);
/* Clients have taken answers: calls that waited for that may run. */
void tl_workers_wake(struct tl_workers *workers);

/* Append Prometheus text: busy threads, waiting jobs, and their waiting times. TL_NOMEM. */
TL_MUST_USE int tl_workers_metrics(const struct tl_workers *workers, struct tl_buf *out);

/* Is a job running or waiting? */
bool tl_workers_busy(struct tl_workers *workers);

/* Wait for all jobs, end all threads. Accepts NULL. */
void tl_workers_free(struct tl_workers *workers);

#endif
