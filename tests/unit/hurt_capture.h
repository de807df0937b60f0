/* SPDX-License-Identifier: MIT */
/*
 * Captures to be damaged, generated and real ones, and what a decode outputs for each stream:
 * before a fault and after it.
 */
#ifndef TL_TESTS_HURT_CAPTURE_H
#define TL_TESTS_HURT_CAPTURE_H

#include "base/buf.h"
#include "base/crew.h"
#include "data.h"
#include "decode/decode.h"
#include "image/image.h"
#include "import/bundle.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "sim/tpiu_encoder.h"
#include "steps.h"
#include "unit/soft_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 128 };

/* The random seed: always the same, or TL_SEED. */
static inline uint64_t first_seed(void)
{
    const char *const given = getenv("TL_SEED");
    return given ? strtoull(given, NULL, 0) : 1;
}

/* ---- results of a decode -------------------------------------------------------------------- */

/* An event, and the offset of the byte it comes from. */
struct event {
    uint64_t offset;
    uint64_t what;
    bool is_time;
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
    struct steps steps;
    bool aligned; /* the last packet listed was an A-Sync, with no address after it yet */
    uint64_t aligned_at;
};

struct outcome {
    struct lane lanes[IDS];
    char last_reason[160];
    unsigned faults; /* losses caused by faults */
    uint64_t fault_at, fault_end;
    bool gaps;               /* a stream reported that something is missing */
    unsigned out_of_step;    /* frame synchronisation was found again at another offset */
    uint64_t out_of_step_at; /* where that happened first */
};

static inline uint64_t mix(uint64_t h, uint64_t value)
{
    return (h ^ value) * 0x9e3779b97f4a7c15ULL ^ (h >> 29);
}

static inline struct lane *lane_of(struct outcome *o, const struct tl_decode_stream *stream)
{
    return &o->lanes[stream->source ? stream->source->id & (IDS - 1) : 0];
}

static inline void happened(struct lane *lane, uint64_t offset, uint64_t what)
{
    assert_int_equal(tl_grow(&lane->events, &lane->cap, lane->n + 1, sizeof *lane->events), 0);
    lane->events[lane->n++] = (struct event){offset, what, false};
}

static inline void take_item(struct outcome *o, struct lane *lane, const struct tl_item *item)
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
        lane->events[lane->n - 1].is_time = item->kind == TL_ITEM_TIME;
        break;
    case TL_ITEM_GAP: /* the state reported after a gap depends on the gap */
        if (tl_item_is_branch(item))
            happened(lane, item->offset, mix(mix(h, item->pc), 0));
        o->gaps = true;
        break;
    default:
        break;
    }
}

static inline int on_items(void *context, const struct tl_decode_stream *stream,
                           const struct tl_item *items, size_t n)
{
    struct outcome *const o = context;
    steps_demand(&lane_of(o, stream)->steps, items, n);
    for (size_t i = 0; i < n; i++)
        take_item(o, lane_of(o, stream), &items[i]);
    return TL_OK;
}

static inline int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct outcome *const o = context;
    assert_true(strlen(loss->reason) > 3);
    if (!loss->fault)
        return TL_OK;
    if (!strcmp(loss->reason, "frames out of step") && o->out_of_step++ == 0)
        o->out_of_step_at = loss->offset;
    snprintf(o->last_reason, sizeof o->last_reason, "%s", loss->reason);
    if (o->faults++ == 0 || loss->offset < o->fault_at)
        o->fault_at = loss->offset;
    if (loss->offset + loss->bytes > o->fault_end)
        o->fault_end = loss->offset + loss->bytes;
    return TL_OK;
}

/* Collect synchronisation points from the listing: a stream is intact again after the address that
 * follows an A-Sync; software trace after the packet that follows it. */
static inline int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
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

