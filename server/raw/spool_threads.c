/* SPDX-License-Identifier: MIT */
/*
 * Group commit by two threads. Appenders fill `pending`. The writer moves it to `writing` and
 * writes that, without holding the lock. What was written is the next group; when the syncer has
 * synced the previous one, it gets this one, and the writer continues writing meanwhile.
 * The writer advances `durable`, and does everything else: the syncer only calls log_sync().
 *
 * If a sync fails, or a write, everything of that capture that is not durable yet fails with it,
 * what was written after the group too: nothing of it was acknowledged. A failed write waits for
 * the sync in progress, which may still succeed.
 */
#include "raw/spool_state.h"

#include "base/crc32c.h"
#include "base/now.h"
#include "raw/segment.h"
#include "raw/spool_journal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the writer --------------------------------------------------------------------------- */

void tl_capture_close_log(struct tl_capture *c)
{
    if (c->log)
        c->log->ops->log_close(c->log);
    c->log = NULL;
    c->log_bytes = c->log_synced = c->sync_bytes = 0;
}

/* What was written since the last sync must not be taken for durable: truncate it if the medium
 * permits. If not, the next segment supersedes it. */
static void abandon_log(struct tl_capture *c)
{
    if (c->log && c->log->ops->log_truncate(c->log, c->log_synced, NULL) < 0) {
        /* Nothing more can be done. */
    }
    tl_capture_close_log(c);
}

int tl_capture_write_head(struct tl_capture *c, uint64_t first, struct tl_fail *fail)
{
    uint8_t head[TL_SEGMENT_HEAD];
    tl_segment_head(head, first);
    const struct tl_bytes part = {head, sizeof(head)};
    return c->log->ops->log_write(c->log, 0, &part, 1, fail);
}

int tl_capture_open_log(struct tl_capture *c, uint64_t first, uint64_t *size, struct tl_fail *fail)
{
    struct tl_backend *const backend = c->spool->backend;
    char key[128];
    return backend->ops->log_open(backend, tl_segment_key(key, c->name, first), true, &c->log, size,
                                  fail);
}

/* Begin a segment at capture offset `first`, overwriting what a failed attempt left there. */
static int open_segment(struct tl_capture *c, uint64_t first, struct tl_fail *fail)
{
    uint64_t size;
    int r = tl_capture_open_log(c, first, &size, fail);
    if (r < 0)
        return r;
    if (size > 0)
        r = c->log->ops->log_truncate(c->log, 0, fail);
    if (r >= 0)
        r = tl_capture_write_head(c, first, fail);
    if (r < 0) {
        tl_capture_close_log(c);
        return r;
    }
    c->log_bytes = TL_SEGMENT_HEAD;
    return TL_OK;
}

/* Write the next bytes of `walk` as a block. */
static int write_block(struct tl_capture *c, struct tl_waiting_walk *walk, struct tl_fail *fail)
{
    uint8_t head[TL_BLOCK_HEAD];
    struct tl_bytes parts[1 + TL_WAITING_PARTS] = {{head, sizeof(head)}};
    uint32_t crc;
    size_t n_parts;
    const size_t n = tl_waiting_next(walk, TL_SPOOL_BLOCK, parts + 1, &n_parts, &crc);
    const bool is_rejoined = c->written > 0 && c->written == c->rejoined;
    parts[0].n = tl_block_head(
        head,
        &(struct tl_spool_block){.offset = c->written,
                                 .arrival = c->arrival | (is_rejoined ? TL_ARRIVAL_REJOINED : 0),
                                 .durable = c->durable,
                                 .n = (uint32_t)n,
                                 .before = c->written_sum,
                                 .summed = c->summed},
        crc);
    const int r = c->log->ops->log_write(c->log, c->log_bytes, parts, 1 + n_parts, fail);
    if (r >= 0) {
        c->log_bytes += parts[0].n + n;
        c->written += n;
        c->written_sum = tl_crc32c_join(c->written_sum, crc, n);
    }
    return r;
}

/* Make all of the segment durable, and close it. */
static int finish_segment(struct tl_capture *c, struct tl_fail *fail)
{
    struct tl_spool *const spool = c->spool;
    pthread_mutex_lock(&spool->lock);
    while (c->sync == SYNCING)
        pthread_cond_wait(&spool->progress, &spool->lock);
    const bool failed = c->sync == SYNCED && c->sync_outcome < 0;
    pthread_mutex_unlock(&spool->lock);
    if (failed) {
        *fail = c->sync_why;
        return c->sync_outcome;
    }
    const int r = c->log->ops->log_sync(c->log, fail);
    if (r >= 0)
        tl_capture_close_log(c);
    return r;
}

