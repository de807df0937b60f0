/* SPDX-License-Identifier: MIT */
/*
 * The sharing thread. Twice a second it checks the leases of this server's traces, takes over
 * traces that need decoding and have no holder, and reads the changes of other servers. Messages
 * received in between are processed immediately; they only make things faster. If another server
 * reads the live edge of a trace of ours, its progress is written to the catalog at shorter
 * intervals.
 */
#include "decoding/run.h"
#include "share/share.h"

#include <errno.h>
#include <stdlib.h>

#define TICK_NS      INT64_C(500000000)
#define EDGE_NS      INT64_C(50000000)   /* the same for traces whose live edge is read elsewhere */
#define READ_NS      INT64_C(5000000000) /* how long an edge counts as read after its last message */
#define CHANGES_REST 3                   /* pause after reading all changes, in durations of that */
#define ADOPTIONS    64                  /* attempts per tick */
#define NEWS_MAX     (64 << 10)          /* bytes; changes beyond that are found at the next tick */
#define EDGES        256                 /* traces whose progress is written at short intervals */

struct sharing {
    struct tl_lake *lake;
    bool any;                     /* something was changed by other servers */
    int64_t next_changes;         /* monotonic: when to read the changes of other servers again */
    struct tl_trace *read[EDGES]; /* read elsewhere: traces that are or were ours */
    size_t n_read;
};

/* ---- news ----------------------------------------------------------------------------------- */

/*
 * Stored one after another: a kind, and the name with its NUL. Called by a thread of the backend.
 */
static void hear(void *context, enum tl_news news, const char *name)
{
    struct tl_lake *const lake = context;
    const size_t n = strlen(name) + 1;
    const char kind = (char)news;
    pthread_mutex_lock(&lake->lock);
    if (lake->news.n + 1 + n <= NEWS_MAX && tl_buf_reserve(&lake->news, 1 + n) >= 0) {
        (void)!tl_buf_add(&lake->news, &kind, 1);
        (void)!tl_buf_add(&lake->news, name, n);
    }
    pthread_cond_signal(&lake->share.wake);
    pthread_mutex_unlock(&lake->lock);
}

static int take_change(void *context, const char *id, const struct tl_catalog_trace *row)
{
    struct sharing *const s = context;
    struct tl_trace *const trace = tl_lake_resident(s->lake, id);
    s->any = true;
    if (!trace) {
        tl_lake_overtaken(s->lake);
        return row && tl_catalog_is_unfinished(row) ? tl_lake_show(s->lake, row) : TL_OK;
    }
    const int r = tl_share_take_row(trace, row);
    tl_trace_put(trace);
    return r;
}

static int take_row(void *context, const struct tl_catalog_trace *row)
{
    return take_change(context, row->id, row);
}

/* The live edge is read at another server; the trace may be ours. */
static void note_read(struct sharing *s, struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    if (trace->lease)
        trace->edge.read_ns = tl_monotonic_ns();
    const bool ours = trace->lease;
    pthread_mutex_unlock(&trace->lock);
    for (size_t i = 0; i < s->n_read; i++)
        if (s->read[i] == trace)
            return;
    if (ours && s->n_read < EDGES)
        s->read[s->n_read++] = tl_trace_get(trace);
}

static void take_news(struct sharing *s, const struct tl_buf *news)
{
    const char *const end = (const char *)news->p + news->n;
    for (const char *p = (const char *)news->p; p < end; p += strlen(p) + 1) {
        const char *const name = p + 1;
        if (*p == TL_NEWS_ROW) {
            if (s->lake->catalog->ops->find(s->lake->catalog, name, take_row, s, NULL) ==
                TL_NOTFOUND)
                (void)!take_change(s, name, NULL); /* otherwise the next tick finds it */
            continue;
        }
        struct tl_trace *const trace = tl_lake_resident(s->lake, name);
        if (trace && *p == TL_NEWS_ASKED)
            tl_share_look_after(trace);
        else if (trace && *p == TL_NEWS_IMAGE)
            tl_trace_image_came(trace);
        else if (trace)
            note_read(s, trace);
        tl_trace_put(trace);
    }
}

