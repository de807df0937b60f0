/* SPDX-License-Identifier: MIT */
/*
 * A decode that is saved between two pushes and loaded into a new one gives exactly the result of
 * an undisturbed one: every item, every offset, every loss. On simulated streams, intact and
 * damaged, in frames of every kind, with software trace in between, of RISC-V, and on real
 * captures, each handed from decode to decode many times. Bytes that are not a valid state are
 * refused.
 */
#include "import/bundle.h"
#include "sim/orbflow.h"
#include "unit/data.h"
#include "unit/etm3_world.h"
#include "unit/etrace_world.h"
#include "unit/hand_on.h"
#include "unit/mtb_world.h"
#include "unit/nexus_world.h"
#include "unit/sim_loading.h"
#include "unit/sim_streams.h"

#include <dirent.h>

enum { ROUNDS = 24, STEP = 111 };

/* ---- simulated streams --------------------------------------------------------------------- */

static void simulated_streams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {77};
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        streamed_world(&w, round, 60000, 8, &rng);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 5 ? NULL : w.image,
                          .in = {w.trace.p, w.trace.n},
                          .paths = round % 4 > 0,
                          .crew = round % 8 == 6 ? crew : NULL};
        assert_true(compare(&run, round % 2 ? 300 : 4000, &rng) > 0);
        world_fini(&w);
    }
    tl_crew_free(crew);
}

/* The time is part of the state if the image changes over time. */
static void code_that_changes(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {78};
    for (unsigned round = 0; round < 8; round++) {
        const struct tl_sim_etm4_options etm = loading_etm(round);
        struct tl_sim_loading l;
        struct world w;
        loading_world(&w, &l, &etm, round, 40000, 2000);
        struct run run = {
            .setup = &w.setup, .image = w.image, .in = {w.trace.p, w.trace.n}, .paths = round % 2};
        assert_true(compare(&run, round % 3 ? 300 : 4000, &rng) > 0);
        tl_sim_loading_fini(&l);
        world_fini(&w);
    }
}

/* ---- several sources ------------------------------------------------------------------------ */

static void add_source(struct tl_setup *setup, enum tl_protocol protocol, uint16_t id)
{
    struct tl_source *source = tl_setup_add_source(setup);
    assert_non_null(source);
    source->protocol = (uint8_t)protocol;
    source->id = id;
}

/* Artificial software trace: synchronisation from time to time, and arbitrary bytes in between. */
static size_t some_software(struct tl_sim_rng *rng, bool stm, uint8_t out[static 64])
{
    size_t n = 0;
    if (tl_sim_below(rng, 8) == 0) {
        memset(out, stm ? 0xff : 0, 16);
        n = stm ? 10 : 5;
        out[n++] = stm ? 0x0f : 0x80;
    }
    for (size_t i = tl_sim_below(rng, 20); i > 0; i--)
        out[n++] = (uint8_t)tl_sim_below(rng, 256) & (stm ? 0xff : 0x1f);
    return n;
}

static void mix(struct tl_buf *trace, enum tl_tpiu_sync sync, struct tl_sim_rng *rng)
{
    struct tl_tpiu_encoder e;
    uint8_t bytes[64];
    tl_tpiu_encoder_init(&e, sync, 3);
    for (size_t at = 0; at < trace->n;) {
        size_t n = 1 + tl_sim_below(rng, 400);
        n = n < trace->n - at ? n : trace->n - at;
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, trace->p + at, n), TL_OK);
        at += n;
        n = some_software(rng, false, bytes);
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x20, bytes, n), TL_OK);
        n = some_software(rng, true, bytes);
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x30, bytes, n), TL_OK);
    }
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    tl_buf_fini(trace);
    *trace = e.out;
}

/* A core, an ITM and an STM in frames. */
static void mixed_world(struct world *w, unsigned round, struct tl_sim_rng *rng)
{
    static const struct {
        enum tl_tpiu_sync encoder;
        enum tl_frame_sync setup;
    } syncs[] = {{TL_TPIU_ALIGNED, TL_SYNC_NONE},
                 {TL_TPIU_FSYNC, TL_SYNC_FSYNC},
                 {TL_TPIU_HSYNC, TL_SYNC_HSYNC},
                 {TL_TPIU_DSTREAM, TL_SYNC_DSTREAM}};
    const struct tl_sim_program_options shape = {.seed = round, .extra = 40};
    const struct tl_sim_core_options options = random_options(rng);
    world_init(w, &shape, &options, 40000, 8);
    w->setup.cap_sources = 1;
    add_source(&w->setup, TL_PROTO_ITM, 0x20);
    add_source(&w->setup, TL_PROTO_STM, 0x30);
    w->setup.container = TL_CONTAINER_TPIU;
    w->setup.sync = (uint8_t)syncs[round % 4].setup;
    mix(&w->trace, syncs[round % 4].encoder, rng);
    if (round % 8 > 4)
        damage(&w->trace, rng);
}

