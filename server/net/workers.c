/* SPDX-License-Identifier: MIT */
/*
 * Divides threads into pools by role and duration of calls. Threads start on demand and never serve
 * another pool, so that no number of readers can keep a rig from pushing.
 */
#include "net/workers.h"

#include "base/processors.h"
#include "net/pool.h"

#include <stdlib.h>

#define LONG_MIN 8 /* minimum threads for long work; one client has at most half of them */
#define OWN      0 /* value from the server's options */

struct tl_workers {
    struct tl_pool *pools[TL_ROLE_CLASSES][TL_EFFORTS];
};

/* Threads start on demand, so that an unused pool costs nothing. */
static const struct tl_pool_options sizes[TL_ROLE_CLASSES][TL_EFFORTS] = {
    [TL_FOR_PUBLIC] = {{"public", 4, 256}, {"public-long", 1, 16}, {"public-lasts", 32, 0}},
    [TL_FOR_READ] = {{"read", 16, 4096}, {"read-long", OWN, 1024}, {"read-lasts", OWN, 0}},
    [TL_FOR_PUSH] = {{"push", 16, 1024}, {"push-long", OWN, 256}, {"push-lasts", OWN, 0}},
    [TL_FOR_ADMIN] = {{"admin", 4, 256}, {"admin-long", 4, 64}, {"admin-lasts", 16, 0}},
    [TL_FOR_HEALTH] = {{"health", 4, 256}, {"health-long", 1, 16}, {"health-lasts", 64, 0}},
};

int tl_workers_new(struct tl_workers **out, struct tl_shares *shares, unsigned max_lasting)
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
                options.max_threads = 2 * processors < LONG_MIN ? LONG_MIN : 2 * processors;
            options.number = class * TL_EFFORTS + effort;
            options.shares = shares;
            /* Those of rigs must not wait for readers. */
            options.patient =
                effort == TL_LASTING && class != TL_FOR_PUSH && class != TL_FOR_HEALTH;
            rc = tl_pool_new(&workers->pools[class][effort], &options);
        }
    if (rc == TL_OK)
        *out = workers;
    else
        tl_workers_free(workers);
    return rc;
}

int tl_workers_run(struct tl_workers *workers, struct tl_account *account, unsigned role,
                   enum tl_effort effort, bool waits, void (*job)(void *argument), void *argument)
{
    return tl_pool_run(workers->pools[tl_role_class(role)][effort], account, waits, job, argument);
}

void tl_workers_wake(struct tl_workers *workers)
{
    for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
        for (unsigned effort = 0; effort < TL_EFFORTS; effort++)
            tl_pool_wake(workers->pools[class][effort]);
}

void tl_workers_limit(struct tl_workers *workers, unsigned max_lasting)
{
    for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
        if (sizes[class][TL_LASTING].max_threads == OWN)
            tl_pool_limit(workers->pools[class][TL_LASTING], max_lasting);
}

int tl_workers_metrics(const struct tl_workers *workers, struct tl_buf *out)
{
    struct tl_pool *const *const pools = &workers->pools[0][0];
    struct tl_pool_use use[TL_ROLE_CLASSES * TL_EFFORTS];
    const size_t n = sizeof use / sizeof *use;
    for (size_t i = 0; i < n; i++)
        tl_pool_use(pools[i], &use[i]);
    int rc = tl_metric_begin(out, "worker_threads", "Threads that run calls, by kind of call.");
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "worker_threads", use[i].threads, "pool=\"%s\"", use[i].name);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "worker_queue", "Calls that wait for a thread.");
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "worker_queue", use[i].queued, "pool=\"%s\"", use[i].name);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "worker_refused_total", "Calls refused: too many of a client.");
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "worker_refused_total", use[i].refused, "pool=\"%s\"",
                              use[i].name);
    if (rc == TL_OK)
        rc = tl_histogram_begin(out, "worker_wait_seconds", "How long calls waited for a thread.");
    for (size_t i = 0; i < n && rc == TL_OK; i++)
        if (tl_histogram_used(tl_pool_waits(pools[i])))
            rc = tl_histogram_series(out, "worker_wait_seconds", tl_pool_waits(pools[i]), "pool",
                                     use[i].name);
    return rc;
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
    /* Jobs of the other pools may submit jobs to the lasting ones. */
    for (unsigned effort = 0; effort < TL_EFFORTS; effort++)
        for (unsigned class = 0; class < TL_ROLE_CLASSES; class ++)
            tl_pool_free(workers->pools[class][effort]);
    free(workers);
}
