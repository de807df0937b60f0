/* SPDX-License-Identifier: MIT */
/*
 * Inputs of the benchmarks: traces of a simulated core, in several mixes, and real captures where
 * available, each with its image.
 */
#ifndef TL_BENCH_INPUTS_H
#define TL_BENCH_INPUTS_H

#include "bench/capture.h"
#include "sim/program_core.h"

#include <stdlib.h>

#ifdef HAVE_OPENCSD
#include "opencsd.h"
#endif

#define INPUT_INSNS  (12u << 20) /* maximum for the simulated core */
#define INPUT_STEP   (1u << 18)
#define INPUT_PIECE  (2u << 20) /* bytes of repeated capture */
#define INPUT_PLACES 16 /* maximum number of memory regions given to the reference decoder */

struct input {
    const char *name;
    struct tl_source source;
    struct tl_image *image;
    struct tl_buf trace;
    uint64_t places[INPUT_PLACES];
    size_t n_places; /* of the image */
};

struct input_mix {
    const char *name;
    struct tl_sim_core_options options;
};

static const struct input_mix input_mixes[] = {
    {"atoms, return stack", {.seed = 2, .etm = {.minor = 2, .return_stack = true}}},
    {"atoms, timestamps",
     {.seed = 2,
      .etm = {.minor = 2, .return_stack = true, .timestamps = true, .timestamp_every = 300}}},
    {"no return stack", {.seed = 2, .etm = {.minor = 2}}},
    {"branch broadcast", {.seed = 1, .etm = {.minor = 2, .branch_broadcast = true}}},
    {"cycle counts, timestamps",
     {.seed = 3,
      .etm = {.minor = 2,
              .return_stack = true,
              .cycle_count = true,
              .threshold = 16,
              .commit_opt = true,
              .timestamps = true,
              .timestamp_every = 2000,
              .context_id = true}}},
    {"exceptions",
     {.seed = 4,
      .irq_every = 400,
      .fault_every = 300,
      .etm = {.minor = 2, .return_stack = true, .context_id = true}}},
};

#define N_INPUT_MIXES (sizeof input_mixes / sizeof *input_mixes)

static inline void input_die(const char *why)
{
    fprintf(stderr, "input: %s\n", why);
    exit(1);
}

/* Does the image have contents at `address`? */
static inline void input_place(struct input *in, uint64_t address)
{
    if (in->n_places == INPUT_PLACES)
        input_die("too many regions");
    in->places[in->n_places++] = address;
}

static inline void input_simulate(struct input *in, const struct input_mix *mix, uint64_t bytes)
{
    const struct tl_sim_program_options options = {.seed = 1, .extra = 300};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    in->name = mix->name;
    if (tl_sim_program_init(&program, &options) < 0 || tl_image_new(&in->image) < 0 ||
        tl_sim_etm4_source(&mix->options.etm, &in->source) < 0 ||
        tl_sim_core_new(&core, &program, &mix->options, &in->trace, NULL, NULL) < 0)
        input_die("the trace cannot be made");
    for (unsigned done = 0; done < INPUT_INSNS && in->trace.n < bytes; done += INPUT_STEP)
        if (tl_sim_core_step(core, INPUT_STEP) < 0)
            input_die("the trace cannot be made");
    if (tl_sim_core_flush(core) < 0)
        input_die("the trace cannot be made");
    tl_sim_core_free(core);
    for (unsigned i = 0; i < 2; i++) {
        struct tl_buf code = {0};
        if (tl_sim_program_code(&program, i, &code) < 0 ||
            tl_image_add_bytes(in->image, program.sections[i].base,
                               (struct tl_bytes){code.p, code.n}, TL_SPACE_ANY, NULL, NULL) < 0)
            input_die("the image cannot be made");
        input_place(in, program.sections[i].base);
        tl_buf_fini(&code);
    }
    if (tl_image_freeze(in->image) < 0)
        input_die("the image cannot be made");
    tl_sim_program_fini(&program);
}

/* Of a capture in `folder`. Returns false, after printing why, if it cannot be measured. */
static inline bool input_capture_from(struct input *in, const char *name, const char *folder,
                                      const char *snapshot, enum tl_protocol protocol)
{
    struct capture capture;
    if (!capture_read_from(&capture, folder, snapshot, protocol)) {
        printf("%s: not there\n", name);
        return false;
    }
    const struct tl_setup *const setup = &capture.snapshot.captures[0].setup;
    in->name = name;
    in->source = *capture.source;
    if (tl_image_new(&in->image) < 0 ||
        tl_setup_load_images(setup, in->image, NULL, NULL, NULL) < 0 ||
        tl_image_freeze(in->image) < 0)
        input_die("the image cannot be read");
    for (size_t i = 0; i < setup->n_images; i++)
        input_place(in, setup->images[i].address);
    const bool some = !tl_image_is_empty(in->image);
    if (!some) {
        printf("%s: no flow, there is no image\n", name);
        tl_image_free(in->image);
    } else {
        if (!capture_cut(&capture.trace, protocol))
            printf("%s: repeated whole, there are no two A-Syncs\n", name);
        while (in->trace.n < INPUT_PIECE)
            if (tl_buf_add(&in->trace, capture.trace.p, capture.trace.n) < 0)
                input_die("out of memory");
    }
    capture_fini(&capture);
    return some;
}

static inline bool input_capture(struct input *in, const char *name)
{
    return input_capture_from(in, name, "snapshots", name, TL_PROTO_ETM4);
}

static inline bool input_older(struct input *in, const struct older_capture *of)
{
    return input_capture_from(in, of->name, "older", of->snapshot, of->protocol);
}

/* The input whose name contains `name`; a mix gets at least `bytes` of trace. Returns false if it
 * is not available. */
static inline bool input_named(struct input *in, const char *name, uint64_t bytes)
{
    *in = (struct input){0};
    for (size_t i = 0; i < N_INPUT_MIXES; i++) {
        if (strstr(input_mixes[i].name, name)) {
            input_simulate(in, &input_mixes[i], bytes);
            return true;
        }
    }
    return input_capture(in, name);
}

static inline void input_drop(struct input *in)
{
    tl_image_free(in->image);
    tl_buf_fini(&in->trace);
}

#ifdef HAVE_OPENCSD
/* Decode the flow of the first `n` bytes, `piece` at a time; returns the number of instructions. */
static inline uint64_t input_decode_opencsd(const struct input *in, size_t n, size_t piece)
{
    struct tl_opencsd_memory memory[INPUT_PLACES];
    for (size_t i = 0; i < in->n_places; i++)
        memory[i] = (struct tl_opencsd_memory){in->places[i],
                                               tl_image_at(in->image, TL_SPACE_ANY, in->places[i])};
    const uint64_t insns =
        tl_opencsd_decode(&in->source, memory, in->n_places, in->trace.p, n, piece);
    if (insns == 0)
        input_die("OpenCSD failed");
    return insns;
}
#endif

#endif
