/* SPDX-License-Identifier: MIT */
/*
 * Speculation does not change the result: the packets of a simulated core without speculation are
 * rewritten as those of a speculating unit. Paths that were not taken are traced and cancelled,
 * atoms are reversed and mispredicted, commits are late, alone and in cycle counts, with
 * conditional instructions and data markers in between. The flow must be the same, word by word.
 */
#include "etm4/flow.h"
#include "etm4/packetizer.h"
#include "image/image.h"
#include "sim/program_core.h"
#include "sim/program_rng.h"
#include "steps.h"
#include "unit/etm4_collect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 40 };

static void add(struct packets *to, const struct tl_etm4_packet *packet)
{
    assert_int_equal(tl_grow(&to->p, &to->cap, to->n + 1, sizeof *to->p), 0);
    to->p[to->n++] = *packet;
}

static struct steps steps; /* of the flow that is being followed */

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&steps, items, n);
    return tl_item_text(context, items, n);
}

static void follow(const struct packets *packets, const struct tl_etm4_config *config,
                   const struct tl_image *image, struct tl_buf *text)
{
    struct tl_etm4_flow *flow;
    steps = (struct steps){0};
    assert_int_equal(tl_etm4_flow_new(&flow, config, image, on_items, NULL, text), 0);
    assert_int_equal(tl_etm4_flow_push(flow, packets->p, packets->n), 0);
    assert_int_equal(tl_etm4_flow_flush(flow), 0);
    assert_int_equal(tl_etm4_flow_finish(flow, 1), 0);
    tl_etm4_flow_free(flow);
    assert_int_equal(tl_buf_add(text, "", 1), 0);
}

/* ---- rewriting ------------------------------------------------------------------------------ */

struct unit {
    struct packets out;
    struct tl_sim_rng *rng;
    uint64_t offset;  /* of the packet being rewritten */
    uint64_t waiting; /* P0 elements not committed */
    size_t cancelled, mispredicted;
};

static void put(struct unit *u, enum tl_etm4_type type, uint64_t value, uint8_t n)
{
    const struct tl_etm4_packet packet = {
        .type = (uint8_t)type, .value = value, .n = n, .offset = u->offset};
    add(&u->out, &packet);
}

static void commit(struct unit *u, uint64_t n)
{
    if (n > 0)
        put(u, TL_ETM4_COMMIT, n, 0);
    u->waiting -= n;
}

/* Make sure that `n` more P0 elements fit, so that none is committed because of the depth alone. */
static void make_room(struct unit *u, uint64_t n)
{
    if (u->waiting + n > DEPTH)
        commit(u, u->waiting + n - DEPTH + tl_sim_below(u->rng, (uint32_t)(DEPTH - n)));
}

static void junk_address(struct unit *u)
{
    put(u, TL_ETM4_ADDRESS, 0x400000 + 4 * tl_sim_below(u->rng, 1000), 0);
}

/* A path that was not taken, and is cancelled. */
static void wrong_path(struct unit *u)
{
    const unsigned n = 1 + tl_sim_below(u->rng, 8);
    make_room(u, n + 1);
    put(u, TL_ETM4_ATOM, tl_sim_rand(u->rng) & ((1u << n) - 1), (uint8_t)n);
    if (tl_sim_percent(u->rng, 50))
        junk_address(u);
    if (tl_sim_percent(u->rng, 30)) { /* with an exception at its end */
        put(u, TL_ETM4_EXCEPTION, 14, 1);
        junk_address(u);
        put(u, TL_ETM4_CANCEL, 1, 0);
    }
    put(u, TL_ETM4_CANCEL, n, 0);
    u->cancelled += n;
}

static void atoms(struct unit *u, const struct tl_etm4_packet *p)
{
    struct tl_etm4_packet copy = *p;
    const bool wrong = tl_sim_percent(u->rng, 30);
    make_room(u, p->n);
    if (wrong)
        copy.value ^= 1ULL << (p->n - 1);
    add(&u->out, &copy);
    u->waiting += p->n;
    if (!wrong)
        return;
    if (tl_sim_percent(u->rng, 50))
        junk_address(u);
    put(u, TL_ETM4_MISPREDICT, 0, 0);
    u->mispredicted++;
}

