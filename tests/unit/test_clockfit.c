/* SPDX-License-Identifier: MIT */
/* Timestamps and arrivals from a rig with known clock, delay and jitter, and the relation computed
 * from them. */
#include "catalog/clockfit.h"

#include "sim/program_rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define UNIX UINT64_C(1790000000000000000)

/* A rig whose clock has frequency `hz` and started at UNIX; bytes arrive after 0.3 ms and up to
 * `jitter` ns more. */
struct rig {
    double hz;
    uint32_t jitter;
    uint64_t origin;
    struct tl_sim_rng rng;
};

static uint64_t ticks_at(const struct rig *rig, double ns)
{
    return rig->origin + (uint64_t)(ns * rig->hz / 1e9);
}

/* A block every 10 ms, with several timestamps, the last one generated when it was sent. */
static void run(struct rig *rig, struct tl_clockfit *fit, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        const double sent = 1e7 * (i + 1);
        const uint64_t late = 300000 + tl_sim_below(&rig->rng, rig->jitter);
        for (int k = 4; k >= 0; k--)
            tl_clockfit_add(fit, ticks_at(rig, sent - 1e6 * k), UNIX + (uint64_t)sent + late);
    }
}

static void known_rate(void **state)
{
    (void)state;
    const double rates[] = {1e6, 24000123.0, 1e9, 3.1e9};
    for (int i = 0; i < 4; i++) {
        struct rig rig = {.hz = rates[i], .jitter = 2000000, .origin = UINT64_C(7) << (13 * i)};
        struct tl_clockfit fit = {0};
        struct tl_clock_relation r;
        rig.rng.state = 40 + (uint64_t)i;
        run(&rig, &fit, 0, 6000); /* a minute */
        tl_clockfit_relation(&fit, &r);
        assert_int_equal(r.pairs, 6000);
        const double truth = 1e9 / rig.hz;
        assert_true(r.error > 0 && fabs(r.ns_per_tick - truth) <= r.error);
        assert_true(r.error < truth * 50e-6); /* 2 ms of a minute: 33 ppm */
        assert_true(r.spread_ns > 1500000 && r.spread_ns <= 2000000);
        /* The time of each tick, anywhere in the minute, is late by at most the shortest delay. */
        for (double ns = 0; ns <= 6e10; ns += 6e9) {
            const double by = (double)(r.unix_ns - UNIX) +
                              ((double)ticks_at(&rig, ns) - (double)r.ticks) * r.ns_per_tick;
            assert_true(by - ns > 0 && by - ns < 300000 + (double)r.spread_ns);
        }
    }
}

/* A saved and loaded state gives the same result. */
static void resumed(void **state)
{
    (void)state;
    struct rig a = {.hz = 1e8, .jitter = 500000}, b = a;
    struct tl_clockfit whole = {0}, half = {0}, loaded;
    struct tl_clock_relation x, y;
    struct tl_buf bytes = {0};
    a.rng.state = 3;
    b.rng.state = 3;
    run(&a, &whole, 0, 3000);
    run(&b, &half, 0, 1234);
    struct tl_state save = {.out = &bytes};
    tl_clockfit_state(&half, &save);
    assert_int_equal(save.rc, TL_OK);
    struct tl_state load = {.in = {bytes.p, bytes.n}};
    tl_clockfit_state(&loaded, &load);
    assert_true(load.rc >= 0 && load.in.n == 0);
    run(&b, &loaded, 1234, 3000);
    tl_clockfit_relation(&whole, &x);
    tl_clockfit_relation(&loaded, &y);
    uint8_t p[TL_CLOCK_RELATION_BYTES], q[TL_CLOCK_RELATION_BYTES];
    tl_clock_relation_put(&x, p);
    tl_clock_relation_put(&y, q);
    assert_memory_equal(p, q, sizeof(p));
    tl_clock_relation_get(&y, (struct tl_bytes){p, sizeof(p)});
    assert_true(y.pairs == x.pairs && y.unix_ns == x.unix_ns && y.ticks == x.ticks);
    tl_clock_relation_get(&y, (struct tl_bytes){p, sizeof(p) - 1});
    assert_int_equal(y.pairs, 0);
    /* Damaged states are refused, not used as an index. */
    half.n_hull = TL_CLOCKFIT_HULL + 1;
    load = (struct tl_state){.in = {(const uint8_t *)&half, sizeof(half)}};
    tl_clockfit_state(&loaded, &load);
    assert_int_equal(load.rc, TL_BAD);
    tl_buf_fini(&bytes);
}

/* A link that was down: pending bytes arrive late and all at once, without any effect. */
static void held_up(void **state)
{
    (void)state;
    struct rig rig = {.hz = 1e8, .jitter = 100000};
    struct tl_clockfit fit = {0};
    struct tl_clock_relation r;
    rig.rng.state = 9;
    run(&rig, &fit, 0, 2000);
    for (unsigned i = 2000; i < 2500; i++) /* five seconds' bytes, all within 50 ms after these */
        tl_clockfit_add(&fit, ticks_at(&rig, 1e7 * (i + 1)),
                        UNIX + (uint64_t)(2.5e10) + i * 100000);
    run(&rig, &fit, 2510, 12000);
    tl_clockfit_relation(&fit, &r);
    assert_true(fabs(r.ns_per_tick - 10) <= r.error && r.error < 10 * 10e-6);
    assert_true(r.spread_ns < 1000000);
}

static void nothing_to_say(void **state)
{
    (void)state;
    struct tl_clockfit fit = {0};
    struct tl_clock_relation r;
    struct rig rig = {.hz = 1e8, .jitter = 1000};
    rig.rng.state = 1;
    tl_clockfit_relation(&fit, &r);
    assert_int_equal(r.pairs, 0);
    run(&rig, &fit, 0, 50); /* half a second */
    tl_clockfit_relation(&fit, &r);
    assert_int_equal(r.pairs, 0);
    /* Arrivals unrelated to the timestamps. */
    fit = (struct tl_clockfit){0};
    for (uint64_t i = 1; i < 1000; i++)
        tl_clockfit_add(&fit, i * 1000, UNIX + UINT64_C(60) * tl_sim_below(&rig.rng, 1000000000));
    tl_clockfit_relation(&fit, &r);
    assert_int_equal(r.pairs, 0);
    /* Unknown arrivals, timestamps that stand still or decrease, and overflows. */
    fit = (struct tl_clockfit){0};
    run(&rig, &fit, 0, 200);
    const struct tl_clockfit before = fit;
    tl_clockfit_add(&fit, UINT64_MAX, 0);
    tl_clockfit_add(&fit, 5, UNIX * 2);
    tl_clockfit_add(&fit, UINT64_MAX, UNIX + 1);
    assert_memory_equal(&fit, &before, sizeof(fit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_rate),
        cmocka_unit_test(resumed),
        cmocka_unit_test(held_up),
        cmocka_unit_test(nothing_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
