/* SPDX-License-Identifier: MIT */
/*
 * The power is cut at random points, many times, while a capture is pushed and decoded. Everything
 * that was acknowledged is present afterwards, and the final result is the same as without cuts. On
 * a store in memory, and on the model of a cluster (rados/fake).
 */
#include "faults.h"

#ifdef TL_WITH_RADOS
#include "opening/open.h"
#include "rados/fake/interposer.h"
#include "rados/fake/librados.h"
#include "rados/fake/model.h"
#include "rados/rados.h"
#endif

/* ---- the store that loses its power --------------------------------------------------------- */

#define LEASE_S 1

struct medium {
    bool cluster;
    unsigned cut_before;        /* operations in a life that is cut short */
    struct tl_backend *backend; /* in a cluster: that of the current life */
};

static void medium_new(struct medium *m)
{
    m->backend = NULL;
    if (!m->cluster)
        assert_int_equal(tl_backend_memory(&m->backend), TL_OK);
#ifdef TL_WITH_RADOS
    else
        fake_librados();
#endif
}

/* Begin a life; if `cut`, the power fails after some operations. */
static int medium_begin(struct medium *m, bool cut, uint64_t *random)
{
    const unsigned n = (unsigned)(fault_random(random) % m->cut_before);
    if (!m->cluster && cut)
        tl_backend_memory_refuse(m->backend, n, 1, TL_OK);
#ifdef TL_WITH_RADOS
    char url[100];
    snprintf(url, sizeof url, "rados:fake?conf=none&index=3&lease=%d", LEASE_S);
    if (m->cluster && cut)
        interposer_power_fails(n, fault_random(random));
    if (m->cluster)
        return tl_backend_rados(&m->backend, url, NULL);
#endif
    return TL_OK;
}

/* Cut the power unless it has already failed. */
static void medium_cut(struct medium *m, uint64_t *random)
{
    if (!m->cluster)
        tl_backend_memory_cut(m->backend);
#ifdef TL_WITH_RADOS
    else
        interposer_power_fails(0, fault_random(random));
#endif
}

static void medium_end(struct medium *m)
{
    if (m->cluster)
        tl_backend_free(m->backend);
}

/* Restore the power; leases of earlier servers expire. */
static void medium_boot(struct medium *m, uint64_t *random)
{
    if (!m->cluster)
        tl_backend_memory_boot(m->backend, fault_random(random));
#ifdef TL_WITH_RADOS
    else {
        interposer_power_returns();
        model_advance(60 * 60 * 1000);
    }
#endif
}

static void medium_free(struct medium *m)
{
    if (!m->cluster)
        tl_backend_free(m->backend);
}

/* ---- lives ---------------------------------------------------------------------------------- */

struct acked {
    pthread_mutex_t lock;
    uint64_t offset;
};

static void note(void *context, uint64_t offset)
{
    struct acked *acked = context;
    pthread_mutex_lock(&acked->lock);
    acked->offset = offset;
    pthread_mutex_unlock(&acked->lock);
}

/* Check that everything acknowledged is present, as reported to a rig that connects. In a cluster,
 * only the holder of the trace's lease knows it exactly. The power may already be off. */
static void check_acked(const struct medium *m, struct tl_lake *lake, const struct capture *c,
                        uint64_t acked, bool cut)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)c->setup.p, .resume = true};
    struct tl_ingest *ingest = NULL;
    uint64_t durable = 0;
    bool complete;
    char id[64];
    int r;
    if (acked == 0)
        return;
    if (m->cluster)
        r = tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &durable, NULL);
    else
        r = tl_lake_offset(lake, "t", &durable, &complete);
    assert_true(r == TL_OK || cut);
    assert_true(r < 0 || durable >= acked);
    if (r >= 0)
        tl_ingest_close(ingest);
}

/* Run one life: until the power fails, or everything is done. Returns whether it is done; if so,
 * `*made` is increased by the number of virtual shards. */
static bool live(struct medium *medium, const struct capture *c, uint64_t *random,
                 struct acked *acked, bool is_virtual, bool cut, unsigned *made)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = fault_options(NULL, is_virtual);
    if (medium_begin(medium, cut, random) < 0) {
        assert_true(cut);
        return false;
    }
    if (tl_lake_open_on(&lake, medium->backend, &options, &fail) < 0) {
        assert_true(cut);
        medium_end(medium);
        return false;
    }
    check_acked(medium, lake, c, acked->offset, cut);
    bool done = fault_push(lake, "t", c, random, note, acked);
    if (done && fault_random(random) % 2) {
        if (fault_random(random) % 2)
            usleep((unsigned)(fault_random(random) % 5000));
        fault_house(lake, c, random);
    }
    if (done && !cut) {
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
        fault_check(lake, "t", c);
        *made += fault_virtual(lake, "t");
    } else {
        /* Some lives end during decoding, or directly after it. */
        usleep((unsigned)(fault_random(random) % 3000));
        done = false;
    }
    if (cut)
        medium_cut(medium, random);
    tl_lake_close(lake);
    medium_end(medium);
    return done;
}

static void cut_many(struct medium medium, bool is_virtual, unsigned usual)
{
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 20000);
    const unsigned rounds = fault_rounds(usual);
    unsigned lives = 0, made = 0;
    for (unsigned round = 0; round < rounds; round++) {
        struct acked acked = {.lock = PTHREAD_MUTEX_INITIALIZER};
        medium_new(&medium);
        const unsigned cuts = 1 + (unsigned)(fault_random(&random) % 6);
        for (unsigned i = 0; i < cuts; i++) {
            live(&medium, &c, &random, &acked, is_virtual, true, &made);
            medium_boot(&medium, &random);
        }
        assert_true(live(&medium, &c, &random, &acked, is_virtual, false, &made));
        lives += cuts + 1;
        medium_free(&medium);
    }
    assert_true((made > 0) == is_virtual);
    print_message("%u power cuts in %u captures\n", lives - rounds, rounds);
    capture_free(&c);
}

static void power_cuts_lose_nothing(void **state)
{
    (void)state;
    cut_many((struct medium){.cut_before = 320}, false, 60);
}

static void power_cuts_lose_nothing_of_virtual_shards(void **state)
{
    (void)state;
    cut_many((struct medium){.cut_before = 320}, true, 30);
}

/* Operations that the cluster answered are durable; pending ones are executed or not. */
static void cut_cluster(unsigned cut_before, bool is_virtual, unsigned usual)
{
#ifdef TL_WITH_RADOS
    cut_many((struct medium){.cluster = true, .cut_before = cut_before}, is_virtual, usual);
#else
    print_message("skipped: this build has no store in a cluster\n");
    skip();
#endif
}

static void power_cuts_lose_nothing_in_a_cluster(void **state)
{
    (void)state;
    cut_cluster(700, false, 30);
}

static void power_cuts_lose_nothing_of_virtual_shards_in_a_cluster(void **state)
{
    (void)state;
    cut_cluster(1000, true, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts_lose_nothing),
        cmocka_unit_test(power_cuts_lose_nothing_of_virtual_shards),
        cmocka_unit_test(power_cuts_lose_nothing_in_a_cluster),
        cmocka_unit_test(power_cuts_lose_nothing_of_virtual_shards_in_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
