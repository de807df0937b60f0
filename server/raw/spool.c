/* SPDX-License-Identifier: MIT */
/*
 * The spool and its captures, as their users call them. Appending only adds to what is pending, and
 * waits while that is too much; the rest is done by two threads (spool_threads.c), so that one sync
 * serves all captures.
 */
#include "raw/spool.h"

#include "raw/packed.h"
#include "raw/segment.h"
#include "raw/spool_journal.h"
#include "raw/spool_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the spool ---------------------------------------------------------------------------- */

static void stop_syncer(struct tl_spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->stop_syncing = true;
    pthread_cond_broadcast(&spool->sync_work);
    pthread_mutex_unlock(&spool->lock);
    pthread_join(spool->syncer, NULL);
}

int tl_spool_new(struct tl_spool **out, struct tl_backend *backend,
                 const struct tl_spool_options *options, struct tl_fail *fail)
{
    struct tl_spool *spool = calloc(1, sizeof(*spool));
    if (!spool)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    spool->backend = backend;
    spool->options = *options;
    atomic_init(&spool->min_free, options->min_free);
    if (spool->options.segment_bytes == 0)
        spool->options.segment_bytes = TL_SPOOL_SEGMENT_BYTES;
    if (spool->options.pending_bytes == 0)
        spool->options.pending_bytes = 4u << 20;
    pthread_mutex_init(&spool->lock, NULL);
    pthread_cond_init(&spool->work, NULL);
    pthread_cond_init(&spool->sync_work, NULL);
    pthread_cond_init(&spool->progress, NULL);
    int e = pthread_create(&spool->syncer, NULL, tl_spool_sync_all, spool);
    if (e == 0) {
        e = pthread_create(&spool->writer, NULL, tl_spool_write_all, spool);
        if (e != 0)
            stop_syncer(spool);
    }
    if (e != 0) {
        free(spool);
        errno = e;
        return tl_fail_set(fail, TL_IO, "cannot start the spool's threads: %s", strerror(e));
    }
    *out = spool;
    return TL_OK;
}

void tl_spool_free(struct tl_spool *spool)
{
    if (!spool)
        return;
    pthread_mutex_lock(&spool->lock);
    spool->stop = true;
    pthread_cond_broadcast(&spool->work);
    pthread_mutex_unlock(&spool->lock);
    pthread_join(spool->writer, NULL);
    stop_syncer(spool);
    for (struct distrusted *d = spool->distrusted, *next; d; d = next) {
        next = d->next;
        free(d);
    }
    pthread_cond_destroy(&spool->work);
    pthread_cond_destroy(&spool->sync_work);
    pthread_cond_destroy(&spool->progress);
    pthread_mutex_destroy(&spool->lock);
    free(spool);
}

void tl_spool_counters(struct tl_spool *spool, struct tl_spool_counters *out)
{
    pthread_mutex_lock(&spool->lock);
    *out = spool->counters;
    for (const struct tl_capture *c = spool->captures; c; c = c->next) {
        out->captures++;
        out->pending += c->end - c->durable;
    }
    pthread_mutex_unlock(&spool->lock);
}

const struct tl_histogram *tl_spool_commits(const struct tl_spool *spool)
{
    return &spool->commits;
}

void tl_spool_limit(struct tl_spool *spool, uint64_t min_free)
{
    atomic_store(&spool->min_free, min_free);
}

/* ---- captures ----------------------------------------------------------------------------- */

/* Data after a packed segment goes into a new one. */
static int recover_packed(struct tl_capture *c, uint64_t first, struct tl_fail *fail)
{
    struct tl_packed packed;
    const int r = tl_packed_open(&packed, c->spool->backend, c->name, first, fail);
    if (r < 0)
        return r;
    c->durable = c->end = c->written = tl_packed_end(&packed);
    tl_packed_close(&packed);
    return TL_OK;
}

