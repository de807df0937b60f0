/* SPDX-License-Identifier: MIT */
/*
 * A format that is registered only by a row in a table gets flow, for any chunking, several
 * threads, and checkpoints. `test_toy DIR` instead writes a capture for tests of the whole command.
 */
#include "base/crew.h"
#include "image/image.h"
#include "steps.h"
#include "toy/toy_sim.h"
#include "unit/hand_on.h"
#include "unit/split_help.h"

#include <stdio.h>
#include <stdlib.h>

struct world {
    struct toy_sim sim;
    struct tl_image *image;
    struct tl_setup setup;
};

static void world_init(struct world *w, uint64_t seed, size_t bytes)
{
    struct tl_fail fail = {0};
    toy_sim_init(&w->sim, seed, bytes, 3000);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(w->image, TOY_BASE,
                           (struct tl_bytes){(uint8_t *)w->sim.code, sizeof w->sim.code},
                           TL_SPACE_ANY, NULL, &fail),
        TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    tl_setup_init(&w->setup);
    assert_int_equal(tl_setup_format(&w->setup, "toy,id=3", &fail), TL_OK);
}

static void world_fini(struct world *w)
{
    toy_sim_fini(&w->sim);
    tl_image_free(w->image);
    tl_setup_fini(&w->setup);
}

static void the_table_says_it_all(void **state)
{
    (void)state;
    struct tl_setup setup;
    struct tl_fail fail = {0};
    char names[80];
    tl_setup_init(&setup);
    assert_string_equal(tl_format_names(names, sizeof names), "toy");
    assert_int_equal(tl_setup_format(&setup, "etm4", &fail), TL_USAGE);
    assert_int_equal(tl_setup_format(&setup, "toy,id=3", &fail), TL_OK);
    assert_string_equal(setup.sources[0].name, "toy.3");
    assert_int_equal(tl_stream_id("toy.3"), 3);
    assert_true(tl_protocol_has(setup.sources[0].protocol, TL_TRAIT_FLOW));
    tl_setup_fini(&setup);
}

/* Executed instructions, in order. */
struct seen {
    const struct toy_sim *sim;
    size_t n; /* bytes of the truth */
    uint64_t gaps, branches;
    struct steps steps;
};

static int see(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
               size_t n)
{
    struct seen *const seen = context;
    assert_string_equal(stream->name, "toy.3");
    steps_demand(&seen->steps, items, n);
    for (size_t i = 0; i < n; i++) {
        seen->gaps += items[i].kind == TL_ITEM_GAP;
        seen->branches += tl_item_is_branch(&items[i]);
        for (uint32_t k = 0; items[i].kind == TL_ITEM_BLOCK && k < items[i].n; k++) {
            uint32_t at;
            assert_true(seen->n + sizeof at <= seen->sim->known);
            memcpy(&at, seen->sim->truth.p + seen->n, sizeof at);
            assert_int_equal(items[i].block->pc + 4 * k, TOY_BASE + 4 * at);
            seen->n += sizeof at;
        }
    }
    return TL_OK;
}

static void decode(const struct world *w, const struct tl_image *image, size_t chunk,
                   struct seen *seen)
{
    const struct tl_decode_sink sink = {.context = seen, .items = see};
    const struct tl_buf *const trace = &w->sim.trace;
    struct tl_decode *d;
    struct tl_fail fail = {0};
    *seen = (struct seen){.sim = &w->sim};
    assert_int_equal(tl_decode_new(&d, &w->setup, image, &sink, &fail), TL_OK);
    for (size_t at = 0; at < trace->n; at += chunk)
        assert_int_equal(
            tl_decode_push(d, trace->p + at, chunk < trace->n - at ? chunk : trace->n - at), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void flow_is_the_truth(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct world w;
        struct seen seen;
        world_init(&w, seed, 20000);
        for (size_t chunk = 1; chunk < 100000; chunk *= 300) {
            decode(&w, w.image, chunk, &seen);
            assert_int_equal(seen.n, w.sim.known);
            assert_int_equal(seen.gaps, 0);
        }
        decode(&w, NULL, 5000, &seen);
        assert_int_equal(seen.n, 0);
        assert_true(seen.branches > 1000);
        world_fini(&w);
    }
}

/* Parts that other threads decoded ahead are used. */
static void threads_are_of_use(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 1, 1 << 20);
    assert_met(&tl_toy_ops, &w.setup.sources[0], w.image, &w.sim.trace, true);
    world_fini(&w);
}

/* Items, losses and offsets are the same, also for damaged bytes. */
static void threads_and_checkpoints_change_nothing(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {7};
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    for (unsigned round = 0; round < 8; round++) {
        struct world w;
        world_init(&w, round, 400000);
        struct tl_buf *const trace = &w.sim.trace;
        for (unsigned i = 0; i < round * 10; i++)
            trace->p[tl_sim_below(&rng, (uint32_t)trace->n)] = (uint8_t)tl_sim_below(&rng, 256);
        struct run run = {.setup = &w.setup,
                          .image = w.image,
                          .in = {trace->p, trace->n},
                          .paths = round % 2,
                          .crew = crew};
        assert_true(compare(&run, round < 4 ? 200000 : 5000, &rng) > 0);
        world_fini(&w);
    }
    tl_crew_free(crew);
}

static void write_file(const char *dir, const char *name, const void *p, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Write the capture, the program, and the flow text of the instructions known from the trace. */
static int write_capture(const char *dir)
{
    struct world w;
    struct tl_buf text = {0};
    world_init(&w, 1, 1 << 20);
    for (size_t i = 0; i < w.sim.known; i += 4) {
        uint32_t at;
        memcpy(&at, w.sim.truth.p + i, sizeof at);
        assert_int_equal(tl_buf_printf(&text, "I %016x %08x\n", TOY_BASE + 4 * at, w.sim.code[at]),
                         TL_OK);
    }
    write_file(dir, "trace.toy", w.sim.trace.p, w.sim.trace.n);
    write_file(dir, "program.bin", w.sim.code, sizeof w.sim.code);
    write_file(dir, "truth.txt", text.p, text.n);
    tl_buf_fini(&text);
    world_fini(&w);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_says_it_all),
        cmocka_unit_test(flow_is_the_truth),
        cmocka_unit_test(threads_are_of_use),
        cmocka_unit_test(threads_and_checkpoints_change_nothing),
    };
    return argc > 1 ? write_capture(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
