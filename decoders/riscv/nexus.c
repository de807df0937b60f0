/* SPDX-License-Identifier: MIT */
/*
 * The container of Nexus messages: to a stream decoder per source (SRC), whole messages at a time.
 * Without SRC fields there is one source. A fault in one stream never affects another.
 *
 * Messages are delimited by their ends only; errors inside them are found by the stream decoder.
 */
#include "decode/registry.h"
#include "decode/stream_out.h"
#include "riscv/nexus_message.h"

#include <stdio.h>
#include <stdlib.h>

enum { SOURCES = 1 << TL_NEXUS_SRC_BITS_MAX, HEAD = 3 /* bytes up to the end of SRC */ };

/* A source. */
struct lane {
    struct tl_stream_out out;          /* must be first */
    struct tl_source source;           /* as configured, or by default */
    struct tl_stream_decoder *decoder; /* NULL: not supported, bytes are only counted */
    char refused[160];                 /* why there is no decoder */
    uint64_t refused_at, refused_bytes;
};

struct nexus {
    struct tl_decode base;
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_decode_sink sink;
    unsigned src_bits;
    uint32_t n_streams;
    uint16_t order[SOURCES]; /* sources by stream index */
    struct lane *lanes[SOURCES];
    uint64_t position;
    bool inside;   /* in a message */
    bool is_known; /* its source is known: `lane`, NULL for one that is no stream */
    struct lane *lane;
    uint8_t head[HEAD]; /* of a message whose source is not known yet */
    uint8_t n_head;
    uint64_t unnamed, unnamed_at; /* bytes of sources that are no streams */
};

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The source as configured; NULL: it is not. */
static const struct tl_source *configured(const struct nexus *x, unsigned src)
{
    if (x->src_bits == 0 && x->setup->n_sources == 1)
        return &x->setup->sources[0];
    return tl_setup_source(x->setup, src);
}

static void fill_source(const struct nexus *x, unsigned src, struct tl_source *out)
{
    const struct tl_source *const given = configured(x, src);
    const bool sifive = !strncmp(x->setup->format, "nexus-sifive", 12);
    *out = given ? *given : (struct tl_source){.id = (uint16_t)src};
    if (out->protocol == TL_PROTO_NONE)
        out->protocol = sifive ? TL_PROTO_NEXUS_SIFIVE : TL_PROTO_N_TRACE;
    if (!out->name[0])
        snprintf(out->name, sizeof out->name, "nt.%u", src);
    if (!out->core[0] && x->image && tl_image_is_narrow(x->image))
        snprintf(out->core, sizeof out->core, "rv32");
    out->vmid = tl_setup_source_vmid(x->setup, out->id);
    (void)!tl_source_set_reg(out, "trTeSrcBits", x->src_bits);
}

static int make_decoder(struct nexus *x, struct lane *lane, uint64_t offset)
{
    struct tl_fail fail = {.text = "cannot be decoded"};
    const int rc = tl_stream_out_decoder(&lane->out, &x->base, x->image, &lane->decoder, &fail);
    if (rc == TL_NOMEM || rc == TL_OK)
        return rc;
    snprintf(lane->refused, sizeof lane->refused, "%.150s", fail.text);
    lane->refused_at = offset;
    return TL_OK;
}

static int new_lane(struct nexus *x, unsigned src, uint64_t offset)
{
    struct lane *const lane = x->lanes[src] = calloc(1, sizeof *lane);
    if (!lane)
        return TL_NOMEM;
    x->order[x->n_streams] = (uint16_t)src;
    fill_source(x, src, &lane->source);
    lane->out.sink = &x->sink;
    lane->out.stream = (struct tl_decode_stream){
        .index = x->n_streams++,
        .name = lane->source.name,
        .protocol = (enum tl_protocol)lane->source.protocol,
        .source = &lane->source,
    };
    lane->out.stream.isa = tl_source_isa(lane->out.stream.protocol, &lane->source);
    const int rc = make_decoder(x, lane, offset);
    return rc < 0 || !x->sink.stream ? rc : x->sink.stream(x->sink.context, &lane->out.stream);
}

