/* SPDX-License-Identifier: MIT */
/*
 * The container of Nexus messages: to a stream decoder per source (SRC), whole messages at a time.
 * Without SRC fields there is one source. A fault in one stream never affects another.
 *
 * Messages are delimited by their ends only; errors inside them are found by the stream decoder.
 */
#include "decode/feeds.h"
#include "riscv/nexus_message.h"
#include "riscv/source.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEAD = 3 /* bytes up to the end of SRC */ };

static const char NO_SYNC[] =
    "no message with SYNC: another format, or another width of SRC (src_bits=)";

struct nexus {
    struct tl_decode base;
    const struct tl_setup *setup;
    struct tl_feeds feeds;
    unsigned src_bits;
    uint64_t position;
    bool inside;   /* in a message */
    bool is_known; /* its source is known: `feed`, NULL for one that is no stream yet */
    struct tl_feed *feed;
    uint8_t head[HEAD]; /* of a message whose source is not known yet */
    uint8_t n_head;
    uint64_t early, early_at; /* bytes of sources that are no streams yet */
};

/* ---- sources --------------------------------------------------------------------------------- */

static int add_source(struct tl_decode *decode, uint16_t src, uint64_t offset, struct tl_feed **out)
{
    struct nexus *const x = (struct nexus *)decode;
    const bool sifive = !strncmp(x->setup->format, "nexus-sifive", 12);
    struct tl_source otherwise = {.id = src,
                                  .protocol = sifive ? TL_PROTO_NEXUS_SIFIVE : TL_PROTO_N_TRACE};
    snprintf(otherwise.name, sizeof otherwise.name, "nt.%u", src);
    (void)!tl_source_set_reg(&otherwise, "trTeSrcBits", x->src_bits);
    (void)!tl_source_set_reg(&otherwise, "trTeInhibitSrc", 0);
    return tl_riscv_add_source(&x->feeds, x->setup, x->src_bits, &otherwise, offset, out);
}

/*
 * Find the feed of the message that begins with `tcode`; NULL: there is none yet. Without a
 * configuration sources are streams from their first message with SYNC on, so that damaged bytes
 * make no streams.
 */
static int find_feed(struct nexus *x, uint16_t src, uint8_t tcode, uint64_t offset)
{
    const bool appears = x->setup->n_sources > 0 || tl_nexus_is_sync(tcode);
    x->feed = tl_feeds_find(&x->feeds, src);
    x->is_known = true;
    return x->feed || !appears ? TL_OK : add_source(&x->base, src, offset, &x->feed);
}

