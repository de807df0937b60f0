/* SPDX-License-Identifier: MIT */
/*
 * Intel PT as a stream decoder: packets, their listing, and flow. Here is also how a stream is
 * split for several threads: at PSB, after whose PSB+ nothing earlier matters.
 */
#include "decode/ops.h"
#include "pt/flow.h"
#include "pt/packet_text.h"
#include "pt/packetizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct pt_stream {
    struct tl_stream_decoder base;
    struct tl_stream_sink sink;
    unsigned id;
    bool begun;
    bool damaged;    /* the next loss follows an error */
    const char *cut; /* at the end: why a packet is not complete */
    struct tl_pt_config config;
    struct tl_pt_flow *flow; /* NULL: only list packets */
    struct tl_pt_packetizer packetizer;
};

static int list(struct pt_stream *s, uint64_t offset, const char *what, const char *field,
                uint64_t value)
{
    char line[TL_PT_TEXT_MAX];
    const int n = snprintf(line, sizeof line, "%" PRIu64 " %02x %s", offset, s->id, what);
    if (*field)
        snprintf(line + n, sizeof line - (size_t)n, " %s=%" PRIu64, field, value);
    return s->sink.packet(s->sink.context, line);
}

/* List packets individually, since a tape joins outcomes. */
static int list_piece(struct pt_stream *s, const struct tl_pt_piece *piece)
{
    const struct tl_pt_config *const config = &s->packetizer.config;
    for (size_t at = piece->from; at < piece->to;) {
        struct tl_pt_packet p = {.offset = piece->base + at};
        char line[TL_PT_TEXT_MAX];
        const struct tl_bytes rest = {piece->bytes.p + at, piece->bytes.n - at};
        const int size = tl_pt_parse(config, rest, &p);
        if (size <= 0)
            break;
        tl_pt_packet_text(line, &p, s->id);
        const int rc = s->sink.packet(s->sink.context, line);
        if (rc < 0)
            return rc;
        at += (size_t)size;
    }
    return TL_OK;
}

static int on_tape(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece)
{
    struct pt_stream *const s = context;
    const int rc = s->sink.packet ? list_piece(s, piece) : TL_OK;
    return rc < 0 || !s->flow ? rc : tl_pt_flow_tape(s->flow, tape, piece);
}

static int on_error(void *context, int why, uint64_t offset)
{
    struct pt_stream *const s = context;
    const char *const name = why == TL_AGAIN         ? "INCOMPLETE"
                             : why == TL_UNSUPPORTED ? "BAD_OPCODE"
                                                     : "BAD_PACKET";
    s->damaged = true;
    const int rc = s->sink.packet ? list(s, offset, name, "", 0) : TL_OK;
    if (rc < 0)
        return rc;
    if (why == TL_AGAIN)
        return s->sink.loss(s->sink.context, s->cut, offset, s->packetizer.end - offset);
    return s->flow ? tl_pt_flow_bad(s->flow, offset) : TL_OK;
}

