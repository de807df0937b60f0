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

/* ---- from the decoder ----------------------------------------------------------------------- */

static int on_seal(void *context, struct tl_view *view)
{
    struct tl_lane *lane = context;
    const int r =
        tl_grow(&lane->pending, &lane->cap_pending, lane->n_pending + 1, sizeof(struct tl_view *));
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    if (lane->gen->is_virtual)
        tl_lane_make_virtual(lane, view);
    lane->pending[lane->n_pending++] = view;
    lane->gen->completed++;
    return TL_OK;
}

/* Find a lane left in the catalog by an earlier run, or add a new one. */
static int lane_of(struct tl_gen *gen, const struct tl_decode_stream *stream, struct tl_lane **out)
{
    *out = tl_gen_lane(gen, stream->name);
    if (*out)
        return TL_OK;
    gen->unsaved = true;
    return tl_gen_add_lane(gen, stream->name, stream->protocol, out);
}

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct tl_gen *gen = context;
    struct tl_lane *lane;
    int r = lane_of(gen, stream, &lane);
    if (r < 0)
        return r;
    r = tl_grow(&gen->by_stream, &gen->cap_by_stream, stream->index + 1, sizeof(struct tl_lane *));
    if (r < 0)
        return r;
    while (gen->n_by_stream <= stream->index)
        gen->by_stream[gen->n_by_stream++] = NULL;
    gen->by_stream[stream->index] = lane;
    pthread_mutex_lock(&lane->lock);
    const struct tl_build_options options = {
        .protocol = stream->protocol,
        .isa = stream->isa,
        .shard_insns = gen->lake->options.shard_insns,
        .image = gen->program ? gen->program->image : NULL,
        .axis = tl_lane_axis(lane),
        .packing = gen->lake->packing,
        .index_only = gen->is_virtual,
        .outline = gen->role == TL_GEN_OUTLINE,
        .seal = on_seal,
        .context = lane,
        .sealed = lane->rows.n,
        .sealed_position = tl_lane_sealed_locked(lane),
    };
    tl_build_free(lane->build);
    lane->build = NULL;
    lane->lost_bytes = 0;
    free(lane->fit);
    lane->fit = calloc(1, sizeof(*lane->fit));
    r = lane->fit ? tl_build_new(&lane->build, &options) : TL_NOMEM;
    pthread_mutex_unlock(&lane->lock);
    return r;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct tl_gen *gen = context;
    struct tl_lane *lane = stream->index < gen->n_by_stream ? gen->by_stream[stream->index] : NULL;
    if (!lane)
        return TL_BAD;
    const size_t before = gen->completed;
    pthread_mutex_lock(&lane->lock);
    const int r = tl_build_items(lane->build, items, n);
    pthread_mutex_unlock(&lane->lock);
    atomic_fetch_add_explicit(&gen->lake->items_decoded, n, memory_order_relaxed);
    return r < 0 || gen->completed == before ? r : tl_store_shards_within(gen);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct tl_gen *gen = context;
    struct tl_lane *lane = NULL;
    if (loss->stream && loss->stream->index < gen->n_by_stream)
        lane = gen->by_stream[loss->stream->index];
    if (lane) {
        pthread_mutex_lock(&lane->lock);
        lane->lost_bytes += loss->bytes;
        pthread_mutex_unlock(&lane->lock);
    }
    const bool restart = strcmp(loss->reason, TL_LOSS_TIME_RESTART) == 0;
    /* Neither a capture's normal begin nor an overflow. */
    if (loss->fault || (restart && !tl_gen_has_said(gen)))
        tl_gen_say(gen, "%s: offset 0x%llx: %s", loss->stream ? loss->stream->name : "container",
                   (unsigned long long)loss->offset, loss->reason);
    pthread_mutex_lock(&gen->lock);
    gen->lost_bytes += lane ? 0 : loss->bytes;
    pthread_mutex_unlock(&gen->lock);
    return TL_OK;
}

