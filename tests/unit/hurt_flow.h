/* SPDX-License-Identifier: MIT */
/*
 * Traces of simulated programs in all formats with what was executed, damage to the bytes, and
 * images in which code is missing.
 */
#ifndef TL_TESTS_HURT_FLOW_H
#define TL_TESTS_HURT_FLOW_H

#include "image/image.h"
#include "sim/pt_flow_encoder.h"
#include "unit/etm3_world.h"
#include "unit/etrace_world.h"
#include "unit/mtb_world.h"
#include "unit/nexus_world.h"
#include "unit/sim_streams.h"

struct hurt {
    const char *format;
    struct tl_setup setup;
    struct {
        uint64_t base;
        struct tl_buf bytes;
    } code[TL_SIM_X86_ZONES];
    unsigned n_code;
    struct tl_buf trace;
    uint64_t *truth; /* addresses of what was executed and traced */
    size_t n_truth, cap_truth;
    bool unclear;  /* where the flow was lost, the trace does not tell what follows on what */
    bool swallows; /* a packet that is cut off takes the one behind it for its rest */
    size_t window; /* bytes behind damage within which the trace repeats its state; 0: never */
};

static inline void hurt_fini(struct hurt *h)
{
    tl_setup_fini(&h->setup);
    for (unsigned i = 0; i < h->n_code; i++)
        tl_buf_fini(&h->code[i].bytes);
    tl_buf_fini(&h->trace);
    free(h->truth);
}

static inline void hurt_ran(struct hurt *h, uint64_t pc)
{
    assert_int_equal(tl_grow(&h->truth, &h->cap_truth, h->n_truth + 1, sizeof *h->truth), TL_OK);
    h->truth[h->n_truth++] = pc;
}

static inline void hurt_code(struct hurt *h, uint64_t base, struct tl_bytes bytes)
{
    h->code[h->n_code].base = base;
    assert_int_equal(tl_buf_add(&h->code[h->n_code++].bytes, bytes.p, bytes.n), TL_OK);
}

static inline struct tl_bytes hurt_bytes(const struct tl_buf *b)
{
    return (struct tl_bytes){b->p, b->n};
}

/* ---- formats --------------------------------------------------------------------------------- */

static inline int hurt_etm_ran(void *context, const struct tl_sim_truth *truth)
{
    if (truth->kind == TL_SIM_TRUTH_INSN)
        hurt_ran(context, truth->pc);
    return TL_OK;
}

static inline void hurt_etm(struct hurt *h, struct tl_sim_rng *rng)
{
    const struct tl_sim_program_options shape = {
        .seed = tl_sim_rand(rng), .extra = 20, .short_loops = tl_sim_below(rng, 2)};
    struct tl_sim_core_options o = random_options(rng);
    struct tl_sim_program program;
    struct tl_sim_core *core;
    o.etm.return_stack |= tl_sim_below(rng, 2);
    h->format = o.etm.ete ? "ete" : "etm4";
    h->window = 3 * o.etm.sync_every;
    tl_setup_init(&h->setup);
    h->setup.container = TL_CONTAINER_SINGLE;
    assert_int_equal(tl_sim_program_init(&program, &shape), TL_OK);
    struct tl_source *const source = tl_setup_add_source(&h->setup);
    assert_int_equal(tl_sim_etm4_source(&o.etm, source), TL_OK);
    source->id = 0x10;
    assert_int_equal(tl_sim_core_new(&core, &program, &o, &h->trace, hurt_etm_ran, h), TL_OK);
    assert_int_equal(tl_sim_core_step(core, 50000), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct tl_buf code = {0};
        assert_int_equal(tl_sim_program_code(&program, i, &code), TL_OK);
        hurt_code(h, program.sections[i].base, hurt_bytes(&code));
        tl_buf_fini(&code);
    }
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
}

/* The same in formatter frames, behind which the bytes of a source are found again later. */
static inline void hurt_frames(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_etm(h, rng);
    h->format = "tpiu";
    h->setup.container = TL_CONTAINER_TPIU;
    h->window = 2 * h->window + 1000;
    wrap_frames(&h->trace);
}

