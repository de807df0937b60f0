/* SPDX-License-Identifier: MIT */
/* The RAM of an MTB after a random program ran, with its truth; damaged. */
#ifndef TL_TESTS_MTB_WORLD_H
#define TL_TESTS_MTB_WORLD_H

#include "base/bytes.h"
#include "setup/setup.h"
#include "sim/mtb_encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { MTB_BASE = 0x8000, MTB_TABLE = 0x400, MTB_RAM = 0x20000000 };

struct mtb_world {
    struct tl_arm32_program program;
    struct tl_sim_mtb mtb;
    struct tl_setup setup;
    struct tl_image *image;
};

static inline void mtb_world_init(struct mtb_world *w, unsigned round, uint32_t insns,
                                  struct tl_sim_rng *rng)
{
    uint8_t table[4 * (TL_SIM_MTB_VECTOR + 1)] = {0};
    char text[320];
    struct tl_fail fail = {0};
    memset(w, 0, sizeof *w);
    const unsigned mask = 4 + tl_sim_below(rng, 8), buffer = 16u << mask;
    const struct tl_sim_mtb_options o = {.seed = round + 1,
                                         .insns = insns,
                                         .mask = mask,
                                         .front = buffer * tl_sim_below(rng, 3),
                                         .gaps = tl_sim_below(rng, 2)};
    assert_int_equal(tl_arm32_program_init(&w->program, round + 1, MTB_BASE, true), TL_OK);
    assert_int_equal(tl_sim_mtb_encode(&w->program, &o, &w->mtb), TL_OK);
    tl_put_le32(table + 4 * TL_SIM_MTB_VECTOR, w->program.insns[w->program.handler].address | 1);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, MTB_BASE,
                                        (struct tl_bytes){w->program.code.p, w->program.code.n},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, MTB_TABLE, (struct tl_bytes){table, sizeof table},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    int n = snprintf(text, sizeof text,
                     "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\nBASE=0x%x\nPOSITION=0x%x\n"
                     "MTB_MASTER=0x%x\nVTOR=0x%x\n",
                     MTB_RAM, w->mtb.position, 0x80000000u | mask, MTB_TABLE);
    if (w->mtb.has_pc)
        n += snprintf(text + n, sizeof text - (size_t)n, "PC=0x%x\n", w->mtb.pc);
    tl_setup_init(&w->setup);
    assert_int_equal(tl_setup_parse(&w->setup, text, (size_t)n, &fail), TL_OK);
}

static inline void mtb_world_fini(struct mtb_world *w)
{
    tl_arm32_program_fini(&w->program);
    tl_sim_mtb_fini(&w->mtb);
    tl_setup_fini(&w->setup);
    tl_image_free(w->image);
}

static inline void mtb_damage(struct tl_buf *ram, struct tl_sim_rng *rng)
{
    for (unsigned n = 1 + tl_sim_below(rng, 20); n > 0; n--)
        ram->p[tl_sim_below(rng, (uint32_t)ram->n)] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
}

#endif
