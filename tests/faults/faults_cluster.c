/* SPDX-License-Identifier: MIT */
/*
 * The cluster refuses operations, is full, loses answers, is late or executes operations twice, at
 * any operation; a server is cut off from it while its leases expire. Nothing that was acknowledged
 * is lost, nothing exists twice, and everything continues by itself. Runs over the model of a
 * cluster, or over the cluster named by TL_RADOS, both through the interposer (rados/fake).
 * TL_FAULT_ROUNDS: number of operations at which faults are injected.
 */
#include "faults.h"
#include "lake_raw.h"

#include "opening/open.h"
#include "rados/fake/interposer.h"
#include "rados/fake/librados.h"
#include "rados/fake/model.h"
#include "rados/rados.h"

#define LEASE_MS 1000

static char url[1200];

/* Make sure that the next store opened is empty. */
static void new_store(void)
{
    static unsigned serial;
    const char *const pool = getenv("TL_RADOS");
    struct tl_fail fail = {0};
    if (!pool)
        fake_librados();
    else if (interpose_library(&fail) < 0)
        fail_msg("%s", fail.text);
    snprintf(url, sizeof url, "%s&namespace=faults-%d-%u&index=3&lease=1",
             pool ? pool : "rados:fake?conf=none", (int)getpid(), serial++);
}

/* Open the store, again after each fault, which must be reported. */
static struct tl_backend *open_store(void)
{
    struct tl_backend *backend;
    struct tl_fail fail = {0};
    for (unsigned tries = 0; tl_backend_rados(&backend, url, &fail) < 0; tries++)
        if (tries >= 3)
            fail_msg("%s", fail.text);
    return backend;
}

/* Push, reconnecting whenever it is refused. */
static void push_until_done(struct tl_lake *lake, const struct capture *c, uint64_t *random)
{
    for (unsigned tries = 0; !fault_push(lake, "t", c, random, NULL, NULL); tries++) {
        assert_true(tries < 20000); /* a lock whose reply was lost must expire first */
        usleep(1000);
    }
}

static void run(const struct capture *c, uint64_t *random, unsigned kinds, unsigned every)
{
    new_store();
    struct tl_backend *const backend = open_store();
    struct tl_lake *const lake = open_lake_sized(backend, FAULT_SHARD, 2);
    interposer_faults(kinds, every, fault_random(random));
    push_until_done(lake, c, random);
    if (fault_random(random) % 2)
        fault_house(lake, c, random);
    interposer_faults(0, 1, 0);
    push_until_done(lake, c, random);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    fault_check(lake, "t", c);
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static void faults_are_overcome(void **state)
{
    (void)state;
    uint64_t random = fault_seed(), suffered = 0;
    struct capture c;
    fault_capture(&c, 10000);
    const unsigned rounds = fault_rounds(12);
    for (unsigned i = 0; i < rounds; i++) {
        run(&c, &random, 1u << i % 5, 8 + (unsigned)(fault_random(&random) % 60));
        suffered += interposer_suffered();
        run(&c, &random, 31, 20 + (unsigned)(fault_random(&random) % 200));
        suffered += interposer_suffered();
    }
    print_message("%llu faults in %u captures\n", (unsigned long long)suffered, 2 * rounds);
    assert_true(suffered > 0);
    capture_free(&c);
}

/* ---- at each operation ---------------------------------------------------------------------- */

/* Run from opening the store to the end, with one fault. Returns the number of operations at which
 * it could have been injected. */
static uint64_t run_with_fault(const struct capture *c, unsigned kind, uint64_t at, bool *suffered)
{
    uint64_t random = at;
    new_store();
    const uint64_t before = interposer_suffered();
    interposer_fault_at(kind, at);
    struct tl_backend *const backend = open_store();
    struct tl_lake *lake = NULL;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = FAULT_SHARD,
                                            .decode_threads = 1,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192};
    for (unsigned tries = 0; tl_lake_open_on(&lake, backend, &options, &fail) < 0; tries++)
        if (tries >= 3)
            fail_msg("%s", fail.text);
    push_until_done(lake, c, &random);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    const uint64_t passed = interposer_passed();
    *suffered = interposer_suffered() > before;
    interposer_faults(0, 1, 0);
    if (getenv("TL_DEBUG"))
        fprintf(stderr, "kind %u at %llu suffered %d passed %llu\n", kind, (unsigned long long)at,
                *suffered, (unsigned long long)passed);
    fault_check(lake, "t", c);
    tl_lake_close(lake);
    tl_backend_free(backend);
    return passed;
}

