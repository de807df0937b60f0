/* SPDX-License-Identifier: MIT */
/* All catalogs keep the same guarantees: the one in SQLite and the one in omap. Tests that apply
 * only to files are at the end. */
#include "catalog/catalog.h"
#include "catalog/catalog_sql.h"
#include "store/backend_memory.h"

#include "pool.h"

#include "base/cancel.h"

#include <limits.h>
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

static int set_up_pool(void **state)
{
    (void)state;
    backend = NULL;
    catalog = NULL;
    if (!choose_pool())
        return 0; /* see IN_A_POOL */
    backend = open_pool();
    assert_int_equal(tl_catalog_open(&catalog, backend, NULL), TL_OK);
    return 0;
}

static bool is_memory(void)
{
    return strcmp(backend->ops->name, "memory") == 0;
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
    assert_int_equal(catalog->ops->traces(catalog, note_trace, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, expected);
    tl_buf_fini(&out);
}

static void traces(void **state)
{
    (void)state;
    struct tl_catalog_trace t = a_trace("a");
    struct tl_fail fail = {0};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, &fail), TL_OK);
    assert_int_equal(catalog->ops->add_trace(catalog, &t, &fail), TL_EXISTS);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "k", "v=1", &fail), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "b", "x", &fail), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "k", "w", &fail), TL_OK);
    assert_traces("a rig tpiu 2 0 4611686018427387904 1-2 [b=x\nk=w\n]\n");
    t.complete = true;
    t.message = "it's 'quoted'; DROP TABLE traces;";
    assert_int_equal(catalog->ops->update_trace(catalog, &t, &fail), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "k", "", &fail), TL_OK);
    reopen();
    assert_traces(
        "a rig tpiu 2 1 4611686018427387904 1-2 it's 'quoted'; DROP TABLE traces;[b=x\n]\n");
    t.id = "nobody";
    assert_int_equal(catalog->ops->update_trace(catalog, &t, &fail), TL_NOTFOUND);
    assert_int_equal(catalog->ops->set_label(catalog, "nobody", "k", "v", &fail), TL_IO);
    assert_int_equal(catalog->ops->remove_traces(catalog, &(const char *){"a"}, 1, &fail), TL_OK);
    assert_traces("");
}

