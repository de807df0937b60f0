/* SPDX-License-Identifier: MIT */
/* Times of the wall clock and of the monotonic one, and waiting until a time. Header only. */
#ifndef TL_BASE_NOW_H
#define TL_BASE_NOW_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define TL_NS_PER_S  INT64_C(1000000000)
#define TL_NS_PER_MS INT64_C(1000000)

static inline int64_t tl_read_clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * TL_NS_PER_S + t.tv_nsec;
}

/* Since 1970, ns; it may be set while the program runs. */
static inline int64_t tl_wall_ns(void)
{
    return tl_read_clock_ns(CLOCK_REALTIME);
}

/* Since some time in the past; for durations and deadlines. */
static inline int64_t tl_monotonic_ns(void)
{
    return tl_read_clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t tl_monotonic_ms(void)
{
    return tl_monotonic_ns() / TL_NS_PER_MS;
}

/* Wait for `cond`, with `lock` held, until it is signalled or tl_monotonic_ns() has reached `when`.
 * 0 (also without reason), or ETIMEDOUT. */
static inline int tl_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t when)
{
    const struct timespec t = {.tv_sec = when / TL_NS_PER_S, .tv_nsec = when % TL_NS_PER_S};
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &t);
}

#endif
