/* SPDX-License-Identifier: MIT */
/* Several traces deleted with one request. */
#include "sim_capture.h"
#include "unit/patience.h"

#include <sched.h>

#define SHARD 5000

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static void push(const char *id)
{
    push_sealed(lake, id, &capture, 3000);
}

static bool there(const char *id)
{
    struct tl_trace_list list;
    if (tl_lake_trace(lake, id, &list) < 0)
        return false;
    tl_trace_list_free(&list);
    return true;
}

static void check_text(const char *id)
{
    struct tl_buf got = {0};
    lake_text(lake, id, &got);
    assert_texts_equal(&capture.text, &got);
    tl_buf_fini(&got);
}

static int count(void *context, const char *key, uint64_t size)
{
    ++*(unsigned *)context;
    return TL_OK;
}

/* Wait for the housekeeper, which removes the remains of a trace concurrently. */
static void wait_gone(const char *prefix)
{
    int64_t since = 0;
    for (unsigned n = 1; n > 0;) {
        n = 0;
        assert_int_equal(backend->ops->list(backend, prefix, count, &n, NULL), TL_OK);
        if (n > 0)
            keep_waiting(&since, prefix);
    }
}

struct refusals {
    int codes[8];
    size_t n;
};

static void note_refusal(void *context, size_t i, int code, const struct tl_fail *fail)
{
    struct refusals *const refusals = context;
    assert_true(fail->text[0]);
    refusals->codes[i] = code;
    refusals->n++;
}

/* If one deletion fails, the others are still done. */
static void several_are_deleted_together(void **state)
{
    static const char *const names[] = {"a", "nosuch", "b", "live", "a", "c"};
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "live", .setup = (const char *)capture.setup.p};
    struct tl_ingest *ingest;
    struct refusals refusals = {{0}, 0};
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    (void)state;
    push("a");
    push("b");
    push("c");
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail), TL_OK);
    assert_int_equal(tl_lake_delete_all(lake, names, 6, note_refusal, &refusals), 3);
    assert_int_equal(refusals.n, 3);
    assert_int_equal(refusals.codes[1], TL_NOTFOUND);
    assert_int_equal(refusals.codes[3], TL_DENIED);
    assert_int_equal(refusals.codes[4], TL_NOTFOUND);
    assert_false(there("a") || there("b") || there("c"));
    assert_true(there("live"));
    tl_ingest_close(ingest);
    push("b"); /* immediately: the remains of the old one do not interfere */
    check_text("b");
    wait_gone("r/a");
    wait_gone("t/c");
    /* None of them reappears after a restart of the server. */
    tl_lake_close(lake);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_false(there("a") || there("c"));
    check_text("b");
}

/* If the catalog refuses the commit, everything is unchanged. */
static void refused_commits_delete_nothing(void **state)
{
    static const char *const names[] = {"a", "b"};
    struct refusals refusals = {{0}, 0};
    (void)state;
    push("a");
    push("b");
    /* Whatever the housekeeper writes at the same time is not what is refused. */
    tl_backend_memory_refuse_commits(backend, true);
    assert_int_equal(tl_lake_delete_all(lake, names, 2, note_refusal, &refusals), 0);
    tl_backend_memory_refuse_commits(backend, false);
    assert_int_equal(refusals.n, 2);
    assert_true(there("a") && there("b"));
    check_text("a");
    check_text("b");
    assert_int_equal(tl_lake_delete(lake, "a", NULL), TL_OK);
    assert_false(there("a"));
}

/* If decoding was stopped for a deletion that then failed, it is completed, wherever it stopped. */
static void a_refused_deletion_ends_no_decoding(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct tl_fail fail = {0};
        char id[8];
        snprintf(id, sizeof id, "d%u", i);
        push_all(lake, id, &capture, 3000);
        for (unsigned k = 0; k < i; k++)
            sched_yield();
        tl_backend_memory_refuse(backend, 0, UINT64_MAX, TL_IO);
        assert_int_equal(tl_lake_delete(lake, id, &fail), TL_IO);
        tl_backend_memory_refuse(backend, 0, 0, TL_IO);
        assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
        check_text(id);
    }
}

static int set_up(void **state)
{
    const struct sim_options options = {.seed = 3, .insns = 12000, .cores = 1, .image = true};
    (void)state;
    lake = open_memory_lake(&backend, SHARD, 1);
    sim_capture(lake, &options, &capture);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    capture_free(&capture);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_are_deleted_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused_commits_delete_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_deletion_ends_no_decoding, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
