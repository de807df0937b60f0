/* SPDX-License-Identifier: MIT */
/*
 * The pushing thread decodes at the stream's current position. The crew claims later parts, in
 * order, and decodes them ahead. When the pushing thread reaches a part that is still being
 * decoded, it asks that thread to stop, delivers the finished portion, and decodes the rest itself.
 * So all threads are always busy, whatever their relative speed.
 *
 * Shared data is in struct split, under its lock. A part between claim and delivery belongs to the
 * thread that claimed it, then to the pushing thread.
 */
#include "decode/split.h"

#include "base/cancel.h"
#include "base/crew.h"
#include "base/pause.h"
#include "decode/kept.h"
#include "decode/split_input.h"
#include "flow/walker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MIN_PART   ((size_t)4 << 10) /* bytes; part sizes adapt to the amount of output */
#define FIRST_PART ((size_t)32 << 10)
#define MAX_PART   ((size_t)256 << 10)
#define RESYNCS    4  /* minimum part size, as a multiple of the distance to its resync point */
#define SLICES     16 /* slices per part; a decoder can be stopped between slices */
#define MIN_SLICE  ((size_t)1 << 10) /* bytes */
/* Distance in bytes, plus two slices, at which the pushing thread asks the decoder of the next part
 * to stop. */
#define NEAR       ((size_t)4 << 10)
#define KEPT_TOTAL ((size_t)8 << 20) /* limit for kept items, all parts together */
/* Limit for decoded blocks, all decoders of the crew together. */
#define BLOCKS_TOTAL ((size_t)16 << 20)
#define GATHER_RUN   ((size_t)1 << 20)
#define GATHER_MAX   ((size_t)4 << 20) /* limit for short runs gathered */
#define SPINS        4000              /* polls of a part that is about to stop */

/* A decoder instance. */
struct decoder {
    struct split *split;
    struct tl_stream_decoder *format;
    struct tl_walker *walker; /* the format's walker */
    struct part *part;        /* part being decoded ahead; NULL: items are delivered */
    size_t blocks;            /* bytes of decoded blocks after the last part; under the lock */
};

struct part {
    size_t from, to;                 /* input bytes */
    size_t resync;                   /* resync point, where states are compared */
    size_t slice;                    /* minimum bytes per slice */
    size_t end;                      /* decoded up to here */
    bool kept_from_resync;           /* past the resync point: items are kept */
    bool usable;                     /* `at_resync`, `at_end` and `kept` are valid */
    bool full;                       /* the limit for kept items was reached */
    atomic_bool stop;                /* request to stop */
    atomic_bool done;                /* stopped or finished */
    struct tl_buf at_resync, at_end; /* saved states */
    struct tl_kept kept;             /* items after the resync point */
};

struct split {
    struct tl_stream_decoder base;
    const struct tl_stream_ops *ops; /* the format's */
    struct tl_stream_sink sink;
    const struct tl_source *source;
    const struct tl_image *image;
    struct tl_share *share;
    struct decoder live; /* the pushing thread's decoder: goes through the whole stream */
    struct tl_buf state; /* state of `live` at a resync point */
    uint64_t met;

    struct tl_split_gather gather; /* short runs */

    struct tl_crew_work work;
    unsigned threads;       /* of the crew; 0: never split yet */
    struct decoder **ahead; /* [threads]; NULL: not created yet */
    pthread_mutex_t lock;
    pthread_cond_t done;    /* signals the pushing thread that a part is done */
    struct decoder **spare; /* [n_spare] idle decoders of `ahead` */
    unsigned n_spare, n_ahead;
    struct tl_split_input input;
    size_t cut;           /* start of the next part: a synchronisation point, or the end */
    size_t size;          /* target size of parts in bytes */
    size_t claimed, head; /* number of parts claimed and delivered in this input */
    size_t n_parts;
    struct part *parts; /* [n_parts], part i is at i % n_parts */
};

/* ---- decoders ------------------------------------------------------------------------------ */

static size_t blocks_max(const struct split *s)
{
    return BLOCKS_TOTAL / s->threads;
}

