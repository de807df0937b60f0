/* SPDX-License-Identifier: MIT */
/*
 * The DI container: packets to events to flow items, one stream per module that sends events.
 *
 * An undeclared module (no setup, no enumeration) is accepted only after its second event: a single
 * corrupted address word must not create a stream.
 */
#include "decode/ops.h"
#include "osd/lane.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS 1024
#define ARRIVALS    64                    /* maximum pushes that pending bytes can belong to */
#define MAX_CLOCK   UINT64_C(10000000000) /* Hz */
/* Limit of decoded blocks: beyond it the trace is damaged, and the cache is reset. */
#define BLOCKS_MEMORY (64u << 20)

static const char TOO_MANY[] = "too many modules";
static const char UNDECLARED[] = "single event of an unknown module";
static const char MISFIT[] = "event of unknown shape, or its beginning is lost";

/* Bytes up to offset `end` had arrived at `ticks`. */
struct arrival {
    uint64_t end;
    uint64_t ticks;
};

struct osd {
    struct tl_decode base;
    const struct tl_setup *setup;
    const struct tl_image *image;
    struct tl_block_cache *blocks; /* NULL: no image */
    struct tl_decode_sink sink;
    struct tl_di di;
    struct tl_osd_reader reader;
    uint32_t n_streams;
    unsigned n_lanes;
    uint16_t words[UINT16_MAX + 1]; /* of a packet from a batch */
    bool has_items;                 /* some lane has pending items */
    uint64_t pushed;                /* input bytes */
    uint64_t first_ns;              /* arrival of the first bytes */
    size_t n_arrivals;
    struct arrival arrivals[ARRIVALS]; /* oldest first */
};

/* ---- arrival ---------------------------------------------------------------------------- */

/* Record the arrival time of the `n` bytes about to be processed. */
static void note_arrival(struct osd *osd, size_t n)
{
    osd->pushed += n;
    const uint64_t hz = osd->setup ? osd->setup->clock_hz : 0;
    if (!osd->base.arrival || !hz || hz > MAX_CLOCK)
        return;
    if (!osd->first_ns)
        osd->first_ns = osd->base.arrival;
    const struct arrival now = {osd->pushed,
                                tl_osd_ticks_of(osd->base.arrival - osd->first_ns, hz)};
    struct arrival *const all = osd->arrivals;
    if (osd->n_arrivals && all[osd->n_arrivals - 1].ticks == now.ticks)
        osd->n_arrivals--;
    if (osd->n_arrivals == ARRIVALS) /* treat the oldest bytes as part of the next push */
        memmove(all, all + 1, --osd->n_arrivals * sizeof all[0]);
    all[osd->n_arrivals++] = now;
}

/* Arrival time of a packet that ends at `end`. */
static uint64_t arrival_of(struct osd *osd, uint64_t end)
{
    struct arrival *const all = osd->arrivals;
    size_t gone = 0;
    while (gone < osd->n_arrivals && all[gone].end < end)
        gone++;
    if (gone) {
        osd->n_arrivals -= gone;
        memmove(all, all + gone, osd->n_arrivals * sizeof all[0]);
    }
    return osd->n_arrivals ? all[0].ticks : TL_OSD_NO_ARRIVAL;
}

/* ---- lanes ------------------------------------------------------------------------------ */

static int report_loss(const struct osd *osd, const struct tl_osd_lane *lane, const char *reason,
                       uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {
        .stream = lane && lane->believed ? &lane->stream : NULL,
        .reason = reason,
        .offset = offset,
        .bytes = bytes,
        .fault = tl_loss_is_fault(reason),
    };
    return osd->sink.loss ? osd->sink.loss(osd->sink.context, &loss) : TL_OK;
}

/* The module's lane, created on first use; *out is NULL if there are too many. */
static int lane_of(struct osd *osd, struct tl_osd_module *m, struct tl_osd_lane **out)
{
    *out = m->user;
    if (m->user || osd->n_lanes == MAX_STREAMS)
        return TL_OK;
    *out = m->user = tl_osd_lane_new(&osd->sink, osd->setup, osd->image, osd->blocks);
    if (!*out)
        return TL_NOMEM;
    osd->n_lanes++;
    return TL_OK;
}