static inline void hurt_pt(struct hurt *h, struct tl_sim_rng *rng)
{
    struct tl_sim_pt_flow_options options;
    struct tl_sim_x86_program program;
    struct tl_sim_pt_flow flow;
    tl_sim_x86_program_init(&program, tl_sim_rand(rng), tl_sim_between(rng, 2, 60));
    tl_sim_pt_flow_random(&options, rng);
    tl_sim_pt_flow_init(&flow, &program, &options, tl_sim_rand(rng));
    tl_sim_pt_flow_run(&flow, 40000);
    h->format = "pt";
    h->unclear = options.deferred_tips;
    h->window = 2 * options.psb_period + 2000;
    tl_setup_init(&h->setup);
    assert_int_equal(tl_setup_format(&h->setup, "pt", NULL), TL_OK);
    for (unsigned i = 0; i < TL_SIM_X86_ZONES; i++)
        hurt_code(h, program.parts[i].base, hurt_bytes(&program.parts[i].code));
    const struct tl_sim_pt_truth *const t = (const void *)flow.truth.p;
    for (size_t i = 0; i < flow.truth.n / sizeof *t; i++)
        if (t[i].what == TL_SIM_PT_INSN)
            hurt_ran(h, t[i].ip);
    assert_int_equal(tl_buf_add(&h->trace, flow.pt.out.p, flow.pt.out.n), TL_OK);
    tl_sim_pt_flow_fini(&flow);
    tl_sim_x86_program_fini(&program);
}

/* Addresses of the lines of instructions in flow text. */
static inline void hurt_ran_text(struct hurt *h, const struct tl_buf *text)
{
    const char *p = (const char *)text->p, *const end = p + text->n;
    for (; p < end; p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1)
        if (*p == 'I')
            hurt_ran(h, strtoull(p + 2, NULL, 16));
}

static inline void hurt_nexus_with(struct hurt *h, bool tables, struct tl_sim_rng *rng)
{
    enum { MESSAGE = 24 /* bytes, at most */ };
    struct nexus_world w;
    const unsigned round = tl_sim_below(rng, 10000);
    nexus_world_make(&w, round, 20000, tables, rng);
    h->format = w.options.sifive ? "nexus" : "n-trace";
    h->swallows = true;
    h->window = 2 * (size_t)w.options.sync_every * MESSAGE;
    h->setup = w.setup;
    tl_setup_init(&w.setup);
    hurt_code(h, nexus_base(round, w.options.xlen), hurt_bytes(&w.run.code));
    hurt_ran_text(h, &w.truth);
    assert_int_equal(tl_buf_add(&h->trace, w.trace.p, w.trace.n), TL_OK);
    nexus_world_fini(&w);
}

static inline void hurt_nexus(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_nexus_with(h, false, rng);
}

/* The program has jumps by a table in its image. */
static inline void hurt_zcmt(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_nexus_with(h, true, rng);
}

static inline void hurt_etm3(struct hurt *h, struct tl_sim_rng *rng)
{
    struct etm3_world w;
    etm3_world_init(&w, tl_sim_below(rng, 10000), 20000, rng);
    h->format = w.options.ptm ? "ptm" : "etm3";
    h->window = 3 * (size_t)w.options.sync_every;
    h->setup = w.setup;
    tl_setup_init(&w.setup);
    hurt_code(h, ETM3_BASE, hurt_bytes(&w.program.code));
    hurt_ran_text(h, &w.truth);
    assert_int_equal(tl_buf_add(&h->trace, w.trace.p, w.trace.n), TL_OK);
    etm3_world_fini(&w);
}

static inline void hurt_mtb(struct hurt *h, struct tl_sim_rng *rng)
{
    struct mtb_world w;
    mtb_world_init(&w, tl_sim_below(rng, 10000), 20000, rng);
    h->format = "mtb";
    h->window = w.mtb.ram.n;
    h->setup = w.setup;
    tl_setup_init(&w.setup);
    hurt_code(h, MTB_BASE, hurt_bytes(&w.program.code));
    hurt_ran_text(h, &w.mtb.truth);
    assert_int_equal(tl_buf_add(&h->trace, w.mtb.ram.p, w.mtb.ram.n), TL_OK);
    mtb_world_fini(&w);
}

