/* SPDX-License-Identifier: MIT */
/* 32-bit timestamps compared with the true time: alone, and with arrival times. */
#include "decode/ops.h"
#include "osd/ticks.h"
#include "sim/osd_encoder.h"
#include "unit/random.h"

#include <stddef.h>
#include <stdlib.h>

#define WRAP ((uint64_t)1 << 32)
#define HALF ((uint64_t)1 << 31)

/* Steps up to half a wrap are exact; longer ones are reported as ambiguous and count as one wrap at
 * most. */
static void test_alone(void **state)
{
    struct tl_osd_ticks t = {0};
    uint64_t truth = next();
    assert_false(tl_osd_ticks_step(&t, (uint32_t)truth, TL_OSD_NO_ARRIVAL));
    for (unsigned i = 0; i < 100000; i++) {
        const uint64_t step = next() % 8 ? next() % 10000 : next();
        truth += step;
        const bool ambiguous = tl_osd_ticks_step(&t, (uint32_t)truth, TL_OSD_NO_ARRIVAL);
        assert_int_equal(t.now, truth);
        assert_int_equal(ambiguous, step > HALF);
    }
}

/* Pauses of many wraps, with varying latency and a clock that is off by some per mille. */
static void test_arrival(void **state)
{
    for (unsigned round = 0; round < 200; round++) {
        struct tl_osd_ticks t = {0};
        const int64_t error = (int64_t)(next() % 10) - 5; /* per mille */
        uint64_t truth = next() % WRAP, seen = 0;
        const uint64_t origin = next();
        for (unsigned i = 0; i < 300; i++) {
            const uint64_t step = next() % 10 ? next() % 100000000 : next() % (50 * WRAP);
            const uint64_t latency = next() % (HALF / 8);
            truth += i ? step : 0;
            const uint64_t host = truth + (uint64_t)((int64_t)(truth / 1000) * error);
            uint64_t arrival = origin + host + latency;
            arrival = seen = arrival > seen ? arrival : seen;
            const uint64_t before = t.now;
            const bool ambiguous = tl_osd_ticks_step(&t, (uint32_t)truth, arrival);
            if (t.now != truth)
                fail_msg("round %u event %u: %llu for %llu", round, i, (unsigned long long)t.now,
                         (unsigned long long)truth);
            assert_int_equal(ambiguous, i > 0 && truth - before > HALF);
        }
    }
}

/* Events that arrive late, all at once, did not happen later. */
static void test_burst(void **state)
{
    struct tl_osd_ticks t = {0};
    uint64_t truth = 5, arrival = 1000;
    for (unsigned i = 0; i < 2000; i++) {
        truth += 100000;
        if (i < 1000 || i == 1500)
            arrival += 100000 + (i == 1500 ? 500ull * 100000 : 0);
        assert_false(tl_osd_ticks_step(&t, (uint32_t)truth, arrival));
        assert_int_equal(t.now, truth);
    }
}

static void test_ticks_of(void **state)
{
    assert_int_equal(tl_osd_ticks_of(1500000000, 50000000), 75000000);
    assert_int_equal(tl_osd_ticks_of(UINT64_C(864000) * 1000000000 + 20, 50000000),
                     UINT64_C(864000) * 50000000 + 1);
}

/* ---- through the decoder ---------------------------------------------------------------- */

struct times {
    uint64_t last;
    unsigned n, ambiguous;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct times *const t = context;
    for (size_t i = 0; i < n; i++) {
        t->ambiguous += items[i].kind == TL_ITEM_NOTE;
        if (items[i].kind != TL_ITEM_TIME)
            continue;
        t->last = items[i].value;
        t->n++;
    }
    return TL_OK;
}

/* Two events five wraps apart, which only arrival times reveal; both arrive in chunks. */
static void decode(uint64_t hz, bool arrives, unsigned chunk, struct times *out)
{
    struct tl_sim_osd e;
    struct tl_setup setup;
    struct tl_decode *d;
    *out = (struct times){0};
    const struct tl_decode_sink sink = {.context = out, .items = on_items};
    tl_setup_init(&setup);
    setup.container = TL_CONTAINER_DI;
    setup.clock_hz = hz;
    tl_sim_osd_init(&e);
    const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 0}, {1, TL_SIM_OSD_STM, 32}};
    assert_int_equal(tl_sim_osd_enumerate(&e, modules, 2), TL_OK);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(tl_sim_osd_stm(&e, 1, 32, 1000 + 1000 * i, 7, i), TL_OK);
    const size_t pause = e.out.n;
    for (uint32_t i = 10; i < 20; i++)
        assert_int_equal(tl_sim_osd_stm(&e, 1, 32, 1000 + 1000 * i, 7, i), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, NULL), TL_OK);
    const uint64_t start = UINT64_C(1700000000) * 1000000000;
    for (size_t at = 0; at < e.out.n; at += chunk) {
        if (arrives)
            tl_decode_set_arrival(d, start + (at < pause ? 0 : 5 * WRAP * 10)); /* 100 MHz: 10 ns */
        assert_int_equal(
            tl_decode_push(d, e.out.p + at, e.out.n - at < chunk ? e.out.n - at : chunk), TL_OK);
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    tl_sim_osd_fini(&e);
    assert_int_equal(out->n, 20);
}

static void test_decoder(void **state)
{
    struct times t;
    decode(0, true, 1, &t); /* without a clock rate, arrival does not help */
    assert_int_equal(t.last, 20000);
    assert_int_equal(t.ambiguous, 0);
    decode(100000000, false, 1, &t);
    assert_int_equal(t.last, 20000);
    for (unsigned chunk = 1; chunk <= 2; chunk++) { /* both divide a datagram's even length */
        decode(100000000, true, chunk, &t);
        assert_int_equal(t.last, 20000 + 5 * WRAP);
        assert_int_equal(t.ambiguous, 1);
    }
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_arrival),
        cmocka_unit_test(test_burst),   cmocka_unit_test(test_ticks_of),
        cmocka_unit_test(test_decoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
