/* SPDX-License-Identifier: MIT */
/*
 * The threads of a process that work ahead, shared by all decodes and whoever else has work that
 * can be cut into pieces. They go round among those that have work, a piece each, so that one
 * large capture does not keep the others waiting.
 *
 * Threads of others that compute for themselves say so (tl_crew_enter()): so many threads of the
 * crew stay idle meanwhile, and no processor has two masters. Thread-safe.
 */
#ifndef TL_BASE_CREW_H
#define TL_BASE_CREW_H

#include "base/err.h"

#include <stdbool.h>

#define TL_CREW_MAX 64u /* threads */

struct tl_crew;

/*
 * `processors`: how many threads may compute at a time, those that call included. The crew has one
 * less of its own, at most TL_CREW_MAX; they start with the first work. TL_NOMEM.
 */
TL_MUST_USE int tl_crew_new(struct tl_crew **out, unsigned processors);
/* Nobody may offer work any more. NULL is fine. */
void tl_crew_free(struct tl_crew *crew);

/* Threads of its own. */
unsigned tl_crew_threads(const struct tl_crew *crew);

/* The calling thread computes from now on, or no longer. NULL is fine. */
void tl_crew_enter(struct tl_crew *crew);
void tl_crew_exit(struct tl_crew *crew);

/* Work that is offered. The caller's; the members below `context` are private. */
struct tl_crew_work {
    /* Does a piece of it and returns true; false: there is none now. Called by several threads at
     * once. */
    bool (*piece)(void *context);
    void *context;
    unsigned inside; /* threads that are in a call */
};

/* Offer work, until tl_crew_withdraw(): no thread is in a call when that returns. TL_NOMEM; TL_IO:
 * no thread could be started. */
TL_MUST_USE int tl_crew_offer(struct tl_crew *crew, struct tl_crew_work *work);
void tl_crew_withdraw(struct tl_crew *crew, struct tl_crew_work *work);

/* There is more to do, where there was nothing. */
void tl_crew_call(struct tl_crew *crew);

#endif
