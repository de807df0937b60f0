/* SPDX-License-Identifier: MIT */
#include "net/workers.h"

#include "base/processors.h"
#include "net/pool.h"

#include <stdlib.h>

#define LONG_LEAST 4 /* threads for long work, however few the processors */
#define OWN        0 /* as many as the server's options say */

struct tl_workers {
    struct tl_pool *pools[TL_ROLE_CLASSES][TL_EFFORTS];
};

/* Threads start when they are needed, so that a pool that nobody uses costs nothing. */
static const struct tl_pool_options sizes[TL_ROLE_CLASSES][TL_EFFORTS] = {
    [TL_FOR_PUBLIC] = {{"public", 4, 256}, {"public-long", 1, 16}, {"public-lasts", 32, 0}},
    [TL_FOR_READ] = {{"read", 16, 4096}, {"read-long", OWN, 256}, {"read-lasts", OWN, 0}},
    [TL_FOR_PUSH] = {{"push", 16, 1024}, {"push-long", OWN, 256}, {"push-lasts", OWN, 0}},
    [TL_FOR_ADMIN] = {{"admin", 4, 256}, {"admin-long", 2, 64}, {"admin-lasts", 16, 0}},
};

int tl_workers_new(struct tl_workers **out, unsigned max_lasting)
{
    struct tl_workers *const workers = calloc(1, sizeof *workers);
    const unsigned processors = tl_processors();
    int rc = workers ? TL_OK : TL_NOMEM;
    for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
        for (unsigned effort = 0; effort < TL_EFFORTS && rc == TL_OK; effort++) {
            struct tl_pool_options options = sizes[class][effort];
            if (options.max_threads == OWN && effort == TL_LASTING)
                options.max_threads = max_lasting;
            else if (options.max_threads == OWN)
                options.max_threads = processors < LONG_LEAST ? LONG_LEAST : processors;
            rc = tl_pool_new(&workers->pools[class][effort], &options);
        }
    if (rc == TL_OK)
        *out = workers;
    else
        tl_workers_free(workers);
    return rc;
}

int tl_workers_run(struct tl_workers *workers, unsigned role, enum tl_effort effort,
                   void (*job)(void *argument), void *argument)
{
    return tl_pool_run(workers->pools[tl_role_class(role)][effort], job, argument);
}

bool tl_workers_busy(struct tl_workers *workers)
{
    for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
        for (unsigned effort = 0; effort < TL_EFFORTS; effort++)
            if (tl_pool_busy(workers->pools[class][effort]))
                return true;
    return false;
}

void tl_workers_free(struct tl_workers *workers)
{
    if (!workers)
        return;
    /* Jobs of the others may give jobs to those that last. */
    for (unsigned effort = 0; effort < TL_EFFORTS; effort++)
        for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
            tl_pool_free(workers->pools[class][effort]);
    free(workers);
}