static size_t blocks_of(const struct decoder *d)
{
    return d->walker->cache ? tl_block_cache_bytes(d->walker->cache) : 0;
}

/* Limit of bytes kept per part. Digest buffers may be up to twice as large, since their capacity
 * doubles. */
static size_t kept_max(const struct split *s)
{
    return KEPT_TOTAL / s->n_parts / (s->sink.digest ? 4 : 1);
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct decoder *const d = context;
    struct part *const part = d->part;
    if (!part)
        return d->split->sink.items(d->split->sink.context, items, n);
    if (blocks_of(d) > blocks_max(d->split))
        return TL_LIMIT;
    if (!part->kept_from_resync) /* a part that is to stop before that is of no use */
        return atomic_load_explicit(&part->stop, memory_order_relaxed) ? TL_LIMIT : TL_OK;
    if (d->split->sink.digest)
        return part->kept.bytes > 2 * kept_max(d->split)
                   ? TL_LIMIT
                   : tl_kept_digest(&part->kept, &d->split->sink, items, n);
    return tl_kept_batch(&part->kept, d->walker->out, n);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct decoder *const d = context;
    if (!d->part)
        return d->split->sink.loss(d->split->sink.context, reason, offset, bytes);
    return d->part->kept_from_resync ? tl_kept_loss(&d->part->kept, reason, offset, bytes) : TL_OK;
}

static int decoder_init(struct decoder *d, struct split *s, size_t block_limit,
                        struct tl_fail *fail)
{
    const struct tl_stream_sink sink = {.context = d,
                                        .items = on_items,
                                        .loss = on_loss,
                                        .paths = s->sink.paths,
                                        .code = s->sink.code};
    d->split = s;
    const int rc = s->ops->create(&d->format, s->source, s->image, &sink, fail);
    if (rc < 0)
        return rc;
    d->walker = s->ops->split->walker(d->format);
    d->walker->cache_limit = block_limit;
    return TL_OK;
}

/* Save the decoder's state to `out`, which is emptied first; restore it from there. */
static int save(struct decoder *d, struct tl_buf *out)
{
    struct tl_state state = {.out = out};
    tl_buf_reset(out);
    d->split->ops->state(d->format, &state);
    return state.rc;
}

static int load(struct decoder *d, const struct tl_buf *from)
{
    struct tl_state state = {.in = {from->p, from->n}};
    d->split->ops->split->reset(d->format);
    d->split->ops->state(d->format, &state);
    return state.rc;
}

/* Push bytes [from, to) of the input. */
static int push_bytes(struct decoder *d, const struct tl_split_input *in, size_t from, size_t to)
{
    int rc = TL_OK;
    for (size_t i = tl_split_run_find(in, from); rc == TL_OK && from < to; i++) {
        struct tl_run run = tl_split_run_from(in, i, from);
        run.n = run.n < to - from ? run.n : to - from;
        rc = d->split->ops->push(d->format, &run);
        from += run.n;
    }
    return rc == TL_OK ? d->split->ops->flush(d->format) : rc;
}

/* ---- parts --------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The first synchronisation point from `at` on, or the end of input. */
static size_t find_sync(const struct split *s, size_t at)
{
    const struct tl_split_input *const in = &s->input;
    return at < in->n ? at + s->ops->split->find_sync(in->p + at, in->n - at) : in->n;
}

static bool can_claim(const struct split *s)
{
    return s->cut < s->input.n && s->claimed < s->head + s->n_parts;
}

/* Set the start of the next part some distance after `from`; less towards the end, so that all
 * threads finish together. */
static void move_cut(struct split *s, size_t from, size_t min)
{
    const size_t share = (s->input.n - from) / (s->threads + 2);
    const size_t size = s->size < share ? s->size : share;
    s->cut = find_sync(s, from + larger(size, min));
}

/* Give the pushing thread, which continues at `from`, at least a part's worth of bytes. */
static void extend_cut(struct split *s, size_t from)
{
    const size_t cut = s->cut;
    move_cut(s, from, MIN_PART);
    s->cut = larger(s->cut, cut);
}

/* Position after everything the trace repeats at the synchronisation point `at`, or the next such
 * point. */