/* Continue the last segment after its last intact block. */
static int recover(struct tl_capture *c, const struct tl_segment *last, struct tl_fail *fail)
{
    const uint64_t first = last->first;
    if (last->packed)
        return recover_packed(c, first, fail);
    uint64_t size;
    int r = tl_capture_open_log(c, first, &size, fail);
    if (r < 0)
        return r;
    struct tl_segment_extent extent;
    r = tl_segment_scan(c->log, first, &extent, fail);
    if (r >= 0 && extent.bytes < size)
        r = c->log->ops->log_truncate(c->log, extent.bytes, fail);
    if (r >= 0 && extent.bytes > 0 && !extent.head)
        r = tl_capture_write_head(c, first, fail);
    /* Data that was written but not synced when the process ended counts from now on. */
    if (r >= 0)
        r = c->log->ops->log_sync(c->log, fail);
    if (r < 0 || extent.bytes == 0) {
        tl_capture_close_log(c);
    } else {
        c->log_bytes = c->log_synced = extent.bytes;
    }
    c->durable = c->end = c->written = extent.end;
    c->summed = extent.summed;
    c->sum = c->written_sum = extent.sum;
    return r;
}

void tl_spool_forget(struct tl_spool *spool, const char *name)
{
    pthread_mutex_lock(&spool->lock);
    tl_spool_trust_locked(spool, name);
    pthread_mutex_unlock(&spool->lock);
}

static bool take_distrusted(struct tl_capture *c)
{
    bool found = false;
    pthread_mutex_lock(&c->spool->lock);
    for (const struct distrusted *d = c->spool->distrusted; d && !found; d = d->next)
        if (strcmp(d->name, c->name) == 0) {
            c->durable = c->end = c->written = d->durable;
            c->summed = d->summed;
            c->sum = c->written_sum = d->sum;
            found = true;
        }
    pthread_mutex_unlock(&c->spool->lock);
    return found;
}

/* Recover the capture from its segments. */
static int recover_all(struct tl_capture *c, struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    int r = tl_segments_list(&segments, c->spool->backend, c->name, fail);
    c->summed = segments.n == 0;
    if (r >= 0 && segments.n > 0)
        r = recover(c, &segments.v[segments.n - 1], fail);
    tl_segments_fini(&segments);
    if (r >= 0 && !c->summed) { /* packed, damaged or of an earlier version */
        c->summed = tl_spool_sum(c->spool->backend, c->name, c->durable, &c->sum, NULL) >= 0;
        c->written_sum = c->sum;
    }
    return r;
}

int tl_capture_open(struct tl_spool *spool, const char *name,
                    void (*on_durable)(void *context, uint64_t offset), void *context,
                    struct tl_capture **out, struct tl_fail *fail)
{
    struct tl_capture *c = calloc(1, sizeof(*c));
    if (!c)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    c->spool = spool;
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->on_durable = on_durable;
    c->context = context;
    const int r = take_distrusted(c) ? TL_OK : recover_all(c, fail);
    if (r < 0) {
        tl_capture_close_log(c);
        free(c);
        return r;
    }
    pthread_mutex_lock(&spool->lock);
    c->next = spool->captures;
    spool->captures = c;
    pthread_mutex_unlock(&spool->lock);
    *out = c;
    return TL_OK;
}

static int failed_locked(const struct tl_capture *c, struct tl_fail *fail)
{
    if (fail)
        *fail = c->failure;
    return c->failure.code;
}

int tl_spool_room(struct tl_spool *spool, size_t n, struct tl_fail *fail)
{
    const uint64_t left = spool->backend->ops->free_bytes(spool->backend);
    const uint64_t min_free = atomic_load(&spool->min_free);
    const bool full = left < min_free || left - min_free < n;
    if (atomic_load_explicit(&spool->full, memory_order_relaxed) != full &&
        atomic_exchange(&spool->full, full) != full)
        tl_spool_report_full(full, left, min_free);
    if (!full)
        return TL_OK;
    errno = ENOSPC;
    return tl_fail_set(fail, TL_NOSPACE,
                       "the server takes no more trace: %llu MiB are free, and min-free is %llu "
                       "MiB; it goes on when there is room",
                       (unsigned long long)(left >> 20), (unsigned long long)(min_free >> 20));
}

/* Check for a failure first: afterwards `end` is the durable offset, not the appender's
 * position. */
