/* SPDX-License-Identifier: MIT */
/*
 * The CoreSight container: formatter frames, or one unformatted source, to a stream decoder per
 * trace ID. A fault in one stream never affects another.
 */
#include "decode/registry.h"
#include "decode/stream_out.h"
#include "flow/batch.h"
#include "frame/align.h"
#include "frame/tpiu.h"

#include <stdio.h>
#include <stdlib.h>

enum { IDS = 128 };

#define CHECK_MIN 512 /* bytes of known sources needed to judge whether frames are aligned */

struct coresight;

/* A trace ID. */
struct lane {
    struct tl_stream_out out; /* must be first; its `heard` is relative to the last checkpoint */
    struct coresight *owner;
    struct tl_stream_decoder *decoder; /* NULL: not supported, bytes are only counted */
    char refused[160];                 /* why there is no decoder */
    uint64_t refused_at;
    uint64_t refused_bytes;
    uint64_t given; /* bytes since the last checkpoint */
    uint64_t lost;  /* how many of them are known to be lost */
    char name[32];
};

struct coresight {
    struct tl_decode base;
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_decode_sink sink;
    struct lane *lanes[IDS];
    uint32_t n_streams;
    uint64_t position;   /* offset in a single source */
    uint64_t checked_at; /* offset of the last checkpoint */
    bool framed;
    uint16_t unaligned; /* bytes to drop until the next frame, after lost bytes */
    struct tl_align align;
    struct tl_tpiu tpiu;
};

/* ---- lanes --------------------------------------------------------------------------- */

/* Reset the counts at a checkpoint. */
static void begin_count(struct lane *lane)
{
    lane->given = 0;
    lane->lost = 0;
    lane->out.heard = false;
}

static void count_loss(struct tl_stream_out *out, uint64_t offset, uint64_t bytes)
{
    struct lane *const lane = (struct lane *)out;
    const uint64_t before = offset < lane->owner->checked_at ? lane->owner->checked_at - offset : 0;
    lane->lost += bytes > before ? bytes - before : 0;
}

static int make_decoder(struct lane *lane, uint64_t offset)
{
    struct coresight *const cs = lane->owner;
    struct tl_fail fail = {.text = "cannot be decoded"};
    begin_count(lane);
    if (!lane->out.stream.source) {
        lane->refused_at = offset;
        return TL_OK;
    }
    const int rc = tl_stream_out_decoder(&lane->out, &cs->base, cs->image, &lane->decoder, &fail);
    if (rc == TL_NOMEM || rc == TL_OK)
        return rc;
    snprintf(lane->refused, sizeof lane->refused, "%.150s", fail.text);
    lane->refused_at = offset;
    return TL_OK;
}

static int lane_of(struct coresight *cs, unsigned id, uint64_t offset, struct lane **out)
{
    struct lane *lane = cs->lanes[id];
    if (!lane) {
        lane = calloc(1, sizeof *lane);
        if (!lane)
            return TL_NOMEM;
        cs->lanes[id] = lane;
        lane->owner = cs;
        lane->out.sink = &cs->sink;
        lane->out.lose = count_loss;
        const struct tl_source *const source = tl_setup_source(cs->setup, id);
        if (source && source->name[0])
            snprintf(lane->name, sizeof lane->name, "%s", source->name);
        else
            snprintf(lane->name, sizeof lane->name, "cs.%02x", id);
        /* IDs not in the configuration, such as those from a buffer's stale end, are not streams:
         * their bytes are counted and reported at the end. */
        lane->out.stream = (struct tl_decode_stream){
            .index = source ? cs->n_streams++ : UINT32_MAX,
            .name = lane->name,
            .protocol = source ? (enum tl_protocol)source->protocol : TL_PROTO_NONE,
            .source = source,
        };
        lane->out.stream.isa = tl_source_isa(lane->out.stream.protocol, source);
        int rc = make_decoder(lane, offset);
        if (rc == TL_OK && source && cs->sink.stream)
            rc = cs->sink.stream(cs->sink.context, &lane->out.stream);
        if (rc < 0)
            return rc;
    }
    *out = lane;
    return TL_OK;
}

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct coresight *const cs = context;
    struct lane *lane;
    if (cs->framed && tl_align_muted(&cs->align))
        return TL_OK;
    int rc = lane_of(cs, id & (IDS - 1), tl_run_offset(run, 0), &lane);
    if (rc == TL_OK && cs->framed && !lane->out.stream.source)
        rc = tl_align_unknown(&cs->align, run);
    if (rc < 0)
        return rc;
    lane->given += run->n;
    if (lane->decoder && cs->sink.bytes)
        rc = cs->sink.bytes(cs->sink.context, &lane->out.stream, run);
    if (lane->decoder)
        return rc < 0 ? rc : lane->decoder->ops->push(lane->decoder, run);
    lane->refused_bytes += run->n;
    return TL_OK;
}

