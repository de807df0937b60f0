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
#include "ingest/decode_job.h"
#include "base/cancel.h"
#include "base/crew.h"
#include "base/now.h"

#include "ingest/decode_memory.h"
#include "ingest/remake.h"
#include "ingest/resume.h"
#include "ingest/suspect.h"
#include "lake/jobs.h"
#include "lake/kept.h"
#include "lake/lakeint.h"
#include "stf/close.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLICE_BYTES  (64u << 10) /* raw bytes per push, at most */
#define SLICE_MIN    (1u << 10)
#define SLICE_NS     INT64_C(10000000)  /* the raw bytes of a push are so few that it takes less */
#define AGAIN_NS     INT64_C(500000000) /* until a shard is stored that could not be */
#define MEASURE_NS   INT64_C(5000000)   /* between two measurements of memory */
#define EDGE_SHARDS  64         /* complete shards of a live edge, which another server stores */
#define JOB_BYTES    (4u << 20) /* raw bytes per job: then other traces get their turn */
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
        .packing = gen->lake->packing,
        .index_only = gen->is_virtual,
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

static int store_within(struct tl_gen *gen);

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
    return r < 0 || gen->completed == before ? r : store_within(gen);
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
    if (gen->is_virtual)
        tl_mark_begin(gen);
    atomic_store(&gen->ours, true);
    tl_decode_again(gen->decode, tl_spool_read_again, gen->reader);
    tl_decode_paths(gen->decode);
    tl_decode_code(gen->decode, tl_stf_block_code);
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

/* ---- into the store ------------------------------------------------------------------------- */

/* Number of shards stored together, which share a sync of their folder and a transaction. Virtual
 * ones are small, and produced quickly. */
#define TOGETHER         3
#define TOGETHER_VIRTUAL 24

static size_t together(const struct tl_gen *gen)
{
    return gen->is_virtual ? TOGETHER_VIRTUAL : TOGETHER;
}

/* A complete shard to be stored. */
struct sealing {
    struct tl_lane *lane;
    struct tl_view *view;
    struct tl_shard_row row;
    struct tl_buf file, summary, counts, calls;
    char key[192], counts_key[192], calls_key[192];
};

/* Collect the oldest complete shards of the first `n_lanes` lanes, at most together(). */
static size_t gather(struct tl_gen *gen, size_t n_lanes, struct sealing *out)
{
    const size_t most = together(gen);
    size_t n = 0;
    for (size_t i = 0; i < n_lanes && n < most; i++) {
        struct tl_lane *lane = tl_gen_lane_at(gen, i);
        pthread_mutex_lock(&lane->lock);
        for (size_t k = 0; k < lane->n_pending && n < most; k++)
            out[n++] = (struct sealing){.lane = lane, .view = tl_view_get(lane->pending[k])};
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

static void drop(struct sealing *shards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tl_view_put(shards[i].view);
        tl_buf_fini(&shards[i].file);
        tl_buf_fini(&shards[i].summary);
        tl_buf_fini(&shards[i].counts);
        tl_buf_fini(&shards[i].calls);
    }
}

static int encode(struct tl_gen *gen, struct sealing *shard, struct tl_fail *fail)
{
    const struct tl_view *view = shard->view;
    shard->row = view->index.row;
    int r = gen->packer ? TL_OK : tl_packer_new(&gen->packer);
    if (r >= 0 && gen->is_virtual) {
        tl_virtual_key(shard->key, gen->trace, gen->number, shard->lane->name, shard->row.number);
        r = tl_view_encode_index(view, gen->packer, &shard->file, fail);
    } else if (r >= 0) {
        tl_shard_key(shard->key, gen->trace, gen->number, shard->lane->name, shard->row.number);
        r = tl_view_encode(view, TL_CHUNK_MARKERS, gen->packer, &shard->file, fail);
    }
    shard->row.size = shard->file.n;
    const bool kept = r >= 0 && tl_kept_wanted(gen, gen->is_virtual, &shard->row);
    if (kept && view->counts) {
        tl_shard_object_key(shard->counts_key, gen->trace, gen->number, shard->lane->name,
                            shard->row.number, TL_CODECOUNT_KIND);
        r = tl_codecount_encode(view->counts, gen->packer, &shard->counts);
    }
    if (kept && r >= 0 && view->calls) {
        tl_shard_object_key(shard->calls_key, gen->trace, gen->number, shard->lane->name,
                            shard->row.number, TL_CALLTREE_KIND);
        r = tl_calltree_encode(view->calls, gen->packer, &shard->calls);
        if (shard->calls.n > TL_KEPT_MAX)
            tl_buf_reset(&shard->calls);
    }
    return r < 0 ? r : tl_buckets_encode_summary(&view->index.buckets, &shard->summary);
}

/* Write shards to the store, then to the catalog. */
static int store_shards(struct tl_gen *gen, struct sealing *shards, size_t n, struct tl_fail *fail)
{
    struct tl_backend *backend = gen->lake->backend;
    struct tl_object objects[3 * TOGETHER_VIRTUAL];
    struct tl_catalog_shard rows[TOGETHER_VIRTUAL];
    uint64_t bytes = 0;
    size_t n_objects = 0;
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct sealing *const s = &shards[i];
        r = encode(gen, s, fail);
        objects[n_objects++] = (struct tl_object){s->key, {s->file.p, s->file.n}};
        if (s->counts.n > 0)
            objects[n_objects++] = (struct tl_object){s->counts_key, {s->counts.p, s->counts.n}};
        if (s->calls.n > 0)
            objects[n_objects++] = (struct tl_object){s->calls_key, {s->calls.p, s->calls.n}};
        rows[i] = (struct tl_catalog_shard){
            .stream = s->lane->index, .row = s->row, .summary = {s->summary.p, s->summary.n}};
        bytes += s->file.n;
    }
    if (r >= 0)
        r = backend->ops->put_all(backend, objects, n_objects, fail);
    if (r >= 0)
        r = gen->lake->catalog->ops->add_shards(gen->lake->catalog, gen->trace, gen->number, rows,
                                                n, fail);
    if (r >= 0) {
        atomic_fetch_add(&gen->lake->shards_sealed, n);
        atomic_fetch_add(&gen->lake->bytes_sealed, bytes);
    }
    return r;
}

