/* SPDX-License-Identifier: MIT */
/*
 * Threads start with the first work offered, so that a process that never splits work has none.
 * They count calls instead of remembering one, and poll for a while before they sleep: pieces
 * follow one another faster than a thread can be woken, and no call between two looks is missed.
 */
#include "base/crew.h"

#include "base/buf.h"
#include "base/pause.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SPINS 4000 /* polls for new work before a thread sleeps */

struct tl_crew {
    pthread_mutex_t lock;
    pthread_cond_t called; /* wakes crew threads: there may be work, or the crew ends */
    pthread_cond_t left;   /* for tl_crew_withdraw() */
    atomic_uint calls;
    unsigned most, n_threads;
    pthread_t threads[TL_CREW_MAX];
    /* Protected by the lock: */
    bool quit;
    unsigned outside; /* computing threads of others */
    unsigned working; /* computing threads of the crew */
    struct tl_crew_work **works;
    size_t n, cap, next;
};

int tl_crew_new(struct tl_crew **out, unsigned processors)
{
    struct tl_crew *const crew = calloc(1, sizeof *crew);
    if (!crew)
        return TL_NOMEM;
    crew->most = processors > 1 ? processors - 1 : 0;
    crew->most = crew->most < TL_CREW_MAX ? crew->most : TL_CREW_MAX;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->called, NULL);
    pthread_cond_init(&crew->left, NULL);
    *out = crew;
    return TL_OK;
}

static void call_locked(struct tl_crew *crew)
{
    atomic_fetch_add(&crew->calls, 1);
    pthread_cond_broadcast(&crew->called);
}

void tl_crew_free(struct tl_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->quit = true;
    call_locked(crew);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->n_threads; i++)
        pthread_join(crew->threads[i], NULL);
    free(crew->works);
    pthread_cond_destroy(&crew->left);
    pthread_cond_destroy(&crew->called);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

unsigned tl_crew_threads(const struct tl_crew *crew)
{
    return crew->most;
}

void tl_crew_enter(struct tl_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->outside++;
    pthread_mutex_unlock(&crew->lock);
}

void tl_crew_exit(struct tl_crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->outside--;
    call_locked(crew);
    pthread_mutex_unlock(&crew->lock);
}

static bool may_work_locked(const struct tl_crew *crew)
{
    return crew->outside + crew->working <= crew->most;
}

/* Do one piece of the next work that has any. Releases the lock meanwhile. */
static bool work_locked(struct tl_crew *crew)
{
    bool done = false;
    for (size_t i = 0; !done && i < crew->n && may_work_locked(crew); i++) {
        struct tl_crew_work *const work = crew->works[crew->next % crew->n];
        crew->next = (crew->next + 1) % crew->n;
        work->inside++;
        crew->working++;
        pthread_mutex_unlock(&crew->lock);
        done = work->piece(work->context);
        pthread_mutex_lock(&crew->lock);
        crew->working--;
        if (--work->inside == 0)
            pthread_cond_broadcast(&crew->left);
    }
    return done;
}

static void *run(void *context)
{
    struct tl_crew *const crew = context;
    pthread_mutex_lock(&crew->lock);
    while (!crew->quit) {
        const unsigned calls = atomic_load(&crew->calls);
        if (work_locked(crew))
            continue;
        pthread_mutex_unlock(&crew->lock);
        for (unsigned i = 0; i < SPINS && atomic_load(&crew->calls) == calls; i++)
            tl_pause();
        pthread_mutex_lock(&crew->lock);
        while (atomic_load(&crew->calls) == calls)
            pthread_cond_wait(&crew->called, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static void start_locked(struct tl_crew *crew)
{
    while (crew->n_threads < crew->most &&
           pthread_create(&crew->threads[crew->n_threads], NULL, run, crew) == 0)
        crew->n_threads++;
}

int tl_crew_offer(struct tl_crew *crew, struct tl_crew_work *work)
{
    work->inside = 0;
    pthread_mutex_lock(&crew->lock);
    int rc = tl_grow(&crew->works, &crew->cap, crew->n + 1, sizeof *crew->works);
    if (rc == TL_OK) {
        start_locked(crew);
        rc = crew->n_threads > 0 ? TL_OK : TL_IO;
    }
    if (rc == TL_OK) {
        crew->works[crew->n++] = work;
        call_locked(crew);
    }
    pthread_mutex_unlock(&crew->lock);
    return rc;
}

void tl_crew_withdraw(struct tl_crew *crew, struct tl_crew_work *work)
{
    pthread_mutex_lock(&crew->lock);
    size_t at = 0;
    for (size_t i = 0; i < crew->n; i++)
        if (crew->works[i] != work)
            crew->works[at++] = crew->works[i];
    crew->n = at;
    while (work->inside > 0)
        pthread_cond_wait(&crew->left, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void tl_crew_call(struct tl_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    call_locked(crew);
    pthread_mutex_unlock(&crew->lock);
}