static int on_frame_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct coresight *const cs = context;
    const struct tl_decode_loss loss = {NULL, reason, offset, bytes, tl_loss_is_fault(reason)};
    return cs->sink.loss ? cs->sink.loss(cs->sink.context, &loss) : TL_OK;
}

/* Concatenated captures: end each stream and start it again. */
static int on_reset(void *context, uint64_t offset)
{
    struct coresight *const cs = context;
    int rc = TL_OK;
    for (unsigned id = 0; rc == TL_OK && id < IDS; id++) {
        struct lane *const lane = cs->lanes[id];
        if (!lane || !lane->decoder)
            continue;
        rc = lane->decoder->ops->finish(lane->decoder);
        lane->decoder->ops->destroy(lane->decoder);
        lane->decoder = NULL;
        if (rc == TL_OK)
            rc = make_decoder(lane, offset);
    }
    return rc;
}

/*
 * ---- losses of the frame decoder ---------------------------------------------------------------
 */

static int on_tpiu_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct coresight *const cs = context;
    if (tl_align_muted(&cs->align))
        return TL_OK;
    return on_frame_loss(cs, reason, offset, bytes);
}

static int on_tpiu_reset(void *context, uint64_t offset)
{
    struct coresight *const cs = context;
    return tl_align_muted(&cs->align) ? TL_OK : on_reset(cs, offset);
}

static int flush_streams(struct coresight *cs)
{
    int rc = TL_OK;
    for (unsigned id = 0; rc == TL_OK && id < IDS; id++) {
        struct tl_stream_decoder *const d = cs->lanes[id] ? cs->lanes[id]->decoder : NULL;
        if (d && d->ops->flush)
            rc = d->ops->flush(d);
    }
    return rc;
}

/* Have the known streams lost most of the bytes since the last checkpoint? */
static int is_troubled(void *context)
{
    struct coresight *const cs = context;
    uint64_t given = 0, lost = 0;
    const int rc = flush_streams(cs);
    for (unsigned id = 0; id < IDS; id++) {
        const struct lane *const lane = cs->lanes[id];
        if (!lane || !lane->decoder || !lane->out.stream.source)
            continue;
        given += lane->given;
        lost += lane->out.heard && lane->lost < lane->given ? lane->lost : lane->given;
    }
    if (rc < 0 || given < CHECK_MIN)
        return rc;
    for (unsigned id = 0; id < IDS; id++)
        if (cs->lanes[id])
            begin_count(cs->lanes[id]);
    cs->checked_at = cs->tpiu.start + cs->tpiu.raw;
    return lost > given / 2;
}

/* ---- tl_decode_ops ------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct coresight *const cs = (struct coresight *)decode;
    if (!cs)
        return;
    for (unsigned id = 0; id < IDS; id++) {
        if (cs->lanes[id] && cs->lanes[id]->decoder)
            cs->lanes[id]->decoder->ops->destroy(cs->lanes[id]->decoder);
        free(cs->lanes[id]);
    }
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
    cs->image = image;
    cs->sink = *sink;
    cs->framed = setup->container == TL_CONTAINER_TPIU;
    struct tl_tpiu_sink frames = {cs, on_run, on_tpiu_loss, on_tpiu_reset};
    /* For a packet listing keep the order of the capture. */
    for (unsigned id = 0; id < IDS && !sink->packet; id++)
        if (tl_setup_source(setup, id))
            frames.apart[id / 64] |= (uint64_t)1 << id % 64;
    tl_tpiu_init(&cs->tpiu, (enum tl_tpiu_sync)setup->sync, 0, &frames);
    /* Without a configuration no source is known to be wrong. */
    struct tl_align_watch watch = {.context = cs,
                                   .is_troubled = setup->n_sources ? is_troubled : NULL};
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
    return rc < 0 || cs->base.share.crew ? rc : flush_streams(cs);
}

static int flush(struct tl_decode *decode)
{
    return flush_streams((struct coresight *)decode);
}

/* Report lost input bytes in every started stream. */
static int report_lost(struct coresight *cs, uint64_t offset, uint64_t n)
{
    int rc = on_frame_loss(cs, TL_LOSS_STORED, offset, n);
    for (unsigned id = 0; rc == TL_OK && id < IDS; id++) {
        struct lane *const lane = cs->lanes[id];
        const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = TL_GAP_TRANSPORT, .offset = offset};
        if (lane && lane->decoder && lane->out.stream.source)
            rc = tl_stream_out_items(&lane->out, &gap, 1);
    }
    return rc;
}

/* Frames without synchronisation words are at multiples of their size. */
static uint64_t frame_size(enum tl_tpiu_sync sync)
{
    return sync == TL_TPIU_ALIGNED ? 16 : sync == TL_TPIU_DSTREAM ? 512 : 1;
}

