/* SPDX-License-Identifier: MIT */
/*
 * Packs complete raw segments in the background and replaces each log by its packed object. It
 * gives way to pushes, since a capture that is not taken in time is lost and packing can wait.
 */
#include "ingest/repack.h"

#include "base/cancel.h"
#include "base/now.h"
#include "lake/lakeint.h"
#include "raw/packed.h"
#include "raw/segment.h"

#include <errno.h>
#include <stdio.h>

#define PAUSE_NS     INT64_C(30000000000) /* pause after a failure of the medium */
#define PASS_NS      INT64_C(50000000)    /* pause for pushes */
#define PASS_MAX_NS  INT64_C(10000000000) /* for each segment */
#define PENDING      (1u << 20)           /* bytes that wait for the disk while it is busy */
#define UNPACKED_MAX (UINT64_C(4) << 30)  /* bytes of a trace that may be unpacked meanwhile */

/* ---- one segment ---------------------------------------------------------------------------- */

/* Is the disk busy with pushes, and is there space to keep segments as they are for now? */
static bool must_wait(struct tl_trace *trace)
{
    struct tl_lake *const lake = trace->lake;
    struct tl_spool_counters spool;
    pthread_mutex_lock(&trace->lock);
    const uint64_t unpacked = trace->raw_bytes - trace->repacked;
    pthread_mutex_unlock(&trace->lock);
    tl_spool_counters(lake->spool, &spool);
    return spool.pending >= PENDING && unpacked <= UNPACKED_MAX &&
           lake->backend->ops->free_bytes(lake->backend) >
               UNPACKED_MAX + atomic_load(&lake->min_free);
}

/*
 * Leave disk and processors to pushes, for at most `*left` ns, which is reduced: a push of 1 GiB is
 * durable 1.4 times as fast on two processors.
 */
static void let_pushes_pass(struct tl_trace *trace, int64_t *left)
{
    struct tl_lake *const lake = trace->lake;
    while (*left > 0 && !atomic_load(&lake->closing) && must_wait(trace)) {
        const int64_t now = tl_monotonic_ns();
        pthread_mutex_lock(&lake->lock);
        if (!atomic_load(&lake->closing))
            tl_cond_wait_until(&lake->repack.wake, &lake->lock, now + PASS_NS);
        pthread_mutex_unlock(&lake->lock);
        *left -= tl_monotonic_ns() - now;
    }
}

