/* SPDX-License-Identifier: MIT */
/* Deleting traces. */
#include "lake/lakeint.h"

#include <stdlib.h>

static void unlink_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_trace **p = &lake->traces;
    while (*p && *p != trace)
        p = &(*p)->next;
    if (*p)
        *p = trace->next;
}

/* No session may hold it, and no new one can come once `deleted` is set. */
static int mark_deleted(struct tl_trace *trace, bool only_empty, struct tl_fail *fail)
{
    int r = TL_OK;
    pthread_mutex_lock(&trace->lock);
    if (only_empty && (trace->raw_bytes > 0 || trace->complete))
        r = tl_fail_set(fail, TL_DENIED, "trace %s has bytes", trace->id);
    else if (trace->session)
        r = tl_fail_set(fail, TL_DENIED, "trace %s is being pushed", trace->id);
    else if (trace->deleted)
        r = tl_no_trace(fail, trace->id);
    else
        trace->deleted = true;
    if (r >= 0 && trace->making)
        atomic_store(&trace->making->abandoned, true);
    pthread_mutex_unlock(&trace->lock);
    return r;
}

static void forget_generations(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    atomic_store(&trace->serving->obsolete, true);
    if (trace->making)
        atomic_store(&trace->making->obsolete, true);
    pthread_mutex_unlock(&trace->lock);
}

static int delete_trace(struct tl_lake *lake, struct tl_trace *trace, bool only_empty,
                        struct tl_fail *fail)
{
    const char *const id = trace->id;
    int r = mark_deleted(trace, only_empty, fail);
    if (r < 0)
        return r;
    pthread_mutex_lock(&lake->lock);
    while (trace->running)
        pthread_cond_wait(&lake->idle, &lake->lock);
    pthread_mutex_unlock(&lake->lock);
    /* The copy goes first, lest a lost catalog bring the trace back. */
    tl_trace_mirror_remove(lake, id);
    r = tl_catalog_remove_trace(lake->catalog, id, fail);
    if (r >= 0) {
        forget_generations(trace);
        /* Space that cannot be freed now is freed by the housekeeper. The name is free only when
         * its raw bytes are gone or known to be garbage, lest those of its next trace go with them.
         */
        tl_lake_bury(lake, id, trace->wanted);
        pthread_mutex_lock(&lake->lock);
        tl_lake_unqueue_locked(lake, trace);
        unlink_locked(lake, trace);
        pthread_mutex_unlock(&lake->lock);
        tl_trace_put(trace); /* the table's */
    } else {
        pthread_mutex_lock(&trace->lock);
        trace->deleted = false;
        trace->mirror_stale = true;
        pthread_mutex_unlock(&trace->lock);
        tl_housekeeper_wake(lake);
    }
    tl_lake_notify(lake);
    return r < 0 ? r : TL_OK;
}

int tl_lake_delete(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(fail, id);
    const int r = delete_trace(lake, trace, false, fail);
    tl_trace_put(trace);
    return r;
}

void tl_trace_delete_empty(struct tl_trace *trace)
{
    if (delete_trace(trace->lake, trace, true, NULL) == TL_IO)
        tl_housekeeper_wake(trace->lake);
}
