/* SPDX-License-Identifier: MIT */
/*
 * Decoding a generation: raw bytes from the spool, through the decoders, to each lane's builder,
 * and complete shards into the store.
 *
 * Shards are stored by a separate thread concurrently with decoding, in order, a few at a time,
 * without any lock held. If the medium fails, they stay in memory and readable, and decoding does
 * not continue before they are stored; if it is slow, decoding waits once too many are pending.
 * This happens as they are completed, in the middle of a push if need be, since a few raw bytes can
 * give any number of them.
 */
#include "decoding/decode_job.h"
#include "base/cancel.h"
#include "base/now.h"
#include "decoding/decode_memory.h"
#include "decoding/deliver.h"
#include "decoding/marks.h"
#include "decoding/resume.h"
#include "decoding/store_shards.h"
#include "decoding/suspect.h"
#include "lake/jobs.h"
#include "lake/lakeint.h"
#include "stf/close.h"

#include <stdio.h>
#include <stdlib.h>

#define SLICE_BYTES  (64u << 10) /* raw bytes per push, at most */
#define SLICE_MIN    (1u << 10)
#define SLICE_NS     INT64_C(10000000)  /* the raw bytes of a push are so few that it takes less */
#define MEASURE_NS   INT64_C(5000000)   /* between two measurements of memory */
#define JOB_BYTES    (4u << 20)         /* raw bytes per job: then other traces get their turn */
#define TIMES_NS     UINT64_C(20000000) /* minimum interval between two samples of arrival */
#define SHARED_BYTES (256u << 10)       /* backlog from which the crew helps to decode */

/* ---- the decoder ---------------------------------------------------------------------------- */

static int start(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const struct tl_decode_sink sink = tl_deliver(job);
    const struct tl_image *image;
    int r = tl_gen_load_image(gen, &image, fail);
    if (r < 0) /* otherwise everything would be decoded without it */
        return r;
    r = tl_spool_reader_new(&job->reader, gen->lake->backend, gen->trace);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    r = tl_decode_new(&job->decode, &gen->setup, image, &sink, fail);
    atomic_store(&gen->decoded, 0);
    job->finished = false;
    job->waiting = 0;
    job->arrival_ns = job->timed_ns = job->first_ns = 0;
    job->together = job->slice = SLICE_BYTES;
    if (r < 0)
        return r;
    gen->is_virtual = job->wants_virtual && tl_can_mark(job->decode);
    if (job->role == TL_DECODE_OUTLINE && !gen->is_virtual)
        return tl_fail_set(fail, TL_UNSUPPORTED, "its decoder cannot take marks");
    if (gen->is_virtual)
        tl_mark_begin(job);
    atomic_store(&gen->ours, true);
    tl_decode_set_reader(job->decode, tl_spool_read_again, job->reader);
    tl_decode_allow_paths(job->decode);
    tl_decode_set_code(job->decode, tl_stf_block_code);
    return TL_OK;
}

void tl_decode_job_stop(struct tl_decode_job *job)
{
    if (!job)
        return;
    struct tl_gen *const gen = job->gen;
    tl_decode_free(job->decode);
    job->decode = NULL;
    tl_spool_reader_free(job->reader);
    job->reader = NULL;
    tl_decode_memory_release(job);
    pthread_mutex_lock(&gen->lock);
    const size_t n = gen->n_lanes;
    pthread_mutex_unlock(&gen->lock);
    for (size_t i = 0; i < n; i++) {
        struct tl_lane *lane = tl_gen_lane_at(gen, i);
        pthread_mutex_lock(&lane->lock);
        tl_build_free(lane->build);
        lane->build = NULL;
        free(lane->fit);
        lane->fit = NULL;
        pthread_mutex_unlock(&lane->lock);
    }
    job->n_by_stream = 0;
}

/* ---- the job -------------------------------------------------------------------------------- */

/* Decoding, or a builder, failed permanently; or it was abandoned midway, since it is not wanted or
 * the lease is gone, and cannot continue. */