/* Pack the log that begins at `first`, up to `end`, with `writer`. TL_BAD: it is damaged. */
static int pack_log(struct tl_trace *trace, uint64_t first, uint64_t end,
                    struct tl_packed_writer *writer, struct tl_fail *fail)
{
    struct tl_backend *backend = trace->lake->backend;
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    struct tl_log *log;
    uint64_t size, at = first;
    int64_t left = PASS_MAX_NS;
    char key[128];
    int r = backend->ops->log_open(backend, tl_segment_key(key, trace->id, first), false, &log,
                                   &size, fail);
    if (r < 0)
        return r;
    tl_segment_walk_begin(&walk, log, first, end);
    while (r >= 0 && (r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0) {
        let_pushes_pass(trace, &left);
        r = piece.damaged || piece.n > end - at ? TL_BAD : tl_cancel_check();
        if (r >= 0)
            r = tl_packed_writer_add(writer, (struct tl_bytes){walk.data.p, walk.data.n},
                                     piece.arrival);
        at += piece.n;
    }
    tl_segment_walk_end(&walk);
    log->ops->log_close(log);
    if (r == TL_EOF)
        r = at == end ? TL_OK : TL_BAD;
    return r;
}

/* Is packing still wanted, by this server? `last`: the last segment, only available for a complete
 * capture. */
static bool wanted(struct tl_trace *trace, bool last)
{
    pthread_mutex_lock(&trace->lock);
    const bool wanted = tl_trace_mine_locked(trace) && !trace->deleted && !trace->raw_removed &&
                        (!last || trace->complete);
    pthread_mutex_unlock(&trace->lock);
    return wanted;
}

/*
 * Replace the log with its packed form; an empty `object`: it already exists. Meanwhile the capture
 * is not removed, no push begins, which would continue the last segment, and the lease is not
 * released. TL_CANCELLED: it is not wanted any more.
 */
static int swap(struct tl_trace *trace, uint64_t first, bool last, struct tl_bytes object,
                struct tl_fail *fail)
{
    struct tl_lake *lake = trace->lake;
    struct tl_backend *backend = lake->backend;
    char key[128];
    int r = TL_OK;
    pthread_mutex_lock(&trace->opening);
    pthread_mutex_lock(&lake->garbage_lock);
    const bool go = wanted(trace, last);
    if (go && object.n > 0)
        r = tl_backend_put(backend, tl_packed_key(key, trace->id, first), object, fail);
    if (!go)
        r = TL_CANCELLED;
    if (r >= 0)
        r = backend->ops->remove(backend, tl_segment_key(key, trace->id, first), fail);
    pthread_mutex_unlock(&lake->garbage_lock);
    pthread_mutex_unlock(&trace->opening);
    return r;
}

static int pack_segment(struct tl_trace *trace, uint64_t first, uint64_t end, bool last,
                        struct tl_fail *fail)
{
    struct tl_lake *lake = trace->lake;
    struct tl_packed_writer *writer = NULL;
    struct tl_bytes object = {0};
    int r = tl_packed_writer_new(&writer, first);
    if (r >= 0)
        r = pack_log(trace, first, end, writer, fail);
    if (r >= 0)
        r = tl_packed_writer_finish(writer, &object);
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    if (r >= 0 && left < object.n + atomic_load(&lake->min_free) / 2)
        r = TL_NOSPACE;
    if (r >= 0)
        r = swap(trace, first, last, object, fail);
    tl_packed_writer_free(writer);
    return r;
}

/* ---- all traces ----------------------------------------------------------------------------- */

/* Returns errors of the medium; damaged or unwanted segments are not errors. */
static int pack_trace(struct tl_trace *trace)
{
    struct tl_segments segments = {0};
    pthread_mutex_lock(&trace->lock);
    const bool complete = trace->complete;
    const uint64_t bytes = trace->raw_bytes;
    pthread_mutex_unlock(&trace->lock);
    uint64_t upto = bytes;
    int r = tl_segments_list(&segments, trace->lake->backend, trace->id, NULL);
    for (size_t i = 0; r >= 0 && i < segments.n; i++) {
        const struct tl_segment *const s = &segments.v[i];
        const bool last = i + 1 == segments.n;
        if (last && !complete)
            upto = s->first;
        else if (s->packed && s->log)
            r = swap(trace, s->first, last, (struct tl_bytes){0}, NULL);
        else if (s->log && s->first < bytes)
            r = pack_segment(trace, s->first, last ? bytes : segments.v[i + 1].first, last, NULL);
        if (r == TL_BAD || r == TL_NOTFOUND)
            r = TL_OK;
    }
    tl_segments_fini(&segments);
    if (r == TL_CANCELLED)
        return TL_OK; /* if a deletion then fails, it is due again */
    if (r < 0)
        return r;
    pthread_mutex_lock(&trace->lock);
    trace->repacked = upto;
    pthread_mutex_unlock(&trace->lock);
    return TL_OK;
}

static bool is_closing(void *context)
{
    const struct tl_lake *lake = context;
    return atomic_load(&lake->closing);
}

static void *run(void *context)
{
    struct tl_lake *lake = context;
    const struct tl_cancel cancel = {is_closing, lake};
    tl_cancel_set(&cancel);
    bool soon = false;
    pthread_mutex_lock(&lake->lock);
    while (!atomic_load(&lake->closing)) {
        if (lake->repack_refused || soon) {
            const int64_t until = tl_monotonic_ns() + (soon ? TL_FRESH_NS : PAUSE_NS);
            int e = 0;
            while (e != ETIMEDOUT && !atomic_load(&lake->closing))
                e = tl_cond_wait_until(&lake->repack.wake, &lake->lock, until);
        } else if (!lake->repack.now) {
            pthread_cond_wait(&lake->repack.wake, &lake->lock);
            continue;
        }
        lake->repack.now = lake->repack_refused = false;
        bool refused = false;
        pthread_mutex_unlock(&lake->lock);
        struct tl_trace *trace;
        while (!refused && !atomic_load(&lake->closing) &&
               (trace = tl_lake_find_due(lake, tl_repack_due_locked, &soon))) {
            refused = pack_trace(trace) < 0;
            tl_trace_put(trace);
        }
        pthread_mutex_lock(&lake->lock);
        lake->repack_refused = refused;
    }
    pthread_mutex_unlock(&lake->lock);
    return NULL;
}

int tl_repack_start(struct tl_lake *lake, struct tl_fail *fail)
{
    return tl_chore_start(&lake->repack, lake, run, "the packing thread", fail);
}

void tl_repack_stop(struct tl_lake *lake)
{
    tl_chore_stop(&lake->repack, lake);
}
