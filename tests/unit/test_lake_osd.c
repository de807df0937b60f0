/* SPDX-License-Identifier: MIT */
/* A live capture of Open SoC Debug waits while the disk is full, and becomes one complete trace. */
#include "lake_raw.h"
#include "osdhost/capture.h"
#include "unit/lake_help.h"

#include <unistd.h>

static unsigned said_waits, said_continues;

static void on_log(void *context, const char *line)
{
    said_waits += strstr(line, "the capture waits") != NULL;
    said_continues += strstr(line, "the capture goes on") != NULL;
}

static void full_in_the_middle(void **state)
{
    enum { STEPS = 400, STEP = 900, FULL_FROM = 100, FULL_TO = 200 };
    struct tl_backend *backend;
    struct tl_osd_capture c;
    struct tl_buf sent = {0}, back = {0};
    struct tl_raw_range *range;
    struct tl_fail fail = {0};
    struct tl_trace_list list;
    uint64_t offset;
    int64_t now = 1000;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *const lake = open_lake_sized(backend, 1000, 1);
    tl_osd_capture_init(&c, lake, "osd", "[trace]\nformat=di\n", NULL, on_log);
    srand(11);
    for (int step = 0; step < STEPS; step++, now += 100) {
        uint8_t bytes[STEP];
        for (size_t i = 0; i < STEP; i++)
            bytes[i] = (uint8_t)rand();
        assert_int_equal(tl_buf_add(&sent, bytes, STEP), TL_OK);
        if (step == FULL_FROM)
            tl_lake_set_min_free(lake, UINT64_MAX);
        if (step == FULL_TO)
            tl_lake_set_min_free(lake, 1);
        assert_int_equal(tl_osd_capture_add(&c, (struct tl_bytes){bytes, STEP}, now), TL_OK);
        tl_osd_capture_flush(&c, now);
    }
    tl_osd_capture_end(&c, "ended");
    assert_int_equal(said_waits, 1);
    assert_int_equal(said_continues, 1);
    assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
    assert_int_equal(list.n, 1);
    assert_int_equal(tl_raw_open(lake, list.rows[0].id, 0, UINT64_MAX, &range, &fail), TL_OK);
    while (tl_raw_next(range, &offset, &back, &fail) >= 0)
        ;
    tl_raw_close(range);
    assert_int_equal(back.n, sent.n);
    assert_memory_equal(back.p, sent.p, sent.n);
    bool complete = false;
    assert_int_equal(tl_lake_offset(lake, list.rows[0].id, &offset, &complete), TL_OK);
    assert_true(complete);
    tl_trace_list_free(&list);
    tl_buf_fini(&sent);
    tl_buf_fini(&back);
    close_memory_lake(backend, lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(full_in_the_middle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
