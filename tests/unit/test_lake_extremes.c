/* SPDX-License-Identifier: MIT */
/* What is worth a look, compared with the tables of all streams. */
#include "sim_capture.h"

#include "lake_timing.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static const char *const streams[] = {"cs.10", "cs.11"};

static int set_up(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 21, .insns = 60000, .cores = 2, .image = true, .events = true};
    lake = open_memory_lake(&backend, 15000, 2);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    capture_free(&c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

static const struct tl_extreme *of_kind(const struct tl_extremes *e, enum tl_extreme_kind kind)
{
    for (size_t i = 0; i < e->n; i++)
        if (e->p[i].kind == kind)
            return &e->p[i];
    return NULL;
}

static struct tl_timing_range all_of(const char *stream)
{
    return (struct tl_timing_range){.trace = "t", .stream = stream, .to = UINT64_MAX};
}

static void longest_of_the_tables(void **state)
{
    struct tl_extremes e;
    struct tl_fail fail = {0};
    uint64_t interrupt = 0, gap = 0, beyond = 0;
    (void)state;
    assert_int_equal(tl_lake_extremes(lake, "t", 0, &e, &fail), TL_OK);
    assert_int_equal(e.left_out, 0);
    for (size_t s = 0; s < 2; s++) {
        const struct tl_timing_range range = all_of(streams[s]);
        struct tl_exception_table exceptions;
        struct tl_gap_table gaps;
        assert_int_equal(tl_lake_exception_table(lake, &range, &exceptions, &fail), TL_OK);
        for (size_t i = 0; i < exceptions.n; i++)
            if (exceptions.p[i].ended > 0 && exceptions.p[i].time.max > interrupt)
                interrupt = exceptions.p[i].time.max;
        tl_exception_table_fini(&exceptions);
        assert_int_equal(tl_lake_gap_table(lake, &range, 0, &gaps, &fail), TL_OK);
        for (size_t i = 0; i < gaps.n; i++)
            if (!gaps.p[i].off && gaps.p[i].time_to - gaps.p[i].time_from > gap)
                gap = gaps.p[i].time_to - gaps.p[i].time_from;
        tl_gap_table_fini(&gaps);
        const struct tl_function_table_request request = {.range = range, .weight = TL_WEIGHT_TIME};
        struct tl_function_table functions;
        assert_int_equal(tl_lake_function_table(lake, &request, &functions, &fail), TL_OK);
        for (size_t i = 0; i < functions.n; i++) {
            const struct tl_function_times *const f = &functions.p[i];
            if (f->ended >= 10 && f->time.max >= 3 * f->time.p50 &&
                f->time.max - f->time.p50 > beyond)
                beyond = f->time.max - f->time.p50;
        }
        tl_function_table_fini(&functions);
    }
    assert_true(interrupt > 0 && gap > 0 && beyond > 0);
    assert_true(of_kind(&e, TL_EXTREME_INTERRUPT)->has_time);
    assert_int_equal(of_kind(&e, TL_EXTREME_INTERRUPT)->length, interrupt);
    assert_int_equal(of_kind(&e, TL_EXTREME_GAP)->length, gap);
    assert_true(of_kind(&e, TL_EXTREME_GAP)->reasons != 0);
    const struct tl_extreme *const call = of_kind(&e, TL_EXTREME_CALL);
    assert_int_equal(call->length - call->usual, beyond);
    tl_extremes_fini(&e);
}

static void long_streams_are_left_out(void **state)
{
    struct tl_extremes e;
    struct tl_fail fail = {0};
    (void)state;
    assert_int_equal(tl_lake_extremes(lake, "t", 100, &e, &fail), TL_OK);
    assert_int_equal(e.n, 0);
    assert_int_equal(e.left_out, 2);
    tl_extremes_fini(&e);
    assert_int_equal(tl_lake_extremes(lake, "none", 0, &e, &fail), TL_NOTFOUND);
    tl_extremes_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_of_the_tables),
        cmocka_unit_test(long_streams_are_left_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