static int announce(struct osd *osd, struct tl_osd_lane *lane, struct tl_osd_module *m)
{
    if (m->type == TL_OSD_CTM || m->type == TL_OSD_STM)
        tl_osd_lane_early(lane, m);
    tl_osd_lane_believe(lane, m->address, m->type, osd->n_streams++);
    return tl_osd_lane_announce(lane);
}

/* ---- headers in input form --------------------------------------------------------------- */

#define HEADER_BYTES (2 * (1 + TL_DI_HEADER))

static inline uint16_t src_of(uint64_t header)
{
    return (uint16_t)(header >> 32);
}

static inline uint16_t flags_of(uint64_t header)
{
    return (uint16_t)(header >> 48);
}

/* File offset after a packet. */
static inline uint64_t end_of(uint64_t offset, unsigned words)
{
    return offset + 2 * (1 + (uint64_t)words);
}

/* ---- packets ---------------------------------------------------------------------------- */

static bool has_items(const struct tl_osd_event *e)
{
    switch (e->kind) {
    case TL_OSD_CORE_EVENT:
    case TL_OSD_SYSTEM_EVENT:
    case TL_OSD_CHARACTER:
    case TL_OSD_STALL:
    case TL_OSD_MEMORY:
    case TL_OSD_FOREIGN:
        return true;
    case TL_OSD_OVERFLOW:
        return e->type == TL_OSD_CTM || e->type == TL_OSD_STM;
    default:
        return false;
    }
}

static int take_event(struct osd *osd, struct tl_osd_module *m, const struct tl_osd_event *e,
                      uint64_t arrival)
{
    struct tl_osd_lane *lane;
    int rc = lane_of(osd, m, &lane);
    if (rc < 0)
        return rc;
    if (!lane)
        return report_loss(osd, NULL, TOO_MANY, e->offset, 0);
    if (!lane->believed) {
        if (!m->declared && !m->foreign && !lane->waiting) {
            lane->first = *e;
            lane->first_arrival = arrival;
            lane->waiting = true;
            return TL_OK;
        }
        rc = announce(osd, lane, m);
        if (rc == TL_OK && lane->waiting)
            rc = tl_osd_lane_event(lane, &lane->first, lane->first_arrival);
        lane->waiting = false;
    }
    if (rc == TL_OK)
        rc = tl_osd_lane_event(lane, e, arrival);
    osd->has_items = true;
    tl_osd_lane_ready(lane, m);
    return rc;
}

/* Treat it as trace, which it may be, until the module's next event decides. */
static int keep_doubtful(struct osd *osd, struct tl_osd_module *m, const struct tl_osd_event *e,
                         uint64_t arrival)
{
    struct tl_osd_event trace = *e;
    trace.kind = TL_OSD_SYSTEM_EVENT;
    return take_event(osd, m, &trace, arrival);
}

static int list_packet(const struct osd *osd, const struct tl_di_packet *packet,
                       const struct tl_osd_event *event, const struct tl_osd_lane *lane)
{
    char line[TL_OSD_LINE_MAX];
    tl_osd_line(line, sizeof line, packet, event);
    return osd->sink.packet(osd->sink.context, lane && lane->believed ? &lane->stream : NULL, line);
}

static int take_packet(struct osd *osd, const struct tl_di_packet *packet, uint64_t arrival)
{
    struct tl_osd_event event;
    struct tl_osd_module *m;
    int rc = tl_osd_read(&osd->reader, packet, &event, &m);
    if (rc < 0)
        return rc;
    struct tl_osd_lane *const lane = m->user;
    if (lane)
        lane->quick = 0; /* until tl_osd_lane_ready() enables it again */
    if (osd->sink.packet) {
        rc = list_packet(osd, packet, &event, lane);
        if (rc < 0)
            return rc;
    }
    if (event.doubtful)
        return keep_doubtful(osd, m, &event, arrival);
    if (event.kind == TL_OSD_MEMORY && lane)
        lane->waiting = false; /* the event it kept is part of a transfer as well */
    if (has_items(&event))
        return take_event(osd, m, &event, arrival);
    if (event.kind == TL_OSD_MISFIT)
        return report_loss(osd, lane, MISFIT, packet->offset, 2 * (1 + (uint64_t)packet->n));
    if (event.kind == TL_OSD_REGISTER)
        tl_di_set_max_words(&osd->di, osd->reader.max_pkt_len);
    if (lane)
        tl_osd_lane_ready(lane, m);
    return TL_OK;
}