static int note_stream(void *context, const struct tl_catalog_stream *s)
{
    return tl_buf_printf(context, "%llu %s %d %llu %llu %llu %g\n", (unsigned long long)s->index,
                         s->name, s->protocol, (unsigned long long)s->lost_bytes,
                         (unsigned long long)s->clock.pairs, (unsigned long long)s->clock.unix_ns,
                         s->clock.ns_per_tick);
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

static int no_finding(void *context, const char *finding)
{
    fail_msg("%s", finding);
    return TL_BAD;
}

static void shards(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a");
    struct tl_fail fail = {0};
    struct tl_shard_row rows[4] = {{0}};
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, &fail), TL_OK);
    const struct tl_catalog_stream stream = {.index = 0,
                                             .name = "cs.10",
                                             .protocol = 1,
                                             .clock = {.pairs = 9,
                                                       .unix_ns = UINT64_C(1790000000000000000),
                                                       .ns_per_tick = 2.5,
                                                       .error = 0.25}};
    assert_int_equal(catalog->ops->put_stream(catalog, "a", 1, &stream, &fail), TL_OK);
    struct tl_catalog_shard added[4];
    for (uint64_t i = 0; i < 4; i++)
        added[i] =
            (struct tl_catalog_shard){.row = {.number = i,
                                              .first = i * 1000,
                                              .n = 1000,
                                              .markers = 990,
                                              .events = i,
                                              .anchors = 2,
                                              .anchor_last = {.position = i, .time = UINT64_MAX},
                                              .at = {.mode = 77, .has_mode = true, .isa = 3},
                                              .size = 4096},
                                      .summary = {(const uint8_t *)"summary", 7}};
    assert_int_equal(catalog->ops->add_shards(catalog, "a", 1, added, 1, &fail), TL_OK);
    assert_int_equal(catalog->ops->add_shards(catalog, "a", 1, added, 3, &fail), TL_OK);
    /* All or nothing. */
    if (is_memory()) {
        tl_backend_memory_refuse(backend, 0, 1, TL_IO);
        assert_int_equal(catalog->ops->add_shards(catalog, "a", 1, added, 4, &fail), TL_IO);
        tl_backend_memory_refuse(backend, 0, 0, TL_IO);
    }
    assert_int_equal(catalog->ops->add_shards(catalog, "nobody", 1, added, 4, &fail), TL_IO);
    reopen();
    assert_int_equal(catalog->ops->shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_int_equal(rows[2].first, 2000);
    assert_int_equal(rows[3].n, 0);
    assert_int_equal(rows[2].events, 2);
    assert_true(rows[2].anchor_last.time == UINT64_MAX);
    assert_int_equal(rows[2].at.mode, 77);
    assert_int_equal(rows[2].at.isa, 3);
    size_t bytes = 0;
    assert_int_equal(catalog->ops->summaries(catalog, "a", 1, 0, 1, 3, count_bytes, &bytes, &fail),
                     TL_OK);
    assert_int_equal(bytes, 14);
    assert_int_equal(catalog->ops->streams(catalog, "a", 1, note_stream, &out, &fail), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "0 cs.10 1 0 9 1790000000000000000 2.5\n");
    assert_int_equal(catalog->ops->drop_shards(catalog, "a", 1, 0, 1, &fail), TL_OK);
    memset(rows, 0, sizeof(rows));
    assert_int_equal(catalog->ops->shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_true(rows[0].n == 1000 && rows[1].n == 0);
    bool intact;
    assert_int_equal(catalog->ops->check_summary(catalog, "a", 1, 0, 0, &intact, &fail), TL_OK);
    assert_true(intact);
    assert_int_equal(catalog->ops->check_summary(catalog, "a", 1, 0, 1, &intact, &fail), TL_OK);
    assert_false(intact);
    assert_int_equal(catalog->ops->check(catalog, true, no_finding, NULL, &fail), TL_OK);
    assert_int_equal(catalog->ops->remove_traces(catalog, &(const char *){"a"}, 1, &fail), TL_OK);
    memset(rows, 0, sizeof(rows));
    assert_int_equal(catalog->ops->shards(catalog, "a", 1, 0, take_row, rows, &fail), TL_OK);
    assert_int_equal(rows[0].n, 0);
    tl_buf_fini(&out);
}

static int note_image(void *context, const struct tl_catalog_image *image)
{
    return tl_buf_printf(context, "%s %s %d\n", image->hash, image->name, image->announced);
}

static int count_shard(void *context, const struct tl_shard_row *row)
{
    (void)row;
    ++*(unsigned *)context;
    return TL_OK;
}

/* Count the shards and streams of the generation. */
static unsigned rows_of(uint64_t generation)
{
    unsigned n = 0;
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->shards(catalog, "a", generation, 0, count_shard, &n, NULL),
                     TL_OK);
    assert_int_equal(catalog->ops->streams(catalog, "a", generation, note_stream, &out, NULL),
                     TL_OK);
    n += out.n > 0;
    tl_buf_fini(&out);
    return n;
}

