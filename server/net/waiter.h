/* SPDX-License-Identifier: MIT */
/*
 * Something that a worker thread can wait on, be poked awake, and be told that nobody wants
 * its result any more. Internally locked; the lock may also guard what the waiter stands for
 * (functions ending in _locked then).
 */
#ifndef TL_NET_WAITER_H
#define TL_NET_WAITER_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>

struct tl_waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond; /* on the monotonic clock */
    bool poked;          /* somebody has news; cleared by the wait that reports it */
    atomic_bool closed;  /* the peer went away, or the server stops; set under the lock */
};

void tl_waiter_init(struct tl_waiter *waiter);
void tl_waiter_fini(struct tl_waiter *waiter);

/* Wake the one that waits, or the next one that will. Never blocks for long. */
void tl_waiter_poke(struct tl_waiter *waiter);
/* For good: every wait from now on returns TL_CANCELLED. */
void tl_waiter_close(struct tl_waiter *waiter);

/*
 * Wait at most `timeout_ms` (negative: for ever). TL_OK: poked; TL_AGAIN: time is up;
 * TL_CANCELLED: closed.
 */
TL_MUST_USE int tl_waiter_wait(struct tl_waiter *waiter, int64_t timeout_ms);

/* Wait so long whatever is poked; a poke is kept. TL_OK, or TL_CANCELLED at once. */
TL_MUST_USE int tl_waiter_sleep(struct tl_waiter *waiter, int64_t ms);

/* Wait on `cond` until a moment of the monotonic clock; false: it has passed. Lock held. */
bool tl_waiter_wait_until_locked(struct tl_waiter *waiter, int64_t until_ms);

/* Was it closed? Without the lock: cheap. */
static inline bool tl_waiter_closed(const struct tl_waiter *waiter)
{
    return atomic_load_explicit(&waiter->closed, memory_order_relaxed);
}

/* The monotonic clock. */
int64_t tl_now_ns(void);
int64_t tl_now_ms(void);

#endif
