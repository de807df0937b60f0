/* SPDX-License-Identifier: MIT */
/*
 * The worker threads of a process, shared by all decodes and other work that can be split into
 * pieces. They serve offered work in rotation, one piece at a time, so that one large capture does
 * not starve the others.
 *
 * Other threads that compute declare it with tl_crew_enter(); meanwhile as many crew threads stay
 * idle, so that processors are not oversubscribed. Thread-safe.
 */
#ifndef TL_BASE_CREW_H
#define TL_BASE_CREW_H

#include "base/err.h"

#include <stdbool.h>

#define TL_CREW_MAX 64u /* threads */

struct tl_crew;

/*
 * Create a crew. `processors` is the number of threads that may compute at a time, including
 * callers. The crew has one thread less, at most TL_CREW_MAX; they start with the first work.
 * Returns TL_NOMEM.
 */
TL_MUST_USE int tl_crew_new(struct tl_crew **out, unsigned processors);
/* No work may be offered any more. Accepts NULL. */
void tl_crew_free(struct tl_crew *crew);

/* Number of the crew's own threads. */
unsigned tl_crew_threads(const struct tl_crew *crew);

/* Declare that the calling thread starts or stops computing. Accept NULL. */
void tl_crew_enter(struct tl_crew *crew);
void tl_crew_exit(struct tl_crew *crew);

/* Work on offer. Allocated by the caller; members after `context` are private. */
struct tl_crew_work {
    /* Do one piece and return true, or return false if there is none now. Called by several threads
     * concurrently. */
    bool (*piece)(void *context);
    void *context;
    unsigned inside; /* threads currently in `piece` */
};

/* Offer work until tl_crew_withdraw(), which returns once no thread is in `piece`. Returns
 * TL_NOMEM; TL_IO: no thread could be started. */
TL_MUST_USE int tl_crew_offer(struct tl_crew *crew, struct tl_crew_work *work);
void tl_crew_withdraw(struct tl_crew *crew, struct tl_crew_work *work);

/* Wake the crew: offered work has pieces again. */
void tl_crew_call(struct tl_crew *crew);

#endif
