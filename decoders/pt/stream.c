/* SPDX-License-Identifier: MIT */
/* Intel PT as a stream decoder: packets and their listing. */
#include "decode/ops.h"
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
    bool damaged;   /* the next loss is behind an error */
    uint64_t start; /* file offset of the first byte */
    struct tl_pt_packetizer packetizer;
};

static int list(struct pt_stream *s, uint64_t offset, const char *what, const char *field,
                uint64_t value)
{
    char line[TL_PT_TEXT_MAX];
    const int n =
        snprintf(line, sizeof line, "%" PRIu64 " %02x %s", s->start + offset, s->id, what);
    if (*field)
        snprintf(line + n, sizeof line - (size_t)n, " %s=%" PRIu64, field, value);
    return s->sink.packet(s->sink.context, line);
}

/* One by one: a tape has outcomes joined. */
static int on_tape(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece)
{
    struct pt_stream *const s = context;
    const struct tl_pt_config *const config = &s->packetizer.config;
    for (size_t at = piece->from; at < piece->to;) {
        struct tl_pt_packet p = {.offset = s->start + piece->base + at};
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

static int on_error(void *context, int why, uint64_t offset)
{
    struct pt_stream *const s = context;
    s->damaged = true;
    return list(s, offset,
                why == TL_AGAIN         ? "INCOMPLETE"
                : why == TL_UNSUPPORTED ? "BAD_OPCODE"
                                        : "BAD_PACKET",
                "", 0);
}

static int on_loss(void *context, uint64_t offset, uint64_t bytes)
{
    struct pt_stream *const s = context;
    const char *const why = s->damaged ? "bad packet" : TL_LOSS_NOT_SYNC;
    s->damaged = false;
    const int rc = list(s, offset, "NOT_SYNC", "bytes", bytes);
    return rc < 0 ? rc : s->sink.loss(s->sink.context, why, s->start + offset, bytes);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    if (!sink->packet)
        return tl_fail_set(fail, TL_UNSUPPORTED, "flow of Intel PT: not yet; see --packets");
    struct pt_stream *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    const struct tl_pt_packet_sink packets = {s, on_tape, on_error, on_loss};
    struct tl_pt_config config;
    tl_pt_config_init(&config, source);
    s->base.ops = &tl_pt_ops;
    s->sink = *sink;
    s->id = source ? source->id : 0;
    tl_pt_packetizer_init(&s->packetizer, &config, &packets);
    *out = &s->base;
    return TL_OK;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    if (!s->begun)
        s->start = tl_run_offset(run, 0);
    s->begun = true;
    return tl_pt_packetizer_push(&s->packetizer, (struct tl_bytes){run->p, run->n});
}

static int finish(struct tl_stream_decoder *decoder)
{
    return tl_pt_packetizer_finish(&((struct pt_stream *)decoder)->packetizer);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    free(decoder);
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *st)
{
    struct pt_stream *const s = (struct pt_stream *)decoder;
    tl_state_bool(st, &s->begun);
    tl_state_bool(st, &s->damaged);
    tl_state_u64(st, &s->start);
    tl_pt_packetizer_state(&s->packetizer, st);
}

const struct tl_stream_ops tl_pt_ops = {
    .name = "pt",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .state = state,
};
