/* SPDX-License-Identifier: MIT */
/* By which clock traces age, and what a wrong one does: nothing. */
#include "lake/lakeint.h"
#include "lake_upkeep.h"
#include "unit/lake_help.h"

#define S    INT64_C(1000000000)
#define HOUR (3600 * S)
#define DAY  (24 * HOUR)
#define THEN INT64_C(1790000000000000000) /* 2026 */

/* ---- the clock alone ------------------------------------------------------------------------- */

struct machine {
    struct tl_age_clock clock;
    struct tl_age_times times;
    unsigned steps, believed;
};

static void start(struct machine *m, const char *text, int64_t wall)
{
    m->times = (struct tl_age_times){wall, 5 * S, 5 * S, "b00"};
    m->steps = tl_age_begin(&m->clock, text, &m->times) == TL_AGE_STEPPED;
    m->believed = 0;
}

/* Let time pass, looking at the clocks once a second or, for long times, a minute. */
static void pass(struct machine *m, int64_t ns)
{
    const int64_t tick = ns > 2 * HOUR ? 60 * S : S;
    for (int64_t at = 0; at < ns; at += tick) {
        int64_t by;
        m->times.wall += tick;
        m->times.monotonic += tick;
        m->times.uptime += tick;
        const enum tl_age_event event = tl_age_tick(&m->clock, &m->times, &by);
        m->steps += event == TL_AGE_STEPPED;
        m->believed += event == TL_AGE_BELIEVED;
    }
}

static int64_t now(const struct machine *m)
{
    return tl_age_now(&m->clock, m->times.monotonic);
}

static int64_t age(const struct machine *m, int64_t stamp)
{
    return tl_age_of(&m->clock, stamp, now(m));
}

/* Another process, after `away`, on the same boot or a later one. */
static void restart(struct machine *m, int64_t away, bool same_boot, int64_t wall)
{
    char text[TL_AGE_TEXT];
    tl_age_text(&m->clock, &m->times, text);
    m->times.uptime = same_boot ? m->times.uptime + away : 7 * S;
    m->times.monotonic = m->times.uptime;
    m->times.wall = wall;
    if (!same_boot)
        strcat(m->times.boot, "e");
    m->steps += tl_age_begin(&m->clock, text, &m->times) == TL_AGE_STEPPED;
}

static void a_minute_at_400_days(void **state)
{
    struct machine m;
    start(&m, NULL, THEN);
    const int64_t stamp = now(&m);
    pass(&m, 10 * S);
    m.times.wall += 400 * DAY;
    pass(&m, 60 * S);
    assert_false(tl_age_settled(&m.clock));
    assert_int_equal(age(&m, stamp), 70 * S);
    m.times.wall -= 400 * DAY;
    pass(&m, 10 * S);
    assert_true(tl_age_settled(&m.clock));
    assert_int_equal(age(&m, stamp), 80 * S);
    assert_int_equal(m.steps, 1);
    assert_int_equal(m.clock.n_corrections, 0);
}

/* What lasts is believed, but nothing has become older by it: time was counted. */
static void steps_that_last_are_corrections(void **state)
{
    static const int64_t steps[] = {400 * DAY, 3 * HOUR, -2 * DAY, -200 * DAY};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct machine m;
        start(&m, NULL, THEN);
        const int64_t stamp = now(&m);
        pass(&m, HOUR);
        m.times.wall += steps[i];
        pass(&m, 9 * 60 * S);
        assert_int_equal(m.believed, 0);
        assert_false(tl_age_settled(&m.clock));
        pass(&m, 25 * HOUR);
        assert_int_equal(m.believed, 1);
        assert_true(tl_age_settled(&m.clock));
        assert_true(llabs(now(&m) - m.times.wall) < S);
        const int64_t later = now(&m);
        pass(&m, HOUR);
        assert_true(llabs(age(&m, stamp) - (27 * HOUR + 9 * 60 * S)) < 60 * S);
        assert_true(llabs(age(&m, later) - HOUR) < 60 * S);
        restart(&m, 10 * S, true, m.times.wall + 10 * S);
        assert_true(tl_age_settled(&m.clock));
        assert_true(llabs(age(&m, stamp) - (27 * HOUR + 9 * 60 * S)) < 80 * S);
    }
}