static inline void hurt_etrace_with(struct hurt *h, bool tables, struct tl_sim_rng *rng)
{
    enum { PACKET = 24 };
    struct etrace_world w;
    etrace_world_make(&w, tl_sim_below(rng, 10000), 20000, tables, 0);
    h->format = "e-trace";
    h->swallows = true;
    h->window = 2 * (size_t)w.encoder.resync * PACKET;
    h->setup = w.setup;
    tl_setup_init(&w.setup);
    hurt_code(h, w.program.base, hurt_bytes(&w.run.code));
    for (uint32_t i = 0; i < w.run.n_events; i++)
        if (w.trace.traced[i] && !w.run.events[i].trap)
            hurt_ran(h, w.run.insns[w.run.events[i].at].pc);
    assert_int_equal(tl_buf_add(&h->trace, w.trace.bytes.p, w.trace.bytes.n), TL_OK);
    etrace_world_fini(&w);
}

static inline void hurt_etrace(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_etrace_with(h, false, rng);
}

/* The program has jumps by a table in its image. */
static inline void hurt_etrace_zcmt(struct hurt *h, struct tl_sim_rng *rng)
{
    hurt_etrace_with(h, true, rng);
}

typedef void hurt_make(struct hurt *h, struct tl_sim_rng *rng);

/* ---- images in which code is missing --------------------------------------------------------- */

/* How much of the code is missing: ranges like functions, and pages, of `percent` of it. */
static inline struct tl_image *hurt_image(const struct hurt *h, unsigned percent,
                                          struct tl_sim_rng *rng)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned i = 0; i < h->n_code; i++) {
        const struct tl_buf *const code = &h->code[i].bytes;
        const bool pages = tl_sim_below(rng, 2);
        for (size_t at = 0, n; at < code->n; at += n) {
            n = pages ? 256 : (size_t)2 << tl_sim_between(rng, 2, 8);
            n = n < code->n - at ? n : code->n - at;
            if (!tl_sim_percent(rng, percent))
                assert_int_equal(tl_image_add_bytes(image, h->code[i].base + at,
                                                    (struct tl_bytes){code->p + at, n},
                                                    TL_SPACE_ANY, NULL, NULL),
                                 TL_OK);
        }
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

/* ---- damage ---------------------------------------------------------------------------------- */

enum hurt_kind { FLIP, DROP, INSERT, ZERO, REPEAT, SWAP, HALVES, HURT_KINDS };

static inline void hurt_reverse(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const uint8_t byte = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = byte;
    }
}

/* Exchange the first `n` bytes of `b` with the rest, from `at` on. */
static inline void hurt_rotate(struct tl_buf *b, size_t at, size_t n, size_t all)
{
    hurt_reverse(b->p + at, n);
    hurt_reverse(b->p + at + n, all - n);
    hurt_reverse(b->p + at, all);
}

static inline void hurt_insert(struct tl_buf *b, size_t at, const uint8_t *p, size_t n)
{
    assert_int_equal(tl_buf_reserve(b, n), TL_OK);
    memmove(b->p + at + n, b->p + at, b->n - at);
    memcpy(b->p + at, p, n);
    b->n += n;
}

/* Damage the bytes of `b` at `at`, up to 64 of them there. Returns the end of what is damaged. */
static inline size_t hurt_once(struct tl_buf *b, enum hurt_kind kind, size_t at,
                               struct tl_sim_rng *rng)
{
    uint8_t bytes[64];
    size_t n = tl_sim_between(rng, 1, tl_sim_below(rng, 2) ? 4 : 60);
    if (at + sizeof bytes > b->n) /* earlier damage has shortened it */
        return b->n;
    switch (kind) {
    case FLIP:
        b->p[at] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
        return at + 1;
    case DROP:
        memmove(b->p + at, b->p + at + n, b->n - at - n);
        b->n -= n;
        return at;
    case ZERO:
        memset(b->p + at, 0, n);
        return at + n;
    case INSERT:
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)tl_sim_rand(rng);
        hurt_insert(b, at, bytes, n);
        return at + n;
    case REPEAT:
        memcpy(bytes, b->p + at, n);
        hurt_insert(b, at, bytes, n);
        return at + n;
    case SWAP:
        hurt_rotate(b, at, 1 + n / 2, 1 + n);
        return at + 1 + n;
    default:
        hurt_rotate(b, 0, b->n / 2, b->n);
        return b->n;
    }
}

#endif
