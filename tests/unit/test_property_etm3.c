/* SPDX-License-Identifier: MIT */
/*
 * ETMv3 and PTM of random programs in every mode give exactly the instructions, exceptions,
 * returns, times and cycles that there were, whole and in chunks. Damaged trace ends, gives the
 * same for any chunking, and no step that the program cannot make.
 */
#include "decode/decode.h"
#include "steps.h"
#include "unit/etm3_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 120 };

struct said {
    struct tl_buf text;
    struct steps steps;
    uint64_t lost;
    unsigned wrong;         /* gaps that mean that trace and program differ */
    unsigned contradicting; /* faults by which the packets contradict a register */
};

static int hear_items(void *context, const struct tl_decode_stream *stream,
                      const struct tl_item *items, size_t n)
{
    struct said *const said = context;
    assert_string_equal(stream->name, "cs.10");
    for (size_t i = 0; i < n; i++)
        said->wrong += items[i].kind == TL_ITEM_GAP && items[i].sub != TL_GAP_OFF &&
                       items[i].sub != TL_GAP_OVERFLOW;
    steps_take(&said->steps, items, n);
    return tl_item_text(&said->text, items, n);
}

static int hear_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const said = context;
    said->lost += loss->bytes;
    said->contradicting += loss->fault && strstr(loss->reason, "ETMCR");
    return TL_OK;
}

static void decode(const struct etm3_world *w, const struct tl_buf *trace, size_t chunk,
                   struct said *said)
{
    const struct tl_decode_sink sink = {.context = said, .items = hear_items, .loss = hear_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    *said = (struct said){0};
    assert_int_equal(tl_decode_new(&d, &w->setup, w->image, &sink, &fail), TL_OK);
    for (size_t at = 0; at < trace->n; at += chunk)
        assert_int_equal(
            tl_decode_push(d, trace->p + at, chunk < trace->n - at ? chunk : trace->n - at), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void said_fini(struct said *said)
{
    tl_buf_fini(&said->text);
}

/* The lines of one class; of exceptions without their name. */
static void pick(const struct tl_buf *text, char class, bool named, struct tl_buf *out)
{
    const char *p = (const char *)text->p, *const end = p + text->n;
    while (p < end) {
        const char *const stop = memchr(p, '\n', (size_t)(end - p));
        const char *from = p;
        p = stop + 1;
        if (*from != class)
            continue;
        if (class == 'X' && named)
            from = (const char *)memchr(from + 2, ' ', (size_t)(stop - from)) - 1;
        assert_int_equal(tl_buf_add(out, from + 1, (size_t)(p - from) - 1), TL_OK);
    }
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
}

static void assert_said(const struct etm3_world *w, const struct said *said, const char *classes,
                        unsigned round)
{
    for (const char *c = classes; *c; c++) {
        struct tl_buf a = {0}, b = {0};
        pick(&w->truth, *c, false, &a);
        pick(&said->text, *c, true, &b);
        size_t i = 0;
        while (i < a.n && i < b.n && a.p[i] == b.p[i])
            i++;
        if (a.n != b.n || i < a.n)
            fail_msg("round %u, %c: at %zu of %zu and %zu: '%.60s' is told as '%.60s'", round, *c,
                     i, a.n, b.n, (char *)a.p + (i > 30 ? i - 30 : 0),
                     (char *)b.p + (i > 30 ? i - 30 : 0));
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
}

static void tells_the_truth(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {7};
    uint64_t insns = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct etm3_world w;
        struct said whole, chunks;
        etm3_world_init(&w, round, 3000, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        decode(&w, &w.trace, 1 + tl_sim_below(&rng, 40), &chunks);
        assert_said(&w, &whole, w.options.exit_packets ? "IXRTYA" : "IXTYA", round);
        assert_int_equal(whole.wrong, 0);
        assert_int_equal(whole.lost, 0);
        assert_int_equal(whole.contradicting, 0);
        assert_int_equal(whole.text.n, chunks.text.n);
        assert_memory_equal(whole.text.p, chunks.text.p, whole.text.n);
        if (whole.steps.impossible)
            fail_msg("round %u: %s", round, whole.steps.what);
        insns += whole.steps.insns;
        said_fini(&whole);
        said_fini(&chunks);
        etm3_world_fini(&w);
    }
    assert_true(insns > ROUNDS * 2000);
}

static void damage_makes_gaps(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {8};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct etm3_world w;
        struct said whole, chunks;
        etm3_world_init(&w, round, 3000, &rng);
        etm3_damage(&w.trace, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        decode(&w, &w.trace, 1 + tl_sim_below(&rng, 40), &chunks);
        assert_int_equal(whole.text.n, chunks.text.n);
        assert_memory_equal(whole.text.p, chunks.text.p, whole.text.n);
        if (whole.steps.impossible)
            fail_msg("round %u: %s", round, whole.steps.what);
        said_fini(&whole);
        said_fini(&chunks);
        etm3_world_fini(&w);
    }
}

/* A setup that is wrong about counts of cycles, which changes what outcomes are, is said to be. */
static void wrong_register_is_said(void **state)
{
    enum { CYCLE_ACCURATE = 1 << 12 };
    (void)state;
    struct tl_sim_rng rng = {9};
    for (unsigned round = 0; round < ROUNDS; round += 2) { /* of PTM the packets do not tell */
        struct etm3_world w;
        struct said said;
        etm3_world_init(&w, round, 300, &rng);
        struct tl_source *const source = &w.setup.sources[0];
        const uint64_t cr = tl_source_reg(source, "ETMCR", 0);
        assert_int_equal(tl_source_set_reg(source, "ETMCR", cr ^ CYCLE_ACCURATE), TL_OK);
        decode(&w, &w.trace, w.trace.n, &said);
        assert_true(said.contradicting > 0);
        said_fini(&said);
        etm3_world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tells_the_truth),
                                       cmocka_unit_test(wrong_register_is_said),
                                       cmocka_unit_test(damage_makes_gaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
