/* SPDX-License-Identifier: MIT */
#include "store/catalog.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct tl_backend *backend;
static struct tl_catalog *catalog;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    assert_int_equal(tl_catalog_open(&catalog, backend, NULL), TL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_catalog_close(catalog);
    tl_backend_free(backend);
    return 0;
}

static void reopen(void)
{
    tl_catalog_close(catalog);
    assert_int_equal(tl_catalog_open(&catalog, backend, NULL), TL_OK);
}

static struct tl_catalog_trace a_trace(const char *id)
{
    return (struct tl_catalog_trace){.id = id,
                                     .rig = "rig",
                                     .format = "tpiu",
                                     .setup = "[trace]\nformat=tpiu\n",
                                     .message = "",
                                     .state = 2,
                                     .created_ns = 5,
                                     .updated_ns = 6,
                                     .raw_bytes = UINT64_C(1) << 62,
                                     .generation = 1,
                                     .wanted = 2};
}

static int note_trace(void *context, const struct tl_catalog_trace *t)
{
    return tl_buf_printf(context, "%s %s %s %d %d %llu %llu-%llu %s[%s]\n", t->id, t->rig,
                         t->format, t->state, t->complete, (unsigned long long)t->raw_bytes,
                         (unsigned long long)t->generation, (unsigned long long)t->wanted,
                         t->message, t->labels);
}

static void assert_traces(const char *expected)
{
    struct tl_buf out = {0};
    assert_int_equal(tl_catalog_traces(catalog, note_trace, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, expected);
    tl_buf_fini(&out);
}

static void traces(void **state)
{
    (void)state;
    struct tl_catalog_trace t = a_trace("a");
    struct tl_fail fail = {0};
    assert_int_equal(tl_catalog_add_trace(catalog, &t, &fail), TL_OK);
    assert_int_equal(tl_catalog_add_trace(catalog, &t, &fail), TL_EXISTS);
    assert_int_equal(tl_catalog_set_label(catalog, "a", "k", "v=1", &fail), TL_OK);
    assert_int_equal(tl_catalog_set_label(catalog, "a", "b", "x", &fail), TL_OK);
    assert_int_equal(tl_catalog_set_label(catalog, "a", "k", "w", &fail), TL_OK);
    assert_traces("a rig tpiu 2 0 4611686018427387904 1-2 [b=x\nk=w\n]\n");
    t.complete = true;
    t.message = "it's 'quoted'; DROP TABLE traces;";
    assert_int_equal(tl_catalog_update_trace(catalog, &t, &fail), TL_OK);
    assert_int_equal(tl_catalog_set_label(catalog, "a", "k", "", &fail), TL_OK);
    reopen();
    assert_traces(
        "a rig tpiu 2 1 4611686018427387904 1-2 it's 'quoted'; DROP TABLE traces;[b=x\n]\n");
    t.id = "nobody";
    assert_int_equal(tl_catalog_update_trace(catalog, &t, &fail), TL_NOTFOUND);
    assert_int_equal(tl_catalog_set_label(catalog, "nobody", "k", "v", &fail), TL_IO);
    assert_int_equal(tl_catalog_remove_trace(catalog, "a", &fail), TL_OK);
    assert_traces("");
}

static int note_stream(void *context, const struct tl_catalog_stream *s)
{
    return tl_buf_printf(context, "%llu %s %d %llu\n", (unsigned long long)s->index, s->name,
                         s->protocol, (unsigned long long)s->lost_bytes);
}

static int take_row(void *context, const struct tl_shard_row *row)
{
    struct tl_shard_row *rows = context;
    rows[row->number] = *row;
    return TL_OK;
}

static int count_bytes(void *context, struct tl_bytes summary)
{
    *(size_t *)context += summary.n;
    return TL_OK;
}

static void shards(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a");
    struct tl_fail fail = {0};
    struct tl_shard_row rows[4] = {{0}};
    struct tl_buf out = {0};
    assert_int_equal(tl_catalog_add_trace(catalog, &t, &fail), TL_OK);
    const struct tl_catalog_stream stream = {.index = 0, .name = "cs.10", .protocol = 1};
    assert_int_equal(tl_catalog_put_stream(catalog, "a", 1, &stream, &fail), TL_OK);
    for (uint64_t i = 0; i < 3; i++) {
        const struct tl_shard_row row = {.number = i,
                                         .first = i * 1000,
                                         .n = 1000,
                                         .markers = 990,
                                         .events = i,
                                         .anchors = 2,
                                         .anchor_last = {.position = i, .time = UINT64_MAX},
                                         .at = {.mode = 77, .has_mode = true, .isa = 3},
                                         .size = 4096};
        const struct tl_bytes summary = {(const uint8_t *)"summary", 7};
        assert_int_equal(tl_catalog_add_shard(catalog, "a", 1, 0, &row, summary, &fail), TL_OK);
    }
    reopen();
    assert_int_equal(tl_catalog_shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_int_equal(rows[2].first, 2000);
    assert_int_equal(rows[2].events, 2);
    assert_true(rows[2].anchor_last.time == UINT64_MAX);
    assert_int_equal(rows[2].at.mode, 77);
    assert_int_equal(rows[2].at.isa, 3);
    size_t bytes = 0;
    assert_int_equal(tl_catalog_summaries(catalog, "a", 1, 0, 1, 3, count_bytes, &bytes, &fail),
                     TL_OK);
    assert_int_equal(bytes, 14);
    assert_int_equal(tl_catalog_streams(catalog, "a", 1, note_stream, &out, &fail), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "0 cs.10 1 0\n");
    assert_int_equal(tl_catalog_drop_shards(catalog, "a", 1, 0, 1, &fail), TL_OK);
    memset(rows, 0, sizeof(rows));
    assert_int_equal(tl_catalog_shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_true(rows[0].n == 1000 && rows[1].n == 0);
    assert_int_equal(tl_catalog_remove_trace(catalog, "a", &fail), TL_OK);
    memset(rows, 0, sizeof(rows));
    assert_int_equal(tl_catalog_shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_int_equal(rows[0].n, 0);
    tl_buf_fini(&out);
}

static void a_refused_commit_changes_nothing(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a"), u = a_trace("b");
    struct tl_fail fail = {0};
    assert_int_equal(tl_catalog_add_trace(catalog, &t, &fail), TL_OK);
    tl_backend_memory_refuse(backend, 0, 1, TL_IO);
    assert_int_equal(tl_catalog_add_trace(catalog, &u, &fail), TL_IO);
    assert_traces("a rig tpiu 2 0 4611686018427387904 1-2 []\n");
    assert_int_equal(tl_catalog_add_trace(catalog, &u, &fail), TL_OK);
}

/* A catalog of a newer program is left alone. */
static void newer_catalogs_are_refused(void **state)
{
    (void)state;
    sqlite3 *db;
    struct tl_fail fail = {0};
    tl_catalog_close(catalog);
    assert_int_equal(sqlite3_open_v2(backend->ops->catalog_uri(backend), &db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=1000", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(tl_catalog_open(&catalog, backend, &fail), TL_UNSUPPORTED);
    assert_non_null(strstr(fail.text, "newer"));
    catalog = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(traces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_commit_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(newer_catalogs_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
