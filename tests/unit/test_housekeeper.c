/* SPDX-License-Identifier: MIT */
/* Housekeeping: retention, deletion, a lost catalog, many rigs, images by build ID. */
#include "keeping.h"

#include "base/lifetime.h"
#include "unit/patience.h"

static bool there(const char *id)
{
    struct tl_trace_list list;
    if (tl_lake_trace(lake, id, &list) < 0)
        return false;
    tl_trace_list_free(&list);
    return true;
}

/* ---- deleting ------------------------------------------------------------------------------- */

/* Wait for the housekeeper, which removes the remains of a trace concurrently. */
static void wait_gone(const char *prefix)
{
    for (int64_t since = 0; stored(prefix) > 0;)
        keep_waiting(&since, prefix);
}

static void deleting_frees_the_space_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) { /* whoever writes the copy of its row comes not later */
        push("u");
        assert_int_equal(tl_lake_delete(lake, "u", NULL), TL_OK);
        assert_int_equal(stored("m/u"), 0);
    }
    push("t");
    assert_true(stored("r/t") > 1000 && stored("t/t") > 1000);
    assert_int_equal(tl_lake_delete(lake, "t", NULL), TL_OK);
    assert_int_equal(stored("m/t"), 0);
    wait_gone("r/t");
    wait_gone("t/t");
    assert_false(there("t"));
    push("t"); /* the name is free again */
    check_text("t");
}

static void who_reads_goes_on(void **state)
{
    (void)state;
    push("t");
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    struct tl_buf whole = {0}, got = {0};
    struct tl_range *range;
    fetch(lake, &request, &whole);
    assert_int_equal(tl_range_open(lake, &request, &range, NULL), TL_OK);
    assert_int_equal(tl_lake_delete(lake, "t", NULL), TL_OK);
    wait_gone("r/t");
    push("t"); /* a new trace of the same name does not mix with it */
    int r;
    while ((r = tl_range_next(range, &got, NULL)) >= 0)
        ;
    assert_int_equal(r, TL_EOF);
    assert_texts_equal(&whole, &got);
    assert_true(stored("t/t/1") > 0);
    tl_range_close(range);
    wait_gone("t/t/1");
    check_text("t");
    tl_buf_fini(&whole);
    tl_buf_fini(&got);
}

/* ---- retention ------------------------------------------------------------------------------ */

static void retention_by_age(void **state)
{
    (void)state;
    push("t");
    set_rule("", (struct tl_retention){.raw_age_s = 10 * 86400, .decoded_age_s = 30 * 86400});
    assert_int_equal(tl_lake_retain(lake, in_days(9), NULL), 0);
    assert_true(stored("r/t") > 0);
    assert_int_equal(tl_lake_retain(lake, in_days(11), NULL), 1);
    assert_int_equal(stored("r/t"), 0);
    check_text("t");
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, &fail), TL_DENIED);
    assert_non_null(strstr(fail.text, "retention"));
    struct tl_buf report = {0};
    assert_int_equal(verify("t", false, &report), 0);
    reopen();
    check_text("t");
    assert_int_equal(verify("t", false, &report), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(29), NULL), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(31), NULL), 1);
    assert_false(there("t"));
    assert_int_equal(stored("t/t") + stored("m/t"), 0);
    tl_buf_fini(&report);
}

