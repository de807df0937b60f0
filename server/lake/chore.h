/* SPDX-License-Identifier: MIT */
/*
 * Threads of the lake that have one kind of work, look for it when they are woken, and end when the
 * lake closes. The functions take lake->lock, and must not be called with it.
 */
#ifndef TL_LAKE_CHORE_H
#define TL_LAKE_CHORE_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>

struct tl_lake;

struct tl_chore {
    pthread_t thread; /* of who starts and stops it */
    bool started;
    /* Under lake->lock: */
    bool now;            /* look now; the thread takes it back */
    pthread_cond_t wake; /* it is to look, or the lake is closing */
};

void tl_chore_init(struct tl_chore *chore);
void tl_chore_fini(struct tl_chore *chore);
/* Begin `run`, which gets the lake and first looks at once. `what`: for the message. TL_IO. */
TL_MUST_USE int tl_chore_start(struct tl_chore *chore, struct tl_lake *lake,
                               void *(*run)(void *lake), const char *what, struct tl_fail *fail);
/* The lake closes: wait for the thread's end. */
void tl_chore_stop(struct tl_chore *chore, struct tl_lake *lake);
/* Have it look now. */
void tl_chore_wake(struct tl_chore *chore, struct tl_lake *lake);

#endif
