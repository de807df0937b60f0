/* SPDX-License-Identifier: MIT */
/*
 * Traces of processes that load and unload code while they run: the images' time spans are stored
 * with the trace, so that decoding again after a restart, or continuing from a checkpoint, gives
 * the same result, and functions are named after the code that was loaded at the time.
 */
#include "lake_help.h"

#include "sim/tpiu_encoder.h"
#include "unit/sim_loading.h"

#define SHARD 2500

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct tl_sim_loading loading;
static struct capture capture;
static char hashes[TL_SIM_LOADING_FILES][72];

static const char *hash_of(void *context, unsigned file)
{
    (void)context;
    return hashes[file];
}

static int set_up(void **state)
{
    const struct tl_sim_etm4_options etm = loading_etm(1);
    struct tl_setup setup;
    struct tl_tpiu_encoder tpiu;
    (void)state;
    lake = open_memory_lake(&backend, SHARD, 1);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "tpiu,sync=fsync", NULL), TL_OK);
    setup.clock_hz = 100000000;
    struct tl_source *const source = tl_setup_add_source(&setup);
    assert_non_null(source);
    assert_int_equal(tl_sim_etm4_source(&etm, source), TL_OK);
    snprintf(source->name, sizeof source->name, "cs.10");
    source->id = 0x10;
    assert_int_equal(tl_sim_loading_init(&loading, 3, &etm), TL_OK);
    assert_int_equal(tl_sim_loading_run(&loading, 1500), TL_OK);
    tl_tpiu_encoder_init(&tpiu, TL_TPIU_FSYNC, 1);
    assert_int_equal(tl_tpiu_encoder_add(&tpiu, 0x10, loading.trace.p, loading.trace.n), TL_OK);
    assert_int_equal(tl_tpiu_encoder_flush(&tpiu), TL_OK);
    capture = (struct capture){.bytes = tpiu.out};
    for (unsigned i = 0; i < TL_SIM_LOADING_FILES; i++) {
        struct tl_image_row row;
        const struct tl_bytes content = {loading.files[i].p, loading.files[i].n};
        assert_int_equal(tl_lake_put_image(lake, "code", content, &row, NULL), TL_OK);
        memcpy(hashes[i], row.hash, sizeof hashes[i]);
    }
    loading_images(&loading, &setup, hash_of, NULL);
    assert_int_equal(tl_setup_write(&setup, &capture.setup), TL_OK);
    assert_int_equal(tl_buf_add(&capture.setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    capture_free(&capture);
    tl_sim_loading_fini(&loading);
    close_memory_lake(backend, lake);
    return 0;
}

/* Check that the served instructions are those executed. */
static void check_truth(void)
{
    struct tl_buf text = {0}, insns = {0};
    lake_text(lake, "t", &text);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    for (char *line = strtok((char *)text.p, "\n"); line; line = strtok(NULL, "\n"))
        if (line[0] == 'I')
            assert_int_equal(tl_buf_printf(&insns, "%s\n", line), TL_OK);
    assert_int_equal(insns.n, loading.truth.n);
    assert_memory_equal(insns.p, loading.truth.p, insns.n);
    tl_buf_fini(&text);
    tl_buf_fini(&insns);
}

static void reopen(void)
{
    tl_lake_close(lake);
    lake = open_lake_sized(backend, SHARD, 1);
}

/* Check that the stored setup equals the pushed one. */
static void check_setup(void)
{
    struct tl_buf setup = {0};
    assert_int_equal(tl_lake_setup(lake, "t", &setup, NULL), TL_OK);
    assert_string_equal((const char *)setup.p, (const char *)capture.setup.p);
    tl_buf_fini(&setup);
}

static void same_after_a_restart(void **state)
{
    (void)state;
    push_sealed(lake, "t", &capture, 3000);
    assert_true(loading.changes > 40);
    check_truth();
    check_setup();
    reopen();
    check_truth();
    check_setup();
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_truth();
    check_setup();
}

/* Decoding is interrupted and continued from a checkpoint, several times. */
static void same_from_a_checkpoint(void **state)
{
    (void)state;
    struct capture half = capture;
    bool has_checkpoint = false;
    for (unsigned i = 1; i <= 4; i++) {
        struct tl_ingest *ingest;
        char trace[64];
        uint64_t at;
        const struct tl_ingest_request request = {
            .rig = "rig", .trace = "t", .setup = (const char *)capture.setup.p, .resume = true};
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, NULL),
                         TL_OK);
        const size_t end = capture.bytes.n * i / 4;
        assert_int_equal(
            tl_ingest_append(ingest, at, (struct tl_bytes){half.bytes.p + at, end - at}, NULL),
            TL_OK);
        if (i == 4)
            assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
        tl_ingest_close(ingest);
        if (i < 4) {
            /* Decoding may not have begun when the lake is closed; the last time there must be a
             * checkpoint. */
            int64_t since = 0;
            while (i == 3 && !has_checkpoint && atomic_load(&lake->checkpoints) == 0)
                keep_waiting(&since, "a checkpoint");
            has_checkpoint = has_checkpoint || atomic_load(&lake->checkpoints) > 0;
            reopen();
        }
    }
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_true(atomic_load(&lake->resumes) > 0);
    check_truth();
}