/* ---- polling -------------------------------------------------------------------------------- */

static void look(struct sharing *s)
{
    struct tl_lake *const lake = s->lake;
    struct tl_trace **traces;
    size_t n;
    const int64_t now = tl_monotonic_ns();
    unsigned adoptions = 0;
    /* If the store does not respond, the next round repeats it. With so many traces that it takes
     * long, messages have most of this thread's time. */
    if (now >= s->next_changes) {
        (void)!lake->catalog->ops->changes(lake->catalog, take_change, s, NULL);
        const int64_t end = tl_monotonic_ns();
        s->next_changes = end + CHANGES_REST * (end - now);
    }
    if (tl_lake_all_resident(lake, &traces, &n) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!atomic_load(&lake->closing)) {
            tl_share_look_after(traces[i]);
            if (adoptions < ADOPTIONS && tl_share_adopt(traces[i], now))
                adoptions++;
        }
        tl_trace_put(traces[i]);
    }
    free(traces);
}

static void report_edges(struct sharing *s)
{
    const int64_t now = tl_monotonic_ns();
    for (size_t i = 0; i < s->n_read;) {
        struct tl_trace *const trace = s->read[i];
        pthread_mutex_lock(&trace->lock);
        const bool continues = trace->lease && now - trace->edge.read_ns < READ_NS;
        pthread_mutex_unlock(&trace->lock);
        if (continues) {
            tl_share_report_progress(trace);
            i++;
        } else {
            tl_trace_put(trace);
            s->read[i] = s->read[--s->n_read];
        }
    }
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Wait until `when` (monotonic), until there is news, or until the lake closes. */
static void wait_locked(struct tl_lake *lake, int64_t when)
{
    int e = 0;
    while (e != ETIMEDOUT && lake->news.n == 0 && !atomic_load(&lake->closing))
        e = tl_cond_wait_until(&lake->share.wake, &lake->lock, when);
}

static void *share(void *context)
{
    struct sharing s = {.lake = context};
    struct tl_lake *const lake = context;
    int64_t next = tl_monotonic_ns();
    pthread_mutex_lock(&lake->lock);
    while (!atomic_load(&lake->closing)) {
        struct tl_buf news = lake->news;
        lake->news = (struct tl_buf){0};
        pthread_mutex_unlock(&lake->lock);
        s.any = false;
        take_news(&s, &news);
        tl_buf_fini(&news);
        if (tl_monotonic_ns() >= next) {
            look(&s);
            next = tl_monotonic_ns() + TICK_NS;
        }
        report_edges(&s);
        if (s.any)
            tl_lake_notify(lake);
        const int64_t edge = tl_monotonic_ns() + EDGE_NS;
        pthread_mutex_lock(&lake->lock);
        wait_locked(lake, s.n_read > 0 && edge < next ? edge : next);
    }
    pthread_mutex_unlock(&lake->lock);
    while (s.n_read > 0)
        tl_trace_put(s.read[--s.n_read]);
    return NULL;
}

int tl_share_start(struct tl_lake *lake, struct tl_fail *fail)
{
    if (!lake->shared)
        return TL_OK;
    const int r = lake->backend->ops->listen(lake->backend, hear, lake, fail);
    return r < 0 ? r : tl_chore_start(&lake->share, lake, share, "the sharing thread", fail);
}

/* All sessions are closed, nothing is being decoded. */
void tl_share_stop(struct tl_lake *lake)
{
    tl_chore_stop(&lake->share, lake);
    if (lake->shared)
        (void)!lake->backend->ops->listen(lake->backend, NULL, NULL, NULL);
    tl_buf_fini(&lake->news);
}
