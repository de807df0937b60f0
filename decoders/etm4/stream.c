/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 and ETE as a stream decoder: packets, their listing, and flow. Here is also how a stream is
 * split for several threads: at an A-Sync followed by trace info, after which the trace repeats all
 * that it assumes.
 */
#include "decode/ops.h"
#include "etm4/flow.h"
#include "etm4/packet_text.h"
#include "etm4/packetizer.h"
#include "etm4/parse.h"
#include "flow/walker.h"

#include <stdlib.h>

struct etm4_stream {
    struct tl_stream_decoder base;
    struct tl_stream_sink sink;
    struct tl_etm4_config config;
    bool needs_time;           /* parts begin with a timestamp, which all that follows needs */
    uint64_t end;              /* offset after the last byte */
    struct tl_etm4_flow *flow; /* NULL: only list packets */
    struct tl_etm4_packetizer packetizer;
};

static int list(const struct etm4_stream *s, const struct tl_etm4_tape *tape)
{
    struct tl_etm4_tape_place place = {0};
    while (place.packet < tape->n) {
        struct tl_etm4_packet packet;
        char line[TL_ETM4_TEXT_MAX];
        tl_etm4_tape_next(tape, &place, &packet);
        tl_etm4_packet_text(line, &packet, s->config.trace_id);
        const int rc = s->sink.packet(s->sink.context, line);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static int on_tape(void *context, const struct tl_etm4_tape *tape)
{
    struct etm4_stream *s = context;
    const int rc = s->sink.packet ? list(s, tape) : TL_OK;
    return rc < 0 || !s->flow ? rc : tl_etm4_flow_tape(s->flow, tape);
}

static void destroy(struct tl_stream_decoder *decoder)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    if (!s)
        return;
    tl_etm4_flow_free(s->flow);
    free(s);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_etm4_config config;
    tl_etm4_config_init(&config, source);
    const int usable = tl_etm4_config_check(&config, fail);
    if (usable < 0 && !sink->packet)
        return usable;
    struct etm4_stream *s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    s->base.ops = &tl_etm4_ops;
    s->sink = *sink;
    s->config = config;
    s->needs_time = config.timestamps;
    int rc = TL_OK;
    if (usable == TL_OK)
        rc = tl_etm4_flow_new(&s->flow, &config, image, sink->items, sink->loss, sink->context);
    if (rc < 0) {
        destroy(&s->base);
        return tl_fail_set(fail, rc, "out of memory for a decoder");
    }
    if (s->flow)
        tl_etm4_flow_sink(s->flow, sink->paths, sink->code);
    tl_etm4_packetizer_init_tape(&s->packetizer, &config, on_tape, s);
    *out = &s->base;
    return TL_OK;
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    const int rc = tl_etm4_packetizer_push(&s->packetizer, run);
    if (rc < 0)
        return rc;
    s->end = tl_run_offset(run, run->n);
    return s->flow ? tl_etm4_flow_pause(s->flow) : TL_OK;
}

static int flush(struct tl_stream_decoder *decoder)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    return s->flow ? tl_etm4_flow_flush(s->flow) : TL_OK;
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    uint64_t offset;
    const size_t begun = tl_etm4_packetizer_begun(&s->packetizer, &offset);
    int rc = tl_etm4_packetizer_finish(&s->packetizer);
    if (rc >= 0 && s->flow)
        rc = tl_etm4_flow_finish(s->flow, s->end);
    return rc < 0 || !begun ? rc : s->sink.loss(s->sink.context, cut, offset, begun);
}

static void state(struct tl_stream_decoder *decoder, struct tl_state *state)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    tl_state_u64(state, &s->end);
    tl_etm4_packetizer_state(&s->packetizer, state);
    if (s->flow)
        tl_etm4_flow_state(s->flow, state);
}

/*
 * ---- multi-threaded decoding -------------------------------------------------------------------
 */

/* A-Sync followed by the trace info header. */
static const uint8_t SYNC[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x01};

#define GRID 32u /* step size in bytes of the search for A-Syncs */

static size_t find_sync_in(const uint8_t *p, size_t at, size_t end, size_t n)
{
    const uint8_t *const found = at < end ? memmem(p + at, end - at, SYNC, sizeof SYNC) : NULL;
    return found ? (size_t)(found - p) : n;
}

/* Is one of the 4-byte words at bytes 0, 8, 16 and 24 zero? Only zero minus one has bit 63 set. */
static inline bool has_zeros(const uint8_t *b)
{
    const uint64_t first = (uint64_t)tl_le32(b) - 1, second = (uint64_t)tl_le32(b + 8) - 1;
    const uint64_t third = (uint64_t)tl_le32(b + 16) - 1, fourth = (uint64_t)tl_le32(b + 24) - 1;
    return (first | second | third | fourth) >> 63;
}

/* The zeros of an A-Sync at any position contain one of these words. */
static size_t find_sync(const uint8_t *p, size_t n)
{
    size_t i = 0;
    for (; n - i >= GRID; i += GRID) {
        if (!has_zeros(p + i))
            continue;
        const size_t end = i + GRID + sizeof SYNC;
        const size_t sync = find_sync_in(p, i < 7 ? 0 : i - 7, end < n ? end : n, n);
        if (sync < n)
            return sync;
    }
    return find_sync_in(p, i < 7 ? 0 : i - 7, n, n);
}

/*
 * Position after trace info and the packets that go with it, up to the address, which atoms follow;
 * if the trace has time, also after the next timestamp.
 */
static size_t find_rest(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n)
{
    const struct etm4_stream *const s = (const struct etm4_stream *)decoder;
    const struct tl_etm4_forms *const forms = &s->packetizer.forms;
    struct tl_etm4_registers regs = {.sf = 1};
    bool has_address = false, has_time = !s->needs_time;
    for (size_t at = sizeof SYNC - 1; at < n && p[at] != 0;) {
        struct tl_etm4_packet packet;
        const int size =
            tl_etm4_parse(forms->class_of, &forms->config, &regs, p + at, n - at, &packet);
        if (size <= 0 || (packet.type == TL_ETM4_ATOM && !has_address))
            break;
        at += (size_t)size;
        has_address |= packet.type == TL_ETM4_ADDRESS;
        has_time |= packet.type == TL_ETM4_TIMESTAMP;
        if (has_address && has_time)
            return at;
    }
    return n;
}

static void reset(struct tl_stream_decoder *decoder)
{
    struct etm4_stream *s = (struct etm4_stream *)decoder;
    s->end = 0;
    tl_etm4_packetizer_reset(&s->packetizer);
    tl_etm4_flow_reset(s->flow);
}

static struct tl_walker *walker(struct tl_stream_decoder *decoder)
{
    return tl_etm4_flow_walker(((struct etm4_stream *)decoder)->flow);
}

static const struct tl_split_ops split = {
    .find_sync = find_sync, .find_rest = find_rest, .reset = reset, .walker = walker};

const struct tl_stream_ops tl_etm4_ops = {
    .name = "etm4",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .split = &split,
};