/*
 * The lane of the message that begins with `tcode`; NULL: it is no stream. Sources are streams if
 * they are configured; without a configuration, from their first message with SYNC on, so that
 * damaged bytes make no streams.
 */
static int find_lane(struct nexus *x, unsigned src, uint8_t tcode, uint64_t offset)
{
    const bool listed = x->setup->n_sources > 0 ? configured(x, src) != NULL
                                                : tl_nexus_is_sync(tcode) || x->src_bits == 0;
    const int rc = !x->lanes[src] && listed ? new_lane(x, src, offset) : TL_OK;
    x->lane = x->lanes[src];
    x->is_known = true;
    return rc;
}

static int give(struct nexus *x, const uint8_t *p, size_t n, uint64_t offset)
{
    struct lane *const lane = x->lane;
    const struct tl_run run = {p, n, offset, NULL};
    if (!lane) {
        x->unnamed_at = x->unnamed ? x->unnamed_at : offset;
        x->unnamed += n;
        return TL_OK;
    }
    if (!lane->decoder) {
        lane->refused_bytes += n;
        return TL_OK;
    }
    const int rc = x->sink.bytes ? x->sink.bytes(x->sink.context, &lane->out.stream, &run) : TL_OK;
    return rc < 0 ? rc : lane->decoder->ops->push(lane->decoder, &run);
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
    const unsigned src = tl_nexus_source((struct tl_bytes){x->head, n}, x->src_bits);
    x->n_head = 0;
    x->inside = !ends;
    const int rc = find_lane(x, src, x->head[0] >> 2, start);
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

static int push_bytes(struct nexus *x, const uint8_t *p, size_t n)
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
        const size_t some = to_end(p + i, n - i);
        x->inside = TL_NEXUS_MSEO(p[i + some - 1]) != TL_NEXUS_MESSAGE_END;
        rc = give(x, p + i, some, offset);
        i += some;
    }
    x->position += n;
    return rc;
}

/* ---- tl_decode_ops -----------------------------------------------------------------------------
 */

static void destroy(struct tl_decode *decode)
{
    struct nexus *const x = (struct nexus *)decode;
    for (unsigned src = 0; x && src < SOURCES; src++) {
        if (x->lanes[src] && x->lanes[src]->decoder)
            x->lanes[src]->decoder->ops->destroy(x->lanes[src]->decoder);
        free(x->lanes[src]);
    }
    free(x);
}

/* As the format says, else as the sources' registers do. */
static unsigned find_src_bits(const struct tl_setup *setup)
{
    uint64_t bits = 0;
    if (setup->src_bits != TL_SETUP_UNSAID)
        return setup->src_bits;
    for (size_t i = 0; i < setup->n_sources; i++) {
        const uint64_t one = tl_source_reg(&setup->sources[i], "trTeSrcBits", 0);
        bits = one > bits && one <= TL_NEXUS_SRC_BITS_MAX ? one : bits;
    }
    return (unsigned)bits;
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct nexus *const x = calloc(1, sizeof *x);
    if (!x)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    x->base.ops = &tl_nexus_ops;
    x->setup = setup;
    x->image = image;
    x->sink = *sink;
    x->src_bits = find_src_bits(setup);
    *out = &x->base;
    return TL_OK;
}

static struct lane *lane_at(const struct nexus *x, uint32_t stream)
{
    return x->lanes[x->order[stream]];
}

static int flush(struct tl_decode *decode)
{
    const struct nexus *const x = (struct nexus *)decode;
    int rc = TL_OK;
    for (uint32_t i = 0; i < x->n_streams && rc == TL_OK; i++) {
        struct tl_stream_decoder *const d = lane_at(x, i)->decoder;
        if (d)
            rc = d->ops->flush(d);
    }
    return rc;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct nexus *const x = (struct nexus *)decode;
    const int rc = push_bytes(x, p, n);
    return rc < 0 || x->base.share.crew ? rc : flush(decode);
}

/* A message that is not complete enough to know its source. */
static void drop_head(struct nexus *x)
{
    for (uint8_t i = 0; i < x->n_head; i++)
        if (x->head[i] != 0) { /* not the zeros of memory that was not written */
            x->unnamed_at = x->unnamed ? x->unnamed_at : x->position - x->n_head;
            x->unnamed += x->n_head;
            break;
        }
    x->n_head = 0;
    x->inside = false;
}