static size_t find_resync(const struct split *s, size_t at)
{
    const struct tl_split_input *const in = &s->input;
    const size_t rest = s->ops->split->find_rest(s->live.format, in->p + at, in->n - at);
    return rest < in->n - at ? at + rest : find_sync(s, at + 1);
}

static struct part *claim(struct split *s)
{
    struct part *const part = &s->parts[s->claimed++ % s->n_parts];
    part->from = s->cut;
    part->resync = find_resync(s, part->from);
    /* Bytes before the resync point are decoded twice. */
    move_cut(s, part->from, larger(MIN_PART, RESYNCS * (part->resync - part->from)));
    part->to = s->cut;
    part->slice = larger((part->to - part->from) / SLICES, MIN_SLICE);
    atomic_store(&part->stop, false);
    atomic_store(&part->done, false);
    return part;
}

/* Slices end before synchronisation points, since packets are not joined across pushes. */
static size_t slice_end(const struct split *s, size_t from, size_t slice, size_t to)
{
    const size_t sync = slice < to - from ? find_sync(s, from + slice) : to;
    return sync < to ? sync : to;
}

/*
 * Decode up to byte `to` and keep the items. On failure the part ends where it was before, or
 * becomes unusable if there are digests, which cannot be undone.
 */
static int decode_slice(struct decoder *d, struct part *part, size_t to)
{
    const struct tl_kept_mark before = tl_kept_mark(&part->kept);
    int rc = push_bytes(d, &d->split->input, part->end, to);
    if (rc < 0 && d->split->sink.digest) {
        part->usable = false;
        return rc;
    }
    if (rc == TL_OK)
        rc = save(d, &part->at_end);
    if (rc == TL_OK) {
        part->end = to;
        part->usable = true;
        return TL_OK;
    }
    tl_kept_cut(&part->kept, &before);
    return rc;
}

/* Decode up to the resync point without keeping anything: the state is complete once the trace has
 * repeated everything. */
static int decode_to_resync(struct decoder *d, struct part *part)
{
    d->split->ops->split->reset(d->format);
    int rc = push_bytes(d, &d->split->input, part->from, part->resync);
    if (rc == TL_OK)
        rc = save(d, &part->at_resync);
    if (rc == TL_LIMIT && atomic_load(&part->stop))
        rc = TL_OK; /* which is no fault of the part's size */
    if (rc == TL_OK)
        part->end = part->resync;
    part->kept_from_resync = true;
    return rc;
}

/* Decode a part that begins at a synchronisation point, and keep its items. */
static void decode_ahead(struct decoder *d, struct part *part)
{
    const bool digest = d->split->sink.digest != NULL;
    part->end = part->from;
    part->usable = part->full = part->kept_from_resync = false;
    d->part = part;
    int rc = decode_to_resync(d, part);
    while (rc == TL_OK && part->end < part->to && !atomic_load(&part->stop)) {
        /*
         * Slices grow, so that the pushing thread never waits long for a part that has just begun.
         */
        const size_t had = larger(part->end - part->from, MIN_SLICE);
        const size_t slice = had < part->slice ? had : part->slice;
        rc = decode_slice(d, part, slice_end(d->split, part->end, slice, part->to));
        if (rc == TL_OK && digest && part->kept.bytes > kept_max(d->split))
            rc = TL_LIMIT;
    }
    part->full = rc < 0;
    d->split->ops->split->reset(d->format);
    d->part = NULL;
}

/* Wait until the part, which was asked to stop, has stopped. */
static void wait_for(struct split *s, struct part *part)
{
    for (unsigned i = 0; i < SPINS; i++) {
        if (atomic_load(&part->done))
            return;
        tl_pause();
    }
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&part->done))
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* The stream has reached a part that was decoded ahead: use it if possible. */
static int stitch(struct split *s, struct part *part, size_t *at)
{
    if (!part->usable)
        return TL_OK;
    *at = part->end;
    int rc = push_bytes(&s->live, &s->input, part->from, part->resync);
    if (rc == TL_OK)
        rc = save(&s->live, &s->state);
    if (rc < 0)
        return rc;
    const bool same = s->state.n == part->at_resync.n &&
                      memcmp(s->state.p, part->at_resync.p, part->at_resync.n) == 0;
    if (!same)
        return push_bytes(&s->live, &s->input, part->resync, part->end);
    s->met++;
    rc = tl_kept_deliver(&part->kept, &s->sink);
    return rc < 0 ? rc : load(&s->live, &part->at_end);
}

