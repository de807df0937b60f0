/* SPDX-License-Identifier: MIT */
/*
 * Flow decoding of tapes, where most packets take the fast path, equals flow decoding of the same
 * packets one by one: for any trace unit, for an image with holes, for damaged bytes, in any
 * chunks.
 */
#include "decode/ops.h"
#include "etm4/flow.h"
#include "etm4/packetizer.h"
#include "image/image.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "steps.h"
#include "unit/framed.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct said {
    struct tl_buf text;
    uint64_t lost; /* sum of lost bytes and their offsets */
    struct tl_etm4_flow *flow;
    struct steps steps;
};

static int take_items(void *context, const struct tl_item *items, size_t n)
{
    struct said *const said = context;
    int rc = TL_OK;
    steps_demand(&said->steps, items, n);
    for (size_t i = 0; rc == TL_OK && i < n; i++) {
        const bool is_path = items[i].kind == TL_ITEM_PATH;
        for (size_t k = 0; rc == TL_OK && k < (is_path ? items[i].n : 1); k++) {
            const struct tl_item one = is_path ? tl_path_item(&items[i], k) : items[i];
            rc = tl_item_text(&said->text, &one, 1);
        }
    }
    return rc;
}

static int take_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct said *const said = context;
    if (strcmp(reason, TL_LOSS_CUT_OFF) != 0) /* of the stream, not of the flow */
        said->lost += offset * 31 + bytes;
    return TL_OK;
}

static int take_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct said *const said = context;
    return tl_etm4_flow_push(said->flow, packets, n);
}

static struct tl_run run_at(const struct tl_buf *trace, size_t i, size_t chunk, bool framed)
{
    const size_t n = trace->n - i < chunk ? trace->n - i : chunk;
    return framed ? framed_run(trace->p + i, n, i) : (struct tl_run){trace->p + i, n, i, NULL};
}

static void by_tape(struct said *out, const struct tl_source *source, const struct tl_image *image,
                    const struct tl_buf *trace, size_t chunk, bool framed)
{
    const struct tl_stream_sink sink = {
        .context = out, .items = take_items, .loss = take_loss, .paths = true};
    struct tl_stream_decoder *d;
    assert_int_equal(tl_etm4_ops.create(&d, source, image, &sink, NULL), TL_OK);
    for (size_t i = 0; i < trace->n; i += chunk) {
        const struct tl_run run = run_at(trace, i, chunk, framed);
        assert_int_equal(d->ops->push(d, &run), TL_OK);
    }
    assert_int_equal(d->ops->finish(d, TL_LOSS_CUT_OFF), TL_OK);
    d->ops->destroy(d);
}

static void by_packet(struct said *out, const struct tl_source *source,
                      const struct tl_image *image, const struct tl_buf *trace, bool framed)
{
    struct tl_etm4_packetizer *const packetizer = malloc(sizeof *packetizer);
    const struct tl_run run = run_at(trace, 0, trace->n, framed);
    struct tl_etm4_config config;
    tl_etm4_config_init(&config, source);
    tl_etm4_packetizer_init(packetizer, &config, take_packets, out);
    assert_int_equal(tl_etm4_flow_new(&out->flow, &config, image, take_items, take_loss, out),
                     TL_OK);
    assert_int_equal(tl_etm4_packetizer_push(packetizer, &run), TL_OK);
    assert_int_equal(tl_etm4_packetizer_finish(packetizer), TL_OK);
    assert_int_equal(tl_etm4_flow_finish(out->flow, tl_run_offset(&run, run.n)), TL_OK);
    tl_etm4_flow_free(out->flow);
    free(packetizer);
}

/* The whole program or two thirds of it; NULL: no image. */
static struct tl_image *image_of(const struct tl_sim_program *program, unsigned holes)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct tl_buf code = {0};
        assert_int_equal(tl_sim_program_code(program, i, &code), TL_OK);
        const size_t part = code.n / 12 * 4;
        const struct tl_bytes first = {code.p, holes & 1 ? part : code.n};
        const struct tl_bytes last = {code.p + 2 * part, code.n - 2 * part};
        assert_int_equal(
            tl_image_add_bytes(image, program->sections[i].base, first, TL_SPACE_ANY, NULL, NULL),
            TL_OK);
        if (holes & 1)
            assert_int_equal(tl_image_add_bytes(image, program->sections[i].base + 2 * part, last,
                                                TL_SPACE_ANY, NULL, NULL),
                             TL_OK);
        tl_buf_fini(&code);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    if (holes < 3)
        return image;
    tl_image_free(image);
    return NULL;
}

static void random_unit(struct tl_sim_core_options *o, struct tl_sim_rng *rng)
{
    *o = tl_sim_core_kinds(tl_sim_rand(rng), tl_sim_below(rng, 8));
    o->irq_every = tl_sim_between(rng, 300, 9000);
    o->off_every = tl_sim_percent(rng, 30) ? 900 : 0;
    o->overflow_every = tl_sim_percent(rng, 20) ? 2000 : 0;
    o->etm.ete = tl_sim_percent(rng, 30);
    o->etm.minor = o->etm.ete ? 3 : 4;
    o->etm.commit_opt = tl_sim_percent(rng, 50);
    o->etm.context_id = tl_sim_percent(rng, 50);
    o->etm.max_spec_depth = tl_sim_percent(rng, 20) ? 20 : 0;
}

static void one(uint64_t seed)
{
    struct tl_sim_rng rng = {seed};
    struct tl_sim_core_options options;
    const struct tl_sim_program_options shape = {.seed = tl_sim_rand(&rng), .extra = 30};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_source source;
    struct tl_buf trace = {0};
    struct said tape = {0}, packets = {0};

    random_unit(&options, &rng);
    assert_int_equal(tl_sim_program_init(&program, &shape), TL_OK);
    assert_int_equal(tl_sim_etm4_source(&options.etm, &source), TL_OK);
    assert_int_equal(tl_sim_core_new(&core, &program, &options, &trace, NULL, NULL), TL_OK);
    assert_int_equal(tl_sim_core_step(core, 6000), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    struct tl_image *const image = image_of(&program, tl_sim_below(&rng, 4));
    for (unsigned n = tl_sim_percent(&rng, 50) ? tl_sim_below(&rng, 60) : 0; n > 0; n--)
        trace.p[tl_sim_below(&rng, (uint32_t)trace.n)] = (uint8_t)tl_sim_rand(&rng);

    const bool framed = tl_sim_percent(&rng, 50);
    const size_t chunk = tl_sim_percent(&rng, 50) ? trace.n : 1 + tl_sim_below(&rng, 900);
    by_tape(&tape, &source, image, &trace, chunk, framed);
    by_packet(&packets, &source, image, &trace, framed);
    if (tape.text.n != packets.text.n || tape.lost != packets.lost ||
        (tape.text.n > 0 && memcmp(tape.text.p, packets.text.p, tape.text.n) != 0))
        fail_msg("seed %llu", (unsigned long long)seed);

    tl_sim_core_free(core);
    tl_image_free(image);
    tl_sim_program_fini(&program);
    tl_buf_fini(&trace);
    tl_buf_fini(&tape.text);
    tl_buf_fini(&packets.text);
}

/* TL_SEED=N runs a single case. */
static void tapes_and_packets_agree(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    for (unsigned k = 0; k < (test_seed_given() ? 1 : 300); k++)
        one(seed + k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tapes_and_packets_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
