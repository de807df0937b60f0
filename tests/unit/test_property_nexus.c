/* SPDX-License-Identifier: MIT */
/*
 * N-Trace of random programs in every mode gives exactly the instructions, traps, returns and times
 * that there were: whole, in chunks, and handed from decode to decode. Damaged trace ends, and
 * gives the same for any chunking.
 */
#include "import/bundle.h"
#include "sim/nexus_encoder.h"
#include "unit/hand_on.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 60 };

struct world {
    struct tl_sim_riscv_run run;
    struct tl_sim_nexus_options options;
    struct tl_buf trace, truth;
    struct tl_setup setup;
    struct tl_image *image;
};

static uint64_t base_of(unsigned round, unsigned xlen)
{
    return round % 5 == 0 ? xlen == 64 ? 0xffffffc080000000 : 0xfffe0000 : 0x80000000;
}

static void choose(struct world *w, unsigned round, struct tl_sim_rng *rng)
{
    const bool history = round % 3 > 0;
    w->options = (struct tl_sim_nexus_options){
        .seed = round,
        .history = history,
        .stack = round % 2 ? 1 + tl_sim_below(rng, 32) : 0,
        .sequences = tl_sim_below(rng, 2),
        .repeats = tl_sim_below(rng, 2),
        .jumps = tl_sim_below(rng, 4) == 0,
        .times = tl_sim_below(rng, 2),
        .contexts = tl_sim_below(rng, 2),
        .extends = tl_sim_below(rng, 2),
        .gaps = round % 4 == 3,
        .sifive = round % 7 == 6,
        .src_bits = tl_sim_below(rng, 3) ? tl_sim_below(rng, 13) : 0,
        .xlen = round % 4 == 1 ? 32 : 64,
        .history_bits = 2 + tl_sim_below(rng, 30),
        .icnt_max = round % 8 == 2 ? 8 + tl_sim_below(rng, 40) : 1 << 20,
        .sync_every = 20 + tl_sim_below(rng, 200),
    };
    if (w->options.src_bits > 0)
        w->options.src = tl_sim_below(rng, 1u << w->options.src_bits);
}

