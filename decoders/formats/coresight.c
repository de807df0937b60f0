/* SPDX-License-Identifier: MIT */
/*
 * The CoreSight container: formatter frames, or one unformatted source, to a stream decoder per
 * trace ID. A fault in one stream never affects another.
 */
#include "decode/feeds.h"
#include "decode/registry.h"
#include "formats/frames_trial.h"
#include "frame/align.h"
#include "frame/tpiu.h"

#include <stdio.h>
#include <stdlib.h>

enum { IDS = 128 };

#define SYNC_PERIOD 1280 /* bytes; trace units synchronise each 1024, if not told otherwise */
#define CHECK_MIN   512  /* bytes of known sources needed to judge whether frames are aligned */

struct coresight;

/* A trace ID. */
struct feed {
    struct tl_feed base; /* must be first; `out.heard` is relative to the last checkpoint */
    struct coresight *owner;
    uint64_t given;          /* bytes since the last checkpoint */
    uint64_t lost;           /* how many of them are known to be lost */
    bool spoke;              /* it is synchronised, was, or had time for it */
    struct tl_source source; /* as in the setup, with what stands for it in the image */
};

struct coresight {
    struct tl_decode base;
    const struct tl_setup *setup;
    struct tl_feeds feeds;
    uint64_t position;   /* offset in a single source */
    uint64_t checked_at; /* offset of the last checkpoint */
    bool framed;
    uint16_t unaligned; /* bytes to drop until the next frame, after lost bytes */
    struct tl_align align;
    struct tl_tpiu tpiu;
};

/* ---- feeds --------------------------------------------------------------------------- */

/* Reset the counts at a checkpoint. */
static void begin_count(struct feed *feed)
{
    feed->given = 0;
    feed->lost = 0;
    feed->base.out.heard = false;
}

static void count_loss(struct tl_stream_out *out, uint64_t offset, uint64_t bytes)
{
    struct feed *const feed = (struct feed *)out;
    const uint64_t before = offset < feed->owner->checked_at ? feed->owner->checked_at - offset : 0;
    if (!feed->spoke && bytes < SYNC_PERIOD && bytes <= feed->given) { /* its beginning */
        feed->spoke = true;
        feed->given -= bytes;
        return;
    }
    feed->lost += bytes > before ? bytes - before : 0;
}

static int make_decoder(struct tl_decode *decode, struct tl_feed *feed, struct tl_fail *fail)
{
    const struct coresight *const cs = (struct coresight *)decode;
    begin_count((struct feed *)feed);
    return tl_stream_out_decoder(&feed->out, decode, cs->feeds.image, &feed->decoder, fail);
}

static int add_feed(struct tl_decode *decode, uint16_t id, uint64_t offset, struct tl_feed **out)
{
    struct coresight *const cs = (struct coresight *)decode;
    struct feed *const feed = calloc(1, sizeof *feed);
    if (!feed)
        return TL_NOMEM;
    *out = &feed->base;
    feed->owner = cs;
    feed->base.id = id;
    feed->base.out.lose = count_loss;
    snprintf(feed->base.name, sizeof feed->base.name, "cs.%02x", id);
    const struct tl_source *const given = tl_setup_source(cs->setup, id);
    if (given) {
        feed->source = *given;
        feed->source.vmid = tl_setup_source_vmid(cs->setup, id);
    }
    return tl_feeds_add(&cs->feeds, &feed->base, given ? &feed->source : NULL, offset);
}

static int on_run(void *context, uint8_t byte, const struct tl_run *run)
{
    struct coresight *const cs = context;
    const uint8_t id = byte & (IDS - 1);
    if (cs->framed && tl_align_is_muted(&cs->align))
        return TL_OK;
    struct tl_feed *feed = tl_feeds_find(&cs->feeds, id);
    int rc = feed ? TL_OK : add_feed(&cs->base, id, tl_run_offset(run, 0), &feed);
    if (rc == TL_OK && cs->framed && !feed->out.stream.source)
        rc = tl_align_report_unknown(&cs->align, run);
    if (rc < 0)
        return rc;
    ((struct feed *)feed)->given += run->n;
    return tl_feeds_push(&cs->feeds, feed, run);
}

static int on_frame_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct coresight *const cs = context;
    const struct tl_decode_loss loss = {NULL, reason, offset, bytes, tl_loss_is_fault(reason)};
    return cs->feeds.sink.loss ? cs->feeds.sink.loss(cs->feeds.sink.context, &loss) : TL_OK;
}

/*
 * ---- losses of the frame decoder ---------------------------------------------------------------
 */

static int on_tpiu_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct coresight *const cs = context;
    if (tl_align_is_muted(&cs->align))
        return TL_OK;
    return on_frame_loss(cs, reason, offset, bytes);
}

