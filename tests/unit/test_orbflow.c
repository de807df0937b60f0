/* SPDX-License-Identifier: MIT */
/*
 * ITM by orbuculum's connections. Where frames end makes no difference; a damaged one costs itself,
 * and the time goes on.
 */
#include "decode/decode.h"
#include "setup/setup.h"
#include "sim/itm_encoder.h"
#include "sim/orbflow.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct said {
    struct tl_buf text;
    uint64_t lost;
    unsigned losses, faults;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    assert_string_equal(stream->name, "cs.01");
    return tl_item_text(&s->text, items, n);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const s = context;
    s->lost += loss->bytes;
    s->losses++;
    s->faults += loss->fault;
    return TL_OK;
}

static void decode(const struct tl_buf *in, size_t chunk, const char *more, struct said *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = on_items, .loss = on_loss};
    struct tl_fail fail = {0};
    struct tl_setup setup;
    struct tl_decode *d;
    char text[160];
    const int n = snprintf(text, sizeof text,
                           "[trace]\nformat=orbflow\n[source cs.01]\nprotocol=itm\nid=1\n%s", more);
    *out = (struct said){0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, (size_t)n, &fail), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, &fail), TL_OK);
    for (size_t at = 0; at < in->n; at += chunk)
        assert_int_equal(tl_decode_push(d, in->p + at, in->n - at < chunk ? in->n - at : chunk),
                         TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    assert_int_equal(tl_buf_add(&out->text, "", 1), TL_OK);
}

static void add(struct tl_buf *out, const void *p, size_t n)
{
    assert_int_equal(tl_sim_orbflow_add(out, 1, p, n), TL_OK);
}

/* The frame of `p`, of which a byte arrives wrong. */
static void add_damaged(struct tl_buf *out, const void *p, size_t n)
{
    add(out, p, n);
    out->p[out->n - 2] ^= 0x40;
}

static void frames(void **state)
{
    static const uint8_t frame[] = {4, 1, 1, 'A', 2, 0xbd, 0};
    struct tl_buf out = {0};
    (void)state;
    add(&out, (const uint8_t[]){1, 'A', 0}, 3);
    assert_int_equal(out.n, sizeof frame);
    assert_memory_equal(out.p, frame, sizeof frame);
    tl_buf_fini(&out);
}

static void check(const struct tl_buf *in, const char *more, const char *expected)
{
    for (size_t chunk = 1; chunk <= in->n; chunk++) {
        struct said said;
        decode(in, chunk, more, &said);
        assert_string_equal((char *)said.text.p, expected);
        assert_int_equal(said.faults, 1);
        tl_buf_fini(&said.text);
    }
}

/* Sums of local timestamps, and estimates by global ones, go on behind a gap. */
static void time_goes_on(void **state)
{
    static const uint8_t first[] = {0x01, 'a', 0xc0, 0xe8, 0x07}, next[] = {0x01, 'b', 0x50};
    static const uint8_t pin[] = {0xb4, 0x81, 0x80, 0x80, 0x00, 0x01, 'a', 0x10};
    struct tl_buf local = {0}, global = {0};
    (void)state;
    add(&local, first, sizeof first);
    add_damaged(&local, next, sizeof next);
    add(&local, next, sizeof next);
    check(&local, "", "A time 1000\nS itm 0 61\nG transport\nA time 1005\nS itm 0 62\n");
    check(&local, "ITMTCR=0x102\n",
          "A time 4000\nS itm 0 61\nG transport\nA time 4020\nS itm 0 62\n");
    add(&global, pin, sizeof pin);
    add_damaged(&global, next, sizeof next);
    add(&global, next, sizeof next);
    check(&global, "ITMTCR=0x402\n",
          "T 67108864\nT 67108865\nS itm 0 61\nG transport\nT 67108870\nS itm 0 62\n");
    tl_buf_fini(&local);
    tl_buf_fini(&global);
}

/* Simulated ITM in frames of any length; with `damage`, one in so many of them is damaged. */
static void encode(const struct tl_buf *trace, unsigned damage, struct tl_sim_rng *rng,
                   struct tl_buf *out)
{
    for (size_t at = 0, n; at < trace->n; at += n) {
        const size_t left = trace->n - at;
        n = 1 + tl_sim_below(rng, damage || tl_sim_below(rng, 4) ? 40 : TL_SIM_ORBFLOW_MAX);
        n = n < left ? n : left;
        if (damage && at && tl_sim_below(rng, damage) == 0)
            add_damaged(out, trace->p + at, n);
        else
            add(out, trace->p + at, n);
    }
}

static void simulate(struct tl_sim_itm *itm, struct tl_sim_rng *rng)
{
    const struct tl_sim_itm_options options = {.seed = tl_sim_rand(rng),
                                               .prescale = 1,
                                               .timed = true,
                                               .syncs = tl_sim_below(rng, 2),
                                               .global = tl_sim_below(rng, 2),
                                               .overflows = tl_sim_below(rng, 2) * 50};
    *itm = (struct tl_sim_itm){.page = 0};
    tl_sim_itm_init(itm, &options);
    assert_int_equal(tl_sim_itm_run(itm, 400), TL_OK);
    assert_int_equal(tl_sim_itm_end(itm), TL_OK);
    assert_int_equal(tl_buf_add(&itm->text, "", 1), TL_OK);
}

static void borders_mean_nothing(void **state)
{
    struct tl_sim_rng rng = {test_seed()};
    (void)state;
    for (int round = 0; round < 60; round++) {
        struct tl_sim_itm itm;
        struct tl_buf in = {0};
        struct said said;
        simulate(&itm, &rng);
        encode(&itm.trace, 0, &rng, &in);
        decode(&in, 1 + tl_sim_below(&rng, 500), "", &said);
        assert_string_equal((char *)said.text.p, (char *)itm.text.p);
        assert_int_equal(said.losses, 0);
        tl_buf_fini(&said.text);
        tl_buf_fini(&in);
        tl_sim_itm_fini(&itm);
    }
}

static unsigned count(const struct said *said, const char *what)
{
    unsigned n = 0;
    for (const char *p = (const char *)said->text.p; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* No time is below the one before, unless its restart is told. */
static void assert_times_rise(const struct said *said)
{
    unsigned long long last = 0, time;
    for (const char *p = (const char *)said->text.p; (p = strstr(p, "A time ")); p++) {
        assert_int_equal(sscanf(p, "A time %llu", &time), 1);
        assert_true(time >= last);
        last = time;
    }
}

static void damage_costs_frames(void **state)
{
    struct tl_sim_rng rng = {test_seed()};
    unsigned gaps = 0;
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct tl_sim_itm itm;
        struct tl_buf in = {0};
        struct said whole, parts;
        simulate(&itm, &rng);
        encode(&itm.trace, 6, &rng, &in);
        decode(&in, in.n, "", &whole);
        decode(&in, 1 + tl_sim_below(&rng, 50), "", &parts);
        assert_string_equal((char *)whole.text.p, (char *)parts.text.p);
        assert_int_equal(whole.lost, parts.lost);
        assert_int_equal(whole.losses, parts.losses);
        assert_times_rise(&whole);
        gaps += count(&whole, "G transport\n");
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        tl_buf_fini(&in);
        tl_sim_itm_fini(&itm);
    }
    assert_true(gaps > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames),
        cmocka_unit_test(time_goes_on),
        cmocka_unit_test(borders_mean_nothing),
        cmocka_unit_test(damage_costs_frames),
    };
    return cmocka_run_group_tests_name("orbflow", tests, NULL, NULL);
}