static void generations(void **state)
{
    (void)state;
    static const struct {
        uint64_t keep, other;
        unsigned stay[6];
    } cases[] = {{2, 4, {0, 0, 3, 0, 3, 0}}, {3, 3, {0, 0, 0, 3, 0, 0}}, {1, 9, {0, 3}}};
    const struct tl_catalog_trace t = a_trace("a"), neighbour = a_trace("a1");
    const struct tl_catalog_stream stream = {.name = "cs.10", .protocol = 1};
    const struct tl_catalog_shard both[] = {{.row = {.number = 0, .n = 1}},
                                            {.row = {.number = 1, .n = 1}}};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    assert_int_equal(catalog->ops->add_trace(catalog, &neighbour, NULL), TL_OK);
    assert_int_equal(catalog->ops->put_stream(catalog, "a1", 5, &stream, NULL), TL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint64_t g = 1; g <= 5; g++) {
            assert_int_equal(catalog->ops->put_stream(catalog, "a", g, &stream, NULL), TL_OK);
            assert_int_equal(catalog->ops->add_shards(catalog, "a", g, both, 2, NULL), TL_OK);
        }
        assert_int_equal(
            catalog->ops->drop_others(catalog, "a", cases[i].keep, cases[i].other, NULL), TL_OK);
        for (uint64_t g = 1; g <= 5; g++)
            assert_int_equal(rows_of(g), cases[i].stay[g]);
    }
    assert_int_equal(catalog->ops->drop_shards(catalog, "a", 1, UINT64_MAX, 0, NULL), TL_OK);
    assert_int_equal(rows_of(1), 0);
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->streams(catalog, "a1", 5, note_stream, &out, NULL), TL_OK);
    assert_true(out.n > 0);
    tl_buf_fini(&out);
}

/* If the streams cannot be dropped, the shards also stay. */
static void generations_are_dropped_as_a_whole(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    const struct tl_catalog_trace t = a_trace("a");
    const struct tl_catalog_stream stream = {.name = "cs.10", .protocol = 1};
    const struct tl_catalog_shard both[] = {{.row = {.number = 0, .n = 1}},
                                            {.row = {.number = 1, .n = 1}}};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    assert_int_equal(catalog->ops->put_stream(catalog, "a", 1, &stream, NULL), TL_OK);
    assert_int_equal(catalog->ops->add_shards(catalog, "a", 1, both, 2, NULL), TL_OK);
    assert_int_equal(tl_sql_run(catalog, NULL, &fail,
                                "CREATE TRIGGER refusal BEFORE DELETE ON streams"
                                " BEGIN SELECT RAISE(ABORT, 'refused'); END",
                                ""),
                     TL_OK);
    assert_true(catalog->ops->drop_shards(catalog, "a", 1, UINT64_MAX, 0, &fail) < 0);
    assert_int_equal(rows_of(1), 3);
    assert_true(catalog->ops->drop_others(catalog, "a", 2, 2, &fail) < 0);
    assert_int_equal(rows_of(1), 3);
    assert_int_equal(tl_sql_run(catalog, NULL, &fail, "DROP TRIGGER refusal", ""), TL_OK);
    assert_int_equal(catalog->ops->drop_others(catalog, "a", 2, 2, &fail), TL_OK);
    assert_int_equal(rows_of(1), 0);
}

static int note_note(void *context, const struct tl_note *n)
{
    return tl_buf_printf(context, "%llu %s %llu-%llu %lld %s;", (unsigned long long)n->id,
                         n->stream, (unsigned long long)n->at, (unsigned long long)n->to,
                         (long long)n->created_ns, n->text);
}

static int count_notes(void *context, const struct tl_catalog_trace *t)
{
    *(uint64_t *)context += t->notes;
    return TL_OK;
}