/* Adapt the size of parts so that the kept items of all of them fit into memory. */
static void adapt(struct split *s, const struct part *part)
{
    const size_t bytes = part->end - part->from;
    if (bytes < MIN_PART && !part->full)
        return; /* too small to be representative */
    const size_t size = (size_t)((uint64_t)bytes * kept_max(s) / (tl_kept_size(&part->kept) + 1));
    s->size = size < MIN_PART ? MIN_PART : size < MAX_PART ? size : MAX_PART;
}

/*
 * If no later part has been claimed: end a part that reached its limit at that point; after a part
 * that was stopped, leave the pushing thread enough to do while the next one is decoded.
 */
static void give_back(struct split *s, struct part *part)
{
    if (part->end == part->from || part->to != s->cut)
        return;
    if (part->full)
        s->cut = part->to = part->end;
    else if (part->end < part->to)
        extend_cut(s, part->end);
}

/* Get an idle decoder. NULL: none, or out of memory. */
static struct decoder *take_decoder_locked(struct split *s)
{
    if (s->n_spare > 0)
        return s->spare[--s->n_spare];
    struct decoder *const d = s->n_ahead < s->threads ? calloc(1, sizeof *d) : NULL;
    struct tl_fail fail;
    if (d && decoder_init(d, s, SIZE_MAX, &fail) < 0) {
        free(d);
        return NULL;
    }
    if (d)
        s->ahead[s->n_ahead++] = d;
    return d;
}

/* Crew callback: decode one part ahead. */
static bool decode_piece(void *context)
{
    struct split *const s = context;
    pthread_mutex_lock(&s->lock);
    /* The first bytes are left to the pushing thread, which has the stream's state. */
    struct decoder *const d = s->cut > 0 && can_claim(s) ? take_decoder_locked(s) : NULL;
    struct part *const part = d ? claim(s) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (!part)
        return false;
    decode_ahead(d, part);
    pthread_mutex_lock(&s->lock);
    give_back(s, part);
    d->blocks = blocks_of(d);
    s->spare[s->n_spare++] = d;
    atomic_store(&part->done, true);
    pthread_cond_signal(&s->done);
    pthread_mutex_unlock(&s->lock);
    return true;
}

/*
 * The part that the pushing thread will have to wait for, or NULL: the next one, or, if that is
 * done and quick to deliver, the one after it.
 */
static struct part *running_locked(const struct split *s)
{
    for (size_t i = s->head; i < s->claimed; i++) {
        struct part *const part = &s->parts[i % s->n_parts];
        if (!atomic_load(&part->done))
            return part;
        if (!s->sink.digest || part->end < part->to)
            break;
    }
    return NULL;
}

/* One step of the pushing thread at *at: decode a slice, or use a part. */
static int advance(struct split *s, size_t *at)
{
    pthread_mutex_lock(&s->lock);
    struct part *const part = s->head < s->claimed ? &s->parts[s->head % s->n_parts] : NULL;
    const bool moves = !part && *at == s->cut;
    if (moves)
        move_cut(s, s->cut, MIN_PART);
    const size_t from = *at, end = part ? part->from : s->cut;
    struct part *const running = running_locked(s);
    /* It will have stopped when the pushing thread gets there. */
    if (running && end - from <= 2 * running->slice + NEAR)
        atomic_store(&running->stop, true);
    pthread_mutex_unlock(&s->lock);
    if (moves)
        tl_crew_call(s->share->crew);
    if (from < end) {
        *at = slice_end(s, from, larger((end - from) / 4, MIN_SLICE), end);
        return push_bytes(&s->live, &s->input, from, *at);
    }
    wait_for(s, part);
    const int rc = stitch(s, part, at);
    pthread_mutex_lock(&s->lock);
    adapt(s, part);
    tl_kept_reset(&part->kept);
    s->head++;
    pthread_mutex_unlock(&s->lock);
    tl_crew_call(s->share->crew);
    return rc;
}

