/* SPDX-License-Identifier: MIT */
/*
 * Sleeps on a condition variable with a flag for news and one for the end. The flags stay set until
 * they are seen, so that a poke between two waits is not lost.
 */
#include "net/waiter.h"

void tl_waiter_init(struct tl_waiter *waiter)
{
    pthread_mutex_init(&waiter->lock, NULL);
    pthread_cond_init(&waiter->cond, NULL);
    waiter->poked = false;
    waiter->closed = false;
}

void tl_waiter_fini(struct tl_waiter *waiter)
{
    pthread_cond_destroy(&waiter->cond);
    pthread_mutex_destroy(&waiter->lock);
}

void tl_waiter_poke(struct tl_waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->poked = true;
    pthread_cond_broadcast(&waiter->cond);
    pthread_mutex_unlock(&waiter->lock);
}

void tl_waiter_close(struct tl_waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->closed = true;
    pthread_cond_broadcast(&waiter->cond);
    pthread_mutex_unlock(&waiter->lock);
}

bool tl_waiter_wait_until_locked(struct tl_waiter *waiter, int64_t until_ms)
{
    if (until_ms < 0) {
        pthread_cond_wait(&waiter->cond, &waiter->lock);
        return true;
    }
    return tl_cond_wait_until(&waiter->cond, &waiter->lock, until_ms * TL_NS_PER_MS) == 0;
}

int tl_waiter_wait(struct tl_waiter *waiter, int64_t timeout_ms)
{
    const int64_t until = timeout_ms < 0 ? -1 : tl_monotonic_ms() + timeout_ms;
    int rc = TL_AGAIN;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->poked && !waiter->closed)
        if (!tl_waiter_wait_until_locked(waiter, until))
            break;
    if (waiter->closed) {
        rc = TL_CANCELLED;
    } else if (waiter->poked) {
        waiter->poked = false;
        rc = TL_OK;
    }
    pthread_mutex_unlock(&waiter->lock);
    return rc;
}

int tl_waiter_sleep(struct tl_waiter *waiter, int64_t ms)
{
    const int64_t until = tl_monotonic_ms() + ms;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->closed)
        if (!tl_waiter_wait_until_locked(waiter, until))
            break;
    const bool closed = waiter->closed;
    pthread_mutex_unlock(&waiter->lock);
    return closed ? TL_CANCELLED : TL_OK;
}
