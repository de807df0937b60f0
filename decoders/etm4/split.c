/* SPDX-License-Identifier: MIT */
/*
 * The pushing thread decodes where the stream stands. The others claim parts further on, in order,
 * and decode them ahead; when the pushing thread comes to a part that is still being decoded it
 * tells the other to leave off, delivers what there is, and goes on with the rest itself. So both
 * always have something to do, however their speeds compare, and half of the stream is delivered
 * by who decodes it.
 *
 * What is shared is in struct split, under its lock, but for a part between its claim and its
 * delivery: that belongs to who claimed it, then to the pushing thread.
 */
#include "etm4/split.h"

#include "decode/parallel.h"
#include "etm4/kept.h"
#include "etm4/packetizer.h"
#include "etm4/seam.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEAST_PART  ((size_t)4 << 10) /* bytes; parts adapt to how much comes of them */
#define FIRST_PART  ((size_t)32 << 10)
#define MOST_PART   ((size_t)256 << 10)
#define SLICES      16 /* in a part: between two a decoder can be told to leave off */
#define LEAST_SLICE ((size_t)1 << 10) /* bytes */
#define NEAR        ((size_t)4 << 10) /* bytes, and two slices, in front of it when it is told so */
#define SOON        256               /* bytes behind an A-Sync: mostly all is settled there */
#define GRID        32u               /* bytes of a step in search of A-Syncs */
#define KEPT_TOTAL  ((size_t)16 << 20) /* bytes of items kept, of all parts together */
#define ROOMS       (KEPT_TOTAL / sizeof(struct tl_item_room))
#define BLOCKS_TOTAL                                                                               \
    ((size_t)16 << 20)                /* bytes of decoded blocks, of all other threads together    \
                                       */
#define GATHER_MOST ((size_t)4 << 20) /* bytes gathered of short runs */
#define SPINS       4000              /* looks at a part that will be left off soon */

/* A-Sync, and the header of trace info. */
static const uint8_t SYNC[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x01};

/* Where a decode stands. */
struct state {
    struct tl_etm4_packetizer packetizer;
    struct tl_etm4_flow *flow;
};

/* A decoder of its own. */
struct decoder {
    struct split *split;
    struct state now;
    struct part *part;         /* decoded ahead; NULL: what comes is delivered */
    struct tl_item_room *room; /* where the batch in the making is; NULL: none yet */
    pthread_t thread;
    bool started;
};

struct part {
    size_t from, to;  /* bytes of the input */
    size_t slice;     /* bytes, at least, until it may be left off */
    size_t end;       /* decoded up to here */
    bool usable;      /* `seam`, `state` and `kept` are there */
    bool full;        /* all was kept that may be */
    atomic_bool stop; /* asked to leave off */
    atomic_bool done; /* left off */
    struct tl_etm4_seam seam;
    struct state state;  /* at `end` */
    struct tl_kept kept; /* items behind the seam */
};

/* A run's place among the bytes of the input, and in the file as in struct tl_run. */
struct placed {
    size_t start;
    uint64_t base;
    size_t places; /* where its places are among those gathered */
    const uint16_t *place;
};

/* Bytes to be decoded, and where they are in the file. */
struct input {
    const uint8_t *p;
    size_t n;
    struct placed *runs;
    size_t n_runs;
};

struct split {
    struct tl_stream_decoder base;
    struct tl_stream_sink sink;
    struct tl_etm4_config config;
    const struct tl_image *image;
    uint64_t end; /* offset behind the last byte */
    unsigned threads;
    struct decoder live;   /* the pushing thread's: goes through the whole stream */
    struct decoder *ahead; /* [threads - 1] */

    struct tl_buf bytes;  /* gathered of short runs */
    struct tl_buf places; /* uint16_t each, of runs that have them */
    struct placed *runs;
    size_t n_runs, cap_runs;

