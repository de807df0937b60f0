/* SPDX-License-Identifier: MIT */
/* The ETMv4 stream of a simulated core, not in frames, with everything needed to decode it. */
#ifndef TL_TESTS_SIM_WORLD_H
#define TL_TESTS_SIM_WORLD_H

#include "image/image.h"
#include "setup/setup.h"
#include "sim/program_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct world {
    struct tl_sim_program program;
    struct tl_buf trace, code[2];
    struct tl_image *image;
    struct tl_setup setup;
};

/*
 * A program, its image, and at least `bytes` bytes of its trace, or `steps` of 50,000 instructions.
 */
static inline void world_init(struct world *w, const struct tl_sim_program_options *shape,
                              const struct tl_sim_core_options *options, size_t bytes,
                              unsigned steps)
{
    struct tl_sim_core *core;
    memset(w, 0, sizeof *w);
    tl_setup_init(&w->setup);
    w->setup.container = TL_CONTAINER_SINGLE;
    w->setup.sources = calloc(1, sizeof *w->setup.sources);
    w->setup.n_sources = 1;
    assert_int_equal(tl_sim_program_init(&w->program, shape), TL_OK);
    assert_int_equal(tl_sim_etm4_source(&options->etm, &w->setup.sources[0]), TL_OK);
    w->setup.sources[0].id = 0x10;
    assert_int_equal(tl_sim_core_new(&core, &w->program, options, &w->trace, NULL, NULL), TL_OK);
    for (unsigned k = 0; k < steps && w->trace.n < bytes; k++)
        assert_int_equal(tl_sim_core_step(core, 50000), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    tl_sim_core_free(core);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(tl_sim_program_code(&w->program, i, &w->code[i]), TL_OK);
        assert_int_equal(tl_image_add_bytes(w->image, w->program.sections[i].base,
                                            (struct tl_bytes){w->code[i].p, w->code[i].n},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
    }
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
}

static inline void world_fini(struct world *w)
{
    tl_image_free(w->image);
    tl_buf_fini(&w->code[0]);
    tl_buf_fini(&w->code[1]);
    tl_buf_fini(&w->trace);
    tl_sim_program_fini(&w->program);
    tl_setup_fini(&w->setup);
}

#endif
