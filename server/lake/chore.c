/* SPDX-License-Identifier: MIT */
/*
 * Starts, wakes and ends the lake's background threads. A wake-up is a flag under the lake's lock,
 * so that one that comes while the thread works is not lost.
 */
#include "lake/chore.h"

#include "lake/lakeint.h"

#include <errno.h>
#include <string.h>

void tl_chore_init(struct tl_chore *chore)
{
    pthread_cond_init(&chore->wake, NULL);
}

void tl_chore_fini(struct tl_chore *chore)
{
    pthread_cond_destroy(&chore->wake);
}

int tl_chore_start(struct tl_chore *chore, struct tl_lake *lake, void *(*run)(void *lake),
                   const char *what, struct tl_fail *fail)
{
    chore->now = true;
    const int e = pthread_create(&chore->thread, NULL, run, lake);
    if (e != 0) {
        errno = e;
        return tl_fail_set(fail, TL_IO, "cannot start %s: %s", what, strerror(e));
    }
    chore->started = true;
    return TL_OK;
}

void tl_chore_stop(struct tl_chore *chore, struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    atomic_store(&lake->closing, true);
    pthread_cond_broadcast(&chore->wake);
    pthread_mutex_unlock(&lake->lock);
    if (chore->started)
        pthread_join(chore->thread, NULL);
    chore->started = false;
}

/* Make the thread check for work now. */
static void wake_chore(struct tl_chore *chore, struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    chore->now = true;
    pthread_cond_signal(&chore->wake);
    pthread_mutex_unlock(&lake->lock);
}

void tl_housekeeper_wake(struct tl_lake *lake)
{
    wake_chore(&lake->house, lake);
}

void tl_repack_wake(struct tl_lake *lake)
{
    wake_chore(&lake->repack, lake);
}