static inline void decode_by(unsigned threads, const struct capture *c, const uint8_t *p, size_t n,
                             size_t chunk, bool list, struct outcome *out)
{
    const struct tl_decode_sink sink = {
        .context = out, .items = on_items, .loss = on_loss, .packet = list ? on_packet : NULL};
    struct tl_fail fail = {0};
    struct tl_decode *d;
    memset(out, 0, sizeof *out);
    struct tl_crew *crew;
    if (tl_decode_new(&d, &c->setup, c->image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_crew_new(&crew, threads), TL_OK);
    assert_int_equal(tl_decode_set_crew(d, crew), TL_OK);
    for (size_t at = 0; at < n; at += chunk)
        assert_int_equal(tl_decode_push(d, p + at, n - at < chunk ? n - at : chunk), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_crew_free(crew);
}

static inline void decode(const struct capture *c, const uint8_t *p, size_t n, size_t chunk,
                          bool list, struct outcome *out)
{
    decode_by(1, c, p, n, chunk, list, out);
}

static inline void outcome_fini(struct outcome *o)
{
    for (unsigned id = 0; id < IDS; id++) {
        free(o->lanes[id].events);
        free(o->lanes[id].syncs);
    }
}

static inline void capture_fini(struct capture *c)
{
    tl_setup_fini(&c->setup);
    tl_image_free(c->image);
    tl_buf_fini(&c->bytes);
}

/* ---- comparing --------------------------------------------------------------------------- */

static inline size_t same_first(const struct lane *a, const struct lane *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->events[n].what == b->events[n].what)
        n++;
    return n;
}

static inline size_t same_last(const struct lane *a, const struct lane *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->events[a->n - 1 - n].what == b->events[b->n - 1 - n].what)
        n++;
    return n;
}

static inline bool is_same(const struct lane *a, const struct lane *b)
{
    return a->n == b->n && same_first(a, b) == a->n;
}

/* Check that two decodes of the same bytes have the same results. */
static inline void check_same(const struct outcome *a, const struct outcome *b)
{
    for (unsigned id = 0; id < IDS; id++)
        assert_true(is_same(&a->lanes[id], &b->lanes[id]));
    assert_int_equal(a->faults, b->faults);
    assert_int_equal(a->fault_at, b->fault_at);
    assert_int_equal(a->fault_end, b->fault_end);
}

struct bounds {
    uint64_t from;  /* bytes before this one are intact */
    uint64_t until; /* the container is intact again from here on */
};

/* Does a time differ? Damage may look like a local timestamp of an ITM, or hide one: it is that of
 * packets in front of it, which waited for it. */
static inline bool is_time(const struct lane *lane, size_t event)
{
    return event < lane->n && lane->events[event].is_time;
}

/* Check that the losses of `lane` lie between the fault and its next synchronisation point. */
static inline void check_lane(const struct lane *whole, const struct lane *hurt,
                              const struct bounds *b, const char *what)
{
    const size_t first = same_first(whole, hurt);
    if (first == whole->n && whole->n == hurt->n)
        return;
    const size_t last = same_last(whole, hurt);
    if (first + last >= whole->n) /* there is more output, and nothing lost */
        return;
    if (whole->events[first].offset < b->from && !is_time(whole, first) && !is_time(hurt, first))
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

/* Three cores and two software sources in one capture. */
static inline void make_capture(struct capture *c, enum tl_tpiu_sync sync, uint64_t seed)
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

/* ---- real captures -------------------------------------------------------------------------- */

/*
 * Call `visit` for each buffer of each available snapshot; returns how many. Skips the test if
 * there are none.
 */
static inline unsigned real_captures(void (*visit)(const struct capture *c, const char *name,
                                                   size_t buffer, void *context),
                                     void *context)
{
    char dir[400], path[700];
    if (!test_data(dir, sizeof dir, "coresight/snapshots")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    DIR *const d = opendir(dir);
    assert_non_null(d);
    unsigned buffers = 0;
    for (const struct dirent *e; (e = readdir(d));) {
        struct tl_bundle snap;
        struct tl_fail fail = {0};
        if (e->d_name[0] == '.' || e->d_type == DT_REG)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (tl_snapshot_read(&snap, path, NULL, NULL, &fail) < 0)
            fail_msg("%s: %s", e->d_name, fail.text);
        for (size_t i = 0; i < snap.n_captures; i++, buffers++) {
            struct capture c = {.setup = snap.captures[i].setup};
            assert_int_equal(tl_bundle_bytes(&snap.captures[i], &c.bytes, &fail), TL_OK);
            assert_int_equal(tl_image_new(&c.image), TL_OK);
            assert_int_equal(tl_setup_load_images(&c.setup, c.image, NULL, NULL, &fail), TL_OK);
            assert_int_equal(tl_image_freeze(c.image), TL_OK);
            visit(&c, e->d_name, i, context);
            tl_image_free(c.image);
            tl_buf_fini(&c.bytes);
        }
        tl_bundle_fini(&snap);
    }
    closedir(d);
    return buffers;
}

#endif