static int lost(struct tl_decode *decode, uint64_t n)
{
    struct coresight *const cs = (struct coresight *)decode;
    int rc = cs->framed ? tl_align_finish(&cs->align) : TL_OK;
    const uint64_t offset = cs->framed ? cs->tpiu.start + cs->tpiu.raw : cs->position;
    if (rc == TL_OK)
        rc = on_reset(cs, offset + n);
    if (rc == TL_OK)
        rc = report_lost(cs, offset, n);
    cs->position = offset + n;
    if (rc < 0 || !cs->framed)
        return rc;
    const struct tl_tpiu_sink frames = cs->tpiu.demux.sink;
    const enum tl_tpiu_sync sync = cs->tpiu.sync;
    const uint64_t size = frame_size(sync);
    cs->unaligned = (uint16_t)((size - (offset + n) % size) % size);
    tl_tpiu_init(&cs->tpiu, sync, offset + n + cs->unaligned, &frames);
    const struct tl_align_watch watch = cs->align.watch;
    tl_align_init(&cs->align, &cs->tpiu, &watch);
    return TL_OK;
}

static int report_unnamed(struct coresight *cs)
{
    uint64_t bytes = 0;
    uint64_t first = UINT64_MAX;
    unsigned n = 0;
    unsigned an_id = 0;
    for (unsigned id = 0; id < IDS; id++) {
        const struct lane *const lane = cs->lanes[id];
        if (!lane || lane->out.stream.source)
            continue;
        n++;
        bytes += lane->refused_bytes;
        if (lane->refused_at < first) {
            first = lane->refused_at;
            an_id = id;
        }
    }
    if (!n || !cs->sink.loss)
        return TL_OK;
    char text[160];
    snprintf(text, sizeof text,
             "%u trace ID%s not in the configuration (first 0x%02x); give --config or a snapshot",
             n, n > 1 ? "s are" : " is", an_id);
    /* If other streams were decoded, this is notable but not a fault. */
    const struct tl_decode_loss loss = {NULL, text, first, bytes, cs->n_streams == 0};
    return cs->sink.loss(cs->sink.context, &loss);
}

static int finish(struct tl_decode *decode)
{
    struct coresight *const cs = (struct coresight *)decode;
    int rc = cs->framed ? tl_align_finish(&cs->align) : TL_OK;
    for (unsigned id = 0; rc == TL_OK && id < IDS; id++) {
        struct lane *const lane = cs->lanes[id];
        if (lane && lane->decoder)
            rc = lane->decoder->ops->finish(lane->decoder);
        else if (lane && lane->out.stream.source && lane->refused_bytes)
            rc = tl_stream_out_loss(&lane->out, lane->refused, lane->refused_at,
                                    lane->refused_bytes);
    }
    if (rc == TL_OK)
        rc = report_unnamed(cs);
    return rc;
}

/*
 * ---- saved state -------------------------------------------------------------------------------
 */

static void lane_state(struct lane *lane, struct tl_state *s)
{
    struct tl_stream_decoder *const d = lane->decoder;
    tl_state_u64(s, &lane->given);
    tl_state_u64(s, &lane->lost);
    tl_state_bool(s, &lane->out.heard);
    tl_state_u64(s, &lane->refused_at);
    tl_state_u64(s, &lane->refused_bytes);
    if (d && d->ops->state)
        d->ops->state(d, s);
    else if (d)
        tl_state_fail(s, TL_UNSUPPORTED);
}

static void load_lane(struct coresight *cs, struct tl_state *s)
{
    uint8_t id = 0;
    struct lane *lane = NULL;
    tl_state_u8(s, &id, IDS - 1);
    tl_state_check(s, !cs->lanes[id]);
    if (s->rc >= 0)
        tl_state_fail(s, lane_of(cs, id, 0, &lane));
    if (s->rc >= 0)
        lane_state(lane, s);
}

/* Save streams by index, then the IDs that are not streams. */
static void save_lanes(struct coresight *cs, struct tl_state *s)
{
    for (uint32_t i = 0; i <= cs->n_streams; i++) {
        for (uint8_t id = 0; id < IDS; id++) {
            struct lane *const lane = cs->lanes[id];
            const uint32_t index = i < cs->n_streams ? i : UINT32_MAX;
            if (!lane || lane->out.stream.index != index)
                continue;
            tl_state_u8(s, &id, IDS - 1);
            lane_state(lane, s);
        }
    }
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct coresight *const cs = (struct coresight *)decode;
    size_t n = 0;
    for (unsigned id = 0; id < IDS; id++)
        n += cs->lanes[id] != NULL;
    tl_state_check(s, n == 0 && cs->position == 0 && cs->tpiu.raw == 0);
    tl_state_u64(s, &cs->position);
    tl_state_u16(s, &cs->unaligned);
    tl_state_check(s, cs->unaligned <= 512);
    if (cs->framed && s->rc >= 0)
        tl_align_state(&cs->align, s);
    tl_state_size(s, &n, IDS);
    for (size_t i = 0; tl_state_loads(s) && i < n && s->rc >= 0; i++)
        load_lane(cs, s);
    if (!tl_state_loads(s) && s->rc >= 0)
        save_lanes(cs, s);
    tl_state_u64(s, &cs->checked_at);
}

const struct tl_decode_ops tl_coresight_ops = {
    .name = "coresight",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
