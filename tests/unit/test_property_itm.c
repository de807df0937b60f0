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
                                       .wide = tl_sim_below(rng, 2),
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

/* ---- times as bounds ------------------------------------------------------------------------- */

enum { MESSAGES = 2000 };

/* Messages of four bytes, which are all different, with what is told of their times. */
struct times {
    struct message {
        uint32_t payload;
        bool global; /* a time of the trace; else the source's own */
        uint64_t least, most;
    } v[MESSAGES];
    size_t n, open; /* those from `open` on are behind the last time, */
    struct tl_item time, before;
    bool timed; /* if there is one */
};

/* By what docs/time.md says: a gap has times around it, all others their own. */
static int take_times(void *context, const struct tl_item *items, size_t n)
{
    struct times *const t = context;
    for (size_t i = 0; i < n; i++) {
        const struct tl_item *const item = &items[i];
        const unsigned how = t->time.flags;
        if (item->kind == TL_ITEM_TIME) {
            t->before = t->timed ? t->time : *item;
            t->before.value = t->timed && t->time.sub == item->sub ? t->time.value : 0;
            t->time = *item;
            t->timed = true;
            t->open = t->n;
        } else if (item->kind == TL_ITEM_GAP) {
            for (; t->open < t->n; t->open++)
                t->v[t->open].most = UINT64_MAX;
        } else if (item->kind == TL_ITEM_SOFTWARE && item->n == 4 && t->timed && t->n < MESSAGES) {
            t->v[t->n++] =
                (struct message){.payload = (uint32_t)tl_item_payload(item),
                                 .global = t->time.sub == TL_TIME_TRACE,
                                 .least = how & TL_ITEM_OVERDUE   ? 0
                                          : how & TL_ITEM_DELAYED ? t->before.value
                                                                  : t->time.value,
                                 .most = how & TL_ITEM_AT_LEAST ? UINT64_MAX : t->time.value};
        }
    }
    return TL_OK;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return TL_OK;
}

/* When a message was sent, by the truth. False: there is no time of that clock. */
static bool true_time(const struct tl_sim_itm *itm, uint32_t payload, bool global, uint64_t *out)
{
    const char *p = (const char *)itm->text.p;
    char wanted[12];
    bool known = false;
    snprintf(wanted, sizeof wanted, " %08" PRIx32, payload);
    for (const char *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        if (*p == 'T' || strncmp(p, "A time ", 7) == 0) {
            known = global == (*p == 'T');
            *out = strtoull(p + (*p == 'T' ? 2 : 7), NULL, 10);
        } else if (*p == 'S' && memcmp(end - 9, wanted, 9) == 0) {
            return known;
        }
    }
    fail_msg("no message has %s", wanted);
    return false;
}

/* Packets are missing: what is told of a time is true, and behind complete global timestamps, or
 * without a loss, exact. */
static void times_are_bounds(void **state)
{
    struct tl_sim_rng rng = {test_seed()};
    size_t exact = 0, bounded = 0;
    for (int round = 0; round < 200; round++) {
        struct tl_sim_itm_options options = random_options(&rng);
        options.overflows = options.bad_bytes = 0;
        options.timed = true;
        const struct tl_source source = source_of(&options, true);
        struct tl_sim_itm itm = {.page = 0};
        struct times *const told = calloc(1, sizeof *told);
        assert_non_null(told);
        tl_sim_itm_init(&itm, &options);
        assert_int_equal(tl_sim_itm_run(&itm, 10 + tl_sim_below(&rng, 200)), TL_OK);
        /* A trace unit that has no room leaves out no global timestamps. */
        const bool overflow = tl_sim_below(&rng, 2);
        const uint8_t mark = overflow ? 0x70 : 0x04;
        const size_t lost = itm.trace.n;
        itm.options.global = options.global && !overflow;
        assert_int_equal(tl_sim_itm_run(&itm, 1 + tl_sim_below(&rng, 100)), TL_OK);
        itm.options.global = options.global;
        itm.trace.n = lost;
        assert_int_equal(tl_buf_add(&itm.trace, &mark, 1), TL_OK);
        assert_int_equal(tl_sim_itm_run(&itm, 300), TL_OK);
        assert_int_equal(tl_sim_itm_end(&itm), TL_OK);

        const struct tl_stream_sink sink = {told, take_times, NULL, ignore_loss, false};
        struct tl_stream_decoder *d;
        assert_int_equal(tl_itm_ops.create(&d, &source, NULL, &sink, NULL), TL_OK);
        assert_int_equal(tl_itm_ops.push(d, &(struct tl_run){itm.trace.p, itm.trace.n, 0, NULL}),
                         TL_OK);
        assert_int_equal(tl_itm_ops.finish(d, TL_LOSS_CUT_OFF), TL_OK);
        tl_itm_ops.destroy(d);
        for (size_t i = 0; i < told->n; i++) {
            const struct message *const m = &told->v[i];
            uint64_t time;
            if (!true_time(&itm, m->payload, m->global, &time))
                continue;
            if (time < m->least || time > m->most)
                fail_msg("round %d: %08" PRIx32 " at %" PRIu64 ", told %" PRIu64 " to %" PRIu64,
                         round, m->payload, time, m->least, m->most);
            exact += m->least == m->most;
            bounded += m->least < m->most;
        }
        free(told);
        tl_sim_itm_fini(&itm);
    }
    print_message("%zu exact, %zu within bounds\n", exact, bounded);
    assert_true(exact > 1000 && bounded > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_happened),
        cmocka_unit_test(synchronisation_ends_all_damage),
        cmocka_unit_test(times_are_bounds),
    };
    return cmocka_run_group_tests_name("property_itm", tests, NULL, NULL);
}