static void notes(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a");
    struct tl_note note = {.id = 1, .stream = "cs.10", .at = 5, .to = 7, .created_ns = 3};
    struct tl_buf out = {0};
    uint64_t n = 0;
    assert_int_equal(catalog->ops->put_note(catalog, "a", &note, NULL) < 0, 1);
    assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    assert_int_equal(catalog->ops->put_note(catalog, "a", &note, NULL), TL_OK);
    note.created_ns = 4; /* the creation time is preserved */
    snprintf(note.text, sizeof note.text, "two\nlines");
    assert_int_equal(catalog->ops->put_note(catalog, "a", &note, NULL), TL_OK);
    note.id = 300;
    assert_int_equal(catalog->ops->put_note(catalog, "a", &note, NULL), TL_OK);
    assert_int_equal(catalog->ops->remove_note(catalog, "a", 2, NULL), TL_NOTFOUND);
    assert_int_equal(catalog->ops->notes(catalog, "a", note_note, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "1 cs.10 5-7 3 two\nlines;300 cs.10 5-7 4 two\nlines;");
    assert_int_equal(catalog->ops->traces(catalog, count_notes, &n, NULL), TL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(catalog->ops->remove_note(catalog, "a", 1, NULL), TL_OK);
    n = 0;
    assert_int_equal(catalog->ops->traces(catalog, count_notes, &n, NULL), TL_OK);
    assert_int_equal(n, 1);
    tl_buf_fini(&out);
}

static void images(void **state)
{
    (void)state;
    struct tl_buf out = {0};
    const struct tl_catalog_image one = {.hash = "sha256:11", .name = "one", .build_id = "ab"};
    const struct tl_catalog_image two = {.hash = "sha256:00", .name = "two", .build_id = ""};
    const struct tl_catalog_image again = {.hash = "sha256:11", .name = "other", .build_id = ""};
    assert_int_equal(catalog->ops->add_image(catalog, &one, NULL), TL_OK);
    assert_int_equal(catalog->ops->add_image(catalog, &two, NULL), TL_OK);
    assert_int_equal(catalog->ops->add_image(catalog, &again, NULL), TL_OK);
    assert_int_equal(catalog->ops->announce_image(catalog, "sha256:00", NULL), TL_OK);
    assert_int_equal(catalog->ops->images(catalog, note_image, &out, NULL), TL_OK);
    assert_int_equal(catalog->ops->remove_image(catalog, "sha256:11", NULL), TL_OK);
    assert_int_equal(catalog->ops->remove_image(catalog, "sha256:11", NULL), TL_OK);
    assert_int_equal(catalog->ops->images(catalog, note_image, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "sha256:11 one 0\nsha256:00 two 1\nsha256:00 two 1\n");
    tl_buf_fini(&out);
}

static int note_rule(void *context, const char *scope, const struct tl_retention *rule)
{
    return tl_buf_printf(context, "%s=%llu,%llu;", scope, (unsigned long long)rule->raw_age_s,
                         (unsigned long long)rule->decoded_bytes);
}

static void rules(void **state)
{
    (void)state;
    struct tl_buf out = {0};
    const struct tl_retention rule = {.raw_age_s = 5, .decoded_bytes = UINT64_C(1) << 40};
    assert_int_equal(catalog->ops->set_retention(catalog, "trace x", &rule, NULL), TL_OK);
    assert_int_equal(catalog->ops->set_retention(catalog, "", &rule, NULL), TL_OK);
    assert_int_equal(catalog->ops->set_retention(catalog, "label a=b/c", &rule, NULL), TL_OK);
    assert_int_equal(catalog->ops->set_retention(catalog, "trace x", NULL, NULL), TL_OK);
    assert_int_equal(catalog->ops->retention(catalog, note_rule, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "=5,1099511627776;label a=b/c=5,1099511627776;");
    tl_buf_fini(&out);
}

/* Labels with a common prefix, in any order; some come with the trace. */
static void labels(void **state)
{
    (void)state;
    static const char *const keys[] = {"bb", "b", "a", "c", "bbb"};
    struct tl_catalog_trace t = a_trace("a");
    t.labels = "ab=v\nb=u\n";
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(catalog->ops->set_label(catalog, "a", keys[i], "v", NULL), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "b", "w", NULL), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "bb", "", NULL), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "no", "", NULL), TL_OK);
    assert_int_equal(catalog->ops->labels(catalog, "a", &out, NULL), TL_OK);
    assert_int_equal(catalog->ops->labels(catalog, "nobody", &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "a=v\nab=v\nb=w\nbbb=v\nc=v\n");
    tl_buf_fini(&out);
}

static void found(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a");
    struct tl_buf out = {0};
    struct tl_fail fail = {0};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    assert_int_equal(catalog->ops->set_label(catalog, "a", "k", "v", NULL), TL_OK);
    assert_int_equal(catalog->ops->find(catalog, "b", note_trace, &out, &fail), TL_NOTFOUND);
    assert_non_null(strstr(fail.text, "no trace b"));
    assert_int_equal(catalog->ops->find(catalog, "a", note_trace, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "a rig tpiu 2 0 4611686018427387904 1-2 [k=v\n]\n");
    tl_buf_fini(&out);
}

static int note_id(void *context, const struct tl_catalog_trace *t)
{
    return tl_buf_printf(context, "%s ", t->id);
}

static int note_change(void *context, const char *id, const struct tl_catalog_trace *t)
{
    return tl_buf_printf(context, "%s%s ", id, t ? "" : "-");
}

static void assert_changes(const char *expected)
{
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->changes(catalog, note_change, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, expected);
    tl_buf_fini(&out);
}

static void assert_page(const struct tl_trace_place *after, size_t most, int more,
                        const char *expected)
{
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->page(catalog, after, most, note_id, &out, NULL), more);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, expected);
    tl_buf_fini(&out);
}

/* Newest first, those with the same time by name. */
static void pages(void **state)
{
    (void)state;
    const int64_t made[] = {5, 9, 7, 7, 1};
    const char *const ids[] = {"a", "b", "d", "c", "e"};
    for (size_t i = 0; i < 5; i++) {
        struct tl_catalog_trace t = a_trace(ids[i]);
        t.created_ns = made[i];
        t.content = i == 1 || i == 4 ? "sha256:12" : "";
        t.complete = i != 0;
        assert_int_equal(catalog->ops->add_trace(catalog, &t, NULL), TL_OK);
    }
    assert_page(NULL, 9, 0, "b c d a e ");
    assert_page(NULL, 2, 1, "b c ");
    assert_page(&(struct tl_trace_place){7, "c"}, 2, 1, "d a ");
    assert_page(&(struct tl_trace_place){5, "a"}, 9, 0, "e ");
    assert_page(&(struct tl_trace_place){6, "gone"}, 9, 0, "a e ");
    struct tl_buf out = {0};
    assert_int_equal(catalog->ops->by_content(catalog, "sha256:12", note_id, &out, NULL), TL_OK);
    assert_int_equal(catalog->ops->by_content(catalog, "sha256:1", note_id, &out, NULL),
                     TL_NOTFOUND);
    assert_int_equal(catalog->ops->remove_traces(catalog, &(const char *){"b"}, 1, NULL), TL_OK);
    assert_int_equal(catalog->ops->by_content(catalog, "sha256:12", note_id, &out, NULL), TL_OK);
    struct tl_catalog_trace t = a_trace("e");
    t.content = "sha256:13";
    assert_int_equal(catalog->ops->update_trace(catalog, &t, NULL), TL_OK);
    assert_int_equal(catalog->ops->by_content(catalog, "sha256:12", note_id, &out, NULL),
                     TL_NOTFOUND);
    assert_int_equal(catalog->ops->by_content(catalog, "sha256:13", note_id, &out, NULL), TL_OK);
    if (is_memory())
        assert_int_equal(catalog->ops->unfinished(catalog, note_id, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, is_memory() ? "b e e c d " : "b e e ");
    assert_page(NULL, 9, 0, "c d a e ");
    tl_buf_fini(&out);
}

/* Changes by another process are reported once. */
static void changes(void **state)
{
    (void)state;
    struct tl_catalog_trace t = a_trace("a"), u = a_trace("b");
    struct tl_catalog *other;
    assert_changes("");
    assert_int_equal(tl_catalog_open(&other, backend, NULL), TL_OK);
    assert_int_equal(other->ops->add_trace(other, &t, NULL), TL_OK);
    assert_changes("a ");
    assert_changes("");
    assert_int_equal(other->ops->add_trace(other, &u, NULL), TL_OK);
    assert_changes("b ");
    t.state = 1;
    assert_int_equal(other->ops->update_trace(other, &t, NULL), TL_OK);
    assert_changes("a ");
    assert_int_equal(other->ops->set_label(other, "b", "k", "v", NULL), TL_OK);
    assert_changes("b ");
    assert_int_equal(other->ops->remove_traces(other, &(const char *){"a"}, 1, NULL), TL_OK);
    assert_changes("a- ");
    assert_changes("");
    tl_catalog_close(other);
}

static void a_refused_commit_changes_nothing(void **state)
{
    (void)state;
    const struct tl_catalog_trace t = a_trace("a"), u = a_trace("b");
    struct tl_fail fail = {0};
    assert_int_equal(catalog->ops->add_trace(catalog, &t, &fail), TL_OK);
    tl_backend_memory_refuse(backend, 0, 1, TL_IO);
    assert_int_equal(catalog->ops->add_trace(catalog, &u, &fail), TL_IO);
    assert_traces("a rig tpiu 2 0 4611686018427387904 1-2 []\n");
    assert_int_equal(catalog->ops->add_trace(catalog, &u, &fail), TL_OK);
}

/* A catalog written by a newer program is left unchanged. */
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

static void run_sql(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    assert_int_equal(sqlite3_open_v2(backend->ops->catalog_uri(backend), &db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI,
                                     NULL),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s", error);
    sqlite3_close(db);
}

/* Catalogs written by older versions. */
static const char version_1[] =
    "CREATE TABLE traces("
    " id TEXT PRIMARY KEY, rig TEXT NOT NULL, format TEXT NOT NULL, setup TEXT NOT NULL,"
    " state INTEGER NOT NULL, complete INTEGER NOT NULL, created_ns INTEGER NOT NULL,"
    " updated_ns INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, decoded_bytes INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, wanted INTEGER NOT NULL, message TEXT NOT NULL);"
    "CREATE TABLE labels("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(trace, key)) WITHOUT ROWID;"
    "CREATE TABLE streams("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " generation INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL,"
    " protocol INTEGER NOT NULL, lost_bytes INTEGER NOT NULL,"
    " PRIMARY KEY(trace, generation, number)) WITHOUT ROWID;"
    "CREATE TABLE shards("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " generation INTEGER NOT NULL, stream INTEGER NOT NULL, number INTEGER NOT NULL,"
    " first INTEGER NOT NULL, n INTEGER NOT NULL,"
    " markers INTEGER NOT NULL, byte_first INTEGER NOT NULL, byte_last INTEGER NOT NULL,"
    " events INTEGER NOT NULL, gaps INTEGER NOT NULL, anchors INTEGER NOT NULL,"
    " position_first INTEGER NOT NULL, time_first INTEGER NOT NULL,"
    " position_last INTEGER NOT NULL, time_last INTEGER NOT NULL, size INTEGER NOT NULL,"
    " begin BLOB NOT NULL, summary BLOB NOT NULL,"
    " PRIMARY KEY(trace, generation, stream, number)) WITHOUT ROWID;"
    "CREATE TABLE images("
    " hash TEXT PRIMARY KEY, name TEXT NOT NULL, build_id TEXT NOT NULL, size INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL);"
    "INSERT INTO traces VALUES('a','rig','tpiu','[trace]',2,1,5,6,7,7,1,1,'');"
    "INSERT INTO labels VALUES('a','k','v');"
    "INSERT INTO streams VALUES('a',1,0,'cs.10',1,0);"
    "INSERT INTO shards VALUES('a',1,0,0,0,100,90,0,7,0,0,0,0,0,0,0,4096,x'0000000000000000',"
    "x'414243');"
    "INSERT INTO images VALUES('sha256:00','program','',5,1);"
    "PRAGMA user_version=1;";

static void older_catalogs_are_brought_up_to_date(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    struct tl_buf out = {0};
    bool intact;
    for (uint64_t refused = 0; refused < 4; refused++) {
        tl_catalog_close(catalog);
        catalog = NULL;
        assert_int_equal(backend->ops->catalog_reset(backend, NULL), TL_OK);
        run_sql(version_1);
        /* Wherever it is interrupted, nothing is lost, and the catalog is not mistaken for a new
         * one. */
        tl_backend_memory_refuse(backend, refused, 1, TL_IO);
        if (tl_catalog_open(&catalog, backend, &fail) < 0)
            assert_int_equal(tl_catalog_open(&catalog, backend, &fail), TL_OK);
        tl_backend_memory_refuse(backend, 0, 0, TL_IO);
        assert_false(catalog->ops->fresh(catalog));
        assert_traces("a rig tpiu 2 1 7 1-1 [k=v\n]\n");
        reopen();
        assert_false(catalog->ops->fresh(catalog));
        assert_traces("a rig tpiu 2 1 7 1-1 [k=v\n]\n");
    }
    assert_int_equal(catalog->ops->images(catalog, note_image, &out, &fail), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "sha256:00 program 1\n");
    assert_int_equal(catalog->ops->check_summary(catalog, "a", 1, 0, 0, &intact, &fail), TL_OK);
    assert_true(intact);
    const struct tl_retention rule = {.raw_bytes = 5};
    assert_int_equal(catalog->ops->set_retention(catalog, "", &rule, &fail), TL_OK);
    /* Totals introduced later also include old rows. */
    struct tl_catalog_totals totals;
    assert_int_equal(catalog->ops->totals(catalog, &totals, &fail), TL_OK);
    assert_int_equal(totals.states[TL_TRACE_SEALED], 1);
    assert_int_equal(totals.raw_bytes, 7);
    assert_int_equal(totals.stored_bytes, 4096);
    assert_int_equal(totals.insns, 100);
    tl_buf_fini(&out);
}

static void new_catalogs_are_fresh_until_filled(void **state)
{
    (void)state;
    assert_true(catalog->ops->fresh(catalog));
    reopen();
    assert_true(catalog->ops->fresh(catalog));
    assert_int_equal(catalog->ops->ready(catalog, NULL), TL_OK);
    assert_false(catalog->ops->fresh(catalog));
    reopen();
    assert_false(catalog->ops->fresh(catalog));
}

/* A damaged file is reported, with what to do, and left unchanged. */
static void damaged_catalogs_are_refused(void **state)
{
    (void)state;
    char dir[] = "/tmp/tl-catalog-XXXXXX", path[64], command[96];
    struct tl_backend *disk;
    struct tl_catalog *c;
    struct tl_fail fail = {0};
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tl_backend_folder(&disk, dir, NULL), TL_OK);
    assert_int_equal(tl_catalog_open(&c, disk, NULL), TL_OK);
    tl_catalog_close(c);
    snprintf(path, sizeof(path), "%s/catalog.db", dir);
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        /* The header, then later pages. */
        fseek(f, i == 0 ? 0 : 5000, SEEK_SET);
        for (int n = 0; n < (i == 0 ? 100 : 8000); n++)
            fputc(0xa5, f);
        fclose(f);
        assert_int_equal(tl_catalog_open(&c, disk, &fail), TL_BAD);
        assert_non_null(strstr(fail.text, "--rebuild-catalog"));
        assert_int_equal(disk->ops->catalog_reset(disk, NULL), TL_OK);
        assert_int_equal(tl_catalog_open(&c, disk, NULL), TL_OK);
        assert_true(c->ops->fresh(c));
        tl_catalog_close(c);
    }
    tl_backend_free(disk);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

struct beside {
    struct tl_catalog *catalog;
    unsigned asked, end;
};

/* Write during a check; waiting for the end of the check would deadlock. */
static bool write_beside(void *context)
{
    struct beside *const b = context;
    struct tl_fail fail = {0};
    if (b->asked++ == 0 && b->catalog->ops->set_label(b->catalog, "a", "key", "value", &fail) < 0)
        fail_msg("%s", fail.text);
    return b->asked >= b->end;
}

/* A full check takes long: others can write during it, and it can be cancelled. */
static void checks_hold_up_nobody(void **state)
{
    (void)state;
    char dir[] = "/tmp/tl-catalog-XXXXXX", command[96];
    static struct tl_catalog_shard rows[5000];
    struct tl_backend *disk;
    struct beside b = {.end = UINT_MAX};
    const struct tl_cancel cancel = {write_beside, &b};
    assert_non_null(mkdtemp(dir));
    assert_int_equal(tl_backend_folder(&disk, dir, NULL), TL_OK);
    assert_int_equal(tl_catalog_open(&b.catalog, disk, NULL), TL_OK);
    const struct tl_catalog_trace t = a_trace("a");
    assert_int_equal(b.catalog->ops->add_trace(b.catalog, &t, NULL), TL_OK);
    for (uint64_t i = 0; i < 5000; i++)
        rows[i] = (struct tl_catalog_shard){.row = {.number = i, .n = 1},
                                            .summary = {(const uint8_t *)"summary", 7}};
    assert_int_equal(b.catalog->ops->add_shards(b.catalog, "a", 1, rows, 5000, NULL), TL_OK);
    assert_null(tl_cancel_set(&cancel));
    assert_int_equal(b.catalog->ops->check(b.catalog, true, no_finding, NULL, NULL), TL_OK);
    assert_true(b.asked > 2);
    b.end = b.asked + 1;
    assert_int_equal(b.catalog->ops->check(b.catalog, true, no_finding, NULL, NULL), TL_CANCELLED);
    (void)tl_cancel_set(NULL);
    assert_int_equal(b.catalog->ops->check(b.catalog, true, no_finding, NULL, NULL), TL_OK);
    tl_catalog_close(b.catalog);
    tl_backend_free(disk);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- in a pool ------------------------------------------------------------------------------ */

#define IN_A_POOL(test)                                                                            \
    static void test##_in_a_pool(void **state)                                                     \
    {                                                                                              \
        if (!backend)                                                                              \
            skip_pool();                                                                           \
        test(state);                                                                               \
    }

IN_A_POOL(traces)
IN_A_POOL(found)
IN_A_POOL(pages)
IN_A_POOL(changes)
IN_A_POOL(labels)
IN_A_POOL(notes)
IN_A_POOL(shards)
IN_A_POOL(generations)
IN_A_POOL(images)
IN_A_POOL(rules)
IN_A_POOL(new_catalogs_are_fresh_until_filled)

#define EVERYWHERE(test)                                                                           \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down),                                      \
        cmocka_unit_test_setup_teardown(test##_in_a_pool, set_up_pool, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(traces),
        EVERYWHERE(found),
        EVERYWHERE(pages),
        cmocka_unit_test_setup_teardown(changes_in_a_pool, set_up_pool, tear_down),
        EVERYWHERE(labels),
        EVERYWHERE(notes),
        EVERYWHERE(shards),
        EVERYWHERE(generations),
        EVERYWHERE(images),
        EVERYWHERE(rules),
        EVERYWHERE(new_catalogs_are_fresh_until_filled),
        cmocka_unit_test_setup_teardown(a_refused_commit_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(generations_are_dropped_as_a_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(newer_catalogs_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(older_catalogs_are_brought_up_to_date, set_up, tear_down),
        cmocka_unit_test(damaged_catalogs_are_refused),
        cmocka_unit_test(checks_hold_up_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
