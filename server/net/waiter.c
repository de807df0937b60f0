/* SPDX-License-Identifier: MIT */
#include "net/waiter.h"

#include <time.h>

int64_t tl_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t tl_now_ms(void)
{
    return tl_now_ns() / 1000000;
}

void tl_waiter_init(struct tl_waiter *waiter)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&waiter->lock, NULL);
    pthread_cond_init(&waiter->cond, &attributes);
    pthread_condattr_destroy(&attributes);
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
    const struct timespec until = {
        .tv_sec = until_ms / 1000,
        .tv_nsec = until_ms % 1000 * 1000000,
    };
    return pthread_cond_timedwait(&waiter->cond, &waiter->lock, &until) == 0;
}

int tl_waiter_wait(struct tl_waiter *waiter, int64_t timeout_ms)
{
    const int64_t until = timeout_ms < 0 ? -1 : tl_now_ms() + timeout_ms;
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
    const int64_t until = tl_now_ms() + ms;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->closed)
        if (!tl_waiter_wait_until_locked(waiter, until))
            break;
    const bool closed = waiter->closed;
    pthread_mutex_unlock(&waiter->lock);
    return closed ? TL_CANCELLED : TL_OK;
}
