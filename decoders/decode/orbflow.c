/* SPDX-License-Identifier: MIT */
/*
 * The container of orbuculum's connections ("orbflow"): trace of several TPIU channels in frames
 * that end with a 00. Each is a channel, 1 to 4094 bytes of it, and a byte by which the sum of all
 * is 0, encoded by COBS so that it contains no 00. Borders of frames mean nothing for packets. A
 * frame that cannot be is dropped, and its stream told; where reading begins, the first 00 is
 * waited for, unless what stands before it is a frame.
 */
#include "decode/feeds.h"
#include "decode/registry.h"

#include <stdio.h>
#include <stdlib.h>

enum { FRAME_MAX = 4096, CODED_MAX = FRAME_MAX + FRAME_MAX / 254 + 2, IDS = 128 };

static const char BAD_FRAME[] = "damaged orbflow frame";

struct orbflow {
    struct tl_decode base;
    const struct tl_setup *setup;
    struct tl_feeds feeds;
    uint64_t start; /* offset of the frame's first byte */
    uint32_t n;     /* its bytes so far, of which CODED_MAX are kept */
    bool begun;     /* a frame has ended */
    bool in_gap;    /* the streams were told of a gap, and no frame has been read behind it */
    uint8_t coded[CODED_MAX];
};

static int add_feed(struct tl_decode *decode, uint16_t id, uint64_t offset, struct tl_feed **out)
{
    struct orbflow *const o = (struct orbflow *)decode;
    struct tl_feed *const feed = calloc(1, sizeof *feed);
    if (!feed)
        return TL_NOMEM;
    *out = feed;
    feed->id = id;
    snprintf(feed->name, sizeof feed->name, "cs.%02x", id);
    return tl_feeds_add(&o->feeds, feed, tl_setup_source(o->setup, id), offset);
}

