/* SPDX-License-Identifier: MIT */
/* Representative regions of generated executions with known phases. */
#include "base/hash.h"
#include "regions/cluster.h"
#include "regions/simpoints.h"
#include "unit/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

/* RISC-V: addi a0, a0, 1 and bne a0, a1, -8 (branches whether it is taken or not). */
static const uint8_t addi[] = {0x13, 0x05, 0x15, 0x00}, bne[] = {0xe3, 0x1c, 0xb5, 0xfe};

static void put(struct tl_vectors *v, uint64_t pc, const uint8_t *code)
{
    assert_int_equal(tl_vectors_insn(v, TL_ISA_RV64, pc, (struct tl_bytes){code, 4}), TL_OK);
}

/* `rounds` rounds of a loop of `plain` instructions and a branch after them. */
static void loop(struct tl_vectors *v, uint64_t pc, unsigned plain, unsigned rounds)
{
    while (rounds--) {
        for (unsigned i = 0; i < plain; i++)
            put(v, pc + 4 * i, addi);
        put(v, pc + 4 * plain, bne);
    }
}

static int to_text(void *context, const struct tl_vector *vector)
{
    return tl_vector_text(context, vector);
}

/* Blocks begin at targets, after branches and with intervals; they are numbered in order of
 * appearance. */
