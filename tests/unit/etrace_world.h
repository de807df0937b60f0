/* SPDX-License-Identifier: MIT */
/* E-Trace of random programs with every combination of options. */
#ifndef TL_TESTS_ETRACE_WORLD_H
#define TL_TESTS_ETRACE_WORLD_H

#include "setup/setup.h"
#include "sim/etrace_encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct etrace_world {
    struct tl_sim_riscv_options program;
    struct tl_sim_etrace_options encoder;
    struct tl_sim_riscv_run run;
    struct tl_sim_etrace trace;
    struct tl_setup setup;
    struct tl_image *image;
};

static inline uint8_t etrace_one_of(struct tl_sim_rng *rng, unsigned percent, uint8_t min,
                                    uint8_t most)
{
    return tl_sim_percent(rng, percent) ? (uint8_t)tl_sim_between(rng, min, most) : 0;
}

static inline void etrace_choose_options(struct etrace_world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    const bool wide = w->program.xlen == 64;
    p->isa = wide ? TL_ISA_RV64 : TL_ISA_RV32;
    p->iaddress_width = wide ? (uint8_t)tl_sim_between(rng, 40, 64) : 32;
    p->iaddress_lsb = w->program.compressed ? 1 : (uint8_t)tl_sim_between(rng, 1, 2);
    p->privilege_width = (uint8_t)tl_sim_between(rng, 2, 3);
    p->ecause_width = (uint8_t)tl_sim_between(rng, 4, 6);
    p->context_width = etrace_one_of(rng, 40, 10, 20);
    p->time_width = etrace_one_of(rng, 20, 20, 40);
    p->bpred_size = etrace_one_of(rng, 50, 1, 8);
    p->cache_size = etrace_one_of(rng, 50, 1, 7);
    p->f0s_width = p->bpred_size && p->cache_size ? (uint8_t)tl_sim_between(rng, 1, 2) : 0;
    p->encoder_mode_width = (uint8_t)tl_sim_between(rng, 1, 3);
    p->ioptions_width = 5;
    const unsigned returns = tl_sim_below(rng, 3);
    p->return_stack_size = returns == 1 ? (uint8_t)tl_sim_between(rng, 1, 5) : 0;
    p->call_counter_size = returns == 2 ? (uint8_t)tl_sim_between(rng, 1, 5) : 0;
    p->irdepth_width =
        (uint8_t)(p->return_stack_size + (p->return_stack_size > 0) + p->call_counter_size);
    p->sijump = tl_sim_below(rng, 2);
    w->encoder.options = (returns ? TL_ETRACE_IMPLICIT_RETURN : 0) |
                         (p->bpred_size ? TL_ETRACE_PREDICTION : 0) |
                         (p->cache_size ? TL_ETRACE_TARGET_CACHE : 0) |
                         (tl_sim_below(rng, 4) ? 0 : TL_ETRACE_FULL_ADDRESS) |
                         (p->sijump ? TL_ETRACE_SEQUENTIAL : 0);
    w->program.one_handler = tl_sim_below(rng, 4) == 0;
    if (w->program.one_handler)
        w->encoder.options |= TL_ETRACE_IMPLICIT_EXCEPTION;
    w->program.true_returns = returns == 2;
}

static inline void etrace_choose_envelope(struct etrace_world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_envelope *const v = &w->encoder.envelope;
    v->wrapping = tl_sim_below(rng, 3) ? TL_ETRACE_ENCAP : TL_ETRACE_SMI;
    v->src_bits = etrace_one_of(rng, 50, 1, 12);
    if (v->wrapping == TL_ETRACE_ENCAP) {
        v->ts_bytes = etrace_one_of(rng, 50, 1, 4);
        v->type_bits = (uint8_t)tl_sim_below(rng, 3);
    }
    w->encoder.src = v->src_bits ? 1 : 0;
}

/* E-Trace 2.1: sizes come in support packets; returns are counted; format 3 may not make the
 * encoder forget. */
static inline void etrace_choose_sized(struct etrace_world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    p->unit = TL_ETRACE_2_1;
    p->encoder_mode_width = 2;
    p->ioptions_width = 26;
    p->time_width = (uint8_t)(p->time_width ? 16 * tl_sim_between(rng, 1, 4) : 0);
    p->bpred_size = p->bpred_size < 7 ? p->bpred_size : 7;
    if (w->encoder.options & TL_ETRACE_IMPLICIT_RETURN && tl_sim_below(rng, 4)) {
        w->encoder.options |= TL_ETRACE_IRETS;
        p->irets = true;
        p->irdepth_width = 8;
        if (p->return_stack_size)
            p->call_counter_size = (uint8_t)tl_sim_below(rng, 4);
    }
    if (tl_sim_below(rng, 2)) {
        w->encoder.options |= TL_ETRACE_NO_RESYNC;
        w->encoder.resync = 0;
    }
}