static void started_in_1970(void **state)
{
    struct machine m;
    start(&m, NULL, THEN);
    const int64_t stamp = now(&m);
    pass(&m, HOUR);
    restart(&m, 30 * S, false, 20 * S); /* its battery is empty */
    assert_false(tl_age_settled(&m.clock));
    pass(&m, 60 * S);
    const int64_t fresh = now(&m);
    assert_true(fresh >= stamp + HOUR);
    pass(&m, 3 * DAY); /* no time is fetched: still not believed */
    assert_false(tl_age_settled(&m.clock));
    m.times.wall = THEN + HOUR + 3 * DAY + 90 * S;
    pass(&m, 60 * S);
    assert_true(tl_age_settled(&m.clock));
    assert_true(llabs(age(&m, fresh) - 3 * DAY) < 120 * S);
    /* Without anything known, too. */
    start(&m, NULL, 20 * S);
    const int64_t first = now(&m);
    pass(&m, 60 * S);
    m.times.wall = THEN;
    pass(&m, 26 * HOUR);
    assert_int_equal(m.believed, 1);
    assert_true(llabs(age(&m, first) - 26 * HOUR) < 120 * S);
    assert_true(llabs(now(&m) - m.times.wall) < S);
}

/* Within one boot it is known what elapsed without a server; otherwise the wall clock must last. */
static void restarts_and_power_off(void **state)
{
    struct machine m;
    start(&m, NULL, THEN);
    const int64_t stamp = now(&m);
    pass(&m, HOUR);
    restart(&m, 5 * HOUR, true, m.times.wall + 5 * HOUR);
    assert_true(tl_age_settled(&m.clock));
    assert_int_equal(age(&m, stamp), 6 * HOUR);
    restart(&m, HOUR, true, m.times.wall + 400 * DAY); /* it was stepped meanwhile */
    assert_false(tl_age_settled(&m.clock));
    pass(&m, 26 * HOUR);
    assert_int_equal(m.believed, 1);
    assert_true(llabs(age(&m, stamp) - 33 * HOUR) < 120 * S);

    start(&m, NULL, THEN);
    pass(&m, HOUR);
    restart(&m, 0, false, m.times.wall + 40 * 60 * S); /* an update of the system */
    assert_true(tl_age_settled(&m.clock));
    restart(&m, 0, false, m.times.wall + 14 * HOUR); /* every night */
    assert_false(tl_age_settled(&m.clock));
    pass(&m, 2 * HOUR);
    assert_true(tl_age_settled(&m.clock));
    assert_true(llabs(age(&m, stamp) - (17 * HOUR + 40 * 60 * S)) < 120 * S);
    restart(&m, 0, false, m.times.wall + 100 * DAY);
    pass(&m, 23 * HOUR);
    assert_true(age(&m, stamp) < 2 * DAY);
    pass(&m, 2 * HOUR);
    assert_true(llabs(age(&m, stamp) - (101 * DAY + 18 * HOUR + 40 * 60 * S)) < HOUR);
}

static void drift_and_small_steps(void **state)
{
    struct machine m;
    start(&m, NULL, THEN);
    const int64_t stamp = now(&m);
    for (int i = 0; i < 200; i++) { /* 200 ppm */
        pass(&m, HOUR);
        m.times.wall += HOUR / 5000;
    }
    assert_int_equal(m.steps, 0);
    assert_true(llabs(now(&m) - m.times.wall) < 2 * S);
    m.times.wall += 40 * S;
    pass(&m, 2 * HOUR);
    assert_int_equal(m.steps, 0);
    assert_true(llabs(now(&m) - m.times.wall) < S);
    assert_true(llabs(age(&m, stamp) - 202 * HOUR) < 400 * S);
    /* A clock that runs away is never believed. */
    for (int i = 0; i < 3000; i++) {
        pass(&m, 60 * S);
        m.times.wall += 120 * S;
    }
    assert_int_equal(m.believed, 0);
    assert_false(tl_age_settled(&m.clock));
}