static int append_locked(struct tl_capture *c, uint64_t offset, struct tl_given *given,
                         struct tl_fail *fail)
{
    const struct tl_bytes bytes = given->bytes;
    struct tl_spool *spool = c->spool;
    const uint64_t bound = spool->options.pending_bytes;
    while (c->failure.code == TL_OK && c->pending.n > 0 && c->pending.n + bytes.n > bound)
        pthread_cond_wait(&spool->progress, &spool->lock);
    if (c->failure.code != TL_OK)
        return failed_locked(c, fail);
    if (offset > c->end)
        return tl_fail_at(fail, TL_BAD, offset, "bytes from %llu on are missing; push from there",
                          (unsigned long long)c->end);
    if (bytes.n <= c->end - offset)
        return TL_OK;
    const size_t known = (size_t)(c->end - offset);
    if (tl_waiting_add(&c->pending, given, known) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory for %zu bytes", bytes.n);
    c->end = offset + bytes.n;
    pthread_cond_signal(&spool->work);
    return TL_OK;
}

/* A block that was taken from `given` is NULL there. */
static int append(struct tl_capture *c, uint64_t offset, struct tl_given *given,
                  struct tl_fail *fail)
{
    struct tl_spool *spool = c->spool;
    if (given->bytes.n == 0)
        return TL_OK;
    const int space = tl_spool_room(spool, given->bytes.n, fail);
    if (space < 0)
        return space;
    pthread_mutex_lock(&spool->lock);
    const int r = append_locked(c, offset, given, fail);
    pthread_mutex_unlock(&spool->lock);
    return r;
}

int tl_capture_append(struct tl_capture *c, uint64_t offset, struct tl_bytes bytes,
                      struct tl_fail *fail)
{
    return append(c, offset, &(struct tl_given){.bytes = bytes}, fail);
}

int tl_capture_give(struct tl_capture *c, uint64_t offset, const struct tl_given *given,
                    struct tl_fail *fail)
{
    struct tl_given rest = *given;
    const int r = append(c, offset, &rest, fail);
    free(rest.block);
    return r;
}

int tl_capture_flush(struct tl_capture *c, struct tl_fail *fail)
{
    struct tl_spool *spool = c->spool;
    pthread_mutex_lock(&spool->lock);
    while (c->failure.code == TL_OK && c->durable < c->end)
        pthread_cond_wait(&spool->progress, &spool->lock);
    const int r = c->failure.code == TL_OK ? TL_OK : failed_locked(c, fail);
    pthread_mutex_unlock(&spool->lock);
    return r;
}

int tl_capture_rejoin(struct tl_capture *c, struct tl_fail *fail)
{
    const int r = tl_capture_flush(c, fail);
    if (r >= 0)
        c->rejoined = tl_capture_end(c);
    return r;
}

int tl_capture_failed(struct tl_capture *c, struct tl_fail *fail)
{
    pthread_mutex_lock(&c->spool->lock);
    const int r = c->failure.code == TL_OK ? TL_OK : failed_locked(c, fail);
    pthread_mutex_unlock(&c->spool->lock);
    return r;
}

uint64_t tl_capture_end(struct tl_capture *c)
{
    pthread_mutex_lock(&c->spool->lock);
    const uint64_t end = c->end;
    pthread_mutex_unlock(&c->spool->lock);
    return end;
}

uint64_t tl_capture_durable(struct tl_capture *c)
{
    pthread_mutex_lock(&c->spool->lock);
    const uint64_t durable = c->durable;
    pthread_mutex_unlock(&c->spool->lock);
    return durable;
}

bool tl_capture_sum(struct tl_capture *c, uint64_t *durable, uint32_t *sum)
{
    pthread_mutex_lock(&c->spool->lock);
    *durable = c->durable;
    *sum = c->sum;
    const bool known = c->summed;
    pthread_mutex_unlock(&c->spool->lock);
    return known;
}

void tl_capture_close(struct tl_capture *c)
{
    if (!c)
        return;
    struct tl_spool *spool = c->spool;
    if (tl_capture_flush(c, NULL) < 0) {
        /* The failure has been returned to the appender, and non-durable data is discarded. */
    }
    pthread_mutex_lock(&spool->lock);
    while (c->busy)
        pthread_cond_wait(&spool->progress, &spool->lock);
    struct tl_capture **p = &spool->captures;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    pthread_mutex_unlock(&spool->lock);
    tl_capture_close_log(c);
    tl_waiting_free(&c->pending);
    free(c);
}