static void several_sources(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {5};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        mixed_world(&w, round, &rng);
        struct run run = {
            .setup = &w.setup, .image = w.image, .in = {w.trace.p, w.trace.n}, .paths = true};
        assert_true(compare(&run, 2000, &rng) > 0);
        world_fini(&w);
    }
}

/* A core, an ITM and an STM by orbuculum's connections. */
static void frame_world(struct world *w, unsigned round, struct tl_sim_rng *rng)
{
    static const uint8_t ids[] = {0x10, 0x20, 0x30};
    struct tl_buf out = {0};
    uint8_t bytes[64];
    const struct tl_sim_program_options shape = {.seed = round, .extra = 40};
    const struct tl_sim_core_options options = random_options(rng);
    world_init(w, &shape, &options, 20000, 8);
    w->setup.cap_sources = 1;
    add_source(&w->setup, TL_PROTO_ITM, ids[1]);
    add_source(&w->setup, TL_PROTO_STM, ids[2]);
    w->setup.container = TL_CONTAINER_ORBFLOW;
    for (size_t at = 0; at < w->trace.n;) {
        const size_t left = w->trace.n - at, n = 1 + tl_sim_below(rng, 400);
        const size_t part = n < left ? n : left;
        assert_int_equal(tl_sim_orbflow_add(&out, ids[0], w->trace.p + at, part), TL_OK);
        at += part;
        for (unsigned i = 1; i < sizeof ids; i++) {
            const size_t m = some_software(rng, i == 2, bytes);
            if (m)
                assert_int_equal(tl_sim_orbflow_add(&out, ids[i], bytes, m), TL_OK);
        }
    }
    tl_buf_fini(&w->trace);
    w->trace = out;
    if (round % 3 == 2)
        damage(&w->trace, rng);
}

static void orbflow(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {16};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        frame_world(&w, round, &rng);
        struct run run = {
            .setup = &w.setup, .image = w.image, .in = {w.trace.p, w.trace.n}, .paths = round % 2};
        assert_true(compare(&run, round % 3 ? 300 : 2000, &rng) > 0);
        world_fini(&w);
    }
}

/* ---- ETMv3 and PTM --------------------------------------------------------------------------- */

static void older_etm(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {14};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct etm3_world w;
        etm3_world_init(&w, round, 3000, &rng);
        if (round % 3 == 2)
            etm3_damage(&w.trace, &rng);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 5 ? NULL : w.image,
                          .in = {w.trace.p, w.trace.n},
                          .paths = round % 2};
        assert_true(compare(&run, round % 3 ? 60 : 400, &rng) > 0);
        etm3_world_fini(&w);
    }
}

/* ---- MTB ------------------------------------------------------------------------------------- */

static void branch_buffer(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {15};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mtb_world w;
        mtb_world_init(&w, round, 3000, &rng);
        if (round % 3 == 2)
            mtb_damage(&w.mtb.ram, &rng);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 5 ? NULL : w.image,
                          .in = {w.mtb.ram.p, w.mtb.ram.n},
                          .paths = round % 2};
        assert_true(compare(&run, round % 3 ? 60 : 400, &rng) > 0);
        mtb_world_fini(&w);
    }
}

/* ---- RISC-V ---------------------------------------------------------------------------------- */

static void n_trace(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {4};
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct nexus_world w;
        nexus_world_init(&w, round, 8000, &rng);
        if (round % 3 == 2)
            nexus_damage(&w.trace, &rng);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 5 ? NULL : w.image,
                          .in = {w.trace.p, w.trace.n},
                          .paths = round % 2,
                          .crew = round % 4 ? NULL : crew};
        assert_true(compare(&run, round % 3 ? 60 : 400, &rng) > 0);
        nexus_world_fini(&w);
    }
    tl_crew_free(crew);
}