/* Operations spread over a whole capture; with TL_FAULT_ROUNDS=100000, each of them. */
static void any_operation_may_fail(void **state)
{
    (void)state;
    struct capture c;
    unsigned runs = 0, suffered = 0;
    bool did;
    fault_capture(&c, 3000);
    for (unsigned kind = 1; kind < FAULTS; kind <<= 1) {
        const uint64_t n = run_with_fault(&c, kind, UINT64_MAX - 1, &did);
        const uint64_t rounds = fault_rounds(10), step = n > rounds ? n / rounds : 1;
        for (uint64_t at = fault_seed() % step; at < n; at += step, runs++) {
            run_with_fault(&c, kind, at, &did);
            suffered += did;
        }
    }
    print_message("%u faults in %u captures\n", suffered, runs);
    /* the number of operations varies with the timing of threads */
    assert_true(suffered > runs / 2);
    capture_free(&c);
}

/* ---- two servers ---------------------------------------------------------------------------- */

static struct tl_ingest *begin(struct tl_lake *lake, const struct capture *c, uint64_t *at)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)c->setup.p, .resume = true};
    struct tl_ingest *ingest = NULL;
    char id[64];
    for (unsigned tries = 0; tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, at, NULL) < 0;
         tries++) {
        assert_true(tries < 100);
        model_advance(LEASE_MS / 4); /* time passes for the model's locks */
    }
    return ingest;
}

static int append(struct tl_ingest *ingest, const struct capture *c, uint64_t from, uint64_t to)
{
    return tl_ingest_append(ingest, from, (struct tl_bytes){c->bytes.p + from, (size_t)(to - from)},
                            NULL);
}

static void wait_raw(struct tl_lake *lake, uint64_t bytes)
{
    uint64_t durable = 0;
    bool complete;
    for (int64_t since = 0; durable < bytes;) {
        keep_waiting(&since, "these bytes are durable");
        if (tl_lake_offset(lake, "t", &durable, &complete) < 0)
            durable = 0;
    }
}

/* The first server still has bytes in memory when it is cut off. The second one continues where the
 * durable bytes end; writes by the first one after its return have no effect. */
static void a_server_that_was_cut_off_is_fenced(void **state)
{
    (void)state;
    uint64_t random = fault_seed(), at;
    struct capture c;
    fault_capture(&c, 10000);
    for (unsigned i = 0; i < 4; i++) {
        new_store();
        struct tl_backend *const one = open_store(), *const two = open_store();
        struct tl_lake *const a = open_lake_sized(one, FAULT_SHARD, 1);
        struct tl_lake *const b = open_lake_sized(two, FAULT_SHARD, 1);
        struct tl_image_row row;
        assert_int_equal(
            tl_lake_put_image(a, "program", (struct tl_bytes){c.elf.p, c.elf.n}, &row, NULL),
            TL_OK);
        const uint64_t half = c.bytes.n / 4 + fault_random(&random) % (c.bytes.n / 2);
        struct tl_ingest *const old = begin(a, &c, &at);
        assert_int_equal(append(old, &c, 0, half), TL_OK);
        wait_raw(a, half);
        interposer_cut_off(1, true);
        (void)!append(old, &c, half, half + 100);
        struct tl_ingest *const now = begin(b, &c, &at);
        assert_true(at == half);
        assert_int_equal(append(now, &c, half, c.bytes.n - 1), TL_OK);
        wait_raw(b, c.bytes.n - 1);
        interposer_cut_off(1, false);
        assert_true(append(old, &c, half + 100, half + 200) < 0 ||
                    tl_ingest_finish(old, &at, NULL) < 0);
        tl_ingest_close(old);
        assert_int_equal(append(now, &c, c.bytes.n - 1, c.bytes.n), TL_OK);
        assert_int_equal(tl_ingest_finish(now, &at, NULL), TL_OK);
        tl_ingest_close(now);
        assert_int_equal(wait_done(b, "t"), TL_TRACE_SEALED);
        fault_check(b, "t", &c);
        assert_int_equal(wait_done(a, "t"), TL_TRACE_SEALED);
        tl_lake_close(a);
        tl_backend_free(one);
        fault_check(b, "t", &c);
        tl_lake_close(b);
        tl_backend_free(two);
    }
    capture_free(&c);
}