/* Stop claiming parts, and abandon all parts being decoded ahead. */
static void leave_off(struct split *s)
{
    pthread_mutex_lock(&s->lock);
    s->cut = s->input.n;
    for (; s->head < s->claimed; s->head++)
        atomic_store(&s->parts[s->head % s->n_parts].stop, true);
    pthread_mutex_unlock(&s->lock);
    tl_crew_withdraw(s->share->crew, &s->work);
}

/* Make the room for items available to other streams. */
static void give_rooms(struct split *s)
{
    for (size_t i = 0; i < s->n_parts; i++) {
        struct tl_kept *const kept = &s->parts[i].kept;
        tl_kept_reset(kept);
        if (kept->room) {
            kept->room->next = s->share->rooms;
            s->share->rooms = kept->room;
            kept->room = NULL;
        }
    }
}

/* Returns TL_NOMEM. */
static int take_rooms(struct split *s)
{
    for (size_t i = 0; i < s->n_parts; i++) {
        struct tl_kept *const kept = &s->parts[i].kept;
        if (!s->share->rooms) {
            s->share->rooms = tl_kept_room_new(kept_max(s));
            s->share->room_bytes += s->share->rooms ? 2 * s->share->rooms->half : 0;
        }
        if (!s->share->rooms) {
            give_rooms(s);
            return TL_NOMEM;
        }
        kept->room = s->share->rooms;
        s->share->rooms = kept->room->next;
    }
    return TL_OK;
}

static void free_ahead(struct split *s)
{
    for (unsigned i = 0; i < s->n_ahead; i++) {
        s->ops->destroy(s->ahead[i]->format);
        free(s->ahead[i]);
    }
    for (size_t i = 0; s->parts && i < s->n_parts; i++) {
        tl_buf_fini(&s->parts[i].at_resync);
        tl_buf_fini(&s->parts[i].at_end);
        tl_kept_fini(&s->parts[i].kept);
    }
    free(s->parts);
    free(s->ahead);
    free(s->spare);
    s->parts = NULL;
    s->ahead = s->spare = NULL;
    s->threads = s->n_ahead = s->n_spare = 0;
}

/* Prepare for sharing work with the crew. Returns TL_NOMEM: the pushing thread works alone. */
static int make_ahead(struct split *s)
{
    if (s->threads > 0)
        return TL_OK;
    s->threads = tl_crew_threads(s->share->crew);
    s->n_parts = (size_t)s->threads + 2;
    s->ahead = calloc(s->threads, sizeof(struct decoder *));
    s->spare = calloc(s->threads, sizeof(struct decoder *));
    s->parts = calloc(s->n_parts, sizeof *s->parts);
    if (!s->ahead || !s->spare || !s->parts) {
        free_ahead(s);
        return TL_NOMEM;
    }
    return TL_OK;
}

/* Start sharing the input with the crew, if it is large enough. */
static bool begin_sharing(struct split *s, const struct tl_split_input *in)
{
    struct tl_crew *const crew = s->share->crew;
    if (in->n < TL_SPLIT_MIN || !crew || tl_crew_threads(crew) == 0 || make_ahead(s) < 0 ||
        (!s->sink.digest && take_rooms(s) < 0))
        return false;
    pthread_mutex_lock(&s->lock);
    s->input = *in;
    s->cut = s->claimed = s->head = 0;
    pthread_mutex_unlock(&s->lock);
    if (tl_crew_offer(crew, &s->work) == TL_OK)
        return true;
    give_rooms(s);
    return false;
}