static int broke(struct tl_decode_job *job, int r, struct tl_fail *fail)
{
    if (r == TL_CANCELLED && job->failure.code == TL_LIMIT)
        r = TL_LIMIT; /* it was stopped for that reason */
    if (r == TL_CANCELLED || r == TL_DENIED) {
        job->cut = true;
        return r;
    }
    job->broken = r;
    if (job->failure.code == TL_OK)
        tl_fail_set(&job->failure, r, "decoding ended: %s", tl_err_name(r));
    if (fail)
        *fail = job->failure;
    return r;
}

/* Decode what is pending at the end of the capture, and complete all shards. */
static int end_decode(struct tl_decode_job *job, struct tl_fail *fail)
{
    int r = tl_decode_finish(job->decode);
    for (size_t i = 0; r >= 0 && i < job->n_by_stream; i++) {
        struct tl_lane *lane = job->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        r = tl_build_finish(lane->build);
        pthread_mutex_unlock(&lane->lock);
    }
    job->finished = r != TL_CANCELLED;
    return r < 0 ? broke(job, r, fail) : TL_OK;
}

static int finish(struct tl_decode_job *job, struct tl_fail *fail)
{
    int r = job->finished ? TL_OK : end_decode(job, fail);
    if (r >= 0)
        r = tl_store_shards_wait(job, fail);
    if (r < 0)
        return r;
    tl_mark_flush(job);
    r = tl_store_shards_all(job, fail);
    if (r >= 0)
        r = tl_store_streams(job, fail);
    return r < 0 ? r : TL_EOF;
}

