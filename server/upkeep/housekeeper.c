/* SPDX-License-Identifier: MIT */
/* The housekeeper's thread: applies retention, retries failed operations of the medium, returns
 * free memory. */
#include "base/hash.h"
#include "lake/heap.h"
#include "lake/lakeint.h"
#include "share/share.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS INT64_C(1000000000)
/*
 * How long readers on other servers can use replaced data: they learn of the change within a
 * second.
 */
#define GRACE_NS INT64_C(30000000000)
#define ROUND    60 /* ticks between two rounds; one if something is left to be retried */

/* ---- garbage -------------------------------------------------------------------------------- */

void tl_lake_discard(struct tl_lake *lake, const char *prefix)
{
    if (tl_backend_remove_all(lake->backend, prefix, NULL) < 0)
        tl_lake_discard_later(lake, prefix);
}

void tl_lake_discard_later(struct tl_lake *lake, const char *prefix)
{
    /* Without its lease, nothing is removed for a name that another server may have given to a new
     * trace. */
    if (lake->shared && prefix[0] == 'r')
        return;
    struct tl_garbage *g = calloc(1, sizeof(*g));
    if (!g)
        return; /* found at the next start */
    if (lake->shared)
        g->due_ns = tl_monotonic_ns() + GRACE_NS;
    snprintf(g->prefix, sizeof(g->prefix), "%s", prefix);
    pthread_mutex_lock(&lake->lock);
    g->next = lake->garbage;
    lake->garbage = g;
    pthread_mutex_unlock(&lake->lock);
    tl_housekeeper_wake(lake);
}

static uint64_t *grave_locked(struct tl_lake *lake, const char *id)
{
    return &lake->graves[tl_fnv_text(id) % TL_GRAVES];
}

void tl_lake_bury(struct tl_lake *lake, const char *id, uint64_t generation)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "r/%s", id);
    pthread_mutex_lock(&lake->lock);
    uint64_t *const last = grave_locked(lake, id);
    if (*last < generation)
        *last = generation;
    pthread_mutex_unlock(&lake->lock);
    tl_spool_forget(lake->spool, id);
    if (lake->shared)
        tl_lake_discard(lake, prefix);
    else
        tl_lake_discard_later(lake, prefix);
}

/* Remove one entry with this prefix or (NULL) any from the list. */
static struct tl_garbage *take_garbage(struct tl_lake *lake, const char *prefix)
{
    const int64_t now = tl_monotonic_ns();
    pthread_mutex_lock(&lake->lock);
    struct tl_garbage **p = &lake->garbage;
    while (*p && (prefix ? strcmp((*p)->prefix, prefix) != 0 : (*p)->due_ns > now))
        p = &(*p)->next;
    struct tl_garbage *g = *p;
    if (g)
        *p = g->next;
    pthread_mutex_unlock(&lake->lock);
    return g;
}

/*
 * One caller at a time: a caller that needs a prefix removed must not continue while another
 * removes it.
 */
static int remove_garbage(struct tl_lake *lake, const char *prefix, struct tl_fail *fail)
{
    struct tl_garbage *kept = NULL, *g;
    int r = TL_OK;
    pthread_mutex_lock(&lake->garbage_lock);
    while (r >= 0 && (g = take_garbage(lake, prefix))) {
        r = tl_backend_remove_all(lake->backend, g->prefix, fail);
        if (r >= 0)
            free(g);
        else
            kept = g;
    }
    if (kept) {
        pthread_mutex_lock(&lake->lock);
        kept->next = lake->garbage;
        lake->garbage = kept;
        pthread_mutex_unlock(&lake->lock);
    }
    pthread_mutex_unlock(&lake->garbage_lock);
    return r;
}

int tl_lake_first_generation(struct tl_lake *lake, const char *id, uint64_t *out,
                             struct tl_fail *fail)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "r/%s", id);
    const int r = remove_garbage(lake, prefix, fail);
    pthread_mutex_lock(&lake->lock);
    *out = *grave_locked(lake, id) + 1;
    pthread_mutex_unlock(&lake->lock);
    return r;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Find a trace whose copy must be rewritten, with a reference. */
static struct tl_trace *stale_trace(struct tl_lake *lake)
{
    struct tl_trace *found = NULL;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (t->mirror_stale && !t->deleted && tl_trace_mine_locked(t))
            found = tl_trace_get(t);
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return found;
}

/* Returns whether something is left to do. */
static bool write_stale(struct tl_lake *lake)
{
    struct tl_trace *trace;
    bool stale = false;
    while (!stale && (trace = stale_trace(lake))) {
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
    bool left = remove_garbage(lake, NULL, NULL) < 0;
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

void tl_housekeeper_wake(struct tl_lake *lake)
{
    tl_chore_wake(&lake->house, lake);
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
