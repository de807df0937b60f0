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
#include "raw/spool.h"

#include "base/crc32c.h"
#include "base/journal.h"
#include "base/now.h"
#include "raw/packed.h"
#include "raw/segment.h"
#include "raw/spool_journal.h"
#include "raw/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum sync {
    NOT_SYNCING,
    SYNCING, /* for the syncer */
    SYNCED   /* for the writer, to be settled */
};

struct tl_capture {
    struct tl_spool *spool;
    struct tl_capture *next;
    char name[64];
    void (*on_durable)(void *context, uint64_t offset);
    void *context;
    /* Guarded by the spool's lock: */
    struct tl_waiting pending;
    uint64_t end;           /* after the last appended byte */
    uint64_t durable;       /* after the last durable byte */
    bool busy;              /* the writer is processing it, or is in its callback */
    struct tl_fail failure; /* code TL_OK: none */
    bool summed;            /* the sums are known */
    uint32_t sum;           /* up to `durable` */
    enum sync sync;
    struct tl_capture *next_sync; /* in spool->syncing */
    /* Private to the writer, the first one while nothing is pending to the appender: */
    uint64_t rejoined; /* the connection was lost before this byte; 0: never */
    struct tl_waiting writing;
    uint64_t arrival; /* when all of `writing` had arrived: ns since 1970 */
    uint64_t written; /* after the last written byte */
    uint32_t written_sum;
    struct tl_log *log;  /* NULL: the next write opens a new segment. Not changed while syncing */
    uint64_t log_bytes;  /* length of the log */
    uint64_t log_synced; /* how much of it is durable */
    bool grouped;        /* it is in spool->group */
    struct tl_capture *next_grouped;
    int outcome; /* < 0: a write or sync has failed, for this reason */
    struct tl_fail why;
    /* Of the sync in progress: what will be durable, of the capture and of the log. */
    uint64_t sync_to, sync_bytes;
    uint32_t sync_sum;
    /* The syncer's, until `sync` is SYNCED: */
    int sync_outcome;
    struct tl_fail sync_why;
};

/* A capture whose medium failed: what lies after `durable` must not be trusted, even if it can be
 * read back from the page cache. Kept until more of it is durable, or it is removed. */
struct distrusted {
    struct distrusted *next;
    uint64_t durable;
    bool summed;
    uint32_t sum;
    char name[64];
};

struct tl_spool {
    struct tl_backend *backend;
    struct tl_spool_options options;
    atomic_ullong min_free; /* the option, which may change */
    atomic_bool full;       /* as last reported to the journal */
    struct tl_histogram commits;
    struct tl_journal_limit slow;
    pthread_t writer, syncer;
    pthread_mutex_t lock;
    pthread_cond_t work;      /* something is pending or synced, or stop */
    pthread_cond_t sync_work; /* something is to be synced, or stop_syncing */
    pthread_cond_t progress;  /* something was synced, became durable, failed, or is not busy */
    bool stop, stop_syncing;
    struct tl_capture *syncing; /* the group being synced, in the syncer's order */
    struct tl_capture *group;   /* private to the writer: the next group; written, or failed */
    uint64_t group_begin;       /* when its first bytes were taken, and those of the one before */
    uint64_t sync_begin;
    struct tl_capture *captures;
    struct distrusted *distrusted;
    struct tl_spool_counters counters;
};

/* ---- the writer --------------------------------------------------------------------------- */

static void close_log(struct tl_capture *c)
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
    close_log(c);
}

static int write_segment_head(struct tl_capture *c, uint64_t first, struct tl_fail *fail)
{
    uint8_t head[TL_SEGMENT_HEAD];
    tl_segment_head(head, first);
    const struct tl_bytes part = {head, sizeof(head)};
    return c->log->ops->log_write(c->log, 0, &part, 1, fail);
}

/* Open the log of the segment at capture offset `first`, which contains `*size` bytes. */
static int open_log(struct tl_capture *c, uint64_t first, uint64_t *size, struct tl_fail *fail)
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
    int r = open_log(c, first, &size, fail);
    if (r < 0)
        return r;
    if (size > 0)
        r = c->log->ops->log_truncate(c->log, 0, fail);
    if (r >= 0)
        r = write_segment_head(c, first, fail);
    if (r < 0) {
        close_log(c);
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
        close_log(c);
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

static void trust_locked(struct tl_spool *spool, const char *name)
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
    trust_locked(spool, c->name);
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

static void *write_all(void *context)
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

static void *sync_all(void *context)
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
    int e = pthread_create(&spool->syncer, NULL, sync_all, spool);
    if (e == 0) {
        e = pthread_create(&spool->writer, NULL, write_all, spool);
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
    int r = open_log(c, first, &size, fail);
    if (r < 0)
        return r;
    struct tl_segment_extent extent;
    r = tl_segment_scan(c->log, first, &extent, fail);
    if (r >= 0 && extent.bytes < size)
        r = c->log->ops->log_truncate(c->log, extent.bytes, fail);
    if (r >= 0 && extent.bytes > 0 && !extent.head)
        r = write_segment_head(c, first, fail);
    /* Data that was written but not synced when the process ended counts from now on. */
    if (r >= 0)
        r = c->log->ops->log_sync(c->log, fail);
    if (r < 0 || extent.bytes == 0) {
        close_log(c);
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
    trust_locked(spool, name);
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
        close_log(c);
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
    close_log(c);
    tl_waiting_free(&c->pending);
    free(c);
}