static void decoded_data_comes_back(void **state)
{
    (void)state;
    push("t");
    set_rule("trace t", (struct tl_retention){.decoded_age_s = 60});
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    struct tl_range *range;
    struct tl_buf got = {0};
    assert_int_equal(tl_range_open(lake, &request, &range, NULL), TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    assert_true(stored("t/t") > 0); /* it is being read */
    while (tl_range_next(range, &got, NULL) >= 0)
        ;
    assert_true(got.n > 1000);
    tl_range_close(range);
    assert_int_equal(stored("t/t"), 0);
    assert_true(stored("r/t") > 0);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    assert_true(list.rows[0].decoded_removed && !list.rows[0].raw_removed);
    assert_int_equal(list.rows[0].n_streams, 0);
    tl_trace_list_free(&list);
    reopen();
    assert_int_equal(stored("t/t"), 0);
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_text("t");
    tl_buf_fini(&got);
}

static void retention_by_size(void **state)
{
    (void)state;
    push("a");
    usleep(1000);
    push("b");
    usleep(1000);
    push("c");
    assert_int_equal(tl_lake_set_labels(lake, "a", "keep=yes\n", NULL), TL_OK);
    /* Capacity for two: a is the oldest, but kept; b is removed. */
    set_rule("", (struct tl_retention){.raw_bytes = 2 * capture.bytes.n + 10});
    /* unless the housekeeper has already done it */
    assert_true(tl_lake_retain(lake, tl_wall_ns(), NULL) >= 0);
    assert_true(stored("r/a") > 0 && stored("r/c") > 0);
    wait_gone("r/b");
    check_text("b");
    assert_int_equal(tl_lake_retain(lake, tl_wall_ns(), NULL), 0);
}

static void a_new_rule_is_carried_out_at_once(void **state)
{
    (void)state;
    push("t");
    set_rule("", (struct tl_retention){.raw_bytes = 1});
    wait_gone("r/t");
    check_text("t");
}

static void the_most_special_rule_counts(void **state)
{
    (void)state;
    push("a");
    push("b");
    push("c");
    assert_int_equal(tl_lake_set_labels(lake, "a", "team=cpu\n", NULL), TL_OK);
    assert_int_equal(tl_lake_set_labels(lake, "b", "team=cpu\nkeep=no\n", NULL), TL_OK);
    set_rule("", (struct tl_retention){.raw_age_s = 86400});
    set_rule("label team=cpu", (struct tl_retention){.raw_age_s = 10 * 86400});
    set_rule("trace a", (struct tl_retention){0});
    assert_int_equal(tl_lake_retain(lake, in_days(2), NULL), 1);
    assert_int_equal(stored("r/c"), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(11), NULL), 1);
    assert_int_equal(stored("r/b"), 0);
    assert_true(stored("r/a") > 0);
    struct tl_retention_row *rows;
    size_t n;
    assert_int_equal(tl_lake_retention(lake, &rows, &n), TL_OK);
    assert_int_equal(n, 3);
    free(rows);
    assert_int_equal(tl_lake_set_retention(lake, "nonsense", NULL, NULL), TL_USAGE);
    assert_int_equal(tl_lake_set_retention(lake, "trace a", NULL, NULL), TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(2), NULL), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(40), NULL), 1);
    assert_int_equal(stored("r/a"), 0);
}

static void running_captures_are_left_alone(void **state)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    (void)state;
    set_rule("", (struct tl_retention){.raw_age_s = 1, .decoded_age_s = 1, .raw_bytes = 1});
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)capture.setup.p};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail), TL_OK);
    const size_t half = capture.bytes.n / 2;
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){capture.bytes.p, half}, &fail),
                     TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(100), NULL), 0);
    tl_ingest_close(ingest);
    /* It may be resumed: nothing of it is removed. */
    assert_int_equal(tl_lake_retain(lake, in_days(100), NULL), 0);
    set_rule("", (struct tl_retention){0});
    push("t");
    check_text("t");
}

static void texts_of_rules(void **state)
{
    static const struct {
        const char *text;
        uint64_t age, bytes;
        const char *back;
    } cases[] = {
        {"30d,200G", 30 * 86400, UINT64_C(200) << 30, "30d,200G"},
        {"200G", 0, UINT64_C(200) << 30, "200G"},
        {"90m", 5400, 0, "90m"},
        {"2w", 14 * 86400, 0, "2w"},
        {"3T,24h", 86400, UINT64_C(3) << 40, "1d,3T"},
        {"none", 0, 0, "none"},
        {"", 0, 0, "none"},
    };
    static const char *const bad[] = {"30",   "d",     "30x",          "-1d",
                                      "30d,", "30d,x", "99999999999d", "1.5d"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t age, bytes;
        char text[64];
        assert_int_equal(tl_lifetime_parse(cases[i].text, &age, &bytes), TL_OK);
        assert_int_equal(age, cases[i].age);
        assert_int_equal(bytes, cases[i].bytes);
        assert_string_equal(tl_lifetime_text(age, bytes, text), cases[i].back);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint64_t age, bytes;
        if (strcmp(bad[i], "30d,") != 0)
            assert_int_equal(tl_lifetime_parse(bad[i], &age, &bytes), TL_USAGE);
    }
}

/* ---- the catalog ---------------------------------------------------------------------------- */

static void a_lost_catalog_is_made_anew(void **state)
{
    struct tl_buf report = {0};
    struct tl_image_row *images;
    size_t n;
    (void)state;
    push("a");
    push("b");
    assert_int_equal(tl_lake_set_labels(lake, "a", "board=juno\n", NULL), TL_OK);
    set_rule("trace b", (struct tl_retention){.raw_age_s = 3600});
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    const uint64_t before = stored("t");
    tl_lake_close(lake);
    assert_int_equal(backend->ops->catalog_reset(backend, NULL), TL_OK);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_int_equal(wait_done(lake, "a"), TL_TRACE_SEALED);
    assert_int_equal(wait_done(lake, "b"), TL_TRACE_SEALED);
    check_text("a");
    check_text("b");
    assert_int_equal(stored("t"), before);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "a", &list), TL_OK);
    assert_string_equal(list.rows[0].labels, "board=juno\n");
    assert_string_equal(list.rows[0].rig, "rig");
    assert_int_equal(list.rows[0].generation, 1); /* nothing was decoded for it */
    tl_trace_list_free(&list);
    assert_int_equal(tl_lake_images(lake, &images, &n), TL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(images[0].name, "program");
    free(images);
    assert_int_equal(verify("", false, &report), 0);
    tl_buf_fini(&report);
}

