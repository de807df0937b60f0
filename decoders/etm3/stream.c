/* SPDX-License-Identifier: MIT */
/*
 * ETMv3 and PTM as a stream decoder: bytes to packets, their listing, and on to the flow. Packets
 * are read where they lie; only one that a push cuts is assembled.
 *
 * Source: Arm IHI0014Q 7.2 (A-sync), IHI0035B 4.2; for the end of a capture without formatter:
 * DDI0314, ETB.
 */
#include "decode/soft.h"
#include "etm3/flow.h"
#include "etm3/late.h"
#include "etm3/packet_text.h"

#include <stdlib.h>

static const char RESERVED[] = "reserved or malformed packet";
static const char CUT_SYNC[] = "malformed A-sync";
static const char COUNTED[] =
    "the packets count cycles, ETMCR says that they do not: set its bit 12";
static const char UNCOUNTED[] =
    "the packets do not count cycles, ETMCR says that they do: clear its bit 12";

enum mode {
    HUNT,  /* searching for an A-sync */
    READ,  /* the next byte begins a packet, or belongs to the one in `bytes` */
    ZEROS, /* inside an A-sync */
    MODES
};

struct etm3_stream {
    struct tl_soft soft;
    struct tl_etm3_config config;
    struct tl_etm3_flow flow;
    struct tl_etm3_late *late; /* NULL: there are no values */
    struct tl_etm3_known known;
    uint8_t mode; /* enum mode */
    uint8_t n;    /* of a packet that a push cut */
    uint8_t bytes[TL_ETM3_PACKET_MAX];
    uint64_t start; /* offset of that packet, or of the A-sync */
    uint64_t zeros; /* consecutive zero bytes */
    uint64_t lost;  /* bytes since synchronisation was lost */
    /*
     * A branch packet of one byte 01, and of a count of 00 if there are any, waits for what
     * follows: if nothing does, or zeros only, the trace has ended, and that is the mark that a
     * buffer writes there.
     */
    bool has_mark;
    struct tl_etm3_packet mark;
    bool awaits_count;  /* of cycles, of the last I-sync with which tracing began */
    uint64_t uncounted; /* offset of that I-sync */
};

/* ---- packets --------------------------------------------------------------------------------- */

static void list(struct etm3_stream *s, const struct tl_etm3_packet *p)
{
    if (!s->soft.sink.packet || s->soft.rc < 0)
        return;
    char line[TL_ETM3_TEXT_MAX];
    tl_etm3_packet_text(line, &s->config, p);
    s->soft.rc = s->soft.sink.packet(s->soft.sink.context, line);
}

/* Pass on what waits for values no longer. */
static void tell_ready(struct etm3_stream *s)
{
    const unsigned n = tl_etm3_late_ready(s->late);
    for (unsigned i = 0; i < n; i++)
        tl_etm3_flow_packet(&s->flow, &s->late->v[i]);
    if (n > 0)
        tl_etm3_late_drop(s->late, n);
}

/* The values that packets wait for will not come. */
static void tell_late(struct etm3_stream *s)
{
    if (!s->late)
        return;
    s->late->awaits = 0;
    tell_ready(s);
}

static void contradict(struct etm3_stream *s, const char *why, uint64_t offset)
{
    if (s->soft.rc >= 0)
        s->soft.rc = s->soft.sink.loss(s->soft.sink.context, why, offset, 0);
}

static void miss_count(struct etm3_stream *s)
{
    if (s->awaits_count)
        contradict(s, UNCOUNTED, s->uncounted);
    s->awaits_count = false;
}

/*
 * Where tracing begins, ETMv3 says whether cycles are counted, by which outcomes are read: the
 * count stands in the I-sync, or in a packet of its own before the next one. An overflow may lose
 * it, but has one itself.
 */
static void check_count(struct etm3_stream *s, const struct tl_etm3_packet *p)
{
    const bool begins = p->type == TL_ETM3_ISYNC && p->reason != TL_ETM3_PERIODIC;
    if (begins && p->has_cycles && !s->config.cycle_accurate)
        contradict(s, COUNTED, p->offset);
    if (p->has_cycles)
        s->awaits_count = false;
    if (!begins || p->has_cycles || !s->config.cycle_accurate)
        return;
    if (p->reason != TL_ETM3_OVERFLOWED)
        miss_count(s);
    if (!s->awaits_count)
        s->uncounted = p->offset;
    s->awaits_count = true;
}

