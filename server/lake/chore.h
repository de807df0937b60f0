/* SPDX-License-Identifier: MIT */
/*
 * Background threads of the lake, each with one kind of work: they check for work when woken, and
 * end when the lake closes. The functions take lake->lock, and must not be called with it held.
 */
#ifndef TL_LAKE_CHORE_H
#define TL_LAKE_CHORE_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>

struct tl_lake;

struct tl_chore {
    pthread_t thread; /* used only by the thread that starts and stops it */
    bool started;
    /* Guarded by lake->lock: */
    bool now;            /* check for work now; cleared by the thread */
    pthread_cond_t wake; /* `now` was set, or the lake is closing */
};

void tl_chore_init(struct tl_chore *chore);
void tl_chore_fini(struct tl_chore *chore);
/*
 * Start `run`, which receives the lake and checks for work immediately. `what`: name for the error
 * message. TL_IO.
 */
TL_MUST_USE int tl_chore_start(struct tl_chore *chore, struct tl_lake *lake,
                               void *(*run)(void *lake), const char *what, struct tl_fail *fail);
/* The lake is closing: wait for the thread to end. */
void tl_chore_stop(struct tl_chore *chore, struct tl_lake *lake);

/* Have the housekeeper (upkeep/housekeeper.h), or the packing of raw segments (ingest/repack.h),
 * look for work now. */
void tl_housekeeper_wake(struct tl_lake *lake);
void tl_repack_wake(struct tl_lake *lake);

#endif