static int give(struct nexus *x, const uint8_t *p, size_t n, uint64_t offset)
{
    if (x->feed)
        return tl_feeds_push(&x->feeds, x->feed, &(struct tl_run){p, n, offset, NULL});
    x->early_at = x->early ? x->early_at : offset;
    x->early += n;
    return TL_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The next byte of a message whose source is not known yet. */
static int take_head(struct nexus *x, uint8_t byte, uint64_t offset)
{
    x->head[x->n_head++] = byte;
    const bool ends = TL_NEXUS_MSEO(byte) == TL_NEXUS_MESSAGE_END;
    if (!ends && 6u * x->n_head < 6 + x->src_bits)
        return TL_OK;
    const size_t n = x->n_head;
    const uint64_t start = offset + 1 - n;
    const uint16_t src = (uint16_t)tl_nexus_source((struct tl_bytes){x->head, n}, x->src_bits);
    x->n_head = 0;
    x->inside = !ends;
    const int rc = find_feed(x, src, x->head[0] >> 2, start);
    return rc < 0 ? rc : give(x, x->head, n, start);
}

/* Bytes up to and including the end of a message; all `n` if there is none. */
static size_t to_end(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (TL_NEXUS_MSEO(p[i]) == TL_NEXUS_MESSAGE_END)
            return i + 1;
    return n;
}

/* Bytes of complete messages of the same source, with idle bytes, which its decoder ignores. */
static size_t more_of_feed(const struct nexus *x, const uint8_t *p, size_t n)
{
    size_t at = 0;
    while (x->feed && x->feed->decoder && at < n) {
        const size_t size = to_end(p + at, n - at);
        const struct tl_bytes message = {p + at, size};
        const bool idle = size == 1;
        if (TL_NEXUS_MSEO(p[at + size - 1]) != TL_NEXUS_MESSAGE_END ||
            (!idle && tl_nexus_source(message, x->src_bits) != x->feed->id))
            break;
        at += size;
    }
    return at;
}

static int push_sources(struct nexus *x, const uint8_t *p, size_t n)
{
    int rc = TL_OK;
    for (size_t i = 0; i < n && rc == TL_OK;) {
        const uint64_t offset = x->position + i;
        if (!x->inside && TL_NEXUS_MSEO(p[i]) == TL_NEXUS_MESSAGE_END) {
            i++; /* idle */
            continue;
        }
        if (!x->inside) {
            x->inside = true;
            x->is_known = false;
        }
        if (!x->is_known) {
            rc = take_head(x, p[i++], offset);
            continue;
        }
        size_t some = to_end(p + i, n - i);
        x->inside = TL_NEXUS_MSEO(p[i + some - 1]) != TL_NEXUS_MESSAGE_END;
        if (!x->inside)
            some += more_of_feed(x, p + i + some, n - i - some);
        rc = give(x, p + i, some, offset);
        i += some;
    }
    return rc;
}

/* Everything is of one source, which appears with the first message. */
static int push_source(struct nexus *x, const uint8_t *p, size_t n)
{
    size_t idle = 0;
    while (!x->feed && idle < n && TL_NEXUS_MSEO(p[idle]) == TL_NEXUS_MESSAGE_END)
        idle++;
    if (idle == n)
        return TL_OK;
    const int rc = x->feed ? TL_OK : add_source(&x->base, 0, x->position + idle, &x->feed);
    return rc < 0 ? rc : give(x, p + idle, n - idle, x->position + idle);
}

/* ---- tl_decode_ops --------------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct nexus *const x = (struct nexus *)decode;
    if (x)
        tl_feeds_fini(&x->feeds);
    free(x);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    const unsigned src_bits = tl_riscv_capture_src_bits(setup);
    if (src_bits > TL_NEXUS_SRC_BITS_MAX)
        return tl_fail_set(fail, TL_UNSUPPORTED, "trTeSrcBits=%u: there are at most %u", src_bits,
                           TL_NEXUS_SRC_BITS_MAX);
    struct nexus *const x = calloc(1, sizeof *x);
    if (!x)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    x->base.ops = &tl_nexus_ops;
    x->setup = setup;
    x->feeds =
        (struct tl_feeds){.decode = &x->base, .image = image, .sink = *sink, .add = add_source};
    x->src_bits = src_bits;
    *out = &x->base;
    return TL_OK;
}

static int flush(struct tl_decode *decode)
{
    return tl_feeds_flush(&((struct nexus *)decode)->feeds);
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct nexus *const x = (struct nexus *)decode;
    const int rc = x->src_bits > 0 ? push_sources(x, p, n) : push_source(x, p, n);
    x->position += n;
    return rc < 0 || x->base.share.crew ? rc : flush(decode);
}

static int report_loss(const struct nexus *x, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {NULL, reason, offset, bytes, tl_loss_is_fault(reason)};
    return x->feeds.sink.loss ? x->feeds.sink.loss(x->feeds.sink.context, &loss) : TL_OK;
}

/* A message that ends before its source is known, for this reason, unless it is memory that was not
 * written. */
static int drop_head(struct nexus *x, const char *reason)
{
    bool zeros = true;
    for (uint8_t i = 0; i < x->n_head; i++)
        zeros &= x->head[i] == 0;
    const uint8_t n = zeros ? 0 : x->n_head;
    x->n_head = 0;
    x->inside = false;
    return n ? report_loss(x, reason, x->position - n, n) : TL_OK;
}

static int lost(struct tl_decode *decode, const struct tl_decode_hole *hole)
{
    struct nexus *const x = (struct nexus *)decode;
    const uint64_t offset = x->position;
    int rc = drop_head(x, TL_LOSS_NO_END);
    x->position += hole->n;
    if (rc == TL_OK)
        rc = report_loss(x, hole->reason, offset, hole->n);
    if (rc == TL_OK)
        rc = tl_feeds_restart(&x->feeds, x->position, TL_LOSS_NO_END);
    return rc < 0 ? rc : tl_feeds_report_gap(&x->feeds, offset, hole->note);
}

static int finish(struct tl_decode *decode)
{
    struct nexus *const x = (struct nexus *)decode;
    int rc = drop_head(x, TL_LOSS_CUT_OFF);
    if (rc == TL_OK)
        rc = tl_feeds_finish(&x->feeds);
    const char *const reason = x->feeds.n_streams > 0 ? TL_LOSS_NOT_SYNC : NO_SYNC;
    return rc < 0 || x->early == 0 ? rc : report_loss(x, reason, x->early_at, x->early);
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct nexus *const x = (struct nexus *)decode;
    uint16_t src = x->feed ? x->feed->id : 0;
    bool has_feed = x->feed && (x->src_bits == 0 || (x->inside && x->is_known));
    tl_feeds_state(&x->feeds, s);
    tl_state_u64(s, &x->position);
    tl_state_bool(s, &x->inside);
    tl_state_bool(s, &x->is_known);
    tl_state_bool(s, &has_feed);
    tl_state_u16(s, &src);
    if (tl_state_loads(s) && has_feed)
        x->feed = tl_feeds_find(&x->feeds, src);
    tl_state_check(s, !has_feed || x->feed);
    tl_state_u8(s, &x->n_head, HEAD - 1);
    tl_state_bytes(s, x->head, x->n_head);
    tl_state_u64(s, &x->early);
    tl_state_u64(s, &x->early_at);
}

static size_t bytes(struct tl_decode *decode)
{
    return sizeof(struct nexus) + tl_feeds_bytes(&((struct nexus *)decode)->feeds);
}

const struct tl_decode_ops tl_nexus_ops = {
    .bytes = bytes,
    .name = "nexus",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