/* PULP's unit: records, addresses that are not shifted, options in another order. Where differences
 * of addresses count from is not settled, so both are tried. */
static inline void etrace_choose_pulp(struct etrace_world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    p->unit = TL_ETRACE_PULP;
    p->iaddress_lsb = 0;
    p->ioptions_width = 7;
    p->time_width = 0;
    p->from_sync = tl_sim_below(rng, 2);
    w->encoder.envelope = (struct tl_etrace_envelope){.wrapping = TL_ETRACE_RECORDS};
    w->encoder.src = 0;
}

/* Espressif's chips: packets of version 1.x, or of 2.0 as newer ones send, both without options. */
static inline void etrace_choose_chip(struct etrace_world *w, bool old)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    w->program.xlen = 32;
    w->program.base = 0x42000000;
    w->program.trap_per_mille = w->program.context_per_mille = 0;
    w->program.true_returns = w->program.one_handler = false;
    *p = (struct tl_etrace_params){.unit = old ? TL_ETRACE_ESP32 : TL_ETRACE_REFERENCE,
                                   .isa = TL_ISA_RV32,
                                   .iaddress_width = 32,
                                   .iaddress_lsb = 1,
                                   .privilege_width = 1,
                                   .ecause_width = 5,
                                   .encoder_mode_width = 1,
                                   .ioptions_width = 5};
    w->program.compressed = true;
    w->encoder.options = 0;
    w->encoder.precise = false;
    w->encoder.envelope = (struct tl_etrace_envelope){.wrapping = TL_ETRACE_INDEXED};
    w->encoder.src = 0;
}