/* Record the last timestamps of everything decoded, and when the bytes after it had arrived. */
static void note_times(struct tl_decode_job *job)
{
    struct tl_build_totals totals;
    job->timed_ns = job->arrival_ns;
    for (size_t i = 0; i < job->n_by_stream; i++) {
        struct tl_lane *const lane = job->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        tl_build_totals(lane->build, &totals);
        if (totals.anchors > 0)
            tl_clockfit_add(lane->fit, totals.anchor_last.time, job->arrival_ns);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Is it time to decode what has arrived, for a (timestamp, arrival) sample? There are a few hundred
 * in total, however long the trace is. */
static bool wants_times(struct tl_decode_job *job)
{
    const uint64_t now = job->arrival_ns, since = now - job->timed_ns;
    if (job->first_ns == 0)
        job->first_ns = job->timed_ns = now;
    return now > job->timed_ns && since >= TIMES_NS && since >= (now - job->first_ns) / 64;
}

static void relate_clocks(struct tl_decode_job *job)
{
    for (size_t i = 0; i < job->n_by_stream; i++) {
        struct tl_lane *const lane = job->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        tl_clockfit_relation(lane->fit, &lane->clock);
        pthread_mutex_unlock(&lane->lock);
    }
}

/*
 * Decode what was pushed. The more there is, the better the crew parallelises it, but only so much
 * that few shards are completed by it: until they are packed they need much memory.
 */
static int flush(struct tl_decode_job *job, struct tl_fail *fail)
{
    const size_t before = job->completed;
    const int r = tl_decode_flush(job->decode);
    const size_t completed = job->completed - before;
    if (completed > TOGETHER && job->together > SLICE_BYTES)
        job->together /= 2;
    else if (completed < TOGETHER && job->waiting >= job->together && job->together < JOB_BYTES)
        job->together *= 2;
    job->waiting = 0;
    if (r >= 0)
        note_times(job);
    if (r >= 0 && job->gen->is_virtual)
        tl_mark(job);
    return r < 0 ? broke(job, r, fail) : tl_store_shards_beside(job, fail);
}

/* A checkpoint contains no complete shards: store them first. */
static int save_checkpoint(struct tl_decode_job *job, struct tl_fail *fail)
{
    int r = flush(job, fail);
    if (r >= 0)
        r = tl_store_shards_wait(job, fail);
    if (r >= 0)
        r = tl_store_shards_all(job, fail);
    if (r >= 0) {
        tl_mark_flush(job);
        tl_resume_save(job);
    }
    return r;
}

/* Choose the size of the next push by the time that one of `n` bytes took. */
static void adapt_slice(struct tl_decode_job *job, size_t n, int64_t ns)
{
    if (ns > SLICE_NS && n > SLICE_MIN)
        job->slice = n / 2 > SLICE_MIN ? n / 2 : SLICE_MIN;
    else if (ns < SLICE_NS / 4 && n == job->slice && n < SLICE_BYTES)
        job->slice = 2 * n;
}

/* Push bytes slice by slice. */
static int push(struct tl_decode_job *job, const struct tl_buf *bytes, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    for (size_t at = 0; at < bytes->n;) {
        const size_t slice = gen->is_virtual ? gen->lake->options.mark_bytes : job->slice;
        const size_t n = bytes->n - at < slice ? bytes->n - at : slice;
        const int64_t begun = tl_monotonic_ns();
        job->failure = (struct tl_fail){0};
        int r = tl_decode_push(job->decode, bytes->p + at, n);
        if (r < 0)
            return broke(job, r, fail);
        adapt_slice(job, n, tl_monotonic_ns() - begun);
        at += n;
        job->waiting += n;
        atomic_fetch_add(&gen->lake->bytes_decoded, n); /* first: what is decoded is counted */
        atomic_fetch_add(&gen->decoded, n);
        if (job->waiting >= (gen->is_virtual ? slice : job->together))
            r = flush(job, fail);
        if (r >= 0 && job->role == TL_DECODE_STORED && tl_resume_due(job))
            r = save_checkpoint(job, fail);
        if (r >= 0)
            r = tl_give_way();
        if (r < 0)
            return r;
    }
    return TL_OK;
}

void tl_decode_job_leave(struct tl_decode_job *job)
{
    if (!job)
        return;
    if (job->decode && !job->finished && !job->cut && job->broken >= 0 &&
        save_checkpoint(job, NULL) < 0)
        (void)!tl_store_shards_wait(job, NULL);
    tl_packer_free(job->packer);
    job->packer = NULL;
}

static void drop_pending(struct tl_gen *gen)
{
    const size_t n = tl_gen_lane_count(gen);
    for (size_t i = 0; i < n; i++) {
        struct tl_lane *const lane = tl_gen_lane_at(gen, i);
        pthread_mutex_lock(&lane->lock);
        tl_lane_drop_pending_locked(lane, lane->n_pending);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Decoding was abandoned during a flush, and is wanted after all: restart as after a server
 * restart. */
static void mend_cut(struct tl_decode_job *job)
{
    tl_decode_job_stop(job);
    drop_pending(job->gen);
    job->resumed = true;
    job->tried = 0;
    job->cut = false;
}

/* Begin at the last checkpoint, or at the first byte. */
static int begin_decode(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const int r = start(job, fail);
    if (r < 0 || tl_resume_load(job) >= 0)
        return r;
    tl_decode_job_stop(job);
    if (job->role == TL_DECODE_STORED)
        tl_resume_remove(gen->lake, gen->trace, gen->number);
    return start(job, fail);
}

/* The next raw byte cannot be read: skip the damage, which becomes a gap. TL_BAD: the format cannot
 * be resynchronised after it. */
static int pass_damage(struct tl_decode_job *job, uint64_t end, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const uint64_t offset = atomic_load(&gen->decoded);
    uint64_t next;
    int r = tl_spool_skip(job->reader, offset, end, &next, fail);
    if (r < 0)
        return r;
    if (next == offset) {
        /* The spool finds no damage there: retry once before reporting a failure of the medium. */
        job->stuck = !job->stuck;
        return job->stuck ? TL_OK : tl_fail_set(fail, TL_IO, "raw bytes cannot be read reliably");
    }
    job->stuck = false;
    r = tl_decode_skip(job->decode, next - offset);
    if (r == TL_UNSUPPORTED)
        return tl_fail_at(fail, TL_BAD, offset,
                          "raw bytes 0x%llx to 0x%llx are damaged, and this format cannot be taken "
                          "up again behind them",
                          (unsigned long long)offset, (unsigned long long)next - 1);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "decoding ended: %s", tl_err_name(r));
    tl_gen_say(gen, "raw bytes 0x%llx to 0x%llx are damaged: there is a gap",
               (unsigned long long)offset, (unsigned long long)next - 1);
    atomic_fetch_add(&gen->decoded, next - offset);
    return TL_OK;
}

/* The rig's connection was lost before the bytes that were just read: there is a gap. TL_BAD: as
 * for pass_damage(). */
static int rejoin(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    const uint64_t offset = atomic_load(&gen->decoded);
    job->failure = (struct tl_fail){0};
    const int r = tl_decode_reconnect(job->decode, job->arrival_ns);
    if (r == TL_UNSUPPORTED)
        return tl_fail_at(fail, TL_BAD, offset,
                          "the rig's connection was lost before raw byte 0x%llx, and this format "
                          "cannot be taken up again behind that",
                          (unsigned long long)offset);
    if (r < 0)
        return broke(job, r, fail);
    tl_gen_say(gen, "raw byte 0x%llx: the rig's connection was lost: there is a gap",
               (unsigned long long)offset);
    return TL_OK;
}

/* Decode a bounded amount of the raw bytes up to `end`. */
static int decode_some(struct tl_decode_job *job, uint64_t end, bool last, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    struct tl_buf bytes = {0};
    int r = job->broken < 0 ? job->broken : tl_suspect_check(job, &job->failure);
    if (r < 0) {
        job->broken = r;
        if (fail)
            *fail = job->failure;
        return r;
    }
    if (job->cut)
        mend_cut(job);
    if (!job->decode)
        r = begin_decode(job, fail);
    /* First store shards that could not be stored last time. */
    if (r >= 0)
        r = tl_store_shards_all(job, fail);
    const uint64_t begin = atomic_load(&gen->decoded), most = job->most > 0 ? job->most : JOB_BYTES;
    if (r >= 0 && begin < end && end - begin >= SHARED_BYTES)
        r = tl_decode_set_crew(job->decode, gen->lake->crew);
    while (r >= 0 && atomic_load(&gen->decoded) < end &&
           atomic_load(&gen->decoded) - begin < most) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(job->reader, atomic_load(&gen->decoded), end, &bytes, fail);
        const bool damaged = r == TL_BAD;
        if (damaged)
            r = pass_damage(job, end, fail);
        else if (r >= 0)
            job->arrival_ns = tl_spool_reader_arrival(job->reader);
        if (r >= 0 && !damaged && tl_spool_reader_rejoined(job->reader))
            r = rejoin(job, fail);
        /* Nothing can follow: keep what there is. */
        if (r == TL_BAD && job->broken >= 0 &&
            (tl_store_shards_wait(job, NULL) < 0 || finish(job, NULL) != TL_EOF))
            r = TL_IO;
        if (r < 0 || damaged)
            continue;
        tl_decode_set_arrival(job->decode, job->arrival_ns);
        r = push(job, &bytes, fail);
        if (r >= 0 && wants_times(job))
            r = flush(job, fail);
    }
    tl_buf_fini(&bytes);
    if (r >= 0)
        r = flush(job, fail);
    if (r >= 0)
        relate_clocks(job);
    if (r >= 0 && tl_decode_set_crew(job->decode, NULL) < 0)
        r = TL_NOMEM; /* nothing was left to flush */
    if (r >= 0)
        r = tl_store_shards_wait(job, fail);
    if (r < 0 || atomic_load(&gen->decoded) < end)
        return r;
    if (last)
        return finish(job, fail);
    /* It is unknown when more will arrive: store what is complete now. */
    r = tl_store_shards_all(job, fail);
    return r < 0 ? r : TL_EOF;
}

static bool is_unwanted(void *context)
{
    const struct tl_decode_job *const job = context;
    struct tl_gen *const gen = job->gen;
    return tl_gen_abandoned(gen) || atomic_load(&gen->lake->closing);
}

static void change_turn(void *context, bool begins)
{
    begins ? tl_suspect_enter(context) : tl_suspect_leave(context);
}

/* If the server ends meanwhile, this one may be the reason, until it waits for its turn. */
static void wait_for_medium(void *context, bool begins)
{
    struct tl_decode_job *const job = context;
    struct tl_lake *const lake = job->gen->lake;
    if (begins) {
        tl_jobs_leave(lake, job->turns.trace, TL_JOB_STORES);
        return;
    }
    change_turn(job, false);
    tl_jobs_return(lake, &job->turns);
    change_turn(job, true);
}

/* Within a push: let others have their turn, and see whether it has become too large. */
static int give_way(void *context)
{
    struct tl_decode_job *const job = context;
    const int64_t now = tl_monotonic_ns();
    if (job->failure.code != TL_LIMIT && now - job->measured_ns > MEASURE_NS) {
        job->measured_ns = now;
        (void)!tl_decode_memory_check(job, &job->failure);
    }
    return job->failure.code == TL_LIMIT ? TL_CANCELLED
                                         : tl_jobs_give_way(job->gen->lake, &job->turns);
}

/* It needs too much memory: it has none from now on. */
static void give_up(struct tl_decode_job *job)
{
    tl_decode_job_stop(job);
    drop_pending(job->gen);
}

int tl_decode_job_run(struct tl_decode_job *job, struct tl_trace *trace, uint64_t end, bool last,
                      struct tl_fail *fail)
{
    const struct tl_cancel cancel = {
        .asked = is_unwanted, .give_way = give_way, .waits = wait_for_medium, .context = job};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    job->turns = (struct tl_turns_of){
        .trace = trace, .unwanted = is_unwanted, .changes = change_turn, .context = job};
    tl_suspect_enter(job);
    int r = decode_some(job, end, last, fail);
    if (r == TL_CANCELLED && job->failure.code == TL_LIMIT)
        r = broke(job, r, fail);
    tl_cancel_set(before);
    if (r == TL_EOF)
        tl_suspect_clear(job);
    tl_suspect_leave(job);
    /* In any case: nothing is being stored between two jobs. A failure is reported again by the
     * next one. */
    const int stored = tl_store_shards_wait(job, NULL);
    if (job->decode) /* much has been freed */
        (void)!tl_decode_memory_check(job, NULL);
    if (r == TL_LIMIT)
        give_up(job);
    tl_packer_free(job->packer); /* a quarter of a megabyte that thousands of traces would keep */
    job->packer = NULL;
    return r >= 0 && stored < 0 ? stored : r;
}

/* ---- its life ------------------------------------------------------------------------------- */

/* With the generation's last reference. */
static void free_job(struct tl_decode_job *job)
{
    tl_decode_memory_release(job);
    tl_suspect_forget(job);
    tl_decode_free(job->decode);
    tl_spool_reader_free(job->reader);
    tl_packer_free(job->packer);
    tl_mark_drop(job);
    free(job->by_stream);
    free(job);
}

/* Has an earlier run of the server left shards? */
static bool has_shards(struct tl_gen *gen)
{
    struct tl_lane *lane;
    bool has = false;
    for (size_t i = 0; !has && (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        has = lane->rows.n > 0;
        pthread_mutex_unlock(&lane->lock);
    }
    return has;
}

struct tl_decode_job *tl_decode_job_of(struct tl_gen *gen)
{
    if (gen->job)
        return gen->job;
    struct tl_decode_job *const job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->gen = gen;
    job->resumed = has_shards(gen);
    pthread_mutex_lock(&gen->lock); /* others may look at its late marks */
    gen->job = job;
    gen->free_job = free_job;
    pthread_mutex_unlock(&gen->lock);
    return job;
}

struct tl_gen *tl_decode_job_beside(struct tl_trace *trace, uint64_t number, char *setup,
                                    enum tl_decode_role role)
{
    struct tl_gen *gen = NULL;
    int r = setup ? tl_gen_new(&gen, trace->lake, trace->id, number, setup, NULL) : TL_NOMEM;
    free(setup);
    if (r >= 0)
        r = tl_gen_load(gen, NULL);
    struct tl_decode_job *const job = r >= 0 ? tl_decode_job_of(gen) : NULL;
    if (!job) {
        tl_gen_put(gen);
        return NULL;
    }
    job->role = role;
    return gen;
}
