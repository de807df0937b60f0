/* SPDX-License-Identifier: MIT */
/*
 * A bound on how many threads may do at once what takes much memory: each needs a seat, and those
 * who come when none is free get theirs in the order in which they came. Who has a seat never waits
 * for another one. Internally locked.
 */
#ifndef TL_LAKE_SEATS_H
#define TL_LAKE_SEATS_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tl_seat_waiter;

struct tl_seats {
    pthread_mutex_t lock;
    pthread_cond_t given;         /* to somebody who waits */
    struct tl_seat_waiter *first; /* guarded by `lock`, as all of the following */
    unsigned n, free, waiting;
    uint64_t refused; /* who gave up */
};

struct tl_seats_use {
    unsigned taken, waiting;
    uint64_t refused;
};

/* Initialise with `n` seats, at least one. */
void tl_seats_init(struct tl_seats *seats, unsigned n);
void tl_seats_fini(struct tl_seats *seats);
/*
 * Take a seat, waiting for it as long as goes_on(context) is true, which is called every 20 ms,
 * from this thread and without a lock. Returns false: it was false before a seat was free.
 */
TL_MUST_USE bool tl_seats_take(struct tl_seats *seats, bool (*goes_on)(void *context),
                               void *context);
/* Give up the seat that the caller has. */
void tl_seats_leave(struct tl_seats *seats);
/* Get the numbers at present. */
void tl_seats_use(struct tl_seats *seats, struct tl_seats_use *out);

#endif