    pthread_mutex_t lock;
    pthread_cond_t work; /* for the other threads: a part can be claimed, or it is all over */
    pthread_cond_t done; /* for the pushing thread: a part is done, or all are */
    atomic_uint calls;   /* of those who wait for work */
    bool quit;
    bool helps; /* the other threads help the sink: in this stream's turn, and at its end */
    struct input input;
    size_t cut;           /* where the next part begins; an A-Sync, or the input's end */
    size_t size;          /* bytes that parts should have */
    size_t claimed, head; /* parts claimed, parts delivered, of this input */
    size_t running;       /* parts being decoded ahead */
    size_t n_parts;
    struct part *parts;              /* [n_parts], part i in i % n_parts */
    struct tl_item_room **rooms;     /* that no stream uses */
    size_t taken;                    /* rooms that are used */
    struct tl_etm4_packetizer fresh; /* that nothing was pushed to */
};

/* ---- decoders ------------------------------------------------------------------------------ */

/* The next items go where they will be delivered from. TL_LIMIT: enough is kept. */
static int take_room(struct decoder *d)
{
    struct split *const s = d->split;
    pthread_mutex_lock(&s->lock);
    const bool may = s->taken < ROOMS;
    struct tl_item_room *const spare = may ? *s->rooms : NULL;
    if (spare)
        *s->rooms = spare->next;
    s->taken += may;
    pthread_mutex_unlock(&s->lock);
    d->room = spare || !may ? spare : malloc(sizeof *d->room);
    if (d->room)
        tl_etm4_flow_room(d->now.flow, d->room);
    return d->room ? TL_OK : may ? TL_NOMEM : TL_LIMIT;
}

static size_t blocks_most(const struct split *s)
{
    return BLOCKS_TOTAL / (s->threads - 1);
}

/* Bytes that a part should keep at most. Digests can get twice that, as their memory can. */
static size_t kept_most(const struct split *s)
{
    return KEPT_TOTAL / s->n_parts / (s->sink.digest ? 4 : 1);
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct decoder *const d = context;
    struct part *const part = d->part;
    if (!part)
        return d->split->sink.items(d->split->sink.context, items, n);
    if (!part->seam.settled)
        return TL_OK;
    if (tl_etm4_flow_blocks(d->now.flow) > blocks_most(d->split))
        return TL_LIMIT;
    if (d->split->sink.digest)
        return part->kept.bytes > 2 * kept_most(d->split)
                   ? TL_LIMIT
                   : tl_kept_digest(&part->kept, &d->split->sink, items, n);
    tl_kept_batch(&part->kept, d->room, n);
    return take_room(d);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct decoder *const d = context;
    if (!d->part)
        return d->split->sink.loss(d->split->sink.context, reason, offset, bytes);
    return d->part->seam.settled ? tl_kept_loss(&d->part->kept, reason, offset, bytes) : TL_OK;
}

static int on_tape(void *context, const struct tl_etm4_tape *tape)
{
    struct decoder *const d = context;
    return tl_etm4_flow_tape(d->now.flow, tape);
}

static int decoder_init(struct decoder *d, struct split *s)
{
    d->split = s;
    tl_etm4_packetizer_init_tape(&d->now.packetizer, &s->config, on_tape, d);
    return tl_etm4_flow_new(&d->now.flow, &s->config, s->image, on_items, on_loss, d);
}

/* `to` stands where `from` stands; each keeps its own sink. */
static int copy_state(struct state *to, const struct state *from)
{
    tl_etm4_packetizer_copy(&to->packetizer, &from->packetizer);
    return tl_etm4_flow_copy(to->flow, from->flow);
}

/* The run that byte `at` is in. */
static size_t find_run(const struct input *in, size_t at)
{
    size_t first = 0, last = in->n_runs - 1;
    while (first < last) {
        const size_t middle = (first + last + 1) / 2;
        if (in->runs[middle].start <= at)
            first = middle;
        else
            last = middle - 1;
    }
    return first;
}

