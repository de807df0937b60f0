/* SPDX-License-Identifier: MIT */
/* N-Trace of random programs in every mode, with its truth; damaged. */
#ifndef TL_TESTS_NEXUS_WORLD_H
#define TL_TESTS_NEXUS_WORLD_H

#include "setup/setup.h"
#include "sim/nexus_encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

struct nexus_world {
    struct tl_sim_riscv_run run;
    struct tl_sim_nexus_options options;
    struct tl_buf trace, truth;
    struct tl_setup setup;
    struct tl_image *image;
    const char *named; /* all that the setup says is the core's name; NULL: it says more */
    bool inhibits;     /* messages have no SRC, although the configuration has a width for it */
};

static inline uint64_t nexus_base(unsigned round, unsigned xlen)
{
    return round % 5 == 0 ? xlen == 64 ? 0xffffffc080000000 : 0xfffe0000 : 0x80000000;
}

/* A core from whose name all follows. */
static inline void nexus_choose_named(struct nexus_world *w, struct tl_sim_rng *rng)
{
    struct tl_sim_nexus_options *const o = &w->options;
    static const struct {
        const char *name;
        uint8_t xlen, src_bits, address_bits;
    } cores[] = {{"sifive-p550", 64, 2, 48},
                 {"sifive-p550x8", 64, 3, 48},
                 {"sifive-x280", 64, 2, 48},
                 {"sifive-e31", 32, 0, 0}};
    const unsigned i = o->xlen == 32 ? 3 : tl_sim_below(rng, 3);
    w->named = cores[i].name;
    w->inhibits = o->sequences = o->jumps = o->extends = false;
    o->src_bits = cores[i].src_bits;
    o->src = tl_sim_below(rng, 1u << o->src_bits);
    o->address_bits = cores[i].address_bits;
    o->stack = o->stack ? 1023 : 0;
}

static inline void nexus_choose(struct nexus_world *w, unsigned round, bool tables,
                                struct tl_sim_rng *rng)
{
    const bool history = round % 3 > 0;
    w->options = (struct tl_sim_nexus_options){
        .seed = round,
        .history = history,
        .stack = round % 2 ? 1 + tl_sim_below(rng, round % 14 == 13 ? 1024 : 32) : 0,
        .sequences = tl_sim_below(rng, 2),
        .repeats = tl_sim_below(rng, 2),
        .jumps = tl_sim_below(rng, 4) == 0,
        .times = tl_sim_below(rng, 2),
        .contexts = tl_sim_below(rng, 2),
        .extends = tl_sim_below(rng, 2),
        .gaps = round % 4 == 3,
        .sifive = round % 7 == 6,
        .src_bits = tl_sim_below(rng, 3) ? tl_sim_below(rng, 13) : 0,
        .xlen = round % 4 == 1 ? 32 : 64,
        .history_bits = 2 + tl_sim_below(rng, 30),
        .icnt_max = round % 8 == 2 ? 8 + tl_sim_below(rng, 40) : 1 << 20,
        .sync_every = 20 + tl_sim_below(rng, 200),
        .reserved = tl_sim_below(rng, 3) == 0,
        .padded = tl_sim_below(rng, 3) == 0,
    };
    if (w->options.sifive || tl_sim_below(rng, 3) == 0) {
        w->options.time_bits = w->options.sifive ? 40 : 16 + tl_sim_below(rng, 48);
        w->options.time = (UINT64_C(1) << w->options.time_bits) - 1 - tl_sim_below(rng, 20000);
    }
    w->options.events = w->options.sifive && w->options.xlen == 64 && tl_sim_below(rng, 2);
    w->inhibits = w->options.src_bits == 0 && tl_sim_below(rng, 2);
    if (w->options.xlen == 64 && (w->options.sifive || tl_sim_below(rng, 3) == 0))
        w->options.address_bits = w->options.sifive ? 48 : 39 + tl_sim_below(rng, 25);
    if (w->options.src_bits > 0)
        w->options.src = tl_sim_below(rng, 1u << w->options.src_bits);
    if (w->options.sifive && !tables && tl_sim_below(rng, 2))
        nexus_choose_named(w, rng);
}

/* What the decoder must be told, as registers; or as fields, with `all` also what it can find out
 * by itself. */
