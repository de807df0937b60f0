/* SPDX-License-Identifier: MIT */
/* ITM streams of any kind, whole and damaged, compared with what happened (sim/itm_encoder.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/itm_encoder.h"
#include "stream_harness.h"
#include "unit/seed.h"

static struct tl_source source_of(const struct tl_sim_itm_options *o, bool configured)
{
    static const unsigned scales[65] = {[4] = 1, [16] = 2, [64] = 3};
    struct tl_source source = {.id = 1, .protocol = TL_PROTO_ITM};
    const bool only_global = o->global && !o->timed;
    if (configured || o->prescale > 1 || only_global) {
        source.n_regs = 1;
        source.regs[0] =
            (struct tl_register){.name = "ITMTCR",
                                 .value = 1u | (unsigned)o->timed << 1 | scales[o->prescale] << 8 |
                                          (unsigned)only_global << 10};
    }
    return source;
}

static struct tl_sim_itm_options random_options(struct tl_sim_rng *rng)
{
    return (struct tl_sim_itm_options){.seed = tl_sim_rand(rng),
                                       .prescale = 1u << 2 * tl_sim_below(rng, 4),
                                       .timed = tl_sim_below(rng, 3) > 0,
                                       .syncs = tl_sim_below(rng, 2),
                                       .global = tl_sim_below(rng, 2),
                                       .overflows = tl_sim_below(rng, 2) * 50,
                                       .bad_bytes = tl_sim_below(rng, 2) * 40};
}

/* Local times in order. */
static void times_never_fall(const struct tl_buf *text)
{
    unsigned long long last = 0, time;
    for (const char *p = (const char *)text->p; (p = strstr(p, "A time ")) != NULL; p++) {
        assert_int_equal(sscanf(p, "A time %llu", &time), 1);
        assert_true(time >= last);
        last = time;
    }
}

static void assert_same_text(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    if (a[i] || b[i]) {
        const size_t from = i < 100 ? 0 : i - 100;
        fail_msg("different at %zu:\n--- %.200s\n+++ %.200s", i, a + from, b + from);
    }
}

static void decodes_what_happened(void **state)
{
    struct tl_sim_rng rng = {test_seed()};
    size_t gaps = 0, overflows = 0, times = 0;
    for (int round = 0; round < 300; round++) {
        const struct tl_sim_itm_options options = random_options(&rng);
        const struct tl_source source = source_of(&options, tl_sim_below(&rng, 2));
        struct tl_sim_itm itm = {.page = 0};
        struct stream_result r;
        tl_sim_itm_init(&itm, &options);
        assert_int_equal(tl_sim_itm_run(&itm, 400), TL_OK);
        assert_int_equal(tl_sim_itm_end(&itm), TL_OK);
        run_stream(&tl_itm_ops, &source, itm.trace.p, itm.trace.n, tl_sim_below(&rng, 9), &r);
        assert_same_text((char *)r.text.p, (char *)itm.text.p);
        assert_int_equal(r.losses, itm.gaps);
        times_never_fall(&r.text);
        gaps += itm.gaps;
        overflows += itm.overflows;
        times += itm.times;
        free_stream(&r);
        tl_sim_itm_fini(&itm);
    }
    print_message("%zu gaps, %zu overflows, %zu times\n", gaps, overflows, times);
    assert_true(gaps > 500 && overflows > 500 && times > 10000);
}

/* Append the lines of sources, without times, except the first `skip`; returns their number. */
static size_t sources_of(const struct tl_buf *text, size_t skip, struct tl_buf *out)
{
    size_t n = 0;
    const char *p = (const char *)text->p, *const last = p + text->n;
    for (const char *end; p < last && (end = memchr(p, '\n', (size_t)(last - p))); p = end + 1)
        if ((*p == 'S' || *p == 'H') && n++ >= skip)
            assert_int_equal(tl_buf_add(out, p, (size_t)(end + 1 - p)), TL_OK);
    return n;
}

/* Random bytes are changed: from the next synchronisation packet on everything is as it was. */
static void synchronisation_ends_all_damage(void **state)
{
    struct tl_sim_rng rng = {test_seed()};
    for (int round = 0; round < 300; round++) {
        struct tl_sim_itm_options options = random_options(&rng);
        options.bad_bytes = 0;
        const struct tl_source source = source_of(&options, true);
        struct tl_sim_itm itm = {.page = 0};
        struct tl_buf before = {0}, sources = {0}, expected = {0};
        struct stream_result r;
        tl_sim_itm_init(&itm, &options);
        assert_int_equal(tl_sim_itm_run(&itm, 100), TL_OK);
        const size_t damaged = itm.trace.n;
        assert_int_equal(tl_sim_itm_sync(&itm), TL_OK);
        const size_t first = sources_of(&itm.text, 0, &before) + sources_of(&itm.held, 0, &before);
        itm.page = 0;
        assert_int_equal(tl_buf_add(&itm.trace, (const uint8_t[]){0x08}, 1), TL_OK);
        assert_int_equal(tl_sim_itm_run(&itm, 100), TL_OK);
        assert_int_equal(tl_sim_itm_end(&itm), TL_OK);
        for (unsigned i = 1 + tl_sim_below(&rng, 20); i > 0; i--)
            itm.trace.p[tl_sim_below(&rng, (uint32_t)damaged)] ^=
                (uint8_t)(1 + tl_sim_below(&rng, 255));
        run_stream(&tl_itm_ops, &source, itm.trace.p, itm.trace.n, tl_sim_below(&rng, 9), &r);
        times_never_fall(&r.text);
        (void)sources_of(&r.text, 0, &sources);
        (void)sources_of(&itm.text, first, &expected);
        assert_true(sources.n >= expected.n);
        assert_memory_equal(sources.p + sources.n - expected.n, expected.p, expected.n);
        free_stream(&r);
        tl_buf_fini(&before);
        tl_buf_fini(&sources);
        tl_buf_fini(&expected);
        tl_sim_itm_fini(&itm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_happened),
        cmocka_unit_test(synchronisation_ends_all_damage),
    };
    return cmocka_run_group_tests_name("property_itm", tests, NULL, NULL);
}
