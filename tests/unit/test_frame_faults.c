/* SPDX-License-Identifier: MIT */
/*
 * Faults in captures: flipped bits, bytes dropped, doubled and inserted, in generated captures of
 * several sources and in real ones, in every container. Each damaged capture is compared with
 * the undamaged one, stream by stream: what came before the fault is the same, and so is what
 * comes behind the stream's next synchronisation point.
 */
#include "base/buf.h"
#include "data.h"
#include "decode/decode.h"
#include "image/image.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "sim/tpiu_encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 128, KINDS = 5 };

/* ---- what a decode says --------------------------------------------------------------------- */

/* Something that happened, and the byte that said so. */
struct event {
    uint64_t offset;
    uint64_t what;
};

/* A synchronisation point: from its A-Sync to where the stream can be followed again. */
struct sync {
    uint64_t start;
    uint64_t whole;
};

struct lane {
    struct event *events;
    size_t n, cap;
    struct sync *syncs;
    size_t n_syncs, cap_syncs;
    bool aligned; /* an A-Sync was listed last, without an address behind it */
    uint64_t aligned_at;
};

struct outcome {
    struct lane lanes[IDS];
    char last_reason[160];
    unsigned faults; /* losses that are faults */
    uint64_t fault_at, fault_end;
    bool gaps; /* a stream said that something is missing */
};

static uint64_t mix(uint64_t h, uint64_t value)
{
    return (h ^ value) * 0x9e3779b97f4a7c15ULL ^ (h >> 29);
}

static struct lane *lane_of(struct outcome *o, const struct tl_decode_stream *stream)
{
    return &o->lanes[stream->source ? stream->source->id & (IDS - 1) : 0];
}

static void happened(struct lane *lane, uint64_t offset, uint64_t what)
{
    assert_int_equal(tl_grow(&lane->events, &lane->cap, lane->n + 1, sizeof *lane->events), 0);
    lane->events[lane->n++] = (struct event){offset, what};
}

static void take_item(struct outcome *o, struct lane *lane, const struct tl_item *item)
{
    uint64_t h = mix(item->kind, item->sub);
    uint32_t at = 0;
    switch (item->kind) {
    case TL_ITEM_BLOCK:
        for (uint32_t i = 0; i < item->n; i++) {
            struct tl_insn insn;
            tl_block_insn(item->block, at, &insn);
            happened(lane, item->offset, mix(h, item->block->pc + at));
            at += insn.size;
        }
        break;
    case TL_ITEM_SOFTWARE:
        h = mix(mix(h, item->pc), item->n);
        for (uint32_t i = 0; i < item->n; i++)
            h = mix(h, item->data[i]);
        happened(lane, item->offset, h);
        break;
    case TL_ITEM_BRANCH:
    case TL_ITEM_EXCEPTION:
    case TL_ITEM_ERET:
    case TL_ITEM_TIME:
    case TL_ITEM_CYCLES:
    case TL_ITEM_EVENT:
        happened(lane, item->offset, mix(mix(h, item->pc), item->value));
        break;
    case TL_ITEM_GAP: /* what state is told behind a gap depends on the gap */
        o->gaps = true;
        break;
    default:
        break;
    }
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct outcome *const o = context;
    for (size_t i = 0; i < n; i++)
        take_item(o, lane_of(o, stream), &items[i]);
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct outcome *const o = context;
    assert_true(strlen(loss->reason) > 3);
    if (!loss->fault)
        return TL_OK;
    snprintf(o->last_reason, sizeof o->last_reason, "%s", loss->reason);
    if (o->faults++ == 0 || loss->offset < o->fault_at)
        o->fault_at = loss->offset;
    if (loss->offset + loss->bytes > o->fault_end)
        o->fault_end = loss->offset + loss->bytes;
    return TL_OK;
}

/* Synchronisation points, from the listing: a stream is whole again behind the address that follows
 * an A-Sync; software trace at the packet behind it. */
static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct lane *const lane = lane_of(context, stream);
    char *name;
    const uint64_t offset = strtoull(line, &name, 10);
    name = strchr(name + 1, ' ') + 1;
    const bool etm = stream->protocol == TL_PROTO_ETM4 || stream->protocol == TL_PROTO_ETE;
    if (!strncmp(name, etm ? "I_ASYNC" : "ASYNC", etm ? 7 : 5)) {
        lane->aligned = true;
        lane->aligned_at = offset;
    } else if (lane->aligned && (!etm || (!strncmp(name, "I_ADDR_", 7) && strstr(name, "CTXT")))) {
        lane->aligned = false;
        assert_int_equal(
            tl_grow(&lane->syncs, &lane->cap_syncs, lane->n_syncs + 1, sizeof *lane->syncs), 0);
        lane->syncs[lane->n_syncs++] = (struct sync){lane->aligned_at, offset};
    }
    return TL_OK;
}