static void e_trace(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {5};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct etrace_world w;
        etrace_world_init(&w, round, 6000);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 7 ? NULL : w.image,
                          .in = {w.trace.bytes.p, w.trace.bytes.n},
                          .paths = round % 2};
        assert_true(compare(&run, 200, &rng) > 0);
        etrace_world_fini(&w);
    }
}

/* ---- invalid states -------------------------------------------------------------------------- */

/* Save the state of a decode of the first `n` bytes, or a few more. Returns the number of bytes
 * decoded, or 0 if no state could be saved. */
static size_t save_at(const struct run *run, size_t n, struct tl_buf *out)
{
    struct log log = {0};
    struct tl_decode *d = begin(run, &log);
    size_t at = 0;
    int r;
    do {
        assert_int_equal(tl_decode_push(d, run->in.p + at, n - at), TL_OK);
        at = n;
        n += STEP;
        tl_buf_reset(out);
    } while ((r = tl_decode_save(d, out)) == TL_AGAIN && n < run->in.n);
    if (r == TL_AGAIN)
        at = 0;
    else
        assert_int_equal(r, TL_OK);
    tl_decode_free(d);
    log_fini(&log);
    return at;
}

static void no_state(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {13};
    struct world w;
    struct tl_buf saved = {0};
    mixed_world(&w, 1, &rng);
    struct run run = {
        .setup = &w.setup, .image = w.image, .in = {w.trace.p, w.trace.n}, .paths = true};
    const size_t n = save_at(&run, run.in.n / 2, &saved);
    for (size_t cut = 0; cut <= saved.n; cut += cut == saved.n ? 1 : 1 + (saved.n - cut) / 40) {
        struct log log = {0};
        struct tl_decode *d = begin(&run, &log);
        const int r = tl_decode_load(d, (struct tl_bytes){saved.p, cut});
        assert_int_equal(r, cut == saved.n ? TL_OK : TL_BAD);
        tl_decode_free(d);
        log_fini(&log);
    }
    /* A decode that has already begun. */
    struct log log = {0};
    struct tl_decode *d = begin(&run, &log);
    assert_int_equal(tl_decode_push(d, run.in.p, n), TL_OK);
    assert_int_equal(tl_decode_load(d, (struct tl_bytes){saved.p, saved.n}), TL_BAD);
    tl_decode_free(d);
    log_fini(&log);
    tl_buf_fini(&saved);
    world_fini(&w);
}

/* ---- real captures --------------------------------------------------------------------------- */

static unsigned hand_on_buffer(const struct tl_bundle_capture *buffer, struct tl_sim_rng *rng)
{
    struct tl_buf bytes = {0};
    struct tl_image *image;
    struct tl_fail fail = {0};
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&buffer->setup, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_bundle_bytes(buffer, &bytes, &fail), TL_OK);
    struct run run = {
        .setup = &buffer->setup, .image = image, .in = {bytes.p, bytes.n}, .paths = true};
    const unsigned times = compare(&run, bytes.n / 20 + 64, rng);
    tl_buf_fini(&bytes);
    tl_image_free(image);
    return times;
}

static void real_captures(void **state)
{
    (void)state;
    char dir[4096];
    struct tl_sim_rng rng = {3};
    unsigned times = 0;
    DIR *const list = test_data(dir, sizeof dir, "coresight/snapshots") ? opendir(dir) : NULL;
    if (!list) {
        print_message("skipped: no captures here\n");
        skip();
    }
    for (const struct dirent *e; (e = readdir(list));) {
        char path[5000];
        struct tl_bundle snapshot;
        struct tl_fail fail = {0};
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || tl_snapshot_read(&snapshot, path, NULL, NULL, &fail) < 0)
            continue;
        for (size_t i = 0; i < snapshot.n_captures; i++)
            times += hand_on_buffer(&snapshot.captures[i], &rng);
        tl_bundle_fini(&snapshot);
    }
    closedir(list);
    assert_true(times > 0); /* except captures in which no frame is found */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_streams), cmocka_unit_test(code_that_changes),
        cmocka_unit_test(several_sources),   cmocka_unit_test(orbflow),
        cmocka_unit_test(older_etm),         cmocka_unit_test(branch_buffer),
        cmocka_unit_test(n_trace),           cmocka_unit_test(e_trace),
        cmocka_unit_test(no_state),          cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