static int on_loss(void *context, uint64_t offset, uint64_t bytes)
{
    struct pt_stream *const s = context;
    const char *const why = s->damaged ? "bad packet" : TL_LOSS_NOT_SYNC;
    const bool reported = s->damaged && s->flow; /* the flow reports it, when it resumes */
    s->damaged = false;
    const int rc = s->sink.packet ? list(s, offset, "NOT_SYNC", "bytes", bytes) : TL_OK;
    return rc < 0 || reported ? rc : s->sink.loss(s->sink.context, why, offset, bytes);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    if (!s)
        return;
    tl_pt_flow_free(s->flow);
    free(s);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct pt_stream *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    const struct tl_pt_packet_sink packets = {s, on_tape, on_error, on_loss};
    tl_pt_config_init(&s->config, source);
    s->base.ops = &tl_pt_ops;
    s->sink = *sink;
    s->id = source ? source->id : 0;
    tl_pt_packetizer_init(&s->packetizer, &s->config, &packets);
    if (tl_pt_flow_new(&s->flow, &s->config, image, sink->items, sink->loss, sink->context,
                       sink->paths) < 0) {
        destroy(&s->base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    }
    tl_walker_code(tl_pt_flow_walker(s->flow), sink->code);
    *out = &s->base;
    return TL_OK;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    const uint64_t offset = tl_run_offset(run, 0);
    if (!s->begun) {
        tl_pt_packetizer_begin(&s->packetizer, offset);
    } else if (offset != s->packetizer.end) { /* the stream continues elsewhere in the file */
        tl_pt_flow_move(s->flow, offset - s->packetizer.end);
        tl_pt_packetizer_move(&s->packetizer, offset);
    }
    s->begun = true;
    return tl_pt_packetizer_push(&s->packetizer, (struct tl_bytes){run->p, run->n});
}

static int notify(struct tl_stream_decoder *decoder, const struct tl_stream_notice *notice)
{
    return tl_pt_flow_notice(((struct pt_stream *)decoder)->flow, notice);
}

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_pt_flow_flush(((struct pt_stream *)decoder)->flow);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    s->cut = cut;
    const int rc = tl_pt_packetizer_finish(&s->packetizer);
    return rc < 0 ? rc : tl_pt_flow_finish(s->flow, s->packetizer.end);
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *st)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    tl_state_bool(st, &s->begun);
    tl_state_bool(st, &s->damaged);
    tl_pt_packetizer_state(&s->packetizer, st);
    tl_pt_flow_state(s->flow, st);
}

/*
 * ---- multi-threaded decoding -------------------------------------------------------------------
 */

static size_t find_sync(const uint8_t *p, size_t n)
{
    return tl_pt_find_psb((struct tl_bytes){p, n});
}

/*
 * The end of PSB+ or, if it has no address, since tracing is off there, of the first branch after
 * it. With CYC packets also the cycle calibration must be repeated: it follows from the cycles
 * between two MTC, i.e. after the second MTC and the branch that reports its time; or, without MTC,
 * from those between two TSC, i.e. after the next PSB+.
 */
static size_t find_rest(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n)
{
    /* Number of packets after which a trace with CYC packets must have shown one. */
    enum { FEW = 32 };
    const struct pt_stream *const s = (const struct pt_stream *)decoder;
    struct tl_pt_packet packet = {0};
    bool has_ip = false, counts = false, has_mtc = false, exact = false;
    uint64_t cycles = 0; /* since an MTC */
    size_t rest = n, after = 0;
    for (size_t at = 0; at < n && (counts || after < FEW); after += rest < n) {
        packet.offset = at;
        const int size = tl_pt_parse(&s->config, (struct tl_bytes){p + at, n - at}, &packet);
        if (size <= 0)
            break;
        at += (size_t)size;
        switch (packet.kind) {
        case TL_PT_CYC:
            counts = true;
            cycles += has_mtc ? packet.cyc : 0;
            break;
        case TL_PT_MTC:
            exact |= cycles > 0 && rest < n;
            has_mtc = true;
            break;
        case TL_PT_TNT_8:
        case TL_PT_TNT_64:
        case TL_PT_TIP:
            if (exact)
                return at;
            rest = rest == n ? at : rest;
            break;
        case TL_PT_PSBEND:
            if (counts && !has_mtc)
                return at;
            rest = rest == n && has_ip ? at : rest;
            break;
        case TL_PT_FUP:
            has_ip = true;
            break;
        default:
            break;
        }
    }
    return counts ? n : rest;
}

static void reset(struct tl_stream_decoder *decoder)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    const struct tl_pt_packet_sink packets = {s, on_tape, on_error, on_loss};
    s->begun = s->damaged = false;
    tl_pt_packetizer_init(&s->packetizer, &s->config, &packets);
    tl_pt_flow_reset(s->flow);
}

static struct tl_walker *walker(struct tl_stream_decoder *decoder)
{
    return tl_pt_flow_walker(((struct pt_stream *)decoder)->flow);
}

static const struct tl_split_ops split = {
    .find_sync = find_sync, .find_rest = find_rest, .reset = reset, .walker = walker};

const struct tl_stream_ops tl_pt_ops = {
    .name = "pt",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .split = &split,
    .notify = notify,
};