static int write_capture(struct tl_capture *c, struct tl_fail *fail)
{
    struct tl_waiting_walk walk = {c->writing.first, 0};
    int r = TL_OK;
    while (r >= 0 && walk.piece) {
        if (c->log && c->log_bytes >= c->spool->options.segment_bytes)
            r = finish_segment(c, fail);
        if (r >= 0 && !c->log)
            r = open_segment(c, c->written, fail);
        if (r >= 0)
            r = write_block(c, &walk, fail);
    }
    return r;
}

static void distrust_locked(struct tl_spool *spool, struct tl_capture *c)
{
    struct distrusted *d = spool->distrusted;
    while (d && strcmp(d->name, c->name) != 0)
        d = d->next;
    if (!d) {
        d = calloc(1, sizeof(*d));
        if (!d)
            return;
        snprintf(d->name, sizeof(d->name), "%s", c->name);
        d->next = spool->distrusted;
        spool->distrusted = d;
    }
    d->durable = c->durable;
    d->summed = c->summed;
    d->sum = c->sum;
}

void tl_spool_trust_locked(struct tl_spool *spool, const char *name)
{
    for (struct distrusted **p = &spool->distrusted; *p; p = &(*p)->next)
        if (strcmp((*p)->name, name) == 0) {
            struct distrusted *gone = *p;
            *p = gone->next;
            free(gone);
            return;
        }
}

/* Take the data that captures have pending into the next group. False: nothing is to be written. */
static bool gather_locked(struct tl_spool *spool)
{
    const bool apart = spool->backend->ops->log_sync_begin != NULL;
    const uint64_t now = (uint64_t)tl_wall_ns();
    bool some = false;
    for (struct tl_capture *c = spool->captures; c; c = c->next) {
        const uint64_t before = c->sync == NOT_SYNCING ? c->durable : c->sync_to;
        if (c->pending.n == 0 || c->failure.code != TL_OK || c->outcome < 0 ||
            (apart && c->sync == SYNCING) || c->written - before >= spool->options.pending_bytes)
            continue;
        c->writing = c->pending;
        c->pending = (struct tl_waiting){0};
        c->arrival = now;
        c->busy = true;
        some = true;
        if (c->grouped)
            continue;
        if (!spool->group)
            spool->group_begin = (uint64_t)tl_monotonic_ns();
        c->grouped = true;
        c->next_grouped = spool->group;
        spool->group = c;
    }
    if (some) /* there is room for appenders again */
        pthread_cond_broadcast(&spool->progress);
    return some;
}

/* Write what was taken. `durable` does not change meanwhile. */
static void write_group(struct tl_spool *spool)
{
    for (struct tl_capture *c = spool->group; c; c = c->next_grouped) {
        if (c->writing.n > 0)
            c->outcome = write_capture(c, &c->why);
        tl_waiting_free(&c->writing);
    }
}

static void succeed_locked(struct tl_spool *spool, struct tl_capture *c)
{
    spool->counters.bytes += c->sync_to - c->durable;
    c->durable = c->sync_to;
    c->sum = c->sync_sum;
    if (c->sync_bytes > c->log_synced)
        c->log_synced = c->sync_bytes;
    tl_spool_trust_locked(spool, c->name);
}

static void fail_locked(struct tl_spool *spool, struct tl_capture *c)
{
    c->failure = c->why;
    c->failure.code = (enum tl_err)c->outcome;
    tl_waiting_free(&c->pending);
    c->end = c->written = c->durable;
    c->written_sum = c->sum;
    c->outcome = TL_OK;
    spool->counters.failures++;
    distrust_locked(spool, c);
}

/* Settle a capture that was synced, or whose write has failed. Lock held; not while it calls. */
static void settle_locked(struct tl_spool *spool, struct tl_capture *c)
{
    const bool synced = c->sync == SYNCED;
    if (synced && c->sync_outcome >= 0)
        succeed_locked(spool, c);
    else if (synced) {
        c->outcome = c->sync_outcome;
        c->why = c->sync_why;
    }
    c->sync = NOT_SYNCING;
    const bool failed = c->outcome < 0;
    if (failed) {
        pthread_mutex_unlock(&spool->lock);
        abandon_log(c);
        pthread_mutex_lock(&spool->lock);
        fail_locked(spool, c);
    }
    const uint64_t durable = c->durable;
    pthread_cond_broadcast(&spool->progress);
    pthread_mutex_unlock(&spool->lock);
    if (failed)
        tl_spool_report_refused(c->name, durable, c->why.text);
    if (c->on_durable) /* waiters must also be notified of a failure */
        c->on_durable(c->context, durable);
    pthread_mutex_lock(&spool->lock);
    c->busy = c->grouped;
    pthread_cond_broadcast(&spool->progress);
}