/* Images are bound one by one after the capture. */
static void bound_later(void **state)
{
    struct tl_setup all, none;
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    (void)state;
    tl_setup_init(&all);
    assert_int_equal(
        tl_setup_parse(&all, (const char *)capture.setup.p, capture.setup.n - 1, &fail), TL_OK);
    none = all;
    none.n_images = all.n_images - 4;
    assert_int_equal(tl_setup_write(&none, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    struct capture poor = capture;
    poor.setup = text;
    push_sealed(lake, "t", &poor, 3000);
    for (size_t i = none.n_images; i < all.n_images; i++) {
        const struct tl_setup_image *const m = &all.images[i];
        const struct tl_lake_binding binding = {.hash = m->file,
                                                .address = m->address,
                                                .offset = m->offset,
                                                .length = m->length,
                                                .context = m->context,
                                                .span = m->span};
        assert_int_equal(tl_lake_bind_image(lake, "t", &binding, &fail), TL_OK);
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    }
    check_truth();
    check_setup();
    tl_buf_fini(&text);
    tl_setup_fini(&all);
}

/* Images are bound during the capture, each when it is loaded: when it will be unloaded is not
 * known yet, and an image added later covers it from its own time on. */
static void bound_while_it_runs(void **state)
{
    enum { PIECES = 16 };
    struct tl_setup first;
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t at;
    size_t bound = 0;
    (void)state;
    tl_setup_init(&first);
    assert_int_equal(
        tl_setup_parse(&first, (const char *)capture.setup.p, capture.setup.n - 1, &fail), TL_OK);
    const size_t n_images = first.n_images;
    first.n_images = 0;
    assert_int_equal(tl_setup_write(&first, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)text.p, .resume = true};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, &fail), TL_OK);
    for (size_t piece = 1; piece <= PIECES; piece++) {
        const size_t end = capture.bytes.n * piece / PIECES;
        const size_t known = loading.n_records * piece / PIECES;
        for (; bound < known; bound++) {
            const struct tl_sim_record *const r = &loading.records[bound];
            const struct tl_lake_binding binding = {
                .hash = hashes[r->file],
                .address = r->address,
                .context = {.context_id = r->process, .has_context_id = r->process > 0},
                .span = {.from = r->time}};
            if (!r->unloads && tl_lake_bind_image(lake, "t", &binding, &fail) < 0)
                fail_msg("%s", fail.text);
        }
        assert_int_equal(
            tl_ingest_append(ingest, at, (struct tl_bytes){capture.bytes.p + at, end - at}, &fail),
            TL_OK);
        at = end;
    }
    assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    tl_ingest_close(ingest);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_truth();
    tl_buf_fini(&text);
    first.n_images = n_images;
    tl_setup_fini(&first);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(same_after_a_restart),
        TEST(same_from_a_checkpoint),
        TEST(bound_later),
        TEST(bound_while_it_runs),
    };
    return cmocka_run_group_tests_name("lake_loading", tests, NULL, NULL);
}