/* Run `i` of the input from byte `at` on, which is in it. */
static struct tl_run run_from(const struct input *in, size_t i, size_t at)
{
    const struct placed *const run = &in->runs[i];
    const size_t end = i + 1 < in->n_runs ? run[1].start : in->n;
    const struct tl_run whole = {in->p + run->start, end - run->start, run->base, run->place};
    return tl_run_from(&whole, at - run->start);
}

/* Push bytes [from, to) of the input. In the midst of a run nothing tells that they end there. */
static int push_bytes(struct decoder *d, const struct input *in, size_t from, size_t to)
{
    int rc = TL_OK;
    for (size_t i = find_run(in, from); rc == TL_OK && from < to; i++) {
        struct tl_run run = run_from(in, i, from);
        const bool whole = run.n <= to - from;
        run.n = whole ? run.n : to - from;
        rc = tl_etm4_packetizer_push(&d->now.packetizer, &run);
        if (rc == TL_OK && whole)
            rc = tl_etm4_flow_pause(d->now.flow);
        from += run.n;
    }
    return rc;
}

/* ---- parts --------------------------------------------------------------------------------- */

/* The first A-Sync that lies within [at, end), or the input's end. */
static size_t find_sync_in(const struct input *in, size_t at, size_t end)
{
    const uint8_t *const found = at < end ? memmem(in->p + at, end - at, SYNC, sizeof SYNC) : NULL;
    return found ? (size_t)(found - in->p) : in->n;
}

/* Is one of the words at bytes 0, 8, 16 and 24 zero? Only zero less one has bit 63. */
static inline bool has_zeros(const uint8_t *b)
{
    const uint64_t first = (uint64_t)tl_le32(b) - 1, second = (uint64_t)tl_le32(b + 8) - 1;
    const uint64_t third = (uint64_t)tl_le32(b + 16) - 1, fourth = (uint64_t)tl_le32(b + 24) - 1;
    return (first | second | third | fourth) >> 63;
}

/* The first A-Sync from `at` on: wherever it begins, one of such words lies in its zeros. */
static size_t find_sync(const struct input *in, size_t at)
{
    size_t i = at;
    for (; i < in->n && in->n - i >= GRID; i += GRID) {
        if (!has_zeros(in->p + i))
            continue;
        const size_t end = i + GRID + sizeof SYNC;
        const size_t sync = find_sync_in(in, i - at < 7 ? at : i - 7, end < in->n ? end : in->n);
        if (sync < in->n)
            return sync;
    }
    return find_sync_in(in, i - at < 7 ? at : i - 7, in->n);
}

