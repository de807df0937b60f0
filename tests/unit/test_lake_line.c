/* SPDX-License-Identifier: MIT */
/*
 * The line of decode jobs with traces that nobody decodes: its order, delays, removal from the
 * middle, and that ten thousand of one rig cost each other nothing, which is seen by the processor
 * time that hundreds and thousands take.
 */
#include "lake/job_queue.h"

#include "lake/trace.h"
#include "patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SOME = 500, MANY = 50000, ROUNDS = MANY / SOME };

static struct tl_job_queue queue;
static struct tl_trace *traces;

static int begin(void **state)
{
    (void)state;
    tl_job_queue_init(&queue);
    traces = calloc(MANY, sizeof *traces);
    return traces ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tl_job_queue_fini(&queue);
    free(traces);
    return 0;
}

/* Let trace `i` wait: "live" is no rig. */
static void add(size_t i, const char *rig)
{
    struct tl_trace *const t = &traces[i];
    snprintf(t->rig, sizeof t->rig, "%s", rig);
    t->job.live = rig[0] == 'l';
    tl_job_queue_add(&queue, t);
}

static size_t take(bool live)
{
    const struct tl_trace *const t = tl_job_queue_take(&queue, live);
    return t ? (size_t)(t - traces) : SIZE_MAX;
}

static void rigs_are_served_in_turn(void **state)
{
    static const char *const rigs[] = {"a", "a", "a", "b", "live", "c", "b", "live"};
    static const size_t order[] = {0, 3, 5, 1, 6, 2};
    (void)state;
    for (size_t i = 0; i < sizeof rigs / sizeof *rigs; i++)
        add(i, rigs[i]);
    assert_int_equal(queue.n_waiting, 8);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        assert_true(tl_job_queue_has(&queue, false));
        assert_int_equal(take(false), order[i]);
    }
    assert_int_equal(take(false), SIZE_MAX);
    assert_int_equal(take(true), 4);
    assert_int_equal(take(true), 7);
    assert_int_equal(queue.n_waiting, 0);
}

/* Who comes while others wait has his turn after one of each of them. */
static void a_new_rig_waits_for_one_of_each(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++)
        add(i, i % 2 ? "a" : "b");
    assert_int_equal(take(false), 0);
    add(10, "c");
    assert_int_equal(take(false), 1);
    assert_int_equal(take(false), 2);
    assert_int_equal(take(false), 10);
}

static void any_of_them_can_be_removed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++)
        add(i, i < 3 ? "a" : i < 5 ? "b" : "live");
    assert_true(tl_job_queue_remove(&queue, &traces[1]));
    assert_false(tl_job_queue_remove(&queue, &traces[1]));
    assert_true(tl_job_queue_remove(&queue, &traces[5]));
    assert_true(tl_job_queue_remove(&queue, &traces[3]));
    assert_true(tl_job_queue_remove(&queue, &traces[4])); /* the last one of its rig */
    assert_false(tl_job_queue_has(&queue, true));
    add(1, "a");
    assert_int_equal(take(false), 0);
    assert_int_equal(take(false), 2);
    assert_int_equal(take(false), 1);
    assert_int_equal(queue.n_waiting, 0);
}

static void what_is_not_due_waits_elsewhere(void **state)
{
    const int64_t hour = INT64_C(3600000000000);
    (void)state;
    assert_true(tl_job_queue_wait_ns(&queue) < 0);
    for (size_t i = 0; i < 3; i++) {
        traces[i].job.not_before_ns = tl_monotonic_ns() + hour * (int64_t)(3 - i);
        add(i, i == 1 ? "live" : "a");
    }
    traces[3].job.not_before_ns = tl_monotonic_ns() + 1000000;
    add(3, "a");
    add(4, "b");
    assert_false(tl_job_queue_has(&queue, true));
    assert_true(tl_job_queue_wait_ns(&queue) <= 1000000);
    assert_int_equal(take(false), 4);
    for (int64_t since = 0; !tl_job_queue_has(&queue, false);)
        keep_waiting(&since, "it is due");
    assert_int_equal(take(false), 3);
    assert_int_equal(take(false), SIZE_MAX);
    assert_in_range(tl_job_queue_wait_ns(&queue), hour / 2, hour);
    for (size_t i = 0; i < 3; i++)
        assert_true(tl_job_queue_remove(&queue, &traces[i]));
    assert_true(tl_job_queue_wait_ns(&queue) < 0);
}

/* Processor time for adding and taking `n` traces, `rounds` times. */
static int64_t time_of(size_t n, size_t rounds)
{
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++)
            add(i, i % 2 ? "a" : "b");
        for (size_t i = 0; i < n; i++)
            assert_int_not_equal(take(false), SIZE_MAX);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return (b.tv_sec - a.tv_sec) * INT64_C(1000000000) + b.tv_nsec - a.tv_nsec;
}

/* As many additions in lines a hundred times as long: looking through these would take fifty times
 * as long. */
static void length_costs_nothing(void **state)
{
    (void)state;
    (void)time_of(MANY, 1); /* its memory is there */
    const int64_t brief = time_of(SOME, ROUNDS), whole = time_of(MANY, 1);
    print_message("%d jobs: %.1f ms, %.1f in lines of %d\n", MANY, (double)whole / 1e6,
                  (double)brief / 1e6, SOME / 2);
    assert_true(whole < 20 * brief);
    assert_int_equal(queue.n_waiting, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rigs_are_served_in_turn, begin, end),
        cmocka_unit_test_setup_teardown(a_new_rig_waits_for_one_of_each, begin, end),
        cmocka_unit_test_setup_teardown(any_of_them_can_be_removed, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_due_waits_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(length_costs_nothing, begin, end),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