static int lost(struct tl_decode *decode, uint64_t n)
{
    struct nexus *const x = (struct nexus *)decode;
    const uint64_t offset = x->position;
    const struct tl_decode_loss loss = {NULL, TL_LOSS_STORED, offset, n, true};
    int rc = x->sink.loss ? x->sink.loss(x->sink.context, &loss) : TL_OK;
    drop_head(x);
    x->position += n;
    for (uint32_t i = 0; i < x->n_streams && rc == TL_OK; i++) {
        struct lane *const lane = lane_at(x, i);
        const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = TL_GAP_TRANSPORT, .offset = offset};
        if (!lane->decoder)
            continue;
        rc = lane->decoder->ops->finish(lane->decoder);
        lane->decoder->ops->destroy(lane->decoder);
        lane->decoder = NULL;
        if (rc == TL_OK)
            rc = make_decoder(x, lane, x->position);
        if (rc == TL_OK)
            rc = tl_stream_out_items(&lane->out, &gap, 1);
    }
    return rc;
}

static int report_unnamed(const struct nexus *x)
{
    const struct tl_decode_loss loss = {
        NULL,
        x->setup->n_sources > 0 ? "messages of sources that are not in the configuration"
                                : TL_LOSS_NOT_SYNC,
        x->unnamed_at, x->unnamed, x->n_streams == 0};
    return x->unnamed && x->sink.loss ? x->sink.loss(x->sink.context, &loss) : TL_OK;
}

static int finish(struct tl_decode *decode)
{
    struct nexus *const x = (struct nexus *)decode;
    int rc = TL_OK;
    drop_head(x);
    for (uint32_t i = 0; i < x->n_streams && rc == TL_OK; i++) {
        struct lane *const lane = lane_at(x, i);
        if (lane->decoder)
            rc = lane->decoder->ops->finish(lane->decoder);
        else if (lane->refused_bytes)
            rc = tl_stream_out_loss(&lane->out, lane->refused, lane->refused_at,
                                    lane->refused_bytes);
    }
    return rc < 0 ? rc : report_unnamed(x);
}

static void lane_state(struct nexus *x, uint32_t stream, struct tl_state *s)
{
    uint16_t src = x->order[stream];
    tl_state_u16(s, &src);
    tl_state_check(s, src < 1u << x->src_bits && !x->lanes[src]);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, new_lane(x, src, 0));
    if (s->rc < 0)
        return;
    struct lane *const lane = x->lanes[src];
    tl_state_u64(s, &lane->refused_at);
    tl_state_u64(s, &lane->refused_bytes);
    if (lane->decoder)
        lane->decoder->ops->state(lane->decoder, s);
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct nexus *const x = (struct nexus *)decode;
    uint32_t n = x->n_streams;
    uint16_t src = 0;
    bool has_lane = x->inside && x->is_known && x->lane;
    tl_state_u32(s, &n);
    tl_state_check(s, n <= 1u << x->src_bits && x->n_streams == 0);
    for (uint32_t i = 0; i < n && s->rc >= 0; i++)
        lane_state(x, i, s);
    while (has_lane && x->lanes[src] != x->lane)
        src++;
    tl_state_u64(s, &x->position);
    tl_state_bool(s, &x->inside);
    tl_state_bool(s, &x->is_known);
    tl_state_bool(s, &has_lane);
    tl_state_u16(s, &src);
    tl_state_check(s, src < SOURCES && (!has_lane || x->lanes[src]));
    if (tl_state_loads(s) && s->rc >= 0)
        x->lane = has_lane ? x->lanes[src] : NULL;
    tl_state_u8(s, &x->n_head, HEAD - 1);
    tl_state_bytes(s, x->head, x->n_head);
    tl_state_u64(s, &x->unnamed);
    tl_state_u64(s, &x->unnamed_at);
}

const struct tl_decode_ops tl_nexus_ops = {
    .name = "nexus",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = state,
    .lost = lost,
};