struct capture {
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_buf bytes;
};

static void decode(const struct capture *c, const uint8_t *p, size_t n, size_t chunk, bool list,
                   struct outcome *out)
{
    const struct tl_decode_sink sink = {
        .context = out, .items = on_items, .loss = on_loss, .packet = list ? on_packet : NULL};
    struct tl_fail fail = {0};
    struct tl_decode *d;
    memset(out, 0, sizeof *out);
    if (tl_decode_new(&d, &c->setup, c->image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    for (size_t at = 0; at < n; at += chunk)
        assert_int_equal(tl_decode_push(d, p + at, n - at < chunk ? n - at : chunk), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void outcome_fini(struct outcome *o)
{
    for (unsigned id = 0; id < IDS; id++) {
        free(o->lanes[id].events);
        free(o->lanes[id].syncs);
    }
}

static void capture_fini(struct capture *c)
{
    tl_setup_fini(&c->setup);
    tl_image_free(c->image);
    tl_buf_fini(&c->bytes);
}

/* ---- faults --------------------------------------------------------------------------------- */

static const char *const kinds[KINDS] = {"flip", "drop", "double", "insert", "overwrite"};

/* A copy of the capture with a fault of this kind at `at`; `*end` is the first whole byte. */
static void damage(const struct tl_buf *from, struct tl_buf *to, unsigned kind, size_t at,
                   struct tl_sim_rng *rng, size_t *end)
{
    uint8_t other = (uint8_t)tl_sim_rand(rng);
    size_t drop = 0, more = 0;
    tl_buf_reset(to);
    switch (kind) {
    case 0:
        other = from->p[at] ^ (uint8_t)(1u << tl_sim_below(rng, 8));
        drop = more = 1;
        break;
    case 1:
        drop = 1;
        break;
    case 2:
        other = from->p[at];
        more = 1;
        break;
    case 3:
        more = 1;
        break;
    default:
        drop = more = 1;
        break;
    }
    *end = at + drop;
    assert_int_equal(tl_buf_add(to, from->p, at), TL_OK);
    assert_int_equal(tl_buf_add(to, &other, more), TL_OK);
    assert_int_equal(tl_buf_add(to, from->p + *end, from->n - *end), TL_OK);
}

static size_t same_first(const struct lane *a, const struct lane *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->events[n].what == b->events[n].what)
        n++;
    return n;
}

static size_t same_last(const struct lane *a, const struct lane *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->events[a->n - 1 - n].what == b->events[b->n - 1 - n].what)
        n++;
    return n;
}

static bool is_same(const struct lane *a, const struct lane *b)
{
    return a->n == b->n && same_first(a, b) == a->n;
}

struct bounds {
    uint64_t from;  /* bytes before this one are whole */
    uint64_t until; /* the container is whole again from here on */
};

/* What `lane` lost lies between the fault and its next synchronisation point. */
static void check_lane(const struct lane *whole, const struct lane *hurt, const struct bounds *b,
                       const char *what)
{
    const size_t first = same_first(whole, hurt);
    if (first == whole->n && whole->n == hurt->n)
        return;
    const size_t last = same_last(whole, hurt);
    if (first + last >= whole->n) /* something more was said, nothing lost */
        return;
    if (whole->events[first].offset < b->from)
        fail_msg("%s: differs at %" PRIu64 " already", what, whole->events[first].offset);
    uint64_t sync = UINT64_MAX;
    for (size_t i = whole->n_syncs; i-- > 0 && whole->syncs[i].start >= b->until;)
        sync = whole->syncs[i].whole;
    const uint64_t lost = whole->events[whole->n - last - 1].offset;
    if (lost > sync)
        fail_msg("%s: lost up to %" PRIu64 ", which is behind the synchronisation at %" PRIu64,
                 what, lost, sync);
}

/* ---- generated captures --------------------------------------------------------------------- */

/* ITM: synchronisation, then writes to stimulus ports. */
static void make_itm(struct tl_buf *out, struct tl_sim_rng *rng, unsigned packets)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    assert_int_equal(tl_buf_add(out, sync, sizeof sync), TL_OK);
    while (packets-- > 0) {
        const unsigned size = 1u << tl_sim_below(rng, 3);
        uint8_t packet[5] = {(uint8_t)(tl_sim_below(rng, 32) << 3 | (size == 4 ? 3 : size))};
        for (unsigned i = 1; i <= size; i++)
            packet[i] = (uint8_t)(1 + tl_sim_below(rng, 255));
        assert_int_equal(tl_buf_add(out, packet, 1 + size), TL_OK);
    }
}

/* STM: synchronisation, version, master and channel, then 32-bit writes. */
static void make_stm(struct tl_buf *out, struct tl_sim_rng *rng, unsigned packets)
{
    char nibbles[4096];
    int n = sprintf(nibbles,
                    "fffffffffffffffffffff0f003110"
                    "3%02x",
                    tl_sim_below(rng, 256));
    while (packets-- > 0 && n < 4000)
        n += sprintf(nibbles + n, "6%08x", (unsigned)tl_sim_rand(rng));
    n += n & 1 ? sprintf(nibbles + n, "0") : 0;
    for (int i = 0; i < n; i += 2) {
        const char low[] = {nibbles[i], 0}, high[] = {nibbles[i + 1], 0};
        const uint8_t byte = (uint8_t)(strtoul(low, NULL, 16) | strtoul(high, NULL, 16) << 4);
        assert_int_equal(tl_buf_add(out, &byte, 1), TL_OK);
    }
}

/* Three cores and two software sources in one capture. */
static void make_capture(struct capture *c, enum tl_tpiu_sync sync, uint64_t seed)
{
    static const char *const formats[] = {"tpiu", "tpiu,sync=fsync", "tpiu,sync=hsync",
                                          "tpiu,sync=dstream"};
    struct tl_sim_rng rng = {seed};
    struct tl_sim_program program;
    struct tl_tpiu_encoder tpiu;
    struct tl_sim_core *cores[3];
    struct tl_buf trace[3] = {{0}}, soft = {0}, elf = {0};
    memset(c, 0, sizeof *c);
    tl_setup_init(&c->setup);
    assert_int_equal(tl_setup_format(&c->setup, formats[sync], NULL), TL_OK);
    const struct tl_sim_program_options shape = {.seed = seed, .extra = 20, .short_loops = true};
    assert_int_equal(tl_sim_program_init(&program, &shape), TL_OK);
    tl_tpiu_encoder_init(&tpiu, sync, seed);
    tpiu.hsync_percent = 3;
    tpiu.fsync_every = 10;
    for (unsigned i = 0; i < 5; i++) {
        struct tl_source *const source = tl_setup_add_source(&c->setup);
        assert_non_null(source);
        if (i < 3) {
            const struct tl_sim_core_options options = {.seed = seed + i,
                                                        .irq_every = 700,
                                                        .fault_every = 900,
                                                        .etm = tl_sim_etm4_unlike(i, 3)};
            assert_int_equal(tl_sim_etm4_source(&options.etm, source), TL_OK);
            assert_int_equal(tl_sim_core_new(&cores[i], &program, &options, &trace[i], NULL, NULL),
                             TL_OK);
        } else {
            source->protocol = i == 3 ? TL_PROTO_ITM : TL_PROTO_STM;
        }
        source->id = (uint16_t)(0x10 + i);
        snprintf(source->name, sizeof source->name, "cs.%02x", 0x10 + i);
    }
    for (unsigned round = 0; round < 40; round++) {
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(tl_sim_core_step(cores[i], 300), TL_OK);
            if (round == 39)
                assert_int_equal(tl_sim_core_flush(cores[i]), TL_OK);
            assert_int_equal(
                tl_tpiu_encoder_add(&tpiu, (uint8_t)(0x10 + i), trace[i].p, trace[i].n), TL_OK);
            tl_buf_reset(&trace[i]);
        }
        make_itm(&soft, &rng, 10);
        assert_int_equal(tl_tpiu_encoder_add(&tpiu, 0x13, soft.p, soft.n), TL_OK);
        tl_buf_reset(&soft);
        make_stm(&soft, &rng, 10);
        assert_int_equal(tl_tpiu_encoder_add(&tpiu, 0x14, soft.p, soft.n), TL_OK);
        tl_buf_reset(&soft);
    }
    assert_int_equal(tl_tpiu_encoder_flush(&tpiu), TL_OK);
    assert_int_equal(tl_buf_add(&c->bytes, tpiu.out.p, tpiu.out.n), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
    assert_int_equal(tl_image_new(&c->image), TL_OK);
    assert_int_equal(tl_image_add_elf(c->image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY,
                                      "program", NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(c->image), TL_OK);
    for (unsigned i = 0; i < 3; i++) {
        tl_sim_core_free(cores[i]);
        tl_buf_fini(&trace[i]);
    }
    tl_buf_fini(&soft);
    tl_buf_fini(&elf);
    tl_tpiu_encoder_fini(&tpiu);
    tl_sim_program_fini(&program);
}

static uint64_t fsync_behind(const struct tl_buf *b, uint64_t from)
{
    while (from + 4 <= b->n && memcmp(b->p + from, "\xff\xff\xff\x7f", 4) != 0)
        from++;
    return from;
}

/* Frames without synchronisation: a stream is itself again once an ID is said. */
static uint64_t id_behind(const struct tl_buf *b, uint64_t from)
{
    from = (from + 15) & ~15ULL;
    while (from < b->n && (from % 16 == 15 || from % 2 || !(b->p[from] & 1)))
        from++;
    return from;
}

/*
 * Frames that nothing marks are found again once unknown sources have spoken in some frames. Not
 * where that is too short to tell, or the configuration does not fit anyway; and a DSTREAM capture
 * is one byte in each block out of step from there on.
 */
static uint64_t out_of_step(const struct capture *c, const struct outcome *whole, uint64_t end)
{
    if (c->setup.sync == TL_SYNC_DSTREAM || c->bytes.n - end < 8192 || c->setup.n_sources < 2 ||
        whole->faults)
        return UINT64_MAX;
    return end + 16 * 16;
}

/* `n` faults, one at a time; returns how many of them were noticed. */
static unsigned check_faults(const struct capture *c, unsigned n, uint64_t seed, const char *name)
{
    struct tl_sim_rng rng = {seed};
    struct outcome whole, hurt, pieces;
    struct tl_buf bad = {0};
    unsigned noticed = 0;
    decode(c, c->bytes.p, c->bytes.n, c->bytes.n, true, &whole);
    for (unsigned i = 0; i < n; i++) {
        const unsigned kind = i % KINDS;
        const size_t at = (size_t)(tl_sim_rand(&rng) % c->bytes.n);
        const bool framed = c->setup.container == TL_CONTAINER_TPIU;
        const bool moved = kind >= 1 && kind <= 3;
        size_t end;
        char what[200];
        damage(&c->bytes, &bad, kind, at, &rng, &end);
        snprintf(what, sizeof what, "%s: %s at %zu (seed %" PRIu64 ", fault %u)", name, kinds[kind],
                 at, seed, i);
        decode(c, bad.p, bad.n, 1 + tl_sim_below(&rng, 3000), false, &hurt);
        decode(c, bad.p, bad.n, bad.n, false, &pieces);
        struct bounds b = {.from = at, .until = end};
        if (framed) {
            b.from = at < 1200 ? 0 : at - 1200; /* bytes of a packet lie far apart in there */
            b.until = c->setup.sync == TL_SYNC_NONE || (c->setup.sync == TL_SYNC_DSTREAM && moved)
                          ? (moved ? out_of_step(c, &whole, end) : id_behind(&c->bytes, end) + 16)
                          : fsync_behind(&c->bytes, fsync_behind(&c->bytes, end + 1) + 4) + 64;
        } else {
            b.from = at < 40 ? 0 : at - 40;
        }
        unsigned touched = 0;
        for (unsigned id = 0; id < IDS; id++) {
            char where[240];
            snprintf(where, sizeof where, "%s, stream %02x", what, id);
            check_lane(&whole.lanes[id], &hurt.lanes[id], &b, where);
            touched += !is_same(&whole.lanes[id], &hurt.lanes[id]);
            assert_int_equal(hurt.lanes[id].n, pieces.lanes[id].n);
            assert_int_equal(same_first(&hurt.lanes[id], &pieces.lanes[id]), pieces.lanes[id].n);
        }
        assert_int_equal(hurt.faults, pieces.faults);
        if (framed && c->setup.sync == TL_SYNC_NONE && !moved && at % 2 && at % 16 != 15 &&
            touched > 1) /* it was a byte of one source */
            fail_msg("%s: touches %u streams", what, touched);
        if (hurt.faults > whole.faults) {
            noticed++;
            if (!whole.faults && hurt.fault_end + 32 <= at)
                fail_msg("%s: told as %" PRIu64 "..%" PRIu64, what, hurt.fault_at, hurt.fault_end);
        }
        outcome_fini(&hurt);
        outcome_fini(&pieces);
    }
    outcome_fini(&whole);
    tl_buf_fini(&bad);
    return noticed;
}

static void generated_captures(void **state)
{
    const char *const given = getenv("TL_SEED");
    const uint64_t from = given ? strtoull(given, NULL, 0) : 1;
    static const char *const names[] = {"aligned", "fsync", "hsync", "dstream"};
    for (unsigned sync = 0; sync < 4; sync++) {
        for (uint64_t seed = from; seed < from + 2; seed++) {
            struct capture c;
            make_capture(&c, (enum tl_tpiu_sync)sync, seed);
            const unsigned noticed = check_faults(&c, 60, seed, names[sync]);
            print_message("%s: %zu bytes, %u of 60 faults noticed\n", names[sync], c.bytes.n,
                          noticed);
            assert_true(noticed > 5);
            capture_fini(&c);
        }
    }
}

/* Captures that begin anywhere: all is well from each stream's first synchronisation point on. */
static void any_beginning(void **state)
{
    for (unsigned sync = 0; sync < 3; sync++) {
        struct capture c;
        struct outcome whole, rest;
        make_capture(&c, (enum tl_tpiu_sync)sync, 77);
        decode(&c, c.bytes.p, c.bytes.n, c.bytes.n, true, &whole);
        for (unsigned from = 1; from < 60; from += sync == TL_TPIU_ALIGNED ? 2 : 1) {
            decode(&c, c.bytes.p + from, c.bytes.n - from, 4096, false, &rest);
            const struct bounds b = {0, from + 2500};
            for (unsigned id = 0; id < IDS; id++) {
                char what[80];
                snprintf(what, sizeof what, "container %u from byte %u, stream %02x", sync, from,
                         id);
                check_lane(&whole.lanes[id], &rest.lanes[id], &b, what);
                assert_true(!whole.lanes[id].n || rest.lanes[id].n > whole.lanes[id].n / 2);
            }
            outcome_fini(&rest);
        }
        outcome_fini(&whole);
        capture_fini(&c);
    }
}

/* A source that cannot be decoded is named, and the others do not notice. */
static void unsupported_neighbour(void **state)
{
    struct capture c;
    struct outcome whole, without;
    make_capture(&c, TL_TPIU_ALIGNED, 5);
    decode(&c, c.bytes.p, c.bytes.n, c.bytes.n, false, &whole);
    struct tl_source *const source = &c.setup.sources[1];
    source->protocol = TL_PROTO_NONE;
    snprintf(source->type, sizeof source->type, "PTM1.1");
    snprintf(source->device, sizeof source->device, "PTM_7");
    decode(&c, c.bytes.p, c.bytes.n, 1000, false, &without);
    assert_int_equal(without.faults, 1);
    assert_string_equal(without.last_reason,
                        "trace source PTM_7 of type 'PTM1.1' is not supported");
    for (unsigned id = 0; id < IDS; id++)
        assert_true(id == source->id ? !without.lanes[id].n
                                     : is_same(&whole.lanes[id], &without.lanes[id]));
    outcome_fini(&whole);
    outcome_fini(&without);
    capture_fini(&c);
}

static int no_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return TL_OK;
}

/* Bytes that are no trace at all, or trace that is torn to pieces, for ever: constant memory. */
static void bounded_memory(void **state)
{
    enum { PIECE = 1 << 16, PIECES = 24, LIMIT = 64 << 20 };
    static const uint8_t masks[] = {0xff, 0x83, 0x01, 0x00};
    uint8_t *const piece = malloc(PIECE);
    assert_non_null(piece);
    for (unsigned sync = 0; sync < 4; sync++) {
        struct capture c;
        struct tl_decode *d;
        struct tl_sim_rng rng = {sync};
        struct tl_fail fail = {0};
        const struct tl_decode_sink sink = {.items = no_items};
        make_capture(&c, (enum tl_tpiu_sync)sync, 9);
        assert_int_equal(tl_decode_new(&d, &c.setup, c.image, &sink, &fail), TL_OK);
        const struct mallinfo2 before = mallinfo2();
        size_t most = 0;
        for (unsigned k = 0; k < PIECES; k++) {
            const size_t at = tl_sim_below(&rng, (uint32_t)c.bytes.n - 4096);
            for (size_t i = 0; i < PIECE; i++)
                piece[i] = k % 2 ? c.bytes.p[at + i % 4093] : (uint8_t)tl_sim_rand(&rng);
            for (size_t i = 0; k % 2 == 0 && i < PIECE; i++)
                piece[i] &= masks[k / 2 % 4];
            assert_int_equal(tl_decode_push(d, piece, PIECE - k), TL_OK);
            const struct mallinfo2 now = mallinfo2();
            const size_t used = now.uordblks + now.hblkhd;
            most = used > most ? used : most;
        }
        if (before.uordblks) /* a sanitizer's heap does not say */
            assert_true(most - before.uordblks - before.hblkhd < LIMIT);
        assert_int_equal(tl_decode_finish(d), TL_OK);
        tl_decode_free(d);
        capture_fini(&c);
    }
    free(piece);
}

/* The same on real captures, as far as they have synchronisation points. */
static void snapshots(void **state)
{
    char dir[400], path[700];
    if (!test_data(dir, sizeof dir, "coresight/snapshots")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    DIR *const d = opendir(dir);
    assert_non_null(d);
    unsigned buffers = 0, faults = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        struct tl_snapshot snap;
        struct tl_fail fail = {0};
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (tl_snapshot_read(&snap, path, NULL, NULL, &fail) < 0)
            fail_msg("%s: %s", e->d_name, fail.text);
        for (size_t i = 0; i < snap.n_buffers; i++) {
            struct capture c = {.setup = snap.buffers[i].setup};
            assert_int_equal(tl_buf_read_file(&c.bytes, snap.buffers[i].path, SIZE_MAX, &fail), 0);
            assert_int_equal(tl_image_new(&c.image), TL_OK);
            assert_int_equal(tl_setup_load_images(&c.setup, c.image, NULL, NULL, &fail), TL_OK);
            assert_int_equal(tl_image_freeze(c.image), TL_OK);
            faults += check_faults(&c, c.bytes.n > 20000 ? 5 : 25, 7 + i, e->d_name);
            buffers++;
            tl_image_free(c.image);
            tl_buf_fini(&c.bytes);
        }
        tl_snapshot_fini(&snap);
    }
    closedir(d);
    print_message("%u buffers, %u faults noticed\n", buffers, faults);
    assert_true(buffers > 0 && faults > buffers);
}

/* One source without frames: the same, and with nothing around it. */
static void unformatted(void **state)
{
    for (unsigned core = 0; core < 3; core++) {
        struct tl_sim_program program;
        struct tl_sim_core *sim;
        struct capture c = {0};
        struct tl_buf elf = {0};
        const struct tl_sim_program_options shape = {.seed = core, .extra = 10};
        const struct tl_sim_core_options options = {
            .seed = core, .irq_every = 900, .etm = tl_sim_etm4_unlike(core, 3)};
        tl_setup_init(&c.setup);
        c.setup.container = TL_CONTAINER_SINGLE;
        struct tl_source *const source = tl_setup_add_source(&c.setup);
        assert_non_null(source);
        assert_int_equal(tl_sim_etm4_source(&options.etm, source), TL_OK);
        source->id = 0x10;
        assert_int_equal(tl_sim_program_init(&program, &shape), TL_OK);
        assert_int_equal(tl_sim_core_new(&sim, &program, &options, &c.bytes, NULL, NULL), TL_OK);
        assert_int_equal(tl_sim_core_step(sim, 12000), TL_OK);
        assert_int_equal(tl_sim_core_flush(sim), TL_OK);
        assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
        assert_int_equal(tl_image_new(&c.image), TL_OK);
        assert_int_equal(tl_image_add_elf(c.image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY,
                                          "program", NULL),
                         TL_OK);
        assert_int_equal(tl_image_freeze(c.image), TL_OK);
        const unsigned noticed = check_faults(&c, 100, 5 + core, "unformatted");
        print_message("unformatted: %zu bytes, %u of 100 faults noticed\n", c.bytes.n, noticed);
        assert_true(noticed > 15);
        tl_sim_core_free(sim);
        tl_sim_program_fini(&program);
        tl_buf_fini(&elf);
        capture_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unformatted),
        cmocka_unit_test(any_beginning),
        cmocka_unit_test(unsupported_neighbour),
        cmocka_unit_test(bounded_memory),
        cmocka_unit_test(snapshots),
        cmocka_unit_test(generated_captures),
    };
    return cmocka_run_group_tests_name("frame_faults", tests, NULL, NULL);
}
