/* SPDX-License-Identifier: MIT */
/* A catalog that refuses reads: traces are not reported as gone because of that, and are not
 * created again. And a catalog in which another process takes the ids. */
#include "lake_help.h"
#include "lake_upkeep.h"

#include "catalog/catalog.h"
#include "share/share.h"
#include "unit/patience.h"
#include "upkeep/housekeeper.h"

#include <stdatomic.h>

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;
static const struct tl_catalog_ops *whole;
static struct tl_catalog_ops partial;
static atomic_uint refusals; /* refusals still to come */
static atomic_uint taken;    /* how many ids are still taken by others */
static char content[TL_CONTENT_BYTES];

static int refused(struct tl_fail *fail)
{
    unsigned left = atomic_load(&refusals);
    while (left > 0 && !atomic_compare_exchange_weak(&refusals, &left, left - 1))
        ;
    return left > 0 ? tl_fail_set(fail, TL_IO, "the medium does not answer") : TL_OK;
}

static int find(struct tl_catalog *catalog, const char *id,
                int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                struct tl_fail *fail)
{
    return refused(fail) < 0 ? TL_IO : whole->find(catalog, id, each, context, fail);
}

static int by_content(struct tl_catalog *catalog, const char *name,
                      int (*each)(void *context, const struct tl_catalog_trace *trace),
                      void *context, struct tl_fail *fail)
{
    return refused(fail) < 0 ? TL_IO : whole->by_content(catalog, name, each, context, fail);
}

static int page(struct tl_catalog *catalog, const struct tl_trace_place *after, size_t most,
                int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                struct tl_fail *fail)
{
    return refused(fail) < 0 ? TL_IO : whole->page(catalog, after, most, each, context, fail);
}

/* Refuse an id as if another push of the rig, begun at the same time, had taken it. */
static int add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                     struct tl_fail *fail)
{
    if (atomic_load(&taken) == 0)
        return whole->add_trace(catalog, trace, fail);
    atomic_fetch_sub(&taken, 1);
    return tl_fail_set(fail, TL_EXISTS, "trace %s exists", trace->id);
}

/* The result of reading a row, with its raw bytes if there is one. */
static int read_row(const char *name, uint64_t *raw_bytes)
{
    struct tl_trace_list list;
    const int r = tl_lake_trace(lake, name, &list);
    if (r < 0)
        return r;
    *raw_bytes = list.rows[0].raw_bytes;
    snprintf(content, sizeof content, "%s", list.rows[0].content);
    tl_trace_list_free(&list);
    return TL_OK;
}

/* Remove the trace from memory, so that only the catalog has it. */
static void evict(const char *id)
{
    struct tl_trace *const trace = tl_lake_resident(lake, id);
    if (trace)
        tl_lake_unlink(lake, trace);
    tl_trace_put(trace);
}

static int set_up(void **state)
{
    uint64_t n = 0;
    (void)state;
    assert_int_equal(tl_buf_add(&capture.setup, "[trace]\nformat=itm,id=0\n", 25), TL_OK);
    assert_int_equal(tl_buf_add(&capture.bytes, "\0", 1), TL_OK);
    lake = open_memory_lake(&backend, 1000, 1);
    push_sealed(lake, "t", &capture, 1);
    assert_int_equal(read_row("t", &n), TL_OK);
    for (int64_t since = 0; !content[0];) { /* the trace is hashed later */
        keep_waiting(&since, "it is hashed");
        assert_int_equal(read_row("t", &n), TL_OK);
    }
    /* From here on, only this thread reads the catalog. */
    tl_housekeeper_stop(lake);
    whole = lake->catalog->ops;
    partial = *whole;
    partial.find = find;
    partial.by_content = by_content;
    partial.page = page;
    partial.add_trace = add_trace;
    lake->catalog->ops = &partial;
    evict("t");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    atomic_store(&refusals, 0);
    close_memory_lake(backend, lake);
    capture_free(&capture);
    capture = (struct capture){0};
    content[0] = 0;
    return 0;
}

static int push(const char *id, struct tl_fail *fail)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = (const char *)capture.setup.p, .resume = true};
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t at;
    const int r = tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, fail);
    if (r >= 0) {
        assert_true(at == capture.bytes.n);
        tl_ingest_close(ingest);
    }
    return r;
}