static void damaged_states(void **state)
{
    static const char *const texts[] = {"",
                                        "clock",
                                        "clock x\n",
                                        "clock -5\n",
                                        "boot a 5\n",
                                        "\n\n",
                                        "clock 99999999999999999999999999\n",
                                        "clock 9223372036854775807\nremoved 1 since 5\n",
                                        "clock -9223372036854775808\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct machine m;
        start(&m, texts[i], THEN);
        pass(&m, 10 * S);
        assert_true(age(&m, now(&m)) == 0);
    }
    struct machine m;
    start(&m, NULL, THEN);
    for (int i = 0; i < 100; i++) {
        m.times.wall += i % 2 ? 3 * DAY : -2 * DAY;
        pass(&m, 10 * HOUR);
    }
    assert_int_equal(m.believed, 100);
    assert_int_equal(m.clock.n_corrections, TL_AGE_CORRECTIONS);
    const int64_t stamp = now(&m);
    restart(&m, HOUR, true, m.times.wall + HOUR);
    assert_int_equal(m.clock.n_corrections, TL_AGE_CORRECTIONS);
    assert_true(llabs(age(&m, stamp) - HOUR) < 60 * S);
}

/* ---- a lake ---------------------------------------------------------------------------------- */

static atomic_llong ahead;

static void read_times(struct tl_age_times *out)
{
    *out = (struct tl_age_times){tl_wall_ns() + atomic_load(&ahead), tl_monotonic_ns(), -1, ""};
}

static void make_trace(struct tl_lake *lake, const char *id)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t at;
    const struct tl_ingest_request request = {
        .rig = "r", .trace = id, .setup = "[trace]\nformat = etm4\n"};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){(uint8_t *)"abcdef", 6}, &fail),
                     TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    tl_ingest_close(ingest);
    wait_done(lake, id);
}

static size_t n_traces(struct tl_lake *lake)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
    const size_t n = list.n;
    tl_trace_list_free(&list);
    return n;
}

static int count_victim(void *context, const struct tl_retention_victim *victim)
{
    assert_true(victim->by_age && victim->age_s > victim->limit);
    ++*(size_t *)context;
    return TL_OK;
}

static void nothing_goes_by_a_wrong_clock(void **state)
{
    struct tl_backend *backend;
    struct tl_lake *const lake = open_memory_lake(&backend, 1 << 20, 1);
    struct tl_retention_row all = {.rule = {.raw_age_s = 10 * 86400, .decoded_age_s = 10 * 86400}};
    size_t victims = 0;
    bool paused;
    for (int i = 0; i < 40; i++) {
        char id[16];
        snprintf(id, sizeof id, "t%d", i);
        make_trace(lake, id);
    }
    /* Told before the rule is set, and nothing happens by it. */
    assert_int_equal(tl_lake_plan_retention(lake, &all, count_victim, &victims, &paused, NULL), 0);
    assert_false(paused);
    assert_int_equal(tl_lake_set_retention(lake, "", &all.rule, NULL), TL_OK);
    tl_lake_set_times(lake, read_times);
    atomic_store(&ahead, 400 * DAY);
    tl_lake_clock_tick(lake);
    assert_false(tl_lake_clock_settled(lake));
    assert_int_equal(tl_lake_retain_now(lake, NULL), 0);
    make_trace(lake, "meanwhile");
    atomic_store(&ahead, 0);
    tl_lake_clock_tick(lake);
    assert_true(tl_lake_clock_settled(lake));
    assert_int_equal(tl_lake_retain_now(lake, NULL), 0);
    assert_int_equal(n_traces(lake), 41);
    /* Even if the clock were wrong in spite of all: a part goes in a day. */
    const int64_t later = tl_lake_now(lake) + 30 * DAY;
    int removed = 0;
    for (int i = 0; i < 5; i++)
        removed += tl_lake_retain(lake, later, NULL);
    assert_in_range(removed, 8, 41 / 4 + 1);
    const int next = tl_lake_retain(lake, later + DAY, NULL);
    assert_in_range(next, 8, 41 / 4 + 1);
    assert_true(n_traces(lake) > 20);
    close_memory_lake(backend, lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_at_400_days),
        cmocka_unit_test(steps_that_last_are_corrections),
        cmocka_unit_test(started_in_1970),
        cmocka_unit_test(restarts_and_power_off),
        cmocka_unit_test(drift_and_small_steps),
        cmocka_unit_test(damaged_states),
        cmocka_unit_test(nothing_goes_by_a_wrong_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
