/* SPDX-License-Identifier: MIT */
/*
 * The housekeeper's thread: applies retention, retries failed operations of the medium, returns
 * free memory. Each round does a bounded part, so that a large store delays nobody.
 */
#include "upkeep/housekeeper.h"
#include "ingest/session.h"
#include "lake/heap.h"
#include "lake/lakeint.h"
#include "lake/mirror.h"
#include "lake_upkeep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS INT64_C(1000000000)
#define ROUND   60 /* ticks between two rounds; one if something is left to be retried */

/* ---- garbage -------------------------------------------------------------------------------- */

/* ---- the thread ----------------------------------------------------------------------------- */

/* Must the copy of its row be written again? */
static bool is_stale_locked(const struct tl_trace *trace)
{
    return trace->mirror_stale && !trace->deleted && tl_trace_mine_locked(trace);
}

/* Returns whether something is left to do. */
static bool write_stale(struct tl_lake *lake)
{
    struct tl_trace *trace;
    bool stale = false;
    while (!stale && (trace = tl_lake_find_due(lake, is_stale_locked, NULL))) {
        tl_trace_mirror(trace);
        pthread_mutex_lock(&trace->lock);
        stale = trace->mirror_stale;
        pthread_mutex_unlock(&trace->lock);
        tl_trace_put(trace);
    }
    return stale;
}

/* `*soon`: something is left to do that is due soon. */
static bool do_chores(struct tl_lake *lake, bool *soon)
{
    bool left = tl_lake_remove_garbage(lake, NULL, NULL) < 0;
    pthread_mutex_lock(&lake->lock);
    left = left || lake->garbage; /* not due yet */
    pthread_mutex_unlock(&lake->lock);
    left = write_stale(lake) || left;
    return tl_contents_hash(lake, soon) || left;
}

/* Apply the rules. Reads the rows of all traces, so not at every wake-up. Returns whether it must
 * be repeated. */
static bool carry_out_rules(struct tl_lake *lake, bool due)
{
    if (!atomic_exchange(&lake->rules_changed, false) && !due)
        return false;
    const bool failed = tl_lake_retain_now(lake, NULL) < 0;
    if (failed)
        atomic_store(&lake->rules_changed, true);
    return failed;
}

/* Hold space back, and see whether a medium that refused writes takes them again. */
static void look_at_medium(struct tl_lake *lake)
{
    const struct tl_backend_ops *const ops = lake->backend->ops;
    struct tl_catalog *const catalog = lake->catalog;
    if (ops->keep_space)
        ops->keep_space(lake->backend);
    if (catalog->ops->writable && catalog->ops->writable(catalog, NULL) < 0 &&
        catalog->ops->ready(catalog, NULL) < 0)
        return; /* not yet */
}

static void *keep_house(void *context)
{
    struct tl_lake *lake = context;
    pthread_mutex_lock(&lake->lock);
    bool left = false, soon = false;
    unsigned ticks = 0;
    while (!atomic_load(&lake->closing)) {
        const int64_t when = tl_monotonic_ns() + (soon ? TL_FRESH_NS : TICK_NS);
        int e = 0;
        while (e != ETIMEDOUT && !lake->house.now && !atomic_load(&lake->closing))
            e = tl_cond_wait_until(&lake->house.wake, &lake->lock, when);
        if (atomic_load(&lake->closing))
            break;
        ticks += e == ETIMEDOUT && !soon;
        const bool round = ticks >= ROUND, due = lake->house.now || left || soon || round;
        lake->house.now = false;
        pthread_mutex_unlock(&lake->lock);
        tl_heap_tidy();
        look_at_medium(lake);
        tl_lake_clock_tick(lake);
        tl_lake_seal_left(lake, tl_monotonic_ns());
        tl_lake_trim_programs(lake, lake->program_limit);
        if (due)
            left = do_chores(lake, &soon);
        left = carry_out_rules(lake, round) || left;
        ticks = round ? 0 : ticks;
        pthread_mutex_lock(&lake->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return NULL;
}

int tl_housekeeper_start(struct tl_lake *lake, struct tl_fail *fail)
{
    return tl_chore_start(&lake->house, lake, keep_house, "the housekeeper", fail);
}

void tl_housekeeper_stop(struct tl_lake *lake)
{
    tl_chore_stop(&lake->house, lake);
}

void tl_housekeeper_free(struct tl_lake *lake)
{
    tl_contents_free(lake);
    for (struct tl_garbage *g = lake->garbage, *next; g; g = next) {
        next = g->next;
        free(g);
    }
    lake->garbage = NULL;
}