/* Concatenated captures: end each stream and start it again. */
static int on_tpiu_reset(void *context, uint64_t offset, bool out_of_step)
{
    struct coresight *const cs = context;
    const char *const cut = out_of_step ? TL_LOSS_NO_END : TL_LOSS_CUT_OFF;
    return tl_align_is_muted(&cs->align) ? TL_OK : tl_feeds_restart(&cs->feeds, offset, cut);
}

/* May the first synchronisation packets of those that have not spoken yet still be to come? Of all
 * together a period is let pass: if frames are misaligned, each of them waits in vain. */
static bool may_begin(const struct coresight *cs)
{
    uint64_t silent = 0;
    for (uint32_t i = 0; i < cs->feeds.n; i++) {
        const struct feed *const feed = (const struct feed *)cs->feeds.v[i];
        silent += feed->base.decoder && !feed->spoke ? feed->given : 0;
    }
    return silent < SYNC_PERIOD;
}

/* Have the known streams lost most of the bytes since the last checkpoint? */
static int judge(void *context)
{
    struct coresight *const cs = context;
    uint64_t given = 0, lost = 0;
    const int rc = tl_feeds_flush(&cs->feeds);
    for (uint32_t i = 0; i < cs->feeds.n; i++)
        ((struct feed *)cs->feeds.v[i])->spoke |= cs->feeds.v[i]->out.heard;
    const bool begins = may_begin(cs);
    for (uint32_t i = 0; i < cs->feeds.n; i++) {
        const struct feed *const feed = (struct feed *)cs->feeds.v[i];
        if (!feed->base.decoder || (begins && !feed->spoke))
            continue;
        given += feed->given;
        lost += feed->base.out.heard && feed->lost < feed->given ? feed->lost : feed->given;
    }
    if (rc < 0 || given < CHECK_MIN)
        return rc < 0 ? rc : TL_ALIGN_UNKNOWN;
    for (uint32_t i = 0; i < cs->feeds.n; i++) {
        struct feed *const feed = (struct feed *)cs->feeds.v[i];
        if (begins && !feed->spoke)
            continue;
        feed->spoke = true; /* or should have */
        begin_count(feed);
    }
    cs->checked_at = cs->tpiu.start + cs->tpiu.raw;
    return lost > given / 2 ? TL_ALIGN_TROUBLED : TL_ALIGN_FITS;
}

static int64_t try_frames(void *context, uint8_t id, const uint8_t *p, size_t n)
{
    return tl_frames_try(((struct coresight *)context)->setup, id, p, n);
}

/* ---- tl_decode_ops ------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct coresight *const cs = (struct coresight *)decode;
    if (!cs)
        return;
    tl_feeds_fini(&cs->feeds);
    tl_align_fini(&cs->align);
    free(cs);
}

/* Synchronisation packet types of the configured sources. */
static void know_sources(const struct tl_setup *setup, struct tl_fit_sources *sources)
{
    static const uint8_t kinds[] = {
        [TL_PROTO_ETM4] = TL_FIT_ETM4, [TL_PROTO_ETE] = TL_FIT_ETM4, [TL_PROTO_STM] = TL_FIT_STM};
    *sources = (struct tl_fit_sources){.id = TL_TPIU_NO_ID};
    for (unsigned id = 0; id < IDS; id++) {
        const struct tl_source *const source = tl_setup_source(setup, id);
        if (source)
            sources->kinds[id] = source->protocol < sizeof kinds && kinds[source->protocol]
                                     ? kinds[source->protocol]
                                     : TL_FIT_ITM;
    }
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct coresight *const cs = calloc(1, sizeof *cs);
    if (!cs)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    cs->base.ops = &tl_coresight_ops;
    cs->setup = setup;
    cs->feeds = (struct tl_feeds){.decode = &cs->base,
                                  .image = image,
                                  .sink = *sink,
                                  .add = add_feed,
                                  .create = make_decoder};
    cs->framed = setup->container == TL_CONTAINER_TPIU;
    struct tl_tpiu_sink frames = {cs, on_run, on_tpiu_loss, on_tpiu_reset};
    /* For a packet listing keep the order of the capture. */
    for (unsigned id = 0; id < IDS && !sink->packet; id++)
        if (tl_setup_source(setup, id))
            frames.apart[id / 64] |= (uint64_t)1 << id % 64;
    tl_tpiu_init(&cs->tpiu, (enum tl_tpiu_sync)setup->sync, 0, &frames);
    /* Without a configuration no source is known to be wrong. */
    struct tl_align_watch watch = {.context = cs,
                                   .judge = setup->n_sources ? judge : NULL,
                                   .try_frames = try_frames};
    know_sources(setup, &watch.sources);
    tl_align_init(&cs->align, &cs->tpiu, &watch);
    *out = &cs->base;
    return TL_OK;
}