static void commit_ended_locked(struct tl_spool *spool)
{
    const uint64_t took = (uint64_t)tl_monotonic_ns() - spool->sync_begin;
    spool->counters.commits++;
    pthread_mutex_unlock(&spool->lock);
    tl_histogram_add(&spool->commits, took);
    tl_spool_report_slow(&spool->slow, took);
    pthread_mutex_lock(&spool->lock);
}

/* Settle what the syncer has done. False: nothing. */
static bool settle_synced_locked(struct tl_spool *spool)
{
    struct tl_capture *const c = spool->syncing;
    if (!c || c->sync != SYNCED)
        return false;
    spool->syncing = c->next_sync;
    settle_locked(spool, c);
    if (!spool->syncing)
        commit_ended_locked(spool);
    return true;
}

/* Pass the group to the syncer, which has nothing to do. False: there is none. */
static bool sync_group_locked(struct tl_spool *spool)
{
    struct tl_capture *list = spool->group, *failed = NULL, **tail = &spool->syncing;
    if (!list || spool->syncing)
        return false;
    spool->group = NULL;
    spool->sync_begin = spool->group_begin;
    for (struct tl_capture *c = list, *next; c; c = next) {
        next = c->next_grouped;
        c->grouped = false;
        if (c->outcome < 0 || c->written == c->durable) {
            c->next_grouped = failed;
            failed = c;
            continue;
        }
        c->sync = SYNCING;
        c->sync_to = c->written;
        c->sync_bytes = c->log_bytes;
        c->sync_sum = c->written_sum;
        c->next_sync = NULL;
        *tail = c;
        tail = &c->next_sync;
        spool->counters.syncs++;
    }
    pthread_cond_signal(&spool->sync_work);
    for (struct tl_capture *next; failed; failed = next) {
        next = failed->next_grouped;
        settle_locked(spool, failed);
    }
    return true;
}

void *tl_spool_write_all(void *context)
{
    struct tl_spool *spool = context;
    pthread_mutex_lock(&spool->lock);
    for (;;) {
        bool some = false;
        while (settle_synced_locked(spool))
            some = true;
        if (gather_locked(spool)) {
            pthread_mutex_unlock(&spool->lock);
            write_group(spool);
            pthread_mutex_lock(&spool->lock);
            some = true;
        }
        if (sync_group_locked(spool) || some)
            continue;
        if (spool->stop && !spool->syncing)
            break;
        pthread_cond_wait(&spool->work, &spool->lock);
    }
    pthread_mutex_unlock(&spool->lock);
    return NULL;
}

/* ---- the syncer --------------------------------------------------------------------------- */

/* The list does not change before its first capture is SYNCED. */
static void sync_list(struct tl_spool *spool, struct tl_capture *list)
{
    for (struct tl_capture *c = list; c; c = c->next_sync)
        if (c->log->ops->log_sync_begin)
            c->log->ops->log_sync_begin(c->log);
    for (struct tl_capture *c = list, *next; c; c = next) {
        next = c->next_sync;
        c->sync_outcome = c->log->ops->log_sync(c->log, &c->sync_why);
        pthread_mutex_lock(&spool->lock);
        c->sync = SYNCED;
        pthread_cond_signal(&spool->work);
        pthread_cond_broadcast(&spool->progress);
        pthread_mutex_unlock(&spool->lock);
    }
}

void *tl_spool_sync_all(void *context)
{
    struct tl_spool *spool = context;
    pthread_mutex_lock(&spool->lock);
    while (!spool->stop_syncing) {
        struct tl_capture *const list = spool->syncing;
        if (!list || list->sync == SYNCED) {
            pthread_cond_wait(&spool->sync_work, &spool->lock);
            continue;
        }
        pthread_mutex_unlock(&spool->lock);
        sync_list(spool, list);
        pthread_mutex_lock(&spool->lock);
    }
    pthread_mutex_unlock(&spool->lock);
    return NULL;
}
