/* SPDX-License-Identifier: MIT */
/*
 * News between servers, by watch and notify on one object: each server watches it and is notified
 * of the changes by the others. News is collected, so that the traffic depends on the number of
 * servers, not of traces. It is only a hint: what gets lost is found by polling.
 *
 *   "<session, hex>\n", then lines "<kind><number, hex> <name>\n"
 */
#include "rados/rados_int.h"

#include <stdio.h>
#include <stdlib.h>

#define GATHER_MS  20         /* between two notifications by a server */
#define NEWS_BYTES (16 << 10) /* of one notification; more than that is found by polling */
#define UNDER_WAY  32         /* pending ones: a dead watcher delays each by a second */
#define TIMEOUT_MS 1000       /* of a notification */
#define WATCH_S    10         /* a watcher without a sign of life for this long is dropped */
#define AGAIN_S    1          /* between two attempts to watch */

/* ---- sending -------------------------------------------------------------------------------- */

void tl_rados_say(struct tl_rados *r, enum tl_news news, uint64_t number, const char *name)
{
    char line[128];
    struct tl_rados_news *const n = &r->news;
    const int length =
        snprintf(line, sizeof line, "%c%llx %s\n", (char)news, (unsigned long long)number, name);
    if (length < 0 || (size_t)length >= sizeof line)
        return;
    pthread_mutex_lock(&n->lock);
    if (n->listens && n->lines.n + (size_t)length <= NEWS_BYTES &&
        !(n->lines.n && memmem(n->lines.p, n->lines.n, line, (size_t)length))) {
        (void)!tl_buf_add(&n->lines, line, (size_t)length);
        pthread_cond_signal(&n->wake);
    }
    pthread_mutex_unlock(&n->lock);
}

void tl_rados_report(struct tl_backend *backend, enum tl_news news, const char *name)
{
    tl_rados_say(tl_rados_of(backend), news, 0, name);
}

static void arrived(rados_completion_t done, void *context)
{
    struct tl_rados *const r = context;
    (void)done;
    atomic_fetch_sub(&r->news.under_way, 1);
}