/* What the decoder must be told; without `all`, what it can find out by itself is left out. */
static void configure(struct world *w, bool all)
{
    const struct tl_sim_nexus_options *const o = &w->options;
    char text[640];
    struct tl_fail fail = {0};
    int n = snprintf(text, sizeof text,
                     "[trace]\nformat=%s,src_bits=%u\n[source nt.%u]\ncore=rv%u\n"
                     "trTeInstEnSequentialJump=%d\ntrTeInstEnAllJumps=%d\n"
                     "trTeInstExtendAddrMSB=%d\n",
                     o->sifive ? "nexus-sifive" : "ntrace", o->src_bits, o->src, o->xlen,
                     o->sequences, o->jumps, o->extends);
    if (all)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "trTeInstMode=%u\ntrTeInstImplicitReturnMode=%u\ncall_stack_depth=%u\n",
                      o->history ? 6 : 3, o->stack ? 3 : 0, o->stack);
    tl_setup_init(&w->setup);
    if (tl_setup_parse(&w->setup, text, (size_t)n, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void world_init(struct world *w, unsigned round, struct tl_sim_rng *rng)
{
    struct tl_fail fail = {0};
    memset(w, 0, sizeof *w);
    choose(w, round, rng);
    const struct tl_sim_riscv_options program = {
        .seed = round * 7 + 1,
        .xlen = w->options.xlen,
        .base = base_of(round, w->options.xlen),
        .compressed = round % 2,
        .events = 8000,
        .trap_per_mille = round % 2 ? 20 : 0,
        .context_per_mille = w->options.contexts ? 5 : 0,
        .true_returns = round % 3 == 0,
    };
    assert_int_equal(tl_sim_riscv_run(&w->run, &program), TL_OK);
    assert_int_equal(tl_sim_nexus_encode(&w->run, &w->options, &w->trace, &w->truth), TL_OK);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, program.base,
                                        (struct tl_bytes){w->run.code.p, w->run.code.n},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    configure(w, round % 2);
}

static void world_fini(struct world *w)
{
    tl_sim_riscv_run_fini(&w->run);
    tl_buf_fini(&w->trace);
    tl_buf_fini(&w->truth);
    tl_setup_fini(&w->setup);
    tl_image_free(w->image);
}

/* ---- what a decode says -------------------------------------------------------------------- */

struct said {
    struct tl_buf text;
    uint64_t lost;
    unsigned faults, wrong; /* gaps that mean that trace and program differ */
};

static int hear_items(void *context, const struct tl_decode_stream *stream,
                      const struct tl_item *items, size_t n)
{
    struct said *const said = context;
    assert_int_equal(strncmp(stream->name, "nt.", 3), 0);
    for (size_t i = 0; i < n; i++)
        said->wrong += items[i].kind == TL_ITEM_GAP && items[i].sub != TL_GAP_OFF &&
                       items[i].sub != TL_GAP_OVERFLOW;
    return tl_item_text(&said->text, items, n);
}

static int hear_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const said = context;
    said->lost += loss->bytes;
    said->faults += loss->fault;
    return TL_OK;
}

static void decode(const struct world *w, const struct tl_buf *trace, size_t chunk,
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

/* The lines of one of these classes; of exceptions without their name. */
static void pick(const struct tl_buf *text, const char *classes, bool named, struct tl_buf *out)
{
    const char *p = (const char *)text->p, *const end = p + text->n;
    while (p < end) {
        const char *const stop = memchr(p, '\n', (size_t)(end - p));
        const char *from = p;
        p = stop + 1;
        if (!strchr(classes, *from))
            continue;
        if (*from == 'X') {
            from = memchr(from + 2, named ? ' ' : '-', (size_t)(stop - from));
            assert_int_equal(tl_buf_add(out, "X ", 2), TL_OK);
            from += named;
        }
        assert_int_equal(tl_buf_add(out, from, (size_t)(p - from)), TL_OK);
    }
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
}

static void assert_reported(const struct world *w, const struct said *said, const char *classes,
                            unsigned round)
{
    struct tl_buf a = {0}, b = {0};
    pick(&w->truth, classes, false, &a);
    pick(&said->text, classes, true, &b);
    const char *x = (const char *)a.p, *y = (const char *)b.p;
    size_t i = 0, line = 0;
    while (x[i] && x[i] == y[i])
        line = x[i++] == '\n' ? i : line;
    if (x[i] != y[i])
        fail_msg("round %u, %s: '%.40s' became '%.40s'", round, classes, x + line, y + line);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

static void all_is_reported(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {3};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        struct said whole, parts;
        world_init(&w, round, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        assert_reported(&w, &whole, "IXR", round);
        assert_reported(&w, &whole, "T", round);
        assert_int_equal(whole.faults + whole.lost + whole.wrong, 0);
        decode(&w, &w.trace, 1 + round % 40, &parts);
        assert_int_equal(whole.text.n, parts.text.n);
        assert_memory_equal(whole.text.p, parts.text.p, whole.text.n);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        world_fini(&w);
    }
}

static void handed_from_decode_to_decode(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {4};
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    for (unsigned round = 0; round < ROUNDS / 3; round++) {
        struct world w;
        world_init(&w, round, &rng);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 5 ? NULL : w.image,
                          .in = {w.trace.p, w.trace.n},
                          .paths = round % 2,
                          .crew = round % 4 ? NULL : crew};
        assert_true(compare(&run, 60, &rng) > 0);
        world_fini(&w);
    }
    tl_crew_free(crew);
}

static void damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    for (unsigned n = 1 + tl_sim_below(rng, 20); n > 0; n--)
        trace->p[tl_sim_below(rng, (uint32_t)trace->n)] ^= (uint8_t)(1u << tl_sim_below(rng, 8));
    if (tl_sim_below(rng, 3) == 0) {
        const size_t at = tl_sim_below(rng, (uint32_t)trace->n), n = trace->n - at;
        memset(trace->p + at, 0, n < 300 ? n : 300); /* a message without an end */
    }
}

static void damaged(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {5};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        struct said whole, parts;
        world_init(&w, round, &rng);
        damage(&w.trace, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        decode(&w, &w.trace, 1 + tl_sim_below(&rng, 30), &parts);
        assert_true(whole.lost <= w.trace.n);
        assert_int_equal(whole.lost, parts.lost);
        assert_int_equal(whole.text.n, parts.text.n);
        assert_memory_equal(whole.text.p, parts.text.p, whole.text.n);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        struct run run = {.setup = &w.setup, .image = w.image, .in = {w.trace.p, w.trace.n}};
        if (round % 4 == 0)
            assert_true(compare(&run, 400, &rng) > 0);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_reported),
        cmocka_unit_test(handed_from_decode_to_decode),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