static void tell(struct etm3_stream *s, const struct tl_etm3_packet *p)
{
    list(s, p);
    if (!s->config.ptm)
        check_count(s, p);
    const bool kept = s->late && tl_etm3_late_add(s->late, p);
    if (s->late)
        tell_ready(s);
    if (!kept)
        tl_etm3_flow_packet(&s->flow, p);
}

static void tell_mark(struct etm3_stream *s)
{
    if (!s->has_mark)
        return;
    s->has_mark = false;
    tell(s, &s->mark);
}

static void begin_loss(struct etm3_stream *s, const char *why, uint64_t at, uint64_t bytes)
{
    s->soft.lost_why = why;
    s->soft.lost_at = at;
    s->lost = bytes;
    s->mode = HUNT;
    s->n = 0;
    s->awaits_count = false;
    s->known = (struct tl_etm3_known){0};
}

/* These bytes are no packet. */
static void lose(struct etm3_stream *s, const char *why, uint64_t at, uint64_t bytes)
{
    const struct tl_etm3_packet bad = {
        .type = TL_ETM3_BAD, .offset = at, .context = (uint32_t)bytes};
    tell_mark(s);
    list(s, &bad);
    tell_late(s);
    tl_etm3_flow_lose(&s->flow);
    begin_loss(s, why, at, bytes);
    s->known.vague = true;
}

/* Of a count there is a byte, which a mark would have as the first of its zeros. */
static bool has_count(const struct etm3_stream *s)
{
    return s->config.ptm && s->config.cycle_accurate;
}

static bool may_be_mark(const struct etm3_stream *s, const struct tl_etm3_packet *p, uint8_t header)
{
    return header == 0x01 && p->size == 1 + has_count(s) && p->cycles == 0;
}

static void on_packet(struct etm3_stream *s, struct tl_etm3_packet *p, uint8_t header)
{
    tell_mark(s);
    if (p->type == TL_ETM3_BAD) {
        lose(s, RESERVED, p->offset, p->size);
    } else if (may_be_mark(s, p, header)) {
        s->mark = *p;
        s->has_mark = true;
    } else {
        tell(s, p);
    }
}

/* ---- A-sync ---------------------------------------------------------------------------------- */

static void on_sync(struct etm3_stream *s, uint64_t begin)
{
    const struct tl_etm3_packet sync = {.type = TL_ETM3_ASYNC, .offset = begin};
    tl_soft_report_loss(&s->soft, "NOTSYNC", s->lost);
    s->lost = 0;
    s->mode = READ;
    list(s, &sync);
}

/* One byte while no packet can begin. */
static void hunt(struct etm3_stream *s, uint8_t b, uint64_t offset)
{
    if (b == 0 && s->zeros++ == 0)
        s->start = offset;
    if (s->lost++ == 0)
        s->soft.lost_at = offset;
    if (b == 0)
        return;
    if (b == 0x80 && s->zeros >= TL_ETM3_SYNC_ZEROS) {
        s->lost -= s->zeros + 1;
        on_sync(s, s->start);
    }
    s->zeros = 0;
}

