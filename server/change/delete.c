/* SPDX-License-Identifier: MIT */
/*
 * Deletes traces, several in one transaction. A trace is marked first and its jobs end before the
 * catalog forgets it, so that a refusal by the catalog can be undone.
 */
#include "change/change.h"
#include "lake/jobs.h"
#include "lake/mirror.h"
#include "share/share.h"

#include <stdio.h>
#include <stdlib.h>

/* Stop its decode job, or let it go on. */
static void abandon_locked(struct tl_trace *trace, bool abandoned)
{
    if (trace->making)
        atomic_store(&trace->making->abandoned, abandoned);
    if (trace->outline)
        atomic_store(&trace->outline->abandoned, abandoned);
}

/* No session may hold it, and none can start once `deleted` is set. */
static int mark_deleted(struct tl_trace *trace, bool only_empty, struct tl_fail *fail)
{
    int r = TL_OK;
    pthread_mutex_lock(&trace->lock);
    if (only_empty && (trace->raw_bytes > 0 || trace->complete))
        r = tl_fail_set(fail, TL_DENIED, "trace %s has bytes", trace->id);
    else if (trace->session)
        r = tl_fail_set(fail, TL_DENIED, "trace %s is being pushed", trace->id);
    else if (trace->deleted)
        r = tl_fail_set(fail, TL_NOTFOUND, "trace %s has been deleted", trace->id);
    else
        trace->deleted = true;
    if (r >= 0)
        abandon_locked(trace, true);
    pthread_mutex_unlock(&trace->lock);
    return r;
}

static void forget(struct tl_gen *gen)
{
    atomic_store(&gen->buried, true);
    atomic_store(&gen->obsolete, true);
}

static void forget_generations(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    forget(trace->serving);
    if (trace->making)
        forget(trace->making);
    pthread_mutex_unlock(&trace->lock);
}

/* One of several traces being deleted together. */
struct doomed {
    struct tl_trace *trace; /* NULL: it was refused */
    size_t i;               /* index in the caller's list */
};

struct refusals {
    void (*report)(void *context, size_t i, int code, const struct tl_fail *fail);
    void *context;
};

static void end_jobs(struct tl_lake *lake, const struct doomed *doomed, size_t n)
{
    pthread_mutex_lock(&lake->lock);
    for (size_t i = 0; i < n; i++)
        tl_jobs_end_locked(lake, doomed[i].trace);
    pthread_mutex_unlock(&lake->lock);
}

/* The catalog has removed it. */
static void let_go(struct tl_lake *lake, struct tl_trace *trace)
{
    forget_generations(trace);
    /* Free the name only once its raw bytes are recorded as garbage, so that those of the next
     * trace with this name are not removed. */
    tl_lake_bury(lake, trace->id, trace->wanted);
    pthread_mutex_lock(&lake->lock);
    tl_jobs_end_locked(lake, trace);
    const bool was_there = tl_lake_unlink_locked(lake, trace);
    pthread_mutex_unlock(&lake->lock);
    if (was_there)
        tl_trace_put(trace); /* reference of the table */
}

/* Undo: the catalog has not removed it; decoding and packing continue. */
static void take_back(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->deleted = false;
    trace->mirror_stale = true;
    abandon_locked(trace, false);
    pthread_mutex_unlock(&trace->lock);
    tl_lake_queue(trace->lake, trace, 0);
    tl_repack_wake(trace->lake);
}

/* Find and mark the traces; returns their number, at the begin of `doomed`. */
static size_t choose(struct tl_lake *lake, const char *const *ids, size_t n,
                     const struct refusals *refusals, struct doomed *doomed)
{
    size_t chosen = 0;
    for (size_t i = 0; i < n; i++) {
        struct tl_fail fail = {0};
        struct tl_trace *const trace = tl_lake_find_trace(lake, ids[i]);
        int r = trace ? tl_trace_pin(trace, TL_PIN_ASK, &fail) : tl_no_trace(lake, &fail, ids[i]);
        const bool pinned = r >= 0;
        if (pinned)
            r = mark_deleted(trace, false, &fail);
        if (pinned && r < 0)
            tl_trace_unpin(trace);
        if (r < 0) {
            if (trace)
                tl_trace_put(trace);
            refusals->report(refusals->context, i, r, &fail);
        } else {
            doomed[chosen++] = (struct doomed){trace, i};
        }
    }
    return chosen;
}

