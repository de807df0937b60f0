/* SPDX-License-Identifier: MIT */
/*
 * N-Trace of random programs in every mode gives exactly the instructions, traps, returns and times
 * that there were, whole and in chunks. Damaged trace ends, and gives the same for any chunking.
 */
#include "decode/decode.h"
#include "steps.h"
#include "unit/nexus_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 60 };

/* ---- what a decode says -------------------------------------------------------------------- */

struct said {
    struct tl_buf text;
    uint64_t lost;
    unsigned faults, wrong; /* gaps that mean that trace and program differ */
    struct steps steps;
};

static int hear_items(void *context, const struct tl_decode_stream *stream,
                      const struct tl_item *items, size_t n)
{
    struct said *const said = context;
    assert_int_equal(strncmp(stream->name, "nt.", 3), 0);
    steps_demand(&said->steps, items, n);
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

static void decode(const struct nexus_world *w, const struct tl_buf *trace, size_t chunk,
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

static void assert_reported(const struct nexus_world *w, const struct said *said,
                            const char *classes, unsigned round)
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
        struct nexus_world w;
        struct said whole, parts;
        nexus_world_init(&w, round, 8000, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        assert_reported(&w, &whole, "IXR", round);
        assert_reported(&w, &whole, "T", round);
        assert_int_equal(whole.faults + whole.lost + whole.wrong, 0);
        decode(&w, &w.trace, 1 + round % 40, &parts);
        assert_int_equal(whole.text.n, parts.text.n);
        assert_memory_equal(whole.text.p, parts.text.p, whole.text.n);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        nexus_world_fini(&w);
    }
}

static void damaged(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {5};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct nexus_world w;
        struct said whole, parts;
        nexus_world_init(&w, round, 8000, &rng);
        nexus_damage(&w.trace, &rng);
        decode(&w, &w.trace, w.trace.n, &whole);
        decode(&w, &w.trace, 1 + tl_sim_below(&rng, 30), &parts);
        assert_true(whole.lost <= w.trace.n);
        assert_int_equal(whole.lost, parts.lost);
        assert_int_equal(whole.text.n, parts.text.n);
        assert_memory_equal(whole.text.p, parts.text.p, whole.text.n);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        nexus_world_fini(&w);
    }
}

/* ---- programs that reach the limits ---------------------------------------------------------- */

/* A program of `n` instructions of four bytes, with room for `events`. */
static void make_run(struct nexus_world *w, const struct tl_sim_riscv_insn *insns, uint32_t n,
                     size_t events)
{
    uint8_t code[4];
    w->run.insns = malloc(n * sizeof *insns);
    w->run.events = malloc(events * sizeof *w->run.events);
    assert_true(w->run.insns && w->run.events);
    for (uint32_t i = 0; i < n; i++) {
        w->run.insns[i] = insns[i];
        w->run.insns[i].pc = 0x80000000 + 4 * i;
        w->run.insns[i].size = 4;
        tl_put_le32(code, insns[i].encoding);
        assert_int_equal(tl_buf_add(&w->run.code, code, 4), TL_OK);
    }
    w->run.n_insns = n;
}

static void retire(struct nexus_world *w, uint32_t at, bool taken)
{
    w->run.events[w->run.n_events++] =
        (struct tl_sim_riscv_event){.at = at, .taken = taken, .privilege = 3};
}

static void assert_all_reported(struct nexus_world *w, unsigned round)
{
    struct said said;
    nexus_encode(w, 0x80000000);
    nexus_configure(w, false, round % 2);
    decode(w, &w->trace, w->trace.n, &said);
    assert_reported(w, &said, "IXR", round);
    assert_int_equal(said.faults + said.lost + said.wrong, 0);
    tl_buf_fini(&said.text);
}

/* Calls as deep as the deepest call stack, and deeper: then the outer returns are reported. */
static void deep_returns(void **state)
{
    static const struct tl_sim_riscv_insn insns[] = {
        {.encoding = 0x008000ef, .kind = TL_SIM_RV_CALL, .link = true, .to = 2},
        {.encoding = 0xffdff06f, .kind = TL_SIM_RV_JUMP, .to = 0},
        {.encoding = 0x00050663, .kind = TL_SIM_RV_BRANCH, .to = 5},
        {.encoding = 0xffdff0ef, .kind = TL_SIM_RV_CALL, .link = true, .to = 2},
        {.encoding = 0x00000013, .kind = TL_SIM_RV_PLAIN},
        {.encoding = 0x00008067, .kind = TL_SIM_RV_RETURN},
    };
    static const unsigned depths[] = {1, 31, 32, 33, 1022, 1023, 1024, 1025, 1500};
    enum { DEPTHS = sizeof depths / sizeof *depths };
    for (unsigned round = 0; round < 12; round++) {
        struct nexus_world w = {.options = {.seed = round,
                                            .sifive = round % 2,
                                            .history = round % 3 > 0,
                                            .stack = round % 4 ? 1024 : 32,
                                            .xlen = 64,
                                            .address_bits = round % 2 ? 48 : 0,
                                            .history_bits = 31,
                                            .icnt_max = 1 << 20,
                                            .sync_every = 100000}};
        make_run(&w, insns, 6, DEPTHS * 1500 * 4);
        for (unsigned i = 0; i < DEPTHS; i++) {
            const unsigned depth = depths[(i + round) % DEPTHS];
            retire(&w, 0, false);
            for (unsigned k = 1; k < depth; k++) {
                retire(&w, 2, false);
                retire(&w, 3, false);
            }
            retire(&w, 2, true);
            retire(&w, 5, false);
            for (unsigned k = 1; k < depth; k++) {
                retire(&w, 4, false);
                retire(&w, 5, false);
            }
            retire(&w, 1, false);
        }
        retire(&w, 0, false);
        assert_all_reported(&w, round);
        nexus_world_fini(&w);
    }
}

/* A branch to itself, repeated as often as the fields of repetitions can say, and more often. */
static void wide_repetitions(void **state)
{
    static const struct tl_sim_riscv_insn insns[] = {
        {.encoding = 0x00050063, .kind = TL_SIM_RV_BRANCH, .to = 0},
        {.encoding = 0xffdff06f, .kind = TL_SIM_RV_JUMP, .to = 0},
    };
    enum { FULL = (1 << 18) - 1 };
    static const unsigned turns[] = {2 * FULL, 2 * FULL + 1, FULL, FULL + 1, FULL + 2, 3};
    for (unsigned round = 0; round < 4; round++) {
        struct nexus_world w = {.options = {.seed = round,
                                            .sifive = round == 3,
                                            .history = round % 2,
                                            .repeats = true,
                                            .xlen = 64,
                                            .address_bits = round == 3 ? 48 : 0,
                                            .history_bits = 2,
                                            .icnt_max = UINT32_MAX,
                                            .sync_every = 100000}};
        make_run(&w, insns, 2, 8 * (size_t)FULL);
        for (unsigned i = 0; i < sizeof turns / sizeof *turns; i++) {
            for (unsigned k = 0; k < turns[i]; k++)
                retire(&w, 0, true);
            retire(&w, 0, false);
            retire(&w, 1, false);
        }
        retire(&w, 0, false);
        assert_all_reported(&w, round);
        assert_true(w.trace.n < 400);
        nexus_world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_reported),
        cmocka_unit_test(damaged),
        cmocka_unit_test(deep_returns),
        cmocka_unit_test(wide_repetitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