static void reads_and_changes_say_that_the_store_is_away(void **state)
{
    struct tl_fail fail = {0};
    struct tl_trace_list list = {0};
    struct tl_buf report = {0};
    char name[TL_CONTENT_BYTES];
    uint64_t n = 0;
    bool complete;
    (void)state;
    snprintf(name, sizeof name, "%s", content);
    atomic_store(&refusals, UINT32_MAX);
    assert_int_equal(read_row("t", &n), TL_UNREACHABLE);
    assert_int_equal(read_row(name, &n), TL_UNREACHABLE);
    assert_int_equal(read_row("none", &n), TL_UNREACHABLE);
    assert_int_equal(tl_lake_offset(lake, "t", &n, &complete), TL_UNREACHABLE);
    assert_int_equal(tl_lake_page(lake, NULL, 10, &list), TL_UNREACHABLE);
    tl_trace_list_free(&list);
    assert_int_equal(tl_lake_set_labels(lake, "t", "k=v\n", NULL), TL_UNREACHABLE);
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_UNREACHABLE);
    assert_int_equal(tl_lake_verify(lake, "t", false, &report, NULL), TL_UNREACHABLE);
    assert_int_equal(tl_lake_delete(lake, "t", &fail), TL_UNREACHABLE);
    assert_non_null(strstr(fail.text, "the medium does not answer"));
    atomic_store(&refusals, 0);
    assert_int_equal(read_row("none", &n), TL_NOTFOUND);
    assert_int_equal(read_row(name, &n), TL_OK);
    assert_int_equal(read_row("t", &n), TL_OK);
    assert_true(n == capture.bytes.n);
    tl_buf_fini(&report);
}

static void a_push_is_not_begun_anew(void **state)
{
    struct tl_fail fail = {0};
    uint64_t n = 0;
    (void)state;
    atomic_store(&refusals, UINT32_MAX);
    assert_int_equal(push("t", &fail), TL_UNREACHABLE);
    assert_int_equal(push("new", &fail), TL_UNREACHABLE);
    atomic_store(&refusals, 0);
    assert_int_equal(read_row("new", &n), TL_NOTFOUND);
    assert_int_equal(read_row("t", &n), TL_OK);
    assert_true(n == capture.bytes.n);
    assert_int_equal(push("t", &fail), TL_OK);
}

/* After a single failing read, the error asks the caller to try again; a push that resumes does. */
static void one_read_that_fails_is_to_be_tried_again(void **state)
{
    struct tl_fail fail = {0};
    uint64_t n = 0;
    (void)state;
    atomic_store(&refusals, 1);
    assert_int_equal(read_row("t", &n), TL_AGAIN);
    assert_int_equal(read_row("t", &n), TL_OK);
    evict("t");
    atomic_store(&refusals, 1);
    assert_int_equal(push("t", &fail), TL_OK);
    atomic_store(&refusals, 1);
    assert_int_equal(read_row("none", &n), TL_NOTFOUND);
}

/* In a store shared by servers, claiming a name grants its lease and removes the remains of an
 * older trace of that name. */
static void nothing_of_a_name_is_removed_before_the_catalog_has_said_that_it_is_free(void **state)
{
    struct tl_fail fail = {0};
    struct tl_lease *lease = NULL;
    struct tl_buf text = {0};
    uint64_t generation, n = 0;
    (void)state;
    for (unsigned left = 1; left < 3; left++) {
        atomic_store(&refusals, left);
        const int r = tl_lake_claim_name(lake, "t", &lease, &generation, &fail);
        assert_int_equal(r, left == 1 ? TL_AGAIN : TL_UNREACHABLE);
        assert_null(lease);
    }
    assert_int_equal(tl_lake_claim_name(lake, "t", &lease, &generation, &fail), TL_EXISTS);
    assert_int_equal(read_row("t", &n), TL_OK);
    assert_int_equal(tl_lake_verify(lake, "t", false, &text, &fail), 0);
    tl_buf_fini(&text);
}

/* A taken id is reported only if the rig chose it. */
static void pushes_that_begin_at_once_have_ids_of_their_own(void **state)
{
    const struct tl_ingest_request any = {.rig = "rig", .setup = (const char *)capture.setup.p};
    const struct tl_ingest_request named = {
        .rig = "rig", .trace = "mine", .setup = (const char *)capture.setup.p};
    struct tl_fail fail = {0};
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t at;
    (void)state;
    atomic_store(&taken, 3);
    assert_int_equal(tl_ingest_open(lake, &any, NULL, NULL, &ingest, trace, &at, &fail), TL_OK);
    assert_string_equal(trace + strlen(trace) - 2, "-4");
    tl_ingest_close(ingest);
    atomic_store(&taken, 1);
    assert_int_equal(tl_ingest_open(lake, &named, NULL, NULL, &ingest, trace, &at, &fail),
                     TL_EXISTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(reads_and_changes_say_that_the_store_is_away),
        TEST(a_push_is_not_begun_anew),
        TEST(one_read_that_fails_is_to_be_tried_again),
        TEST(nothing_of_a_name_is_removed_before_the_catalog_has_said_that_it_is_free),
        TEST(pushes_that_begin_at_once_have_ids_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