static int on_packet(void *context, const struct tl_di_packet *packet)
{
    struct osd *const osd = context;
    return take_packet(osd, packet, arrival_of(osd, end_of(packet->offset, packet->n)));
}

/* The lane that can process a packet on the fast path, or NULL. */
static inline struct tl_osd_lane *quick_lane(const struct osd *osd, uint64_t header)
{
    const struct tl_osd_module *const m = tl_osd_find_module(&osd->reader, src_of(header));
    struct tl_osd_lane *const lane = m ? m->user : NULL;
    return lane && lane->quick ? lane : NULL;
}

/*
 * Join the payloads of consecutive parts of a split event, packets[0] being the first. Returns the
 * number of packets, or 0 if not possible here.
 */
static size_t join_parts(const struct tl_di_raw *packets, size_t n, bool little_endian,
                         uint8_t out[static 2 * TL_OSD_PAYLOAD_MAX + 8], unsigned *words)
{
    const uint64_t first = tl_di_words4(packets[0].p, little_endian);
    *words = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t header = tl_di_words4(packets[i].p, little_endian);
        const unsigned part = packets[i].n - TL_DI_HEADER;
        if (part > TL_OSD_PAYLOAD_MAX - *words || ((header ^ first) >> 16 & UINT32_MAX))
            return 0;
        /* Copies a few bytes too many, to avoid a memcpy call. */
        for (unsigned k = 0; k < 2 * part; k += 8)
            memcpy(out + 2 * *words + k, packets[i].p + HEADER_BYTES + k, 8);
        *words += part;
        if (flags_of(header) == TL_DI_PLAIN_EVENT)
            return i + 1;
        if (flags_of(header) != TL_DI_EVENT_PART)
            return 0;
    }
    return 0;
}

/* Process packets on the fast path. Returns how many, or < 0. */
static inline __attribute__((always_inline)) int64_t
take_quick(struct osd *osd, const struct tl_di_raw *packets, size_t n, bool little_endian)
{
    const uint64_t header = tl_di_words4(packets[0].p, little_endian);
    struct tl_osd_lane *const lane = quick_lane(osd, header);
    if (!lane)
        return 0;
    uint64_t arrival = TL_OSD_NO_ARRIVAL;
    if (flags_of(header) == TL_DI_PLAIN_EVENT && packets[0].n == lane->quick + TL_DI_HEADER) {
        if (osd->n_arrivals)
            arrival = arrival_of(osd, end_of(packets[0].offset, packets[0].n));
        return tl_osd_lane_quick(lane, packets[0].p + HEADER_BYTES, little_endian,
                                 packets[0].offset, arrival);
    }
    if (flags_of(header) != TL_DI_EVENT_PART)
        return 0;
    uint8_t payload[2 * TL_OSD_PAYLOAD_MAX + 8];
    unsigned words;
    const size_t parts = join_parts(packets, n, little_endian, payload, &words);
    if (parts == 0 || words != lane->quick)
        return 0;
    const struct tl_di_raw *const last = &packets[parts - 1];
    if (osd->n_arrivals)
        arrival = arrival_of(osd, end_of(last->offset, last->n));
    const int rc = tl_osd_lane_quick(lane, payload, little_endian, last->offset, arrival);
    return rc > 0 ? (int64_t)parts : rc;
}

static inline int take_batch(struct osd *osd, const struct tl_di_raw *packets, size_t n,
                             bool little_endian)
{
    osd->has_items = true;
    for (size_t i = 0; i < n;) {
        const int64_t taken = take_quick(osd, packets + i, n - i, little_endian);
        if (taken < 0)
            return (int)taken;
        i += (size_t)taken;
        if (taken > 0)
            continue;
        const struct tl_di_packet packet = tl_di_read_raw(&packets[i], little_endian, osd->words);
        const int rc = on_packet(osd, &packet);
        if (rc < 0)
            return rc;
        i++;
    }
    return TL_OK;
}

static int on_batch(void *context, const struct tl_di_raw *packets, size_t n)
{
    struct osd *const osd = context;
    return tl_di_little_endian(&osd->di) ? take_batch(osd, packets, n, true)
                                         : take_batch(osd, packets, n, false);
}