static void block_vectors(void **state)
{
    (void)state;
    struct tl_buf text = {0};
    struct tl_vectors *v;
    assert_int_equal(tl_vectors_new(&v, 0, to_text, &text), TL_USAGE);
    assert_int_equal(tl_vectors_new(&v, 10, to_text, &text), TL_OK);
    loop(v, 0x1000, 3, 4); /* 16 instructions */
    put(v, 0x1010, addi);  /* after the branch that was not taken */
    put(v, 0x1014, addi);
    put(v, 0x1004, addi); /* into the middle of the first block */
    assert_int_equal(tl_vectors_finish(v), TL_OK);
    assert_int_equal(tl_vectors_finish(v), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_string_equal((char *)text.p, "T:1:10 \nT:1:4 :2:2 :3:2 :4:1 \n");
    tl_vectors_free(v);
    tl_buf_fini(&text);
}

struct seen {
    uint64_t pages[8], n[8], firsts[8];
    size_t n_pages, n_vectors;
};

static int note_pages(void *context, const struct tl_vector *vector)
{
    struct seen *const seen = context;
    seen->firsts[seen->n_vectors++] = vector->first;
    for (size_t i = 0; i < vector->n_pages; i++) {
        seen->pages[seen->n_pages] = vector->pages[i].key;
        seen->n[seen->n_pages++] = vector->pages[i].n;
    }
    return TL_OK;
}

/* Memory accesses belong to the instruction before them, also at the end of an interval. */
static void memory_vectors(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct tl_vectors *v;
    assert_int_equal(tl_vectors_new(&v, 2, note_pages, &seen), TL_OK);
    put(v, 0x1000, addi);
    assert_int_equal(tl_vectors_access(v, 0x80001008), TL_OK);
    put(v, 0x1004, addi);
    assert_int_equal(tl_vectors_access(v, 0x80001ff8), TL_OK);
    put(v, 0x1008, addi);
    assert_int_equal(tl_vectors_access(v, 0x7008), TL_OK);
    assert_int_equal(tl_vectors_finish(v), TL_OK);
    tl_vectors_free(v);
    assert_int_equal(seen.n_vectors, 2);
    assert_int_equal(seen.firsts[1], 2);
    assert_int_equal(seen.n_pages, 2);
    assert_int_equal(seen.pages[0], 0x80001);
    assert_int_equal(seen.n[0], 2);
    assert_int_equal(seen.pages[1], 0x7);
}

/* An execution with phases of different code, each with some noise. */
static void phases(void **state)
{
    (void)state;
    static const uint8_t order[] = {0, 0, 0, 1, 1, 1, 1, 2, 0, 0, 1, 1, 2, 2, 0, 0, 0, 1, 2, 2};
    const unsigned interval = 4000;
    struct tl_simpoints points;
    struct tl_vectors *v;
    tl_simpoints_init(&points);
    assert_int_equal(tl_vectors_new(&v, interval, tl_simpoints_add, &points), TL_OK);
    for (size_t i = 0; i < sizeof order; i++) {
        const uint64_t pc = 0x10000 + 0x10000 * (uint64_t)order[i];
        unsigned rest = interval;
        while (rest >= 40) { /* two loops of the phase, in a mix that varies a little */
            const unsigned turn = next() % 2;
            loop(v, pc, 9, 1 + turn);
            loop(v, pc + 0x100, 9, 1);
            rest -= 20 + 10 * turn;
        }
        for (; rest; rest--)
            put(v, 0x500 + 4 * rest, addi);
    }
    assert_int_equal(tl_vectors_finish(v), TL_OK);
    tl_vectors_free(v);
    assert_int_equal(points.n, sizeof order);
    struct tl_simpoint *chosen;
    size_t n;
    assert_int_equal(tl_simpoints_choose(&points, 10, NULL, &chosen, &n), TL_OK);
    assert_int_equal(n, 3);
    static const double share[] = {8 / 20., 7 / 20., 5 / 20.};
    bool met[3] = {false};
    for (size_t i = 0; i < n; i++) {
        const unsigned phase = order[chosen[i].interval];
        assert_false(met[phase]);
        met[phase] = true;
        assert_true(fabs(chosen[i].weight - share[phase]) < 1e-9);
        assert_int_equal(chosen[i].first, chosen[i].interval * interval);
        assert_int_equal(chosen[i].insns, interval);
    }
    struct tl_simpoint *again;
    size_t n_again;
    assert_int_equal(tl_simpoints_choose(&points, 10, NULL, &again, &n_again), TL_OK);
    assert_int_equal(n_again, n);
    assert_memory_equal(again, chosen, n * sizeof *chosen);
    free(again);
    free(chosen);
    /* At most as many as requested. */
    assert_int_equal(tl_simpoints_choose(&points, 2, NULL, &chosen, &n), TL_OK);
    assert_int_equal(n, 2);
    free(chosen);
    tl_simpoints_fini(&points);
}

/* The same code throughout, with different memory: only the accesses distinguish the phases. */
static void memory_phases(void **state)
{
    (void)state;
    struct tl_simpoints points;
    struct tl_vectors *v;
    struct tl_simpoint *chosen;
    size_t n;
    tl_simpoints_init(&points);
    assert_int_equal(tl_simpoints_choose(&points, 10, NULL, &chosen, &n), TL_OK);
    assert_int_equal(n, 0);
    assert_int_equal(tl_vectors_new(&v, 100, tl_simpoints_add, &points), TL_OK);
    for (unsigned i = 0; i < 2000; i++) {
        put(v, 0x1000 + 4 * (i % 10), i % 10 == 9 ? bne : addi);
        assert_int_equal(tl_vectors_access(v, i < 1200 ? 0x1000 * (i % 5) : 0x900000), TL_OK);
    }
    assert_int_equal(tl_vectors_finish(v), TL_OK);
    tl_vectors_free(v);
    assert_int_equal(tl_simpoints_choose(&points, 10, NULL, &chosen, &n), TL_OK);
    assert_int_equal(n, 2);
    assert_true(chosen[0].first < 1200 && chosen[1].first >= 1200);
    assert_true(fabs(chosen[0].weight - 0.6) < 1e-9 && fabs(chosen[1].weight - 0.4) < 1e-9);
    free(chosen);
    tl_simpoints_fini(&points);
}

/* Points that coincide, and fewer points than clusters. */
static void few_points(void **state)
{
    (void)state;
    static const double at[] = {1, 1, 1, 5, 5}, weights[] = {1, 1, 1, 1, 1};
    const struct tl_points points = {at, weights, 5, 1, NULL};
    struct tl_clusters clusters;
    assert_int_equal(tl_cluster(&points, 4, &clusters), TL_OK);
    assert_int_equal(clusters.k, 2);
    assert_int_equal(clusters.of[0], clusters.of[2]);
    assert_int_equal(clusters.of[3], clusters.of[4]);
    assert_int_not_equal(clusters.of[0], clusters.of[3]);
    tl_clusters_fini(&clusters);
    assert_int_equal(tl_cluster_best(&points, 30, &clusters), TL_OK);
    assert_int_equal(clusters.k, 2);
    tl_clusters_fini(&clusters);
    const struct tl_points none = {at, weights, 0, 1, NULL};
    assert_int_equal(tl_cluster_best(&none, 30, &clusters), TL_OK);
    assert_int_equal(clusters.k, 0);
    tl_clusters_fini(&clusters);
}

/* It ends once the effort is used up, and takes at least what it says. */
static void little_effort(void **state)
{
    (void)state;
    double at[200], weights[200];
    uint64_t random = 1;
    for (size_t i = 0; i < 200; i++) {
        at[i] = (double)tl_random64(&random);
        weights[i] = 1;
    }
    uint64_t effort = UINT64_MAX;
    const struct tl_points points = {at, weights, 100, 2, &effort};
    struct tl_clusters clusters;
    assert_int_equal(tl_cluster_best(&points, 10, &clusters), TL_OK);
    tl_clusters_fini(&clusters);
    const uint64_t taken = UINT64_MAX - effort, least = tl_cluster_best_least(100, 2, 10);
    assert_int_equal(least, 100 * 2 * 5 * 55);
    assert_true(taken > least && taken < 100 * least);
    effort = taken;
    assert_int_equal(tl_cluster_best(&points, 10, &clusters), TL_OK);
    tl_clusters_fini(&clusters);
    assert_int_equal(effort, 0);
    effort = taken - 1;
    assert_int_equal(tl_cluster_best(&points, 10, &clusters), TL_LIMIT);
    tl_clusters_fini(&clusters);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_vectors), cmocka_unit_test(memory_vectors),
        cmocka_unit_test(phases),        cmocka_unit_test(memory_phases),
        cmocka_unit_test(few_points),    cmocka_unit_test(little_effort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
