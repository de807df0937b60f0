/* SPDX-License-Identifier: MIT */
/*
 * Seals captures whose rig is gone, on request or after a time. No push can begin meanwhile, so
 * that a rig that comes back is told that its capture is complete.
 */
#include "base/journal.h"
#include "ingest/session.h"
#include "lake/lakeint.h"
#include "share/share.h"

/* Called with `opening` held: no push can begin meanwhile. */
static int seal(struct tl_trace *trace, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    const bool pushed = trace->session != NULL;
    const bool done = trace->complete || trace->raw_bytes == 0;
    const uint64_t bytes = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    if (pushed)
        return tl_fail_set(fail, TL_DENIED, "trace %s is being pushed by rig %s; it ends with that",
                           trace->id, trace->rig);
    return done ? TL_OK : tl_trace_complete(trace, bytes, fail);
}

int tl_lake_seal(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    int r = tl_trace_pin(trace, TL_PIN_ASK, fail);
    if (r >= 0) {
        pthread_mutex_lock(&trace->opening);
        r = seal(trace, fail);
        pthread_mutex_unlock(&trace->opening);
        tl_trace_unpin(trace);
    }
    tl_trace_put(trace);
    return r;
}

void tl_lake_set_seal_after(struct tl_lake *lake, uint64_t seconds)
{
    atomic_store(&lake->seal_after_s, seconds);
}

/* Find a live trace that has not been pushed for this long, or NULL. */
static struct tl_trace *find_left(struct tl_lake *lake, int64_t now_ns, uint64_t seconds)
{
    struct tl_trace *found = NULL;
    pthread_mutex_lock(&lake->lock);
    for (struct tl_trace *t = lake->traces; t && !found; t = t->next) {
        pthread_mutex_lock(&t->lock);
        if (!t->complete && !t->session && !t->deleted && tl_trace_mine_locked(t) &&
            t->raw_bytes > 0 && (uint64_t)(now_ns - t->idle_ns) / 1000000000 >= seconds)
            found = tl_trace_get(t);
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return found;
}

static void report(const struct tl_trace *trace, uint64_t seconds)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_INFO, "sealed");
    tl_journal_text(&line, "rig", trace->rig);
    tl_journal_text(&line, "trace", trace->id);
    tl_journal_number(&line, "idle", seconds);
    tl_journal_end(&line);
}

void tl_lake_seal_left(struct tl_lake *lake, int64_t now_ns)
{
    const uint64_t seconds = atomic_load(&lake->seal_after_s);
    struct tl_trace *trace;
    while (seconds > 0 && (trace = find_left(lake, now_ns, seconds))) {
        struct tl_fail fail = {0};
        const int r = tl_lake_seal(lake, trace->id, &fail);
        if (r >= 0)
            report(trace, seconds);
        tl_trace_put(trace);
        if (r < 0)
            return; /* the disk failed: retry in the next round */
    }
}