static bool can_claim(const struct split *s)
{
    return s->cut < s->input.n && s->claimed < s->head + s->n_parts;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The next part begins somewhat behind `from`; sooner towards the end, so that all end together. */
static void move_cut(struct split *s, size_t from)
{
    const size_t share = (s->input.n - from) / (s->threads + 1);
    const size_t size = s->size < share ? s->size : share;
    s->cut = find_sync(&s->input, from + (size > LEAST_PART ? size : LEAST_PART));
}

/* The pushing thread, which goes on at `from`, gets no less than a part. */
static void extend_cut(struct split *s, size_t from)
{
    const size_t cut = s->cut;
    move_cut(s, from);
    s->cut = larger(s->cut, cut);
}

static struct part *claim(struct split *s)
{
    struct part *const part = &s->parts[s->claimed++ % s->n_parts];
    part->from = s->cut;
    move_cut(s, s->cut);
    part->to = s->cut;
    part->slice = larger((part->to - part->from) / SLICES, LEAST_SLICE);
    atomic_store(&part->stop, false);
    atomic_store(&part->done, false);
    return part;
}

/* Slices end in front of A-Syncs: atoms of two pushes are not told as one packet. */
static size_t slice_end(const struct input *in, size_t from, size_t slice, size_t to)
{
    const size_t sync = slice < to - from ? find_sync(in, from + slice) : to;
    return sync < to ? sync : to;
}

/*
 * Decode up to byte `to`, all that comes of it kept. If that fails, the part ends where it did, or
 * nothing of it is of use: digests cannot be made undone.
 */
static int decode_slice(struct decoder *d, struct part *part, size_t to)
{
    const struct tl_kept_mark before = tl_kept_mark(&part->kept);
    int rc = push_bytes(d, &d->split->input, part->end, to);
    if (rc == TL_OK)
        rc = tl_etm4_flow_flush(d->now.flow);
    if (rc == TL_OK)
        rc = copy_state(&part->state, &d->now);
    if (rc < 0 && d->split->sink.digest) {
        part->usable = false;
        return rc;
    }
    if (rc < 0) {
        pthread_mutex_lock(&d->split->lock);
        d->split->taken -= tl_kept_cut(&part->kept, &before, d->split->rooms);
        pthread_mutex_unlock(&d->split->lock);
        return rc;
    }
    part->end = to;
    part->usable = part->seam.settled;
    return TL_OK;
}

/* Decode a part that begins with an A-Sync, and keep what comes of it. */
static void decode_ahead(struct decoder *d, struct part *part)
{
    const struct input *const in = &d->split->input;
    struct tl_etm4_flow *const state = part->seam.state;
    part->seam = (struct tl_etm4_seam){.state = state};
    const struct tl_run run = run_from(in, find_run(in, part->from), part->from);
    part->seam.async = tl_run_offset(&run, 0);
    part->end = part->from;
    part->usable = part->full = false;
    d->part = part;
    tl_etm4_packetizer_copy(&d->now.packetizer, &d->split->fresh);
    tl_etm4_flow_note(d->now.flow, &part->seam);
    const bool digest = d->split->sink.digest != NULL;
    int rc = d->room || digest ? TL_OK : take_room(d);
    while (rc == TL_OK && part->end < part->to && !atomic_load(&part->stop)) {
        /* Who may have to wait for a part that has just begun does not wait long. */
        const size_t had = larger(part->end - part->from, LEAST_SLICE);
        const size_t slice = had < part->slice ? had : part->slice;
        rc = decode_slice(d, part, slice_end(in, part->end, slice, part->to));
        if (rc == TL_OK && digest && part->kept.bytes > kept_most(d->split))
            rc = TL_LIMIT;
    }
    part->full = rc < 0;
    tl_etm4_flow_reset(d->now.flow);
    d->part = NULL;
}

/* Decode a part where the stream stands. */
static int decode_live(struct split *s, const struct input *in, size_t from, size_t to)
{
    const int rc = push_bytes(&s->live, in, from, to);
    return rc < 0 ? rc : tl_etm4_flow_flush(s->live.now.flow);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until the part is left off, soon. */
static void wait_for(struct split *s, struct part *part)
{
    for (unsigned i = 0; i < SPINS; i++) {
        if (atomic_load(&part->done))
            return;
        relax();
    }
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&part->done))
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* The stream stands at a part that was decoded ahead: go as far with it as it is of use. */
static int stitch(struct split *s, struct part *part, size_t *at)
{
    if (!part->usable)
        return TL_OK;
    const size_t soon = part->end - part->from < SOON ? part->end : part->from + SOON;
    tl_etm4_flow_meet(s->live.now.flow, &part->seam);
    int rc = push_bytes(&s->live, &s->input, part->from, soon);
    if (rc == TL_OK)
        rc = decode_live(s, &s->input, soon, part->end);
    tl_etm4_flow_meet(s->live.now.flow, NULL);
    *at = part->end;
    if (rc != TL_AGAIN || !part->seam.met)
        return rc;
    rc = tl_kept_deliver(&part->kept, &s->sink);
    return rc < 0 ? rc : copy_state(&s->live.now, &part->state);
}

/* The next parts are as big as fits, if all take equally much memory. */
static void adapt(struct split *s, const struct part *part)
{
    const size_t bytes = part->end - part->from;
    if (bytes < LEAST_PART && !part->full)
        return; /* tells nothing */
    const size_t size =
        (size_t)((uint64_t)bytes * kept_most(s) / (part->kept.bytes + sizeof(struct tl_item_room)));
    s->size = size < LEAST_PART ? LEAST_PART : size < MOST_PART ? size : MOST_PART;
}

/*
 * If nobody decodes what is behind it: a part that was full before its end ends there, and behind
 * one that was left off the pushing thread gets enough to do while the next one is decoded.
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

/* A piece of the sink's work; false: there was none. The lock is left meanwhile. */
static bool help_locked(struct split *s)
{
    if (!s->sink.help || !s->helps)
        return false;
    pthread_mutex_unlock(&s->lock);
    const bool helped = s->sink.help(s->sink.context);
    pthread_mutex_lock(&s->lock);
    return helped;
}

/* There is more to do now, or soon. */
static void call_locked(struct split *s)
{
    atomic_fetch_add(&s->calls, 1);
    pthread_cond_broadcast(&s->work);
}

/* Look for some time before going to sleep: one push may follow another at once. */
static void wait_for_work_locked(struct split *s)
{
    const unsigned calls = atomic_load(&s->calls);
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < SPINS && atomic_load(&s->calls) == calls; i++)
        relax();
    pthread_mutex_lock(&s->lock);
    if (atomic_load(&s->calls) == calls)
        pthread_cond_wait(&s->work, &s->lock);
}