static void take_zeros(struct etm3_stream *s, uint8_t b)
{
    if (b == 0) {
        s->zeros++;
        return;
    }
    const uint64_t zeros = s->zeros;
    s->zeros = 0;
    tell_mark(s);
    if (b == 0x80 && zeros >= TL_ETM3_SYNC_ZEROS)
        on_sync(s, s->start);
    else
        lose(s, CUT_SYNC, s->start, zeros + 1);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Read a packet where it lies, or keep what is there of it. Returns the number of bytes used. */
static size_t read_here(struct etm3_stream *s, const struct tl_run *run, size_t i)
{
    struct tl_etm3_packet p;
    const int size = tl_etm3_parse(&s->config, &s->known, run->p + i, run->n - i, &p);
    if (size < 0) {
        s->n = (uint8_t)(run->n - i);
        memcpy(s->bytes, run->p + i, s->n);
        s->start = tl_run_offset(run, i);
        return s->n;
    }
    p.offset = tl_run_offset(run, i);
    on_packet(s, &p, run->p[i]);
    return (size_t)size;
}

/* Add a byte to the packet that a push cut. */
static void read_on(struct etm3_stream *s, uint8_t b)
{
    struct tl_etm3_packet p;
    s->bytes[s->n++] = b;
    if (tl_etm3_parse(&s->config, &s->known, s->bytes, s->n, &p) < 0)
        return;
    s->n = 0;
    p.offset = s->start;
    on_packet(s, &p, s->bytes[0]);
}

/* Returns the number of bytes used, at least 1. */
static size_t take(struct etm3_stream *s, const struct tl_run *run, size_t i)
{
    const uint8_t b = run->p[i];
    if (s->mode == HUNT) {
        hunt(s, b, tl_run_offset(run, i));
    } else if (s->mode == ZEROS) {
        take_zeros(s, b);
    } else if (s->n > 0) {
        read_on(s, b);
    } else if (b == 0) {
        s->mode = ZEROS;
        s->start = tl_run_offset(run, i);
        s->zeros = 1;
    } else {
        return read_here(s, run, i);
    }
    return 1;
}

static int verdict(const struct etm3_stream *s)
{
    return s->soft.rc < 0          ? s->soft.rc
           : s->soft.out.rc < 0    ? s->soft.out.rc
           : s->flow.walker.failed ? TL_NOMEM
                                   : TL_OK;
}

/* Tell that times begin again, in front of what is told of later bytes. */
static void tell_restart(struct etm3_stream *s)
{
    if (s->flow.walker.restarted && s->soft.rc >= 0)
        s->soft.rc =
            tl_walker_tell_restart(&s->flow.walker, s->soft.sink.loss, s->soft.sink.context);
}

static int push(struct tl_stream_decoder *decoder, const struct tl_run *run)
{
    struct etm3_stream *const s = (struct etm3_stream *)decoder;
    for (size_t i = 0; i < run->n && verdict(s) == TL_OK;) {
        i += take(s, run, i);
        tell_restart(s);
    }
    tl_walker_trim(&s->flow.walker);
    return verdict(s);
}

static int flush(struct tl_stream_decoder *decoder)
{
    return tl_soft_flush(&((struct etm3_stream *)decoder)->soft);
}

static int finish(struct tl_stream_decoder *decoder, const char *cut)
{
    struct etm3_stream *const s = (struct etm3_stream *)decoder;
    if (s->mode == HUNT)
        tl_soft_report_loss(&s->soft, "NOTSYNC", s->lost);
    if (s->n > 0)
        tell_mark(s); /* something follows it */
    miss_count(s);
    tell_late(s);
    tl_etm3_flow_finish(&s->flow, s->n > 0 && s->bytes[0] & 1, s->start);
    tell_restart(s);
    if (s->n != 1 || s->bytes[0] != 0x01 || !has_count(s)) /* a mark without zeros */
        tl_soft_cut(&s->soft, cut, s->start, s->n);
    return flush(decoder);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void destroy(struct tl_stream_decoder *decoder)
{
    struct etm3_stream *const s = (struct etm3_stream *)decoder;
    if (s) {
        tl_etm3_flow_fini(&s->flow);
        free(s->late);
    }
    free(s);
}

static int create(struct tl_stream_decoder **out, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_stream_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_etm3_config config;
    tl_etm3_config_init(&config, source);
    struct etm3_stream *const s = tl_soft_new(sizeof *s, &tl_etm3_ops, source, sink);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    s->config = config;
    s->soft.out.paths = sink->paths;
    const bool values = config.data_values;
    s->late = values ? calloc(1, sizeof *s->late) : NULL;
    if (tl_etm3_flow_init(&s->flow, &config, image, &s->soft.out) < 0 || (values && !s->late)) {
        destroy(&s->soft.base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory for a decoder");
    }
    tl_walker_code(&s->flow.walker, sink->code);
    begin_loss(s, TL_LOSS_NOT_SYNC, 0, 0);
    *out = &s->soft.base;
    return TL_OK;
}

static void reset(struct tl_stream_decoder *decoder)
{
    struct etm3_stream *const s = (struct etm3_stream *)decoder;
    tl_item_batch_reset(&s->soft.out);
    begin_loss(s, TL_LOSS_NOT_SYNC, 0, 0);
    s->zeros = s->start = 0;
    s->has_mark = false;
    if (s->late)
        s->late->n = s->late->awaits = 0;
    tl_etm3_flow_reset(&s->flow);
}

static void known_state(struct tl_etm3_known *k, struct tl_state *s)
{
    tl_state_u32(s, &k->address);
    tl_state_u32(s, &k->data);
    tl_state_bool(s, &k->vague);
    tl_state_u8(s, &k->isa, TL_ETM3_JAZELLE);
    tl_state_bool(s, &k->ns);
    tl_state_bool(s, &k->hyp);
    tl_state_bool(s, &k->has_time);
    tl_state_u64(s, &k->time);
}

/* It has an address, and the state that was known. */
static void mark_state(struct etm3_stream *s, struct tl_state *state)
{
    struct tl_etm3_packet *const p = &s->mark;
    tl_state_bool(state, &s->has_mark);
    if (!s->has_mark)
        *p = (struct tl_etm3_packet){.address = 0};
    p->type = TL_ETM3_BRANCH;
    p->has_cycles = has_count(s);
    p->size = 1 + p->has_cycles;
    tl_state_u32(state, &p->address);
    tl_state_u8(state, &p->isa, TL_ETM3_JAZELLE);
    tl_state_bool(state, &p->ns);
    tl_state_bool(state, &p->hyp);
    tl_state_u64(state, &p->offset);
}

/* Members that do not matter are saved as zero. */
static void state(struct tl_stream_decoder *decoder, struct tl_state *state)
{
    static const char *const reasons[] = {TL_LOSS_NOT_SYNC, RESERVED, CUT_SYNC};
    struct etm3_stream *const s = (struct etm3_stream *)decoder;
    if (s->mode != HUNT) {
        s->soft.lost_at = 0;
        s->soft.lost_why = TL_LOSS_NOT_SYNC;
    }
    if (s->n == 0 && s->zeros == 0)
        s->start = 0;
    memset(s->bytes + s->n, 0, sizeof s->bytes - s->n);
    tl_soft_state(&s->soft, state, reasons, sizeof reasons / sizeof *reasons);
    tl_item_batch_state(&s->soft.out, state);
    tl_state_u8(state, &s->mode, MODES - 1);
    tl_state_u8(state, &s->n, TL_ETM3_PACKET_MAX - 1);
    tl_state_bytes(state, s->bytes, sizeof s->bytes);
    tl_state_check(state, s->n == 0 || (s->mode == READ && s->bytes[0] != 0));
    tl_state_u64(state, &s->start);
    tl_state_u64(state, &s->zeros);
    tl_state_u64(state, &s->lost);
    tl_state_check(state, s->mode != HUNT || s->zeros <= s->lost);
    known_state(&s->known, state);
    mark_state(s, state);
    tl_state_bool(state, &s->awaits_count);
    if (!s->awaits_count)
        s->uncounted = 0;
    tl_state_u64(state, &s->uncounted);
    if (s->late)
        tl_etm3_late_state(s->late, state);
    tl_etm3_flow_state(&s->flow, state);
}

/* ---- support for several threads ------------------------------------------------------------ */

static size_t find_sync(const uint8_t *p, size_t n)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    const uint8_t *const found = memmem(p, n, sync, sizeof sync);
    return found ? (size_t)(found - p) : n;
}

/*
 * Behind the I-sync, which has the place, and a whole timestamp, if there are any. ETMv3: behind an
 * outcome, too. Until then a branch replaces the place where a stream begins, but contradicts it in
 * mid-flow, so the states differ. A run of steps may go on there: its offset is in the state.
 */
static size_t find_rest(const struct tl_stream_decoder *decoder, const uint8_t *p, size_t n)
{
    const struct etm3_stream *const s = (const struct etm3_stream *)decoder;
    struct tl_etm3_known known = {0};
    bool placed = false, settled = s->config.ptm;
    if (tl_etm3_traces_data(&s->config)) /* nothing of it is repeated */
        return n;
    for (size_t at = TL_ETM3_SYNC_ZEROS + 1; at < n && p[at] != 0;) {
        struct tl_etm3_packet packet;
        const int size = tl_etm3_parse(&s->config, &known, p + at, n - at, &packet);
        if (size < 0 || packet.type == TL_ETM3_BAD)
            break;
        at += (size_t)size;
        placed |= packet.type == TL_ETM3_ISYNC;
        settled |= placed && packet.type == TL_ETM3_ATOMS && packet.n > 0;
        if (placed && settled && (known.has_time || !s->config.timestamps))
            return at;
    }
    return n;
}

static struct tl_walker *walker(struct tl_stream_decoder *decoder)
{
    return &((struct etm3_stream *)decoder)->flow.walker;
}

static const struct tl_split_ops split = {
    .find_sync = find_sync, .find_rest = find_rest, .reset = reset, .walker = walker};

const struct tl_stream_ops tl_etm3_ops = {
    .name = "etm3",
    .create = create,
    .push = push,
    .finish = finish,
    .destroy = destroy,
    .flush = flush,
    .state = state,
    .split = &split,
};
