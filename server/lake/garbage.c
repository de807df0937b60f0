/* SPDX-License-Identifier: MIT */
/*
 * Objects that nobody needs any more, and names that were used. What the medium fails to remove, or
 * others may still read, waits in a list for the housekeeper, and after a crash is found as
 * orphans.
 */
#include "base/hash.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

/* How long readers on other servers can use replaced data: they learn of the change within a
 * second. */
#define GRACE_NS INT64_C(30000000000)

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
int tl_lake_remove_garbage(struct tl_lake *lake, const char *prefix, struct tl_fail *fail)
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
    const int r = tl_lake_remove_garbage(lake, prefix, fail);
    pthread_mutex_lock(&lake->lock);
    *out = *grave_locked(lake, id) + 1;
    pthread_mutex_unlock(&lake->lock);
    return r;
}