/* Decode the whole input and deliver all items. */
static int decode_input(struct split *s, const struct tl_split_input *in)
{
    if (in->n == 0)
        return TL_OK;
    if (!begin_sharing(s, in))
        return push_bytes(&s->live, in, 0, in->n);
    int rc = TL_OK;
    for (size_t at = 0; rc == TL_OK && at < in->n;) {
        rc = advance(s, &at);
        rc = rc < 0 ? rc : tl_give_way(); /* not all trace gives items */
    }
    leave_off(s);
    give_rooms(s);
    for (unsigned i = 0; i < s->n_ahead; i++) {
        struct tl_walker *const w = s->ahead[i]->walker;
        w->cache_limit = blocks_max(s) / 4 * 3;
        tl_walker_trim(w);
        w->cache_limit = SIZE_MAX;
    }
    return rc;
}

/* ---- tl_stream_ops ------------------------------------------------------------------------- */

static int flush(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    const struct tl_split_input in = tl_split_gather_input(&s->gather);
    int rc = decode_input(s, &in);
    if (rc == TL_OK && in.n == 0)
        rc = s->ops->flush(s->live.format);
    tl_split_gather_reset(&s->gather);
    if (!s->share->crew && s->threads > 0)
        free_ahead(s);
    return rc;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct split *const s = (struct split *)decoder;
    if (s->gather.bytes.n + run->n > GATHER_MAX || run->n >= GATHER_RUN || !s->share->crew) {
        const int rc = flush(decoder);
        if (rc < 0)
            return rc;
    }
    if (!s->share->crew)
        return s->ops->push(s->live.format, run);
    if (run->n >= GATHER_RUN) {
        struct tl_split_run place = {0, run->base, SIZE_MAX, run->place};
        const struct tl_split_input in = {run->p, run->n, &place, 1};
        return decode_input(s, &in);
    }
    return tl_split_gather_add(&s->gather, run);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct split *const s = (struct split *)decoder;
    const int rc = flush(decoder);
    return rc < 0 ? rc : s->ops->finish(s->live.format, cut);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    if (!s)
        return;
    free_ahead(s);
    if (s->live.format)
        s->ops->destroy(s->live.format);
    tl_split_gather_fini(&s->gather);
    tl_buf_fini(&s->state);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->done);
    free(s);
}

/* After a flush only the live decoder has state; it is the same as with a single thread. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *state)
{
    struct split *const s = (struct split *)decoder;
    s->ops->state(s->live.format, state);
}

/* Gathered bytes come first. */
static int notify(struct tl_stream_decoder *decoder, const struct tl_stream_notice *notice)
{
    struct split *const s = (struct split *)decoder;
    const int rc = flush(decoder);
    return rc < 0 || !s->ops->notify ? rc : s->ops->notify(s->live.format, notice);
}

static size_t bytes(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    size_t n = blocks_of(&s->live) + s->gather.bytes.cap;
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_ahead; i++)
        n += TL_STREAM_BYTES + s->ahead[i]->blocks;
    pthread_mutex_unlock(&s->lock);
    return n;
}

uint64_t tl_split_met(const struct tl_stream_decoder *decoder)
{
    return ((const struct split *)decoder)->met;
}

bool tl_split_is_ahead(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    pthread_mutex_lock(&s->lock);
    bool is = !can_claim(s);
    for (size_t i = s->head; is && i < s->claimed; i++)
        is = atomic_load(&s->parts[i % s->n_parts].done);
    pthread_mutex_unlock(&s->lock);
    return is;
}

static const struct tl_stream_ops split_ops = {
    .name = "split",
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .notify = notify,
    .bytes = bytes,
};

int tl_split_new(struct tl_stream_decoder **out, const struct tl_stream_ops *ops,
                 const struct tl_source *source, const struct tl_image *image,
                 const struct tl_stream_sink *sink, struct tl_share *share, struct tl_fail *fail)
{
    struct split *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    s->base.ops = &split_ops;
    s->ops = ops;
    s->sink = *sink;
    s->source = source;
    s->image = image;
    s->share = share;
    s->size = FIRST_PART;
    s->work = (struct tl_crew_work){.piece = decode_piece, .context = s};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->done, NULL);
    const int rc = decoder_init(&s->live, s, BLOCKS_TOTAL, fail);
    if (rc < 0) {
        destroy(&s->base);
        return rc;
    }
    *out = &s->base;
    return TL_OK;
}