/* Even without the copies of the rows the raw bytes are kept, and decoded with a setup. */
static void raw_bytes_alone_are_kept(void **state)
{
    (void)state;
    push("t");
    tl_lake_close(lake);
    assert_int_equal(tl_backend_remove_all(backend, "m", NULL), TL_OK);
    assert_int_equal(backend->ops->catalog_reset(backend, NULL), TL_OK);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_FAILED);
    assert_int_equal(tl_lake_redecode(lake, "t", (const char *)capture.setup.p, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_text("t");
}

/* ---- many rigs ------------------------------------------------------------------------------ */

enum { RIGS = 100 };

struct rig {
    unsigned number;
    int result;
    uint64_t acked;
};

static void on_ack(void *context, uint64_t offset)
{
    ((struct rig *)context)->acked = offset;
}

static void *run_rig(void *context)
{
    struct rig *rig = context;
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64], name[32];
    uint64_t at;
    snprintf(name, sizeof(name), "rig%u", rig->number);
    const struct tl_ingest_request request = {
        .rig = name, .trace = name, .setup = (const char *)capture.setup.p};
    rig->result = tl_ingest_open(lake, &request, on_ack, rig, &ingest, id, &at, &fail);
    if (rig->result < 0)
        return NULL;
    for (size_t i = 0; i < capture.bytes.n && rig->result >= 0; i += 100) {
        const size_t n = capture.bytes.n - i < 100 ? capture.bytes.n - i : 100;
        rig->result = tl_ingest_append(ingest, i, (struct tl_bytes){capture.bytes.p + i, n}, &fail);
    }
    if (rig->result >= 0)
        rig->result = tl_ingest_finish(ingest, &at, &fail);
    tl_ingest_close(ingest);
    return NULL;
}

static void a_hundred_rigs_at_once(void **state)
{
    static struct rig rigs[RIGS];
    static pthread_t threads[RIGS];
    (void)state;
    for (unsigned i = 0; i < RIGS; i++) {
        rigs[i] = (struct rig){.number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rig, &rigs[i]), 0);
    }
    for (unsigned i = 0; i < RIGS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(rigs[i].result, TL_OK);
        assert_int_equal(rigs[i].acked, capture.bytes.n);
    }
    for (unsigned i = 0; i < RIGS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "rig%u", i);
        assert_int_equal(wait_done(lake, name), TL_TRACE_SEALED);
        if (i % 10 == 0)
            check_text(name);
    }
}

/* ---- images --------------------------------------------------------------------------------- */

static void images_by_build_id(void **state)
{
    static const uint8_t elf[] = {0x7f, 'E', 'L', 'F', 2,   1, 1,    0,    0,    0,   0,
                                  0,    4,   0,   0,   0,   4, 0,    0,    0,    3,   0,
                                  0,    0,   'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef};
    struct tl_image_row row;
    (void)state;
    assert_false(tl_lake_has_image(lake, "build-id:deadbeef"));
    assert_int_equal(tl_lake_put_image(lake, "x", (struct tl_bytes){elf, sizeof(elf)}, &row, NULL),
                     TL_OK);
    assert_string_equal(row.build_id, "deadbeef");
    assert_true(tl_lake_has_image(lake, "build-id:deadbeef"));
    assert_true(tl_lake_has_image(lake, row.hash));
    assert_false(tl_lake_has_image(lake, "build-id:"));
    assert_false(tl_lake_has_image(lake, "build-id:dead"));
    const uint64_t before = stored("i");
    assert_int_equal(tl_lake_put_image(lake, "x", (struct tl_bytes){elf, sizeof(elf)}, &row, NULL),
                     TL_OK);
    assert_int_equal(stored("i"), before);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(deleting_frees_the_space_at_once),
        TEST(who_reads_goes_on),
        TEST(retention_by_age),
        TEST(decoded_data_comes_back),
        TEST(retention_by_size),
        TEST(a_new_rule_is_carried_out_at_once),
        TEST(the_most_special_rule_counts),
        TEST(running_captures_are_left_alone),
        cmocka_unit_test(texts_of_rules),
        TEST(a_lost_catalog_is_made_anew),
        TEST(raw_bytes_alone_are_kept),
        TEST(a_hundred_rigs_at_once),
        TEST(images_by_build_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