static int mark_loss(void *context, struct tl_osd_module *m)
{
    if (m->user)
        tl_osd_lane_lost(m->user, *(const uint64_t *)context);
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct osd *const osd = context;
    tl_osd_reader_lost(&osd->reader);
    (void)tl_osd_each_module(&osd->reader, mark_loss, &offset);
    return report_loss(osd, NULL, reason, offset, bytes);
}

/* ---- tl_decode_ops ---------------------------------------------------------------------- */

static int free_lane(void *context, struct tl_osd_module *m)
{
    free(m->user);
    return TL_OK;
}

static void destroy(struct tl_decode *decode)
{
    struct osd *const osd = (struct osd *)decode;
    if (!osd)
        return;
    (void)tl_osd_each_module(&osd->reader, free_lane, NULL);
    tl_osd_reader_fini(&osd->reader);
    tl_block_cache_free(osd->blocks);
    tl_di_fini(&osd->di);
    free(osd);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct osd *const osd = calloc(1, sizeof *osd);
    if (!osd)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    osd->base.ops = &tl_osd_ops;
    osd->setup = setup;
    osd->image = image;
    osd->sink = *sink;
    int rc = tl_osd_reader_init(&osd->reader, setup);
    const struct tl_di_sink packets = {osd, on_packet, on_loss};
    tl_di_init(&osd->di, 0, osd->reader.max_pkt_len, &packets);
    if (!sink->packet)
        tl_di_set_batch(&osd->di, on_batch);
    const struct tl_isa_options options = {0};
    if (rc == TL_OK && image)
        rc = tl_block_cache_new(&osd->blocks, image, &options);
    if (rc < 0) {
        destroy(&osd->base);
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    *out = &osd->base;
    return TL_OK;
}

static int deliver_lane(void *context, struct tl_osd_module *m)
{
    return m->user ? tl_osd_lane_deliver(m->user) : TL_OK;
}

static int deliver_all(struct osd *osd)
{
    if (!osd->has_items)
        return TL_OK;
    osd->has_items = false;
    const int rc = tl_osd_each_module(&osd->reader, deliver_lane, NULL);
    if (osd->blocks && tl_block_cache_bytes(osd->blocks) > BLOCKS_MEMORY)
        tl_block_cache_reset(osd->blocks);
    return rc;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct osd *const osd = (struct osd *)decode;
    note_arrival(osd, n);
    int rc = TL_OK;
    if (osd->sink.bytes) {
        const struct tl_run run = {.p = p, .n = n, .base = osd->pushed - n};
        rc = osd->sink.bytes(osd->sink.context, NULL, &run);
    }
    if (rc >= 0)
        rc = tl_di_push(&osd->di, p, n);
    return rc < 0 ? rc : deliver_all(osd);
}

/* Report what was pending: gaps, and the only event of a module if no module was ever declared. */
static int finish_lane(void *context, struct tl_osd_module *m)
{
    struct osd *const osd = context;
    struct tl_osd_lane *const lane = m->user;
    if (!lane)
        return TL_OK;
    int rc = TL_OK;
    osd->has_items = true;
    if (lane->waiting) {
        lane->waiting = false;
        if (osd->reader.any_declared)
            return report_loss(osd, NULL, UNDECLARED, lane->first.offset, 0);
        rc = announce(osd, lane, m);
        if (rc == TL_OK)
            rc = tl_osd_lane_event(lane, &lane->first, lane->first_arrival);
    }
    return rc < 0 || !lane->believed ? rc : tl_osd_lane_finish(lane);
}

static int finish(struct tl_decode *decode)
{
    struct osd *const osd = (struct osd *)decode;
    int rc = tl_di_finish(&osd->di, TL_LOSS_CUT_OFF);
    if (rc == TL_OK)
        rc = tl_osd_each_module(&osd->reader, finish_lane, osd);
    return rc < 0 ? rc : deliver_all(osd);
}

/* Unconfirmed bytes before the gap are lost along with the incomplete packet at their end. */
static int lost(struct tl_decode *decode, const struct tl_decode_hole *hole)
{
    struct osd *const osd = (struct osd *)decode;
    osd->pushed += hole->n;
    int rc = tl_di_finish(&osd->di, TL_LOSS_NO_END);
    if (rc == TL_OK)
        rc = on_loss(osd, hole->reason, osd->pushed - hole->n, hole->n);
    tl_di_skip(&osd->di, hole->n);
    return rc < 0 ? rc : deliver_all(osd);
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static int count_module(void *context, struct tl_osd_module *m)
{
    ++*(size_t *)context;
    return TL_OK;
}

static void module_state(struct osd *osd, struct tl_osd_module *m, struct tl_state *s)
{
    bool has_lane = m->user != NULL;
    struct tl_osd_lane *lane;
    tl_osd_module_state(m, s);
    tl_state_bool(s, &has_lane);
    if (s->rc < 0 || !has_lane)
        return;
    tl_state_fail(s, lane_of(osd, m, &lane));
    tl_state_check(s, m->user != NULL);
    if (s->rc >= 0)
        tl_osd_lane_state(lane, m, s);
}

struct saving {
    struct osd *osd;
    struct tl_state *s;
};

static int save_module(void *context, struct tl_osd_module *m)
{
    const struct saving *const to = context;
    uint16_t address = m->address;
    tl_state_u16(to->s, &address);
    module_state(to->osd, m, to->s);
    return to->s->rc;
}

static void modules_state(struct osd *osd, struct tl_state *s)
{
    struct saving to = {osd, s};
    size_t n = 0;
    if (!tl_state_loads(s))
        (void)tl_osd_each_module(&osd->reader, count_module, &n);
    tl_state_size(s, &n, UINT16_MAX + 1);
    if (!tl_state_loads(s))
        (void)tl_osd_each_module(&osd->reader, save_module, &to);
    for (uint32_t i = 0, next = 0; tl_state_loads(s) && i < n && s->rc >= 0; i++) {
        uint16_t address = 0;
        tl_state_u16(s, &address);
        tl_state_check(s, address >= next); /* no duplicates */
        struct tl_osd_module *const m = s->rc < 0 ? NULL : tl_osd_module_at(&osd->reader, address);
        if (m)
            module_state(osd, m, s);
        else
            tl_state_fail(s, TL_NOMEM);
        next = address + 1u;
    }
}

struct streams {
    uint32_t n;
    struct tl_osd_lane *lanes[MAX_STREAMS];
};

static int find_stream(void *context, struct tl_osd_module *m)
{
    struct streams *const all = context;
    struct tl_osd_lane *const lane = m->user;
    if (!lane || !lane->believed)
        return TL_OK;
    if (lane->stream.index >= all->n || all->lanes[lane->stream.index])
        return TL_BAD;
    all->lanes[lane->stream.index] = lane;
    return TL_OK;
}

/* Announce all streams again, in the original order. */
static int announce_all(struct osd *osd)
{
    struct streams all = {.n = osd->n_streams};
    int rc = tl_osd_each_module(&osd->reader, find_stream, &all);
    for (uint32_t i = 0; rc == TL_OK && i < all.n; i++)
        rc = all.lanes[i] ? tl_osd_lane_announce(all.lanes[i]) : TL_BAD;
    return rc;
}

static void state(struct tl_decode *decode, struct tl_state *s)
{
    struct osd *const osd = (struct osd *)decode;
    size_t n_streams = osd->n_streams;
    tl_state_check(s, osd->pushed == 0);
    tl_state_u64(s, &osd->pushed);
    tl_state_u64(s, &osd->first_ns);
    tl_state_size(s, &osd->n_arrivals, ARRIVALS);
    for (size_t i = 0; i < osd->n_arrivals; i++) {
        tl_state_u64(s, &osd->arrivals[i].end);
        tl_state_u64(s, &osd->arrivals[i].ticks);
    }
    tl_di_state(&osd->di, s);
    tl_osd_reader_state(&osd->reader, s);
    modules_state(osd, s);
    tl_state_size(s, &n_streams, MAX_STREAMS);
    osd->n_streams = (uint32_t)n_streams;
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, announce_all(osd));
}

static size_t bytes(struct tl_decode *decode)
{
    const struct osd *const osd = (struct osd *)decode;
    return sizeof *osd + osd->n_lanes * sizeof(struct tl_osd_lane) +
           (osd->blocks ? tl_block_cache_bytes(osd->blocks) : 0);
}

const struct tl_decode_ops tl_osd_ops = {.bytes = bytes,
                                         .name = "di",
                                         .create = create,
                                         .push = push,
                                         .finish = finish,
                                         .destroy = destroy,
                                         .state = state,
                                         .lost = lost};