static void notify(struct tl_rados *r, const struct tl_buf *lines)
{
    struct tl_buf text = {0};
    rados_completion_t done;
    if (atomic_load(&r->news.under_way) >= UNDER_WAY ||
        tl_buf_printf(&text, "%llx\n", (unsigned long long)r->session) < 0 ||
        tl_buf_add(&text, lines->p, lines->n) < 0 ||
        tl_librados.aio_create_completion2(r, arrived, &done) < 0) {
        tl_buf_fini(&text);
        return;
    }
    atomic_fetch_add(&r->news.under_way, 1);
    if (tl_librados.aio_notify(r->io, TL_NEWS, done, (const char *)text.p, (int)text.n, TIMEOUT_MS,
                               NULL, NULL) < 0)
        atomic_fetch_sub(&r->news.under_way, 1);
    tl_librados.aio_release(done);
    tl_buf_fini(&text);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void take_line(struct tl_rados *r, const char *line)
{
    unsigned long long number;
    char kind, name[80];
    if (sscanf(line, "%c%llx %79s", &kind, &number, name) != 3)
        return;
    if (kind == TL_NEWS_ASKED && !tl_rados_asked(r, name, number))
        return; /* another process holds it */
    r->news.reported(r->news.context, (enum tl_news)kind, name);
}

/* Called by a thread of librados. */
static void on_notify(void *context, uint64_t id, uint64_t handle, uint64_t from, void *data,
                      size_t n)
{
    struct tl_rados *const r = context;
    char *const text = malloc(n + 1);
    (void)from;
    if (text) {
        memcpy(text, data, n);
        text[n] = '\0';
        char *rest = NULL, *line = strtok_r(text, "\n", &rest);
        pthread_mutex_lock(&r->news.reporting);
        if (line && strtoull(line, NULL, 16) != r->session && r->news.reported)
            while ((line = strtok_r(NULL, "\n", &rest)))
                take_line(r, line);
        pthread_mutex_unlock(&r->news.reporting);
        free(text);
    }
    (void)!tl_librados.notify_ack(r->io, TL_NEWS, id, handle, NULL, 0);
}

/* The cluster has dropped the watch. */
static void on_watch_error(void *context, uint64_t handle, int error)
{
    struct tl_rados *const r = context;
    (void)handle;
    (void)error;
    pthread_mutex_lock(&r->news.lock);
    r->news.broken = true;
    pthread_cond_signal(&r->news.wake);
    pthread_mutex_unlock(&r->news.lock);
}

static void unwatch(struct tl_rados *r)
{
    if (r->news.watches)
        (void)!tl_librados.unwatch2(r->io, r->news.watch);
    r->news.watches = false;
}

/* Only called by the thread below. */
static bool watch(struct tl_rados *r)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_librados.write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
    unwatch(r);
    r->news.watches = tl_rados_write(r, TL_NEWS, op) >= 0 &&
                      tl_librados.watch3(r->io, TL_NEWS, &r->news.watch, on_notify, on_watch_error,
                                         WATCH_S, r) >= 0;
    return r->news.watches;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Called with the lock held, which is released during the pause. */
static void pause_locked(struct tl_rados_news *n, long ms)
{
    const int64_t until = tl_monotonic_ns() + ms * TL_NS_PER_MS;
    while (!n->closing && tl_cond_wait_until(&n->wake, &n->lock, until) == 0)
        ;
}

static void *carry(void *context)
{
    struct tl_rados *const r = context;
    struct tl_rados_news *const n = &r->news;
    pthread_mutex_lock(&n->lock);
    while (!n->closing) {
        if (n->broken) {
            n->broken = false;
            pthread_mutex_unlock(&n->lock);
            const bool watches = watch(r);
            pthread_mutex_lock(&n->lock);
            n->broken = n->broken || !watches;
            if (!watches)
                pause_locked(n, AGAIN_S * 1000);
            continue;
        }
        if (n->lines.n == 0) {
            pthread_cond_wait(&n->wake, &n->lock);
            continue;
        }
        struct tl_buf lines = n->lines;
        n->lines = (struct tl_buf){0};
        pthread_mutex_unlock(&n->lock);
        notify(r, &lines);
        tl_buf_fini(&lines);
        pthread_mutex_lock(&n->lock);
        pause_locked(n, GATHER_MS);
    }
    pthread_mutex_unlock(&n->lock);
    unwatch(r);
    return NULL;
}

int tl_rados_listen(struct tl_backend *backend,
                    void (*reported)(void *context, enum tl_news news, const char *name),
                    void *context, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct tl_rados_news *const n = &r->news;
    pthread_mutex_lock(&n->reporting);
    n->reported = reported;
    n->context = context;
    pthread_mutex_unlock(&n->reporting);
    pthread_mutex_lock(&n->lock);
    const bool begins = reported && !n->listens;
    n->broken = n->broken || begins; /* not yet watched */
    n->listens = n->listens || begins;
    pthread_mutex_unlock(&n->lock);
    if (!begins)
        return TL_OK;
    n->has_thread = pthread_create(&n->thread, NULL, carry, r) == 0;
    return n->has_thread ? TL_OK : tl_fail_set(fail, TL_IO, "cannot start a thread");
}

void tl_rados_news_init(struct tl_rados_news *n)
{
    pthread_mutex_init(&n->lock, NULL);
    pthread_mutex_init(&n->reporting, NULL);
    pthread_cond_init(&n->wake, NULL);
}

void tl_rados_news_end(struct tl_rados *r)
{
    struct tl_rados_news *const n = &r->news;
    pthread_mutex_lock(&n->lock);
    n->closing = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
    if (n->has_thread)
        pthread_join(n->thread, NULL);
}

void tl_rados_news_fini(struct tl_rados_news *n)
{
    tl_buf_fini(&n->lines);
    pthread_mutex_destroy(&n->lock);
    pthread_mutex_destroy(&n->reporting);
    pthread_cond_destroy(&n->wake);
}