static int push_bytes(struct coresight *cs, const uint8_t *p, size_t n)
{
    if (cs->unaligned > 0) {
        const size_t drop = n < cs->unaligned ? n : cs->unaligned;
        const int rc = on_frame_loss(cs, TL_LOSS_NOT_SYNC, cs->tpiu.start - cs->unaligned, drop);
        cs->unaligned = (uint16_t)(cs->unaligned - drop);
        if (rc < 0 || n == drop)
            return rc;
        p += drop;
        n -= drop;
    }
    if (cs->framed)
        return tl_align_push(&cs->align, p, n);
    const struct tl_run run = {p, n, cs->position, NULL};
    cs->position += n;
    const unsigned id = cs->setup->n_sources ? cs->setup->sources[0].id : 0;
    return on_run(cs, (uint8_t)id, &run);
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct coresight *const cs = (struct coresight *)decode;
    const int rc = push_bytes(cs, p, n);
    return rc < 0 || cs->base.share.crew ? rc : tl_feeds_flush(&cs->feeds);
}

static int flush(struct tl_decode *decode)
{
    return tl_feeds_flush(&((struct coresight *)decode)->feeds);
}

/* Frames without synchronisation words are at multiples of their size. */
static uint64_t frame_size(enum tl_tpiu_sync sync)
{
    return sync == TL_TPIU_ALIGNED ? 16 : sync == TL_TPIU_DSTREAM ? 512 : 1;
}

static int lost(struct tl_decode *decode, const struct tl_decode_hole *hole)
{
    struct coresight *const cs = (struct coresight *)decode;
    int rc = cs->framed ? tl_align_finish(&cs->align, TL_LOSS_NO_END) : TL_OK;
    const uint64_t offset = cs->framed ? cs->tpiu.start + cs->tpiu.raw : cs->position;
    const uint64_t end = offset + hole->n;
    if (rc == TL_OK)
        rc = tl_feeds_restart(&cs->feeds, end, TL_LOSS_NO_END);
    if (rc == TL_OK)
        rc = on_frame_loss(cs, hole->reason, offset, hole->n);
    if (rc == TL_OK)
        rc = tl_feeds_report_gap(&cs->feeds, offset, hole->note);
    cs->position = end;
    if (rc < 0 || !cs->framed)
        return rc;
    const struct tl_tpiu_sink frames = cs->tpiu.demux.sink;
    const enum tl_tpiu_sync sync = cs->tpiu.sync;
    const uint64_t size = frame_size(sync);
    /* Another connection begins with a frame, as a capture does. */
    cs->unaligned = hole->n > 0 ? (uint16_t)((size - end % size) % size) : 0;
    tl_tpiu_init(&cs->tpiu, sync, end + cs->unaligned, &frames);
    const struct tl_align_watch watch = cs->align.watch;
    tl_align_init(&cs->align, &cs->tpiu, &watch);
    return TL_OK;
}

static int finish(struct tl_decode *decode)
{
    struct coresight *const cs = (struct coresight *)decode;
    const int rc = cs->framed ? tl_align_finish(&cs->align, TL_LOSS_CUT_OFF) : TL_OK;
    return rc < 0 ? rc : tl_feeds_finish(&cs->feeds);
}

/*
 * ---- saved state -------------------------------------------------------------------------------
 */

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct coresight *const cs = (struct coresight *)decode;
    tl_state_check(s, cs->position == 0 && cs->tpiu.raw == 0);
    tl_state_u64(s, &cs->position);
    tl_state_u16(s, &cs->unaligned);
    tl_state_check(s, cs->unaligned <= 512);
    if (cs->framed && s->rc >= 0)
        tl_align_state(&cs->align, s);
    tl_feeds_state(&cs->feeds, s);
    for (uint32_t i = 0; i < cs->feeds.n; i++) {
        struct feed *const feed = (struct feed *)cs->feeds.v[i];
        tl_state_check(s, feed->base.id < IDS);
        tl_state_u64(s, &feed->given);
        tl_state_u64(s, &feed->lost);
        tl_state_bool(s, &feed->base.out.heard);
        tl_state_bool(s, &feed->spoke);
    }
    tl_state_u64(s, &cs->checked_at);
}

static size_t bytes(struct tl_decode *decode)
{
    return sizeof(struct coresight) + tl_feeds_bytes(&((struct coresight *)decode)->feeds);
}

const struct tl_decode_ops tl_coresight_ops = {
    .bytes = bytes,
    .name = "coresight",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
