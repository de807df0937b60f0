/* SPDX-License-Identifier: MIT */
/*
 * A seat that is left goes to the first who waits, instead of to whoever happens to come: else a
 * thread might wait for ever beside busy ones. All who wait share a condition, since they are few.
 */
#include "lake/seats.h"

#include "base/now.h"

#include <time.h>

#define LOOK_NS (20 * 1000 * 1000) /* between two questions whether to go on */

struct tl_seat_waiter {
    struct tl_seat_waiter *next;
    bool seated;
};

void tl_seats_init(struct tl_seats *s, unsigned n)
{
    pthread_condattr_t clock;
    *s = (struct tl_seats){.n = n, .free = n};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->given, &clock);
    pthread_condattr_destroy(&clock);
}

void tl_seats_fini(struct tl_seats *s)
{
    pthread_cond_destroy(&s->given);
    pthread_mutex_destroy(&s->lock);
}

static void wait_for_a_moment_locked(struct tl_seats *s)
{
    const int64_t until = tl_monotonic_ns() + LOOK_NS;
    const struct timespec at = {.tv_sec = until / TL_NS_PER_S, .tv_nsec = until % TL_NS_PER_S};
    pthread_cond_timedwait(&s->given, &s->lock, &at);
}

static struct tl_seat_waiter **place_of_locked(struct tl_seats *s, const struct tl_seat_waiter *w)
{
    struct tl_seat_waiter **at = &s->first;
    while (*at != w)
        at = &(*at)->next;
    return at;
}

static void wait_locked(struct tl_seats *s, struct tl_seat_waiter *w,
                        bool (*goes_on)(void *context), void *context)
{
    bool wanted = true;
    *place_of_locked(s, NULL) = w;
    s->waiting++;
    while (!w->seated && wanted) {
        pthread_mutex_unlock(&s->lock);
        wanted = goes_on(context);
        pthread_mutex_lock(&s->lock);
        if (!w->seated && wanted)
            wait_for_a_moment_locked(s);
    }
    s->waiting--;
    if (w->seated)
        return;
    *place_of_locked(s, w) = w->next;
    s->refused++;
}

bool tl_seats_take(struct tl_seats *s, bool (*goes_on)(void *context), void *context)
{
    struct tl_seat_waiter w = {0};
    pthread_mutex_lock(&s->lock);
    if (s->free > 0) {
        s->free--;
        w.seated = true;
    } else {
        wait_locked(s, &w, goes_on, context);
    }
    pthread_mutex_unlock(&s->lock);
    return w.seated;
}

void tl_seats_leave(struct tl_seats *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->first) {
        s->first->seated = true;
        s->first = s->first->next;
        pthread_cond_broadcast(&s->given);
    } else {
        s->free++;
    }
    pthread_mutex_unlock(&s->lock);
}

void tl_seats_use(struct tl_seats *s, struct tl_seats_use *out)
{
    pthread_mutex_lock(&s->lock);
    *out = (struct tl_seats_use){
        .taken = s->n - s->free, .waiting = s->waiting, .refused = s->refused};
    pthread_mutex_unlock(&s->lock);
}
