/* SPDX-License-Identifier: MIT */
/*
 * An object on which a worker thread can wait, that can be poked, and that can be closed when the
 * result is no longer wanted. Internally locked; the lock may also guard the object that the waiter
 * belongs to (in functions ending in _locked).
 */
#ifndef TL_NET_WAITER_H
#define TL_NET_WAITER_H

#include "base/err.h"
#include "base/now.h"

#include <pthread.h>
#include <stdatomic.h>

struct tl_waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool poked;         /* there is news; cleared by the wait that reports it */
    atomic_bool closed; /* the peer went away, or the server is stopping; set under the lock */
};

void tl_waiter_init(struct tl_waiter *waiter);
void tl_waiter_fini(struct tl_waiter *waiter);

/* Wake the waiting thread, or the next one to wait. Never blocks for long. */
void tl_waiter_poke(struct tl_waiter *waiter);
/* Close permanently: every wait from now on returns TL_CANCELLED. */
void tl_waiter_close(struct tl_waiter *waiter);

/*
 * Wait at most `timeout_ms` (negative: forever). TL_OK: poked; TL_AGAIN: timeout; TL_CANCELLED:
 * closed.
 */
TL_MUST_USE int tl_waiter_wait(struct tl_waiter *waiter, int64_t timeout_ms);

/* Sleep for `ms` regardless of pokes, which are kept. TL_OK, or TL_CANCELLED at once. */
TL_MUST_USE int tl_waiter_sleep(struct tl_waiter *waiter, int64_t ms);

/* Wait on `cond` until a time on the monotonic clock; false: it has passed. Lock held. */
bool tl_waiter_wait_until_locked(struct tl_waiter *waiter, int64_t until_ms);

/* Is it closed? Lock-free and cheap. */
static inline bool tl_waiter_closed(const struct tl_waiter *waiter)
{
    return atomic_load_explicit(&waiter->closed, memory_order_relaxed);
}

#endif