static int start(struct tl_gen *gen, struct tl_fail *fail)
{
    const struct tl_decode_sink sink = {
        .context = gen, .stream = on_stream, .items = on_items, .loss = on_loss};
    const struct tl_image *image;
    int r = tl_gen_load_image(gen, &image, fail);
    if (r < 0) /* otherwise everything would be decoded without it */
        return r;
    r = tl_spool_reader_new(&gen->reader, gen->lake->backend, gen->trace);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    r = tl_decode_new(&gen->decode, &gen->setup, image, &sink, fail);
    atomic_store(&gen->decoded, 0);
    gen->finished = false;
    gen->waiting = 0;
    gen->arrival_ns = gen->timed_ns = gen->first_ns = 0;
    gen->together = gen->slice = SLICE_BYTES;
    if (r < 0)
        return r;
    gen->is_virtual = gen->wants_virtual && tl_can_mark(gen->decode);
    if (gen->role == TL_GEN_OUTLINE && !gen->is_virtual)
        return tl_fail_set(fail, TL_UNSUPPORTED, "its decoder cannot take marks");
    if (gen->is_virtual)
        tl_mark_begin(gen);
    atomic_store(&gen->ours, true);
    tl_decode_set_reader(gen->decode, tl_spool_read_again, gen->reader);
    tl_decode_allow_paths(gen->decode);
    tl_decode_set_code(gen->decode, tl_stf_block_code);
    return TL_OK;
}

void tl_gen_stop(struct tl_gen *gen)
{
    tl_decode_free(gen->decode);
    gen->decode = NULL;
    tl_spool_reader_free(gen->reader);
    gen->reader = NULL;
    tl_decode_memory_release(gen);
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
    gen->n_by_stream = 0;
}

/* ---- the job -------------------------------------------------------------------------------- */

/* Decoding, or a builder, failed permanently; or it was abandoned midway, since it is not wanted or
 * the lease is gone, and cannot continue. */
static int broke(struct tl_gen *gen, int r, struct tl_fail *fail)
{
    if (r == TL_CANCELLED && gen->failure.code == TL_LIMIT)
        r = TL_LIMIT; /* it was stopped for that reason */
    if (r == TL_CANCELLED || r == TL_DENIED) {
        gen->cut = true;
        return r;
    }
    gen->broken = r;
    if (gen->failure.code == TL_OK)
        tl_fail_set(&gen->failure, r, "decoding ended: %s", tl_err_name(r));
    if (fail)
        *fail = gen->failure;
    return r;
}

/* Decode what is pending at the end of the capture, and complete all shards. */
static int end_decode(struct tl_gen *gen, struct tl_fail *fail)
{
    int r = tl_decode_finish(gen->decode);
    for (size_t i = 0; r >= 0 && i < gen->n_by_stream; i++) {
        struct tl_lane *lane = gen->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        r = tl_build_finish(lane->build);
        pthread_mutex_unlock(&lane->lock);
    }
    gen->finished = r != TL_CANCELLED;
    return r < 0 ? broke(gen, r, fail) : TL_OK;
}

static int finish(struct tl_gen *gen, struct tl_fail *fail)
{
    int r = gen->finished ? TL_OK : end_decode(gen, fail);
    if (r >= 0)
        r = tl_store_shards_wait(gen, fail);
    if (r < 0)
        return r;
    tl_mark_flush(gen);
    r = tl_store_shards_all(gen, fail);
    if (r >= 0)
        r = tl_store_streams(gen, fail);
    return r < 0 ? r : TL_EOF;
}