static inline void etrace_set_up(struct etrace_world *w)
{
    const struct tl_etrace_params *const p = &w->encoder.params;
    const struct tl_etrace_envelope *const v = &w->encoder.envelope;
    const bool chip = v->wrapping == TL_ETRACE_INDEXED, sized = p->unit == TL_ETRACE_2_1;
    struct tl_buf ini = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_buf_printf(&ini, "[trace]\nformat=%s",
                                   chip                           ? "etrace-esp32"
                                   : v->wrapping == TL_ETRACE_SMI ? "etrace-smi"
                                                                  : "etrace-encap"),
                     TL_OK);
    if (v->src_bits)
        assert_int_equal(tl_buf_printf(&ini, ",src_bits=%u", v->src_bits), TL_OK);
    if (v->ts_bytes)
        assert_int_equal(tl_buf_printf(&ini, ",ts_bytes=%u", v->ts_bytes), TL_OK);
    if (v->type_bits)
        assert_int_equal(tl_buf_printf(&ini, ",type_bits=%u", v->type_bits), TL_OK);
    assert_int_equal(tl_buf_printf(&ini,
                                   "\n[source et.%x]\nprotocol=e-trace\ncore=rv%u%s\nunit=%s\n"
                                   "iaddress_width_p=%u\niaddress_lsb_p=%u\nprivilege_width_p=%u\n"
                                   "ecause_width_p=%u\n",
                                   w->encoder.src, w->program.xlen, w->run.jvt ? "imac_zcmt" : "",
                                   chip && p->unit == TL_ETRACE_REFERENCE ? "esp32-P4"
                                   : chip                                 ? "esp32-c6"
                                   : sized                                ? "reference-2.1"
                                   : p->unit == TL_ETRACE_PULP            ? "pulp"
                                                                          : "reference",
                                   p->iaddress_width, p->iaddress_lsb, p->privilege_width,
                                   p->ecause_width),
                     TL_OK);
    if (!sized) /* else support packets have them */
        assert_int_equal(
            tl_buf_printf(&ini,
                          "return_stack_size_p=%u\ncall_counter_size_p=%u\n"
                          "bpred_size_p=%u\ncache_size_p=%u\nf0s_width_p=%u\nsijump_p=%u\n"
                          "encoder_mode_width_p=%u\n",
                          p->return_stack_size, p->call_counter_size, p->bpred_size, p->cache_size,
                          p->f0s_width, p->sijump, p->encoder_mode_width),
            TL_OK);
    if (w->run.jvt)
        assert_int_equal(tl_buf_printf(&ini, "jvt=0x%llx\n", (unsigned long long)w->run.jvt),
                         TL_OK);
    if (p->from_sync)
        assert_int_equal(tl_buf_printf(&ini, "delta_from_sync_p=1\n"), TL_OK);
    if (p->context_width)
        assert_int_equal(tl_buf_printf(&ini, "context_width_p=%u\n", p->context_width), TL_OK);
    if (w->program.one_handler)
        assert_int_equal(tl_buf_printf(&ini, "mtvec=0x%llx\n", (unsigned long long)w->program.base),
                         TL_OK);
    if (p->time_width && !sized)
        assert_int_equal(tl_buf_printf(&ini, "time_width_p=%u\n", p->time_width), TL_OK);
    tl_setup_init(&w->setup);
    if (tl_setup_parse(&w->setup, (const char *)ini.p, ini.n, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_buf_fini(&ini);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, w->program.base,
                                        (struct tl_bytes){w->run.code.p, w->run.code.n},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
}

/* `tables`: the program has Zcmt's jumps, which chips lack. `bogus`: packets between support
 * packets that the encoder did not send. */
static inline void etrace_world_make(struct etrace_world *w, unsigned round, uint32_t events,
                                     bool tables, uint32_t bogus)
{
    struct tl_sim_rng rng = {1000 + round};
    *w = (struct etrace_world){.encoder.seed = round, .encoder.bogus = bogus};
    w->program = (struct tl_sim_riscv_options){
        .seed = round,
        .xlen = tl_sim_below(&rng, 3) ? 64 : 32,
        .compressed = tl_sim_below(&rng, 4) > 0,
        .events = events,
        .trap_per_mille = tl_sim_below(&rng, 2) ? tl_sim_below(&rng, 30) : 0,
    };
    w->program.compressed |= tables;
    w->program.tables = tables;
    w->program.base =
        w->program.xlen == 64 && tl_sim_below(&rng, 2) ? 0xffffffc080000000 : 0x80000000;
    etrace_choose_options(w, &rng);
    if (w->encoder.params.context_width)
        w->program.context_per_mille = tl_sim_below(&rng, 20);
    etrace_choose_envelope(w, &rng);
    w->encoder.resync = tl_sim_below(&rng, 2) ? 20 + tl_sim_below(&rng, 400) : 0;
    w->encoder.notify = tl_sim_below(&rng, 3) ? 0 : 20 + tl_sim_below(&rng, 400);
    w->encoder.precise = tl_sim_below(&rng, 2);
    w->encoder.off_each = tl_sim_below(&rng, 2) ? 0 : 200 + tl_sim_below(&rng, 900);
    if (round % 10 == 9 && !tables)
        etrace_choose_chip(w, round % 20 == 9);
    else if (round % 3 == 2)
        etrace_choose_sized(w, &rng);
    else if (round % 6 == 1)
        etrace_choose_pulp(w, &rng);
    w->encoder.repeats = round / 2 % 2;
    w->encoder.plain = round % 2 && !(w->encoder.options & TL_ETRACE_IMPLICIT_RETURN);
    w->encoder.lengths = (uint8_t)tl_sim_below(&rng, 4);
    const uint8_t wrapping = w->encoder.envelope.wrapping;
    const bool has_types = wrapping == TL_ETRACE_SMI ||
                           (wrapping == TL_ETRACE_ENCAP && w->encoder.envelope.type_bits > 0);
    w->encoder.data = has_types && round % 11 == 7 ? 1 + tl_sim_below(&rng, 20) : 0;
    if (round % 11 == 7 || round % 13 == 9)
        w->encoder.again = 50 + tl_sim_below(&rng, 400);
    assert_int_equal(tl_sim_riscv_run(&w->run, &w->program), TL_OK);
    assert_int_equal(tl_sim_etrace_encode(&w->trace, &w->run, &w->encoder), TL_OK);
    etrace_set_up(w);
}

static inline void etrace_world_init_bogus(struct etrace_world *w, unsigned round, uint32_t events,
                                           uint32_t bogus)
{
    etrace_world_make(w, round, events, false, bogus);
}

static inline void etrace_world_init(struct etrace_world *w, unsigned round, uint32_t events)
{
    etrace_world_make(w, round, events, false, 0);
}

static inline void etrace_world_fini(struct etrace_world *w)
{
    tl_image_free(w->image);
    tl_setup_fini(&w->setup);
    tl_sim_etrace_fini(&w->trace);
    tl_sim_riscv_run_fini(&w->run);
}

#endif