/* The lane's oldest shard is stored: readers find it in one of the two places. */
static int move_on(struct tl_lane *lane, const struct tl_shard_row *row)
{
    pthread_mutex_lock(&lane->lock);
    const int r = tl_rows_add(&lane->rows, row, lane->gen->lake->backend);
    if (r >= 0) {
        tl_view_put(lane->pending[0]);
        lane->n_pending--;
        memmove(lane->pending, lane->pending + 1, lane->n_pending * sizeof(*lane->pending));
    }
    pthread_mutex_unlock(&lane->lock);
    return r;
}

/* Write the streams' names and numbers. */
static int save_streams(struct tl_gen *gen, struct tl_fail *fail)
{
    int r = TL_OK;
    struct tl_lane *lane;
    if (gen->is_edge)
        return TL_OK;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        const struct tl_catalog_stream row = {.index = lane->index,
                                              .name = lane->name,
                                              .protocol = lane->protocol,
                                              .lost_bytes = lane->lost_bytes,
                                              .clock = lane->clock};
        pthread_mutex_unlock(&lane->lock);
        r = gen->lake->catalog->ops->put_stream(gen->lake->catalog, gen->trace, gen->number, &row,
                                                fail);
    }
    if (r >= 0)
        gen->unsaved = false;
    return r;
}

/* Store complete shards of the first `n_lanes` lanes, each lane's in order, as long as there are at
 * least `min` of them. */
static int store_lanes(struct tl_gen *gen, size_t n_lanes, size_t min, struct tl_fail *fail)
{
    struct sealing shards[TOGETHER_VIRTUAL];
    bool enough = true;
    int r = TL_OK;
    while (r >= 0 && enough) {
        if (tl_gen_abandoned(gen))
            return TL_CANCELLED;
        const size_t n = gather(gen, n_lanes, shards);
        enough = n >= min;
        if (enough)
            r = store_shards(gen, shards, n, fail);
        for (size_t i = 0; r >= 0 && enough && i < n; i++)
            r = move_on(shards[i].lane, &shards[i].row);
        drop(shards, n);
    }
    if (r < 0)
        atomic_fetch_add(&gen->lake->seal_failures, 1);
    return r;
}

static size_t lanes_of(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const size_t n = gen->n_lanes;
    pthread_mutex_unlock(&gen->lock);
    return n;
}

static int store_all(struct tl_gen *gen, struct tl_fail *fail)
{
    if (gen->is_edge)
        return TL_OK;
    /* The catalog needs a shard's stream first. */
    const int r = gen->unsaved ? save_streams(gen, fail) : TL_OK;
    return r < 0 ? r : store_lanes(gen, lanes_of(gen), 1, fail);
}