/* Record the last timestamps of everything decoded, and when the bytes after it had arrived. */
static void note_times(struct tl_gen *gen)
{
    struct tl_build_totals totals;
    gen->timed_ns = gen->arrival_ns;
    for (size_t i = 0; i < gen->n_by_stream; i++) {
        struct tl_lane *const lane = gen->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        tl_build_totals(lane->build, &totals);
        if (totals.anchors > 0)
            tl_clockfit_add(lane->fit, totals.anchor_last.time, gen->arrival_ns);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Is it time to decode what has arrived, for a (timestamp, arrival) sample? There are a few hundred
 * in total, however long the trace is. */
static bool wants_times(struct tl_gen *gen)
{
    const uint64_t now = gen->arrival_ns, since = now - gen->timed_ns;
    if (gen->first_ns == 0)
        gen->first_ns = gen->timed_ns = now;
    return now > gen->timed_ns && since >= TIMES_NS && since >= (now - gen->first_ns) / 64;
}

static void relate_clocks(struct tl_gen *gen)
{
    for (size_t i = 0; i < gen->n_by_stream; i++) {
        struct tl_lane *const lane = gen->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        tl_clockfit_relation(lane->fit, &lane->clock);
        pthread_mutex_unlock(&lane->lock);
    }
}

/*
 * Decode what was pushed. The more there is, the better the crew parallelises it, but only so much
 * that few shards are completed by it: until they are packed they need much memory.
 */
static int flush(struct tl_gen *gen, struct tl_fail *fail)
{
    const size_t before = gen->completed;
    const int r = tl_decode_flush(gen->decode);
    const size_t completed = gen->completed - before;
    if (completed > TOGETHER && gen->together > SLICE_BYTES)
        gen->together /= 2;
    else if (completed < TOGETHER && gen->waiting >= gen->together && gen->together < JOB_BYTES)
        gen->together *= 2;
    gen->waiting = 0;
    if (r >= 0)
        note_times(gen);
    if (r >= 0 && gen->is_virtual)
        tl_mark(gen);
    return r < 0 ? broke(gen, r, fail) : tl_store_shards_beside(gen, fail);
}

/* A checkpoint contains no complete shards: store them first. */
static int mark(struct tl_gen *gen, struct tl_fail *fail)
{
    int r = flush(gen, fail);
    if (r >= 0)
        r = tl_store_shards_wait(gen, fail);
    if (r >= 0)
        r = tl_store_shards_all(gen, fail);
    if (r >= 0) {
        tl_mark_flush(gen);
        tl_resume_mark(gen);
    }
    return r;
}

/* Choose the size of the next push by the time that one of `n` bytes took. */
static void adapt_slice(struct tl_gen *gen, size_t n, int64_t ns)
{
    if (ns > SLICE_NS && n > SLICE_MIN)
        gen->slice = n / 2 > SLICE_MIN ? n / 2 : SLICE_MIN;
    else if (ns < SLICE_NS / 4 && n == gen->slice && n < SLICE_BYTES)
        gen->slice = 2 * n;
}

/* Push bytes slice by slice. */
static int push(struct tl_gen *gen, const struct tl_buf *bytes, struct tl_fail *fail)
{
    for (size_t at = 0; at < bytes->n;) {
        const size_t slice = gen->is_virtual ? gen->lake->options.mark_bytes : gen->slice;
        const size_t n = bytes->n - at < slice ? bytes->n - at : slice;
        const int64_t begun = tl_monotonic_ns();
        gen->failure = (struct tl_fail){0};
        int r = tl_decode_push(gen->decode, bytes->p + at, n);
        if (r < 0)
            return broke(gen, r, fail);
        adapt_slice(gen, n, tl_monotonic_ns() - begun);
        at += n;
        gen->waiting += n;
        atomic_fetch_add(&gen->decoded, n);
        atomic_fetch_add(&gen->lake->bytes_decoded, n);
        if (gen->waiting >= (gen->is_virtual ? slice : gen->together))
            r = flush(gen, fail);
        if (r >= 0 && gen->role == TL_GEN_STORED && tl_resume_due(gen))
            r = mark(gen, fail);
        if (r >= 0)
            r = tl_give_way();
        if (r < 0)
            return r;
    }
    return TL_OK;
}

void tl_gen_leave(struct tl_gen *gen)
{
    if (gen->decode && !gen->finished && !gen->cut && gen->broken >= 0 && mark(gen, NULL) < 0)
        (void)!tl_store_shards_wait(gen, NULL);
    tl_packer_free(gen->packer);
    gen->packer = NULL;
}

static void drop_pending(struct tl_gen *gen)
{
    const size_t n = tl_gen_lane_count(gen);
    for (size_t i = 0; i < n; i++) {
        struct tl_lane *const lane = tl_gen_lane_at(gen, i);
        pthread_mutex_lock(&lane->lock);
        while (lane->n_pending > 0)
            tl_view_put(lane->pending[--lane->n_pending]);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Decoding was abandoned during a flush, and is wanted after all: restart as after a server
 * restart. */
static void mend_cut(struct tl_gen *gen)
{
    tl_gen_stop(gen);
    drop_pending(gen);
    gen->resumed = true;
    gen->tried = 0;
    gen->cut = false;
}

/* Begin at the last checkpoint, or at the first byte. */
static int begin_decode(struct tl_gen *gen, struct tl_fail *fail)
{
    const int r = start(gen, fail);
    if (r < 0 || tl_resume_load(gen) >= 0)
        return r;
    tl_gen_stop(gen);
    if (gen->role == TL_GEN_STORED)
        tl_resume_remove(gen->lake, gen->trace, gen->number);
    return start(gen, fail);
}

/* The next raw byte cannot be read: skip the damage, which becomes a gap. TL_BAD: the format cannot
 * be resynchronised after it. */
static int pass_damage(struct tl_gen *gen, uint64_t end, struct tl_fail *fail)
{
    const uint64_t offset = atomic_load(&gen->decoded);
    uint64_t next;
    int r = tl_spool_skip(gen->reader, offset, end, &next, fail);
    if (r < 0)
        return r;
    if (next == offset) {
        /* The spool finds no damage there: retry once before reporting a failure of the medium. */
        gen->stuck = !gen->stuck;
        return gen->stuck ? TL_OK : tl_fail_set(fail, TL_IO, "raw bytes cannot be read reliably");
    }
    gen->stuck = false;
    r = tl_decode_skip(gen->decode, next - offset);
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

/* Decode a bounded amount of the raw bytes up to `end`. */
static int decode_some(struct tl_gen *gen, uint64_t end, bool last, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    int r = gen->broken < 0 ? gen->broken : tl_suspect_check(gen, &gen->failure);
    if (r < 0) {
        gen->broken = r;
        if (fail)
            *fail = gen->failure;
        return r;
    }
    if (gen->cut)
        mend_cut(gen);
    if (!gen->decode)
        r = begin_decode(gen, fail);
    /* First store shards that could not be stored last time. */
    if (r >= 0)
        r = tl_store_shards_all(gen, fail);
    const uint64_t begin = atomic_load(&gen->decoded), most = gen->most > 0 ? gen->most : JOB_BYTES;
    if (r >= 0 && begin < end && end - begin >= SHARED_BYTES)
        r = tl_decode_set_crew(gen->decode, gen->lake->crew);
    while (r >= 0 && atomic_load(&gen->decoded) < end &&
           atomic_load(&gen->decoded) - begin < most) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(gen->reader, atomic_load(&gen->decoded), end, &bytes, fail);
        if (r >= 0) {
            gen->arrival_ns = tl_spool_reader_arrival(gen->reader);
            tl_decode_set_arrival(gen->decode, gen->arrival_ns);
            r = push(gen, &bytes, fail);
            if (r >= 0 && wants_times(gen))
                r = flush(gen, fail);
        } else if (r == TL_BAD) {
            r = pass_damage(gen, end, fail);
            /* Nothing can follow: keep what there is. */
            if (r == TL_BAD && (tl_store_shards_wait(gen, NULL) < 0 || finish(gen, NULL) != TL_EOF))
                r = TL_IO;
        }
    }
    tl_buf_fini(&bytes);
    if (r >= 0)
        r = flush(gen, fail);
    if (r >= 0)
        relate_clocks(gen);
    if (r >= 0 && tl_decode_set_crew(gen->decode, NULL) < 0)
        r = TL_NOMEM; /* nothing was left to flush */
    if (r >= 0)
        r = tl_store_shards_wait(gen, fail);
    if (r < 0 || atomic_load(&gen->decoded) < end)
        return r;
    if (last)
        return finish(gen, fail);
    /* It is unknown when more will arrive: store what is complete now. */
    r = tl_store_shards_all(gen, fail);
    return r < 0 ? r : TL_EOF;
}

static bool is_unwanted(void *context)
{
    const struct tl_gen *const gen = context;
    return tl_gen_abandoned(gen) || atomic_load(&gen->lake->closing);
}

static void change_turn(void *context, bool begins)
{
    begins ? tl_suspect_enter(context) : tl_suspect_leave(context);
}

/* If the server ends meanwhile, this one may be the reason, until it waits for its turn. */
static void wait_for_medium(void *context, bool begins)
{
    struct tl_gen *const gen = context;
    if (begins) {
        tl_jobs_leave(gen->lake, gen->turns.trace);
        return;
    }
    change_turn(gen, false);
    tl_jobs_return(gen->lake, &gen->turns);
    change_turn(gen, true);
}

/* Within a push: let others have their turn, and see whether it has become too large. */
static int give_way(void *context)
{
    struct tl_gen *const gen = context;
    const int64_t now = tl_monotonic_ns();
    if (gen->failure.code != TL_LIMIT && now - gen->measured_ns > MEASURE_NS) {
        gen->measured_ns = now;
        (void)!tl_decode_memory_check(gen, &gen->failure);
    }
    return gen->failure.code == TL_LIMIT ? TL_CANCELLED : tl_jobs_give_way(gen->lake, &gen->turns);
}

/* It needs too much memory: it has none from now on. */
static void give_up(struct tl_gen *gen)
{
    tl_gen_stop(gen);
    drop_pending(gen);
}

int tl_gen_decode(struct tl_gen *gen, struct tl_trace *trace, uint64_t end, bool last,
                  struct tl_fail *fail)
{
    const struct tl_cancel cancel = {
        .asked = is_unwanted, .give_way = give_way, .waits = wait_for_medium, .context = gen};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    gen->turns = (struct tl_turns_of){
        .trace = trace, .unwanted = is_unwanted, .changes = change_turn, .context = gen};
    tl_suspect_enter(gen);
    int r = decode_some(gen, end, last, fail);
    if (r == TL_CANCELLED && gen->failure.code == TL_LIMIT)
        r = broke(gen, r, fail);
    tl_cancel_set(before);
    if (r == TL_EOF)
        tl_suspect_clear(gen);
    tl_suspect_leave(gen);
    /* In any case: nothing is being stored between two jobs. A failure is reported again by the
     * next one. */
    const int stored = tl_store_shards_wait(gen, NULL);
    if (gen->decode) /* much has been freed */
        (void)!tl_decode_memory_check(gen, NULL);
    if (r == TL_LIMIT)
        give_up(gen);
    tl_packer_free(gen->packer); /* a quarter of a megabyte that thousands of traces would keep */
    gen->packer = NULL;
    return r >= 0 && stored < 0 ? stored : r;
}

void tl_gen_end_decode(struct tl_gen *gen)
{
    tl_decode_memory_release(gen);
    tl_suspect_forget(gen);
    tl_decode_free(gen->decode);
    tl_spool_reader_free(gen->reader);
    tl_packer_free(gen->packer);
    tl_mark_drop(gen);
    free(gen->by_stream);
}
