/* SPDX-License-Identifier: MIT */
/* Decoding again with unsuitable setups: the data served stays available, and is restored. */
#include "sim_capture.h"

#define SHARD 2500

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, SHARD);
    push_sealed(lake, "t", &capture, 3000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sim_lake_end(backend, lake, &capture);
    return 0;
}

static void reopen(void)
{
    tl_lake_close(lake);
    lake = open_lake_sized(backend, SHARD, 1);
}

static void check_served(void)
{
    struct tl_buf got = {0}, setup = {0};
    lake_text(lake, "t", &got);
    assert_texts_equal(&capture.text, &got);
    assert_int_equal(tl_lake_setup(lake, "t", &setup, NULL), TL_OK);
    assert_string_equal((const char *)setup.p, (const char *)capture.setup.p);
    tl_buf_fini(&got);
    tl_buf_fini(&setup);
}

static void wait_rest(char message[static 256])
{
    struct tl_trace_list list;
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    snprintf(message, 256, "%s", list.rows[0].message);
    tl_trace_list_free(&list);
}

static void what_tells_nothing_does_not_serve(void **state)
{
    (void)state;
    /* Sources that the capture does not contain, and a container other than TPIU. */
    static const char *const setups[] = {
        "[trace]\nformat=tpiu,sync=fsync\n[source cs.33]\nprotocol=itm\nid=0x33\n",
        "[trace]\nformat=stf\n",
    };
    for (size_t i = 0; i < 2; i++) {
        char message[256];
        assert_int_equal(tl_lake_redecode(lake, "t", setups[i], NULL), TL_OK);
        wait_rest(message);
        print_message("%s\n", message);
        assert_non_null(strstr(message, "is kept"));
        check_served();
        reopen();
        wait_rest(message);
        check_served();
    }
    /* And it can still be decoded with its own setup. */
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    char message[256];
    wait_rest(message);
    assert_string_equal(message, "");
    check_served();
}

static void another_setup_can_be_taken_back(void **state)
{
    (void)state;
    char message[256];
    struct tl_fail fail = {0};
    struct tl_buf got = {0};
    assert_int_equal(tl_lake_redecode_back(lake, "t", &fail), TL_USAGE);
    /* The frames decoded as if they were software trace: the output is arbitrary. */
    assert_int_equal(tl_lake_redecode(lake, "t", "[trace]\nformat=itm,id=0x10\n", NULL), TL_OK);
    wait_rest(message);
    lake_text(lake, "t", &got);
    assert_true(got.n != capture.text.n || memcmp(got.p, capture.text.p, got.n) != 0);
    reopen();
    assert_int_equal(tl_lake_redecode_back(lake, "t", &fail), TL_OK);
    wait_rest(message);
    check_served();
    tl_buf_fini(&got);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_tells_nothing_does_not_serve),
        TEST(another_setup_can_be_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