static void rewrite(struct unit *u, const struct packets *from)
{
    bool open = false; /* an exception's address is pending */
    for (size_t i = 0; i < from->n; i++) {
        struct tl_etm4_packet p = from->p[i];
        u->offset = p.offset;
        switch (p.type) {
        case TL_ETM4_ATOM:
            atoms(u, &p);
            break;
        case TL_ETM4_EXCEPTION:
            make_room(u, 1);
            add(&u->out, &p);
            open = true;
            break;
        case TL_ETM4_ADDRESS:
            add(&u->out, &p);
            u->waiting += open;
            open = false;
            break;
        case TL_ETM4_TRACE_INFO:
            p.value = u->waiting << 32;
            add(&u->out, &p);
            break;
        case TL_ETM4_TRACE_ON:
        case TL_ETM4_OVERFLOW:
            commit(u, u->waiting);
            add(&u->out, &p);
            break;
        case TL_ETM4_CYCLE_COUNT:
            p.flags |= TL_ETM4_HAS_COMMIT;
            p.value2 = tl_sim_below(u->rng, (uint32_t)u->waiting + 1);
            u->waiting -= p.value2;
            add(&u->out, &p);
            break;
        default:
            add(&u->out, &p);
            break;
        }
        const bool in_sync = i > 2 && p.type != TL_ETM4_OVERFLOW && p.type != TL_ETM4_ASYNC;
        if (in_sync && tl_sim_percent(u->rng, 10)) /* these do not affect the flow */
            put(u, tl_sim_percent(u->rng, 50) ? TL_ETM4_CONDITIONAL : TL_ETM4_DATA_MARKER, 1, 0);
        if (!open && in_sync && u->waiting > 0) {
            if (tl_sim_percent(u->rng, 10))
                wrong_path(u);
            if (tl_sim_percent(u->rng, 10))
                commit(u, tl_sim_below(u->rng, (uint32_t)u->waiting + 1));
        }
    }
    commit(u, u->waiting);
}

/* ---- the test ------------------------------------------------------------------------------- */

static void one(uint64_t seed, struct unit *all)
{
    struct tl_sim_rng rng = {seed};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_buf trace = {0}, elf = {0}, plain = {0}, speculative = {0};
    struct packets packets = {0};
    struct tl_etm4_packetizer *packetizer = malloc(sizeof *packetizer);
    struct tl_etm4_config config;
    struct tl_source source;
    struct tl_image *image;
    const struct tl_sim_program_options shape = {.seed = seed, .extra = 20};
    const struct tl_sim_core_options options = {
        .seed = seed,
        .irq_every = 600,
        .fault_every = 700,
        .event_every = 300,
        .off_every = tl_sim_percent(&rng, 30) ? 2000 : 0,
        .overflow_every = tl_sim_percent(&rng, 30) ? 2500 : 0,
        .etm = {.ete = seed % 2,
                .minor = seed % 2 ? 3 : 4,
                .return_stack = tl_sim_percent(&rng, 50),
                .cycle_count = tl_sim_percent(&rng, 50),
                .threshold = 10,
                .timestamps = tl_sim_percent(&rng, 50),
                .timestamp_every = 100,
                .context_id = true,
                .sync_every = 400},
    };
    assert_int_equal(tl_sim_program_init(&program, &shape), 0);
    assert_int_equal(tl_sim_program_elf(&program, &elf), 0);
    assert_int_equal(tl_image_new(&image), 0);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", NULL), 0);
    assert_int_equal(tl_image_freeze(image), 0);
    assert_int_equal(tl_sim_core_new(&core, &program, &options, &trace, NULL, NULL), 0);
    assert_int_equal(tl_sim_core_step(core, 5000), 0);
    assert_int_equal(tl_sim_core_flush(core), 0);
    assert_int_equal(tl_sim_etm4_source(&options.etm, &source), 0);
    tl_etm4_config_init(&config, &source);
    tl_etm4_packetizer_init(packetizer, &config, collect, &packets);
    const struct tl_run run = {trace.p, trace.n, 0, NULL};
    assert_int_equal(tl_etm4_packetizer_push(packetizer, &run), 0);

    struct unit unit = {.rng = &rng};
    rewrite(&unit, &packets);
    follow(&packets, &config, image, &plain);
    config.max_spec_depth = DEPTH;
    follow(&unit.out, &config, image, &speculative);
    if (strcmp((char *)plain.p, (char *)speculative.p) != 0) {
        size_t at = 0;
        while (plain.p[at] == speculative.p[at])
            at++;
        at = at > 100 ? at - 100 : 0;
        print_message("plain: %.300s\nspeculative: %.300s\n", plain.p + at, speculative.p + at);
        fail_msg("seed %llu", (unsigned long long)seed);
    }
    assert_true(plain.n > 50000);
    all->cancelled += unit.cancelled;
    all->mispredicted += unit.mispredicted;

    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
    tl_image_free(image);
    tl_buf_fini(&trace);
    tl_buf_fini(&elf);
    tl_buf_fini(&plain);
    tl_buf_fini(&speculative);
    free(packets.p);
    free(unit.out.p);
    free(packetizer);
}

static void test_speculation_changes_nothing(void **state)
{
    const char *const given = getenv("TL_SEED");
    struct unit all = {0};
    for (uint64_t seed = given ? strtoull(given, NULL, 0) : 1; seed <= 60; seed++)
        one(seed, &all);
    print_message("%zu elements cancelled, %zu atoms mispredicted\n", all.cancelled,
                  all.mispredicted);
    assert_true(given || (all.cancelled > 1000 && all.mispredicted > 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_speculation_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