/* A full disk does not let the catalog record that they are gone: remove their data first, which it
 * otherwise outlives. If that was not enough, they stay as traces without data. */
static int delete_data_first(struct tl_lake *lake, const struct doomed *doomed, size_t n,
                             const char *const *ids, struct tl_fail *fail)
{
    char prefix[128];
    for (size_t i = 0; i < n; i++) {
        struct tl_trace *const trace = doomed[i].trace;
        pthread_mutex_lock(&trace->lock);
        trace->raw_removed = trace->decoded_removed = true;
        pthread_mutex_unlock(&trace->lock);
        for (const char *kind = "rt"; *kind; kind++) {
            snprintf(prefix, sizeof prefix, "%c/%s", *kind, ids[i]);
            pthread_mutex_lock(&lake->garbage_lock);
            tl_lake_discard(lake, prefix);
            pthread_mutex_unlock(&lake->garbage_lock);
        }
    }
    return lake->catalog->ops->remove_traces(lake->catalog, ids, n, fail);
}

static size_t delete_chosen(struct tl_lake *lake, const struct doomed *doomed, size_t n,
                            const char **ids, const struct refusals *refusals)
{
    struct tl_fail fail = {0};
    end_jobs(lake, doomed, n);
    for (size_t i = 0; i < n; i++) {
        /* Remove the copy first, so that a lost catalog does not restore the trace. */
        tl_trace_mirror_remove(doomed[i].trace);
        ids[i] = doomed[i].trace->id;
    }
    int r = n > 0 ? lake->catalog->ops->remove_traces(lake->catalog, ids, n, &fail) : TL_OK;
    if (r == TL_NOSPACE)
        r = delete_data_first(lake, doomed, n, ids, &fail);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            let_go(lake, doomed[i].trace);
        else
            take_back(doomed[i].trace);
        if (r < 0)
            refusals->report(refusals->context, doomed[i].i, r, &fail);
        tl_trace_unpin(doomed[i].trace);
        tl_trace_put(doomed[i].trace);
    }
    tl_housekeeper_wake(lake);
    tl_lake_notify(lake);
    return r < 0 ? 0 : n;
}

size_t tl_lake_delete_all(struct tl_lake *lake, const char *const *traces, size_t n,
                          void (*refused)(void *context, size_t i, int code,
                                          const struct tl_fail *fail),
                          void *context)
{
    const struct refusals refusals = {refused, context};
    struct doomed *const doomed = calloc(n + 1, sizeof(*doomed));
    const char **const ids = calloc(n + 1, sizeof(*ids));
    size_t removed = 0;
    if (doomed && ids) {
        const size_t chosen = choose(lake, traces, n, &refusals, doomed);
        removed = delete_chosen(lake, doomed, chosen, ids, &refusals);
    } else {
        struct tl_fail fail;
        const int r = tl_fail_set(&fail, TL_NOMEM, "no memory");
        for (size_t i = 0; i < n; i++)
            refused(context, i, r, &fail);
    }
    free(doomed);
    free(ids);
    return removed;
}

struct only {
    int code;
    struct tl_fail *fail;
};

static void keep_refusal(void *context, size_t i, int code, const struct tl_fail *fail)
{
    struct only *const only = context;
    only->code = code;
    if (only->fail)
        *only->fail = *fail;
}

int tl_lake_delete(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct only only = {.code = TL_OK, .fail = fail};
    (void)!tl_lake_delete_all(lake, &id, 1, keep_refusal, &only);
    return only.code;
}

void tl_trace_delete_empty(struct tl_trace *trace)
{
    const struct doomed doomed = {.trace = trace};
    const char *id = trace->id;
    struct only only = {.code = TL_OK};
    if (tl_trace_pin(trace, TL_PIN_TRY, NULL) < 0)
        return;
    if (mark_deleted(trace, true, NULL) < 0) {
        tl_trace_unpin(trace);
        return;
    }
    tl_trace_get(trace); /* released below */
    (void)!delete_chosen(trace->lake, &doomed, 1, &id, &(struct refusals){keep_refusal, &only});
}
