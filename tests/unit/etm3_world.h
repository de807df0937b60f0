/* SPDX-License-Identifier: MIT */
/* ETMv3 and PTM of random programs in every mode, with their truth; damaged. */
#ifndef TL_TESTS_ETM3_WORLD_H
#define TL_TESTS_ETM3_WORLD_H

#include "setup/setup.h"
#include "sim/etm3_encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define ETM3_BASE 0x8000u

struct etm3_world {
    struct tl_arm32_program program;
    struct tl_sim_etm3_options options;
    struct tl_buf trace, truth;
    struct tl_setup setup;
    struct tl_image *image;
};

static inline void etm3_choose(struct etm3_world *w, unsigned round, uint32_t insns,
                               struct tl_sim_rng *rng)
{
    const bool ptm = round % 2;
    w->options = (struct tl_sim_etm3_options){
        .seed = round + 1,
        .insns = insns,
        .ptm = ptm,
        .m_profile = !ptm && round % 6 == 4 && round % 8 != 6,
        .alternative_branch = ptm || tl_sim_below(rng, 2),
        .cycle_accurate = tl_sim_below(rng, 2),
        .timestamps = tl_sim_below(rng, 3) > 0,
        .gray = tl_sim_below(rng, 2),
        .wide_time = tl_sim_below(rng, 2),
        .halves = !ptm && round % 8 == 6,
        .exit_packets = tl_sim_below(rng, 3) > 0,
        .context_bytes = (const unsigned[]){0, 1, 2, 4}[tl_sim_below(rng, 4)],
        .stack = ptm && tl_sim_below(rng, 2) ? 1 + tl_sim_below(rng, 16) : 0,
        .barriers = ptm && tl_sim_below(rng, 2),
        .data_addresses = !ptm && round % 4 == 2 && tl_sim_below(rng, 4) > 0,
        .data_values = !ptm && round % 4 == 2 && tl_sim_below(rng, 4) > 0,
        .gaps = tl_sim_below(rng, 2),
        .sync_every = 60 + tl_sim_below(rng, 2000),
    };
}

static inline void etm3_configure(struct etm3_world *w)
{
    const struct tl_sim_etm3_options *const o = &w->options;
    static const unsigned context[] = {0, 1, 2, 0, 3};
    char text[320];
    struct tl_fail fail = {0};
    const unsigned cr = (unsigned)o->data_values << 2 | (unsigned)o->data_addresses << 3 |
                        (unsigned)o->cycle_accurate << 12 | context[o->context_bytes] << 14 |
                        (unsigned)o->timestamps << 28 | (o->stack ? 1u << 29 : 0);
    const unsigned ccer = 1u << 22 | (o->stack ? 1u << 23 : 0) | (unsigned)o->barriers << 24 |
                          (unsigned)!o->gray << 28 | (unsigned)o->wide_time << 29;
    const unsigned idr =
        o->ptm ? 0x411cf312u
               : (o->halves ? 0x4100f250u : 0x4104f250u) | (unsigned)o->alternative_branch << 20;
    const int n =
        snprintf(text, sizeof text,
                 "[trace]\nformat=%s,id=0x10\n[source cs.10]\nprotocol=%s\nid=0x10\ncore=%s\n"
                 "ETMCR=0x%x\nETMCCER=0x%x\nETMIDR=0x%x\n",
                 o->ptm ? "ptm" : "etm3", o->ptm ? "ptm" : "etm3",
                 o->halves      ? "ARM1136"
                 : o->m_profile ? "Cortex-M4"
                                : "Cortex-A7",
                 cr, ccer, idr);
    tl_setup_init(&w->setup);
    if (tl_setup_parse(&w->setup, text, (size_t)n, &fail) < 0)
        fail_msg("%s", fail.text);
}

static inline void etm3_world_init(struct etm3_world *w, unsigned round, uint32_t insns,
                                   struct tl_sim_rng *rng)
{
    struct tl_fail fail = {0};
    memset(w, 0, sizeof *w);
    etm3_choose(w, round, insns, rng);
    assert_int_equal(
        tl_arm32_program_init(&w->program, round / 2 + 1, ETM3_BASE, w->options.m_profile), TL_OK);
    assert_int_equal(tl_sim_etm3_encode(&w->program, &w->options, &w->trace, &w->truth), TL_OK);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, ETM3_BASE,
                                        (struct tl_bytes){w->program.code.p, w->program.code.n},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    etm3_configure(w);
}

static inline void etm3_world_fini(struct etm3_world *w)
{
    tl_arm32_program_fini(&w->program);
    tl_buf_fini(&w->trace);
    tl_buf_fini(&w->truth);
    tl_setup_fini(&w->setup);
    tl_image_free(w->image);
}

static inline void etm3_damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    for (unsigned n = 1 + tl_sim_below(rng, 20); n > 0; n--)
        trace->p[tl_sim_below(rng, (uint32_t)trace->n)] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
}

#endif