static void *run_thread(void *context)
{
    struct decoder *const d = context;
    struct split *const s = d->split;
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        /* That goes first: who decodes ahead only makes more of it. */
        if (help_locked(s))
            continue;
        /* The first bytes are left to the pushing thread, which knows where the stream stands. */
        if (s->cut > 0 && can_claim(s)) {
            struct part *const part = claim(s);
            s->running++;
            pthread_mutex_unlock(&s->lock);
            decode_ahead(d, part);
            pthread_mutex_lock(&s->lock);
            give_back(s, part);
            atomic_store(&part->done, true);
            s->running--;
            pthread_cond_signal(&s->done);
        } else if (!s->quit) {
            wait_for_work_locked(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/*
 * The part that is still being decoded when the pushing thread gets there, or NULL: the next one;
 * where it is done and takes no time to deliver, the one behind it.
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

/* One step of the pushing thread, which stands at *at: a slice, or over a part. */
static int advance(struct split *s, size_t *at)
{
    pthread_mutex_lock(&s->lock);
    struct part *const part = s->head < s->claimed ? &s->parts[s->head % s->n_parts] : NULL;
    if (!part && *at == s->cut) {
        move_cut(s, s->cut);
        call_locked(s);
    }
    const size_t from = *at, end = part ? part->from : s->cut;
    struct part *const running = running_locked(s);
    if (running && end - from <= 2 * running->slice + NEAR)
        atomic_store(&running->stop, true); /* so that it is left off when we are there */
    pthread_mutex_unlock(&s->lock);
    if (from < end) {
        *at = slice_end(&s->input, from, larger((end - from) / 4, LEAST_SLICE), end);
        return decode_live(s, &s->input, from, *at);
    }
    wait_for(s, part);
    const int rc = stitch(s, part, at);
    pthread_mutex_lock(&s->lock);
    adapt(s, part);
    s->taken -= tl_kept_reset(&part->kept, s->rooms);
    s->head++;
    call_locked(s);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int start_threads(struct split *s)
{
    for (unsigned i = 0; i < s->threads - 1; i++)
        if (!s->ahead[i].started) {
            if (pthread_create(&s->ahead[i].thread, NULL, run_thread, &s->ahead[i]) != 0)
                return i > 0 ? TL_OK : TL_NOMEM; /* fewer will do */
            s->ahead[i].started = true;
        }
    return TL_OK;
}

/* Nothing more is claimed, and nothing that is decoded ahead is of use. */
static void leave_off(struct split *s)
{
    pthread_mutex_lock(&s->lock);
    s->helps = false;
    s->cut = s->input.n;
    for (; s->head < s->claimed; s->head++)
        atomic_store(&s->parts[s->head % s->n_parts].stop, true);
    while (s->running > 0)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* Nobody decodes ahead any more: all rooms may be used by other streams. */
static void give_rooms(struct split *s)
{
    for (size_t i = 0; i < s->n_parts; i++)
        tl_kept_reset(&s->parts[i].kept, s->rooms);
    for (unsigned i = 0; i < s->threads - 1; i++) {
        struct decoder *const d = &s->ahead[i];
        if (d->room) {
            d->room->next = *s->rooms;
            *s->rooms = d->room;
            d->room = NULL;
        }
    }
    s->taken = 0;
}

/* Decode the whole input; whatever comes of it has been delivered then. */
static int decode_input(struct split *s, const struct input *in)
{
    if (in->n == 0)
        return TL_OK;
    const struct tl_run last = run_from(in, in->n_runs - 1, in->runs[in->n_runs - 1].start);
    s->end = tl_run_offset(&last, last.n);
    if (in->n < TL_PARALLEL_LEAST || start_threads(s) < 0)
        return decode_live(s, in, 0, in->n);
    int rc = TL_OK;
    pthread_mutex_lock(&s->lock);
    s->input = *in;
    s->cut = s->claimed = s->head = 0;
    s->helps = true;
    pthread_mutex_unlock(&s->lock);
    for (size_t at = 0; rc == TL_OK && at < in->n;)
        rc = advance(s, &at);
    leave_off(s);
    give_rooms(s);
    for (unsigned i = 0; i < s->threads - 1; i++)
        tl_etm4_flow_trim(s->ahead[i].now.flow, blocks_most(s) / 4 * 3);
    return rc;
}

/* ---- tl_stream_ops ------------------------------------------------------------------------- */

static int flush(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    for (size_t i = 0; i < s->n_runs; i++) /* nothing is moved any more */
        if (s->runs[i].places != SIZE_MAX)
            s->runs[i].place = (const uint16_t *)(const void *)s->places.p + s->runs[i].places;
    const struct input in = {s->bytes.p, s->bytes.n, s->runs, s->n_runs};
    const int rc = decode_input(s, &in);
    tl_buf_reset(&s->bytes);
    tl_buf_reset(&s->places);
    s->n_runs = 0;
    return rc;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct split *const s = (struct split *)decoder;
    if (s->bytes.n + run->n > GATHER_MOST || run->n >= TL_PARALLEL_LEAST) {
        const int rc = flush(decoder);
        if (rc < 0)
            return rc;
    }
    if (run->n >= TL_PARALLEL_LEAST) {
        struct placed place = {0, run->base, SIZE_MAX, run->place};
        const struct input in = {run->p, run->n, &place, 1};
        return decode_input(s, &in);
    }
    if (tl_grow(&s->runs, &s->cap_runs, s->n_runs + 1, sizeof *s->runs) < 0)
        return TL_NOMEM;
    struct placed *const place = &s->runs[s->n_runs++];
    *place = (struct placed){s->bytes.n, run->base, SIZE_MAX, NULL};
    if (run->place) {
        place->places = s->places.n / sizeof *run->place;
        if (tl_buf_add(&s->places, run->place, (run->n + 1) * sizeof *run->place) < 0)
            return TL_NOMEM;
    }
    return tl_buf_add(&s->bytes, run->p, run->n);
}

static int finish(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    int rc = flush(decoder);
    if (rc == TL_OK)
        rc = tl_etm4_packetizer_finish(&s->live.now.packetizer);
    if (rc == TL_OK)
        rc = tl_etm4_flow_finish(s->live.now.flow, s->end);
    pthread_mutex_lock(&s->lock);
    s->helps = true;
    call_locked(s);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void stop_threads(struct split *s)
{
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    call_locked(s);
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->threads - 1; i++)
        if (s->ahead[i].started)
            pthread_join(s->ahead[i].thread, NULL);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct split *const s = (struct split *)decoder;
    if (!s)
        return;
    if (s->ahead)
        stop_threads(s);
    for (unsigned i = 0; s->ahead && i < s->threads - 1; i++)
        tl_etm4_flow_free(s->ahead[i].now.flow);
    for (size_t i = 0; s->parts && i < s->n_parts; i++) {
        tl_etm4_flow_free(s->parts[i].seam.state);
        tl_etm4_flow_free(s->parts[i].state.flow);
        tl_kept_fini(&s->parts[i].kept);
    }
    tl_etm4_flow_free(s->live.now.flow);
    free(s->ahead);
    free(s->parts);
    free(s->runs);
    tl_buf_fini(&s->bytes);
    tl_buf_fini(&s->places);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->done);
    free(s);
}

/* Behind a flush only the live decoder stands anywhere; the same bytes as of one thread. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *state)
{
    struct split *const s = (struct split *)decoder;
    tl_state_u64(state, &s->end);
    tl_etm4_packetizer_state(&s->live.now.packetizer, state);
    tl_etm4_flow_state(s->live.now.flow, state);
}

static const struct tl_stream_ops split_ops = {
    .name = "etm4",
    .spec = "as etm4",
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
};

static int make_decoders(struct split *s)
{
    tl_etm4_packetizer_init_tape(&s->fresh, &s->config, NULL, NULL);
    int rc = decoder_init(&s->live, s);
    if (rc == TL_OK) {
        tl_etm4_flow_limit(s->live.now.flow, BLOCKS_TOTAL);
        if (s->sink.paths)
            tl_etm4_flow_paths(s->live.now.flow);
    }
    for (unsigned i = 0; rc == TL_OK && i < s->threads - 1; i++) {
        rc = decoder_init(&s->ahead[i], s);
        if (rc == TL_OK) {
            tl_etm4_flow_limit(s->ahead[i].now.flow, SIZE_MAX);
            if (s->sink.paths)
                tl_etm4_flow_paths(s->ahead[i].now.flow);
        }
    }
    for (size_t i = 0; rc == TL_OK && i < s->n_parts; i++) {
        rc = tl_etm4_flow_new(&s->parts[i].seam.state, &s->config, NULL, NULL, NULL, NULL);
        tl_kept_init(&s->parts[i].kept);
        if (rc == TL_OK)
            rc = tl_etm4_flow_new(&s->parts[i].state.flow, &s->config, NULL, NULL, NULL, NULL);
    }
    return rc;
}

int tl_etm4_split_new(struct tl_stream_decoder **out, const struct tl_source *source,
                      const struct tl_image *image, const struct tl_stream_sink *sink,
                      unsigned threads, struct tl_item_room **rooms, struct tl_fail *fail)
{
    struct tl_etm4_config config;
    tl_etm4_config_init(&config, source);
    int rc = tl_etm4_config_check(&config, fail);
    if (rc < 0)
        return rc;
    struct split *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    s->base.ops = &split_ops;
    s->sink = *sink;
    s->config = config;
    s->image = image;
    s->threads = threads;
    s->rooms = rooms;
    s->size = FIRST_PART;
    s->n_parts = (size_t)threads + 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->done, NULL);
    s->ahead = calloc(threads - 1, sizeof *s->ahead);
    s->parts = calloc(s->n_parts, sizeof *s->parts);
    rc = s->ahead && s->parts ? make_decoders(s) : TL_NOMEM;
    if (rc < 0) {
        destroy(&s->base);
        return tl_fail_set(fail, rc, "out of memory for a decoder");
    }
    *out = &s->base;
    return TL_OK;
}