static int report_loss(struct orbflow *o, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {NULL, reason, offset, bytes, tl_loss_is_fault(reason)};
    return o->feeds.sink.loss ? o->feeds.sink.loss(o->feeds.sink.context, &loss) : TL_OK;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Decode the frame: bytes, and the place of each in it, and of the end. Returns their number; 0: it
 * is none. */
static size_t decode_frame(const struct orbflow *o, uint8_t out[static FRAME_MAX],
                           uint16_t place[static FRAME_MAX + 1])
{
    size_t n = 0;
    uint8_t sum = 0;
    if (o->n > CODED_MAX)
        return 0;
    for (uint32_t at = 0; at < o->n;) {
        const uint32_t code = o->coded[at], end = at + code;
        if (end > o->n || n + code > FRAME_MAX)
            return 0;
        for (at++; at < end; at++) {
            place[n] = (uint16_t)at;
            out[n++] = o->coded[at];
        }
        if (code < 0xff && at < o->n) {
            place[n] = (uint16_t)at;
            out[n++] = 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        sum = (uint8_t)(sum + out[i]);
    place[n] = (uint16_t)o->n;
    return n >= 3 && sum == 0 && out[0] < IDS ? n : 0;
}

static int pass_frame(struct orbflow *o, const uint8_t *bytes, const uint16_t *place, size_t n)
{
    const struct tl_run run = {bytes + 1, n - 2, o->start, place + 1};
    struct tl_feed *feed = tl_feeds_find(&o->feeds, bytes[0]);
    o->in_gap = false;
    const int rc = feed ? TL_OK : add_feed(&o->base, bytes[0], o->start, &feed);
    return rc < 0 ? rc : tl_feeds_push(&o->feeds, feed, &run);
}

/* Of which stream a damaged frame is cannot be trusted: all end, with a gap, and begin anew. */
static int drop_frame(struct orbflow *o)
{
    int rc = report_loss(o, o->begun ? BAD_FRAME : TL_LOSS_NOT_SYNC, o->start, o->n);
    if (o->in_gap)
        return rc;
    o->in_gap = true;
    if (rc >= 0)
        rc = tl_feeds_restart(&o->feeds, o->start + o->n, TL_LOSS_NO_END);
    return rc < 0 ? rc : tl_feeds_report_gap(&o->feeds, o->start, NULL);
}

/* A frame without end, for this reason. */
static int drop_begun(struct orbflow *o, const char *cut)
{
    return o->n ? report_loss(o, o->begun ? cut : TL_LOSS_NOT_SYNC, o->start, o->n) : TL_OK;
}

static int end_frame(struct orbflow *o)
{
    uint8_t bytes[FRAME_MAX];
    uint16_t place[FRAME_MAX + 1];
    if (o->n == 0)
        return TL_OK;
    const size_t n = decode_frame(o, bytes, place);
    const int rc = n ? pass_frame(o, bytes, place, n) : drop_frame(o);
    o->begun = true;
    return rc;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct orbflow *const o = (struct orbflow *)decode;
    int rc = TL_OK;
    for (size_t i = 0; i < n && rc >= 0; i++) {
        if (p[i]) {
            if (o->n < CODED_MAX)
                o->coded[o->n] = p[i];
            o->n++;
            continue;
        }
        rc = end_frame(o);
        o->start += o->n + 1;
        o->n = 0;
    }
    return rc < 0 || o->base.share.crew ? rc : tl_feeds_flush(&o->feeds);
}

/* ---- tl_decode_ops --------------------------------------------------------------------------- */

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct orbflow *const o = calloc(1, sizeof *o);
    if (!o)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    o->base.ops = &tl_orbflow_ops;
    o->setup = setup;
    o->feeds =
        (struct tl_feeds){.decode = &o->base, .image = image, .sink = *sink, .add = add_feed};
    *out = &o->base;
    return TL_OK;
}

static void destroy(struct tl_decode *decode)
{
    struct orbflow *const o = (struct orbflow *)decode;
    if (o)
        tl_feeds_fini(&o->feeds);
    free(o);
}

static int flush(struct tl_decode *decode)
{
    return tl_feeds_flush(&((struct orbflow *)decode)->feeds);
}

static int finish(struct tl_decode *decode)
{
    struct orbflow *const o = (struct orbflow *)decode;
    const int rc = drop_begun(o, TL_LOSS_CUT_OFF);
    return rc < 0 ? rc : tl_feeds_finish(&o->feeds);
}

static int lost(struct tl_decode *decode, const struct tl_decode_hole *hole)
{
    struct orbflow *const o = (struct orbflow *)decode;
    const uint64_t offset = o->start + o->n;
    int rc = drop_begun(o, TL_LOSS_NO_END);
    if (rc >= 0)
        rc = tl_feeds_restart(&o->feeds, offset + hole->n, TL_LOSS_NO_END);
    if (rc >= 0)
        rc = report_loss(o, hole->reason, offset, hole->n);
    if (rc >= 0)
        rc = tl_feeds_report_gap(&o->feeds, offset, hole->note);
    o->start = offset + hole->n;
    o->n = 0;
    o->begun = false;
    o->in_gap = true;
    return rc;
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct orbflow *const o = (struct orbflow *)decode;
    tl_state_check(s, o->start == 0 && o->n == 0);
    tl_state_u64(s, &o->start);
    tl_state_u32(s, &o->n);
    tl_state_bool(s, &o->begun);
    tl_state_bool(s, &o->in_gap);
    if (s->rc >= 0)
        tl_state_bytes(s, o->coded, o->n < CODED_MAX ? o->n : CODED_MAX);
    tl_feeds_state(&o->feeds, s);
    for (uint32_t i = 0; i < o->feeds.n; i++)
        tl_state_check(s, o->feeds.v[i]->id < IDS);
}

static size_t bytes(struct tl_decode *decode)
{
    return sizeof(struct orbflow) + tl_feeds_bytes(&((struct orbflow *)decode)->feeds);
}

const struct tl_decode_ops tl_orbflow_ops = {
    .bytes = bytes,
    .name = "orbflow",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