static void refused(void *context, size_t i, int code, const struct tl_fail *fail)
{
    fail_msg("it is not removed: %d %s", code, fail->text);
}

/* A full cluster refuses bytes but can be read, and accepts bytes again when there is space. */
static void a_full_cluster_is_no_disaster(void **state)
{
    (void)state;
    uint64_t random = fault_seed(), at;
    struct capture c;
    if (getenv("TL_RADOS")) {
        print_message("skipped: of the clusters only the model has a limit\n");
        skip();
    }
    fault_capture(&c, 10000);
    new_store();
    struct tl_backend *const backend = open_store();
    struct tl_lake *const lake = open_lake_sized(backend, FAULT_SHARD, 1);
    struct tl_ingest *ingest = begin(lake, &c, &at);
    const uint64_t half = c.bytes.n / 2;
    assert_int_equal(append(ingest, &c, 0, half), TL_OK);
    wait_raw(lake, half);
    model_limit(0);
    struct tl_fail fail = {0};
    /* It is reported even if the rig sends nothing else. */
    int r = append(ingest, &c, half, half + 1000);
    for (int64_t since = 0; r >= 0;) {
        keep_waiting(&since, "it does not continue");
        r = tl_ingest_continues(ingest, &fail);
    }
    assert_int_equal(r, TL_NOSPACE);
    tl_ingest_close(ingest);
    assert_int_equal(tl_lake_usable(lake, NULL), TL_OK);
    assert_int_equal(tl_lake_writable(lake, &fail), TL_NOSPACE);
    assert_non_null(strstr(fail.text, "the pool is full, by its quota"));
    struct tl_raw_range *range;
    struct tl_buf out = {0};
    assert_int_equal(tl_raw_open(lake, "t", 0, half, &range, NULL), TL_OK);
    while ((r = tl_raw_next(range, &at, &out, NULL)) >= 0)
        ;
    assert_int_equal(r, TL_EOF);
    assert_int_equal(out.n, half);
    assert_memory_equal(out.p, c.bytes.p, half);
    tl_raw_close(range);
    tl_buf_fini(&out);
    model_limit(UINT64_MAX);
    for (int64_t since = 0; tl_lake_writable(lake, NULL) < 0;) /* seen without any other write */
        keep_waiting(&since, "it is not ready again");
    push_until_done(lake, &c, &random);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    fault_check(lake, "t", &c);
    /* Removing works when nothing can be added, and that it is full is seen while nobody writes. */
    model_limit(0);
    for (int64_t since = 0; tl_lake_writable(lake, NULL) >= 0;)
        keep_waiting(&since, "it is still ready");
    assert_int_equal(tl_lake_delete_all(lake, (const char *const[]){"t"}, 1, refused, NULL), 1);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
    assert_int_equal(list.n, 0);
    tl_trace_list_free(&list);
    tl_lake_close(lake);
    tl_backend_free(backend);
    capture_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_overcome),
        cmocka_unit_test(any_operation_may_fail),
        cmocka_unit_test(a_server_that_was_cut_off_is_fenced),
        cmocka_unit_test(a_full_cluster_is_no_disaster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