/* ---- the sealing thread --------------------------------------------------------------------- */

/* Number of complete shards that are not in the store. */
static size_t backlog(struct tl_gen *gen)
{
    size_t n = 0;
    struct tl_lane *lane;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        n += lane->n_pending;
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

static void *run_sealer(void *context)
{
    struct tl_gen *gen = context;
    gen->seal_result = store_lanes(gen, gen->seal_lanes, together(gen), &gen->seal_fail);
    atomic_store(&gen->seal_over, true);
    return NULL;
}

/* Wait until the sealing thread is idle; returns its result. */
static int wait_sealer(struct tl_gen *gen, struct tl_fail *fail)
{
    if (!gen->sealing)
        return TL_OK;
    pthread_join(gen->sealer, NULL);
    gen->sealing = false;
    if (gen->seal_result < 0 && fail)
        *fail = gen->seal_fail;
    return gen->seal_result;
}

/* Start storing complete shards in parallel with decoding, if there are enough; wait if there are
 * too many. */
static int store_beside(struct tl_gen *gen, struct tl_fail *fail)
{
    const size_t waiting = gen->is_edge ? 0 : backlog(gen);
    int r = TL_OK;
    /* With this many pending, decoding waits for the store. */
    if (gen->sealing && (waiting >= 2 * together(gen) || atomic_load(&gen->seal_over)))
        r = wait_sealer(gen, fail);
    if (r < 0 || gen->sealing || waiting < together(gen))
        return r;
    /* Only this thread writes streams to the catalog; later ones wait. */
    r = gen->unsaved ? save_streams(gen, fail) : TL_OK;
    if (r < 0)
        return r;
    gen->seal_lanes = lanes_of(gen);
    gen->seal_fail = (struct tl_fail){0};
    atomic_store(&gen->seal_over, false);
    gen->sealing = pthread_create(&gen->sealer, NULL, run_sealer, gen) == 0;
    return gen->sealing ? TL_OK : store_all(gen, fail);
}

/* Why shards cannot be stored now, if that is for lack of space. */
static int check_space(struct tl_lake *lake, struct tl_fail *fail)
{
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    return left < atomic_load(&lake->min_free) / 2
               ? tl_fail_set(fail, TL_NOSPACE, "only %llu MiB are free",
                             (unsigned long long)(left >> 20))
               : TL_OK;
}

/* Pause in the middle of a push. TL_CANCELLED: it is not wanted any more. */
static int wait_midway(struct tl_gen *gen)
{
    const int64_t until = tl_monotonic_ns() + AGAIN_NS;
    int r = tl_give_way();
    while (r >= 0 && tl_monotonic_ns() < until) {
        usleep(20000);
        r = tl_give_way();
    }
    return r;
}

/* A shard was completed, somewhere within a push, which cannot be left: wait until it can be
 * stored, or until enough others have been. */
static int store_within(struct tl_gen *gen)
{
    struct tl_fail fail = {0};
    bool waited = false;
    int r;
    if (gen->is_edge)
        return backlog(gen) > EDGE_SHARDS ? TL_LIMIT : TL_OK;
    do {
        r = check_space(gen->lake, &fail);
        if (r >= 0)
            r = store_beside(gen, &fail);
        if (r != TL_NOSPACE && r != TL_IO)
            break;
        tl_gen_say(gen, "decoding waits: %s", fail.text);
        waited = true;
        r = wait_midway(gen);
    } while (r >= 0);
    if (waited && r >= 0)
        tl_gen_say(gen, "%s", "");
    return r;
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
        r = wait_sealer(gen, fail);
    if (r < 0)
        return r;
    tl_mark_flush(gen);
    r = store_all(gen, fail);
    if (r >= 0)
        r = save_streams(gen, fail);
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
    return r < 0 ? broke(gen, r, fail) : store_beside(gen, fail);
}

/* A checkpoint contains no complete shards: store them first. */
static int mark(struct tl_gen *gen, struct tl_fail *fail)
{
    int r = flush(gen, fail);
    if (r >= 0)
        r = wait_sealer(gen, fail);
    if (r >= 0)
        r = store_all(gen, fail);
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
        if (r >= 0 && !gen->is_edge && tl_resume_due(gen))
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
        (void)!wait_sealer(gen, NULL);
    tl_packer_free(gen->packer);
    gen->packer = NULL;
}

static void drop_pending(struct tl_gen *gen)
{
    const size_t n = lanes_of(gen);
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
    if (!gen->is_edge)
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
    r = tl_decode_lost(gen->decode, next - offset);
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

/* It was unfinished when the server started. */
static int begin_revived(struct tl_gen *gen, struct tl_fail *fail)
{
    gen->revived = false;
    gen->broken = tl_suspect_begin(gen, &gen->failure);
    if (gen->broken < 0 && fail)
        *fail = gen->failure;
    return gen->broken;
}

/* Decode a bounded amount of the raw bytes up to `end`. */
static int decode_some(struct tl_gen *gen, uint64_t end, bool last, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    int r = gen->broken;
    if (r < 0) {
        if (fail)
            *fail = gen->failure;
        return r;
    }
    if (gen->cut)
        mend_cut(gen);
    if (gen->revived && begin_revived(gen, fail) < 0)
        return gen->broken;
    if (!gen->decode)
        r = begin_decode(gen, fail);
    /* First store shards that could not be stored last time. */
    if (r >= 0)
        r = store_all(gen, fail);
    const uint64_t begin = atomic_load(&gen->decoded);
    if (r >= 0 && begin < end && end - begin >= SHARED_BYTES)
        r = tl_decode_crew(gen->decode, gen->lake->crew);
    while (r >= 0 && atomic_load(&gen->decoded) < end &&
           atomic_load(&gen->decoded) - begin < JOB_BYTES) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(gen->reader, atomic_load(&gen->decoded), end, &bytes, fail);
        if (r >= 0) {
            gen->arrival_ns = tl_spool_reader_arrival(gen->reader);
            tl_decode_arrival(gen->decode, gen->arrival_ns);
            r = push(gen, &bytes, fail);
            if (r >= 0 && wants_times(gen))
                r = flush(gen, fail);
        } else if (r == TL_BAD) {
            r = pass_damage(gen, end, fail);
            /* Nothing can follow: keep what there is. */
            if (r == TL_BAD && (wait_sealer(gen, NULL) < 0 || finish(gen, NULL) != TL_EOF))
                r = TL_IO;
        }
    }
    tl_buf_fini(&bytes);
    if (r >= 0)
        r = flush(gen, fail);
    if (r >= 0)
        relate_clocks(gen);
    if (r >= 0 && tl_decode_crew(gen->decode, NULL) < 0)
        r = TL_NOMEM; /* nothing was left to flush */
    if (r >= 0)
        r = wait_sealer(gen, fail);
    if (r < 0 || atomic_load(&gen->decoded) < end)
        return r;
    if (last)
        return finish(gen, fail);
    /* It is unknown when more will arrive: store what is complete now. */
    r = store_all(gen, fail);
    return r < 0 ? r : TL_EOF;
}

static bool is_unwanted(void *context)
{
    const struct tl_gen *const gen = context;
    return tl_gen_abandoned(gen) || atomic_load(&gen->lake->closing);
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
    return gen->failure.code == TL_LIMIT ? TL_CANCELLED : tl_jobs_give_way(gen->lake, &gen->turn);
}

/* It needs too much memory: it has none from now on. */
static void give_up(struct tl_gen *gen)
{
    tl_gen_stop(gen);
    drop_pending(gen);
}

int tl_gen_decode(struct tl_gen *gen, uint64_t end, bool last, struct tl_fail *fail)
{
    const struct tl_cancel cancel = {.asked = is_unwanted, .give_way = give_way, .context = gen};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    gen->turn = (struct tl_turn_time){tl_monotonic_ns(), is_unwanted, gen};
    tl_crew_enter(gen->lake->crew);
    int r = decode_some(gen, end, last, fail);
    if (r == TL_CANCELLED && gen->failure.code == TL_LIMIT)
        r = broke(gen, r, fail);
    tl_crew_exit(gen->lake->crew);
    tl_cancel_set(before);
    /* In any case: nothing is being stored between two jobs. A failure is reported again by the
     * next one. */
    const int stored = wait_sealer(gen, NULL);
    if (r == TL_EOF)
        tl_suspect_clear(gen);
    else if (r == TL_CANCELLED && !gen->is_edge && atomic_load(&gen->lake->closing))
        tl_suspect_stop(gen);
    if (gen->decode) /* much has been freed */
        (void)!tl_decode_memory_check(gen, NULL);
    if (r == TL_LIMIT)
        give_up(gen);
    tl_packer_free(gen->packer); /* a quarter of a megabyte that thousands of traces would keep */
    gen->packer = NULL;
    return r >= 0 && stored < 0 ? stored : r;
}