static inline void nexus_configure(struct nexus_world *w, bool registers, bool all)
{
    const struct tl_sim_nexus_options *const o = &w->options;
    const unsigned mode = o->history ? 6 : 3, returns = o->stack ? 3 : 0;
    const unsigned src_bits = w->inhibits ? 7 : o->src_bits;
    char text[640];
    struct tl_fail fail = {0};
    int n = snprintf(text, sizeof text, "[trace]\nformat=%s\n[source nt.%u]\n",
                     o->sifive ? "nexus-sifive" : "ntrace", o->src);
    if (w->run.jvt)
        n += snprintf(text + n, sizeof text - (size_t)n, "core=rv%uimac_zcmt\njvt=0x%llx\n",
                      o->xlen, (unsigned long long)w->run.jvt);
    else
        n += w->named ? snprintf(text + n, sizeof text - (size_t)n, "core=%s\n", w->named)
                      : snprintf(text + n, sizeof text - (size_t)n, "core=rv%u\n", o->xlen);
    if (w->named)
        registers = all = false;
    else if (registers)
        n +=
            snprintf(text + n, sizeof text - (size_t)n, "trTeControl=0x%x\ntrTeInstFeatures=0x%x\n",
                     7u | mode << 4 | (unsigned)w->inhibits << 15,
                     (unsigned)o->sequences << 2 | returns << 6 | (unsigned)o->jumps << 9 |
                         (unsigned)o->extends << 10 | o->src << 16 | src_bits << 28);
    else
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "trTeSrcBits=%u\ntrTeInhibitSrc=%d\ntrTeInstEnSequentialJump=%d\n"
                      "trTeInstEnAllJumps=%d\ntrTeInstExtendAddrMSB=%d\n",
                      src_bits, w->inhibits, o->sequences, o->jumps, o->extends);
    if (o->time_bits && !o->sifive)
        n += snprintf(text + n, sizeof text - (size_t)n, "trTsWidth=%u\n", o->time_bits);
    if (o->address_bits && !o->sifive)
        n += snprintf(text + n, sizeof text - (size_t)n, "addrbits=%u\n", o->address_bits);
    if (all && !registers)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "trTeInstMode=%u\ntrTeInstImplicitReturnMode=%u\ncall_stack_depth=%u\n", mode,
                      returns, o->stack);
    tl_setup_init(&w->setup);
    if (tl_setup_parse(&w->setup, text, (size_t)n, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* The trace of the run, and the image of its program at `base`. */
static inline void nexus_encode(struct nexus_world *w, uint64_t base)
{
    const struct tl_bytes code = {w->run.code.p, w->run.code.n};
    struct tl_fail fail = {0};
    assert_int_equal(tl_sim_nexus_encode(&w->run, &w->options, &w->trace, &w->truth), TL_OK);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, base, code, TL_SPACE_ANY, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
}

/* `tables`: the program has Zcmt's jumps, which the cores that are known by name lack. */
static inline void nexus_world_make(struct nexus_world *w, unsigned round, uint32_t events,
                                    bool tables, struct tl_sim_rng *rng)
{
    memset(w, 0, sizeof *w);
    nexus_choose(w, round, tables, rng);
    const struct tl_sim_riscv_options program = {
        .seed = round * 7 + 1,
        .xlen = w->options.xlen,
        .base = nexus_base(round, w->options.xlen),
        .compressed = round % 2 || tables,
        .tables = tables,
        .events = events,
        .trap_per_mille = round % 2 ? 20 : 0,
        .context_per_mille = w->options.contexts ? 5 : 0,
        .true_returns = round % 3 == 0,
        .next_per_mille = w->options.sifive ? 100 : 0,
    };
    assert_int_equal(tl_sim_riscv_run(&w->run, &program), TL_OK);
    nexus_encode(w, program.base);
    nexus_configure(w, round % 4 == 2, round % 2);
}

static inline void nexus_world_init(struct nexus_world *w, unsigned round, uint32_t events,
                                    struct tl_sim_rng *rng)
{
    nexus_world_make(w, round, events, false, rng);
}

static inline void nexus_world_fini(struct nexus_world *w)
{
    tl_sim_riscv_run_fini(&w->run);
    tl_buf_fini(&w->trace);
    tl_buf_fini(&w->truth);
    tl_setup_fini(&w->setup);
    tl_image_free(w->image);
}

static inline void nexus_damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    for (unsigned n = 1 + tl_sim_below(rng, 20); n > 0; n--)
        trace->p[tl_sim_below(rng, (uint32_t)trace->n)] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
    if (tl_sim_below(rng, 3) == 0) {
        const size_t at = tl_sim_below(rng, (uint32_t)trace->n), n = trace->n - at;
        memset(trace->p + at, 0, n < 300 ? n : 300); /* a message without an end */
    }
}

#endif
