/* SPDX-License-Identifier: MIT */
/* A store of many traces: few of them are read at startup, few are kept in memory, and all are
 * available. */
#include "lake_upkeep.h"
#include "sim_capture.h"

#include "pool.h"
#include "unit/patience.h"

#define UNFINISHED 3
#define RESIDENT   (TL_TRACES_RESIDENT + TL_TRACES_RESIDENT / 4)

static struct tl_backend *backend;
static struct tl_lake *lake;
static unsigned n_traces;

static char *name_of(char out[static 16], unsigned i)
{
    snprintf(out, 16, "t%06u", i);
    return out;
}

static char *content_of(char out[static TL_CONTENT_BYTES], unsigned i)
{
    snprintf(out, TL_CONTENT_BYTES, "sha256:%064x", i);
    return out;
}

/* The last ones have no hash yet. */
static void add_row(struct tl_catalog *catalog, unsigned i)
{
    char id[16], content[TL_CONTENT_BYTES];
    const bool finished = i + UNFINISHED < n_traces;
    const struct tl_catalog_trace row = {.id = name_of(id, i),
                                         .rig = "rig",
                                         .format = "itm,id=0",
                                         .setup = "[trace]\nformat=itm,id=0\n",
                                         .message = "",
                                         .content = finished ? content_of(content, i) : "",
                                         .state = finished ? TL_TRACE_SEALED : TL_TRACE_FAILED,
                                         .complete = true,
                                         .created_ns = 1000 + i,
                                         .updated_ns = 1000 + i,
                                         .raw_bytes = 10,
                                         .generation = 1,
                                         .wanted = 1};
    assert_int_equal(catalog->ops->add_trace(catalog, &row, NULL), TL_OK);
}

static uint64_t metric(const char *name)
{
    struct tl_buf text = {0};
    char line[80];
    assert_int_equal(tl_lake_metrics(lake, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    snprintf(line, sizeof line, "\ntracelake_%s ", name);
    const char *const at = strstr((const char *)text.p, line);
    if (!at)
        fail_msg("there is no metric %s", name);
    const uint64_t value = strtoull(at + strlen(line), NULL, 10);
    tl_buf_fini(&text);
    return value;
}

static void open_lake_of(unsigned n)
{
    struct tl_catalog *catalog;
    n_traces = n;
    assert_int_equal(tl_catalog_open(&catalog, backend, NULL), TL_OK);
    assert_int_equal(catalog->ops->ready(catalog, NULL), TL_OK);
    for (unsigned i = 0; i < n; i++)
        add_row(catalog, i);
    tl_catalog_close(catalog);
    lake = open_lake_sized(backend, 1 << 20, 1);
}

/* Read all of them page by page, newest first. */
static void check_pages(size_t most)
{
    struct tl_trace_place place;
    char id[16];
    unsigned left = n_traces;
    for (int more = 1; more > 0;) {
        struct tl_trace_list list = {0};
        more = tl_lake_page(lake, left < n_traces ? &place : NULL, most, &list);
        assert_true(more >= 0 && list.n <= most);
        for (size_t i = 0; i < list.n; i++)
            assert_string_equal(list.rows[i].id, name_of(id, --left));
        if (list.n > 0)
            place = tl_trace_place_of(&list.rows[list.n - 1]);
        tl_trace_list_free(&list);
    }
    assert_int_equal(left, 0);
}

static void check_found(const char *name, const char *id)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, name, &list), TL_OK);
    assert_string_equal(list.rows[0].id, id);
    tl_trace_list_free(&list);
}

static bool raw_removed(const char *id)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    const bool removed = list.rows[0].raw_removed;
    tl_trace_list_free(&list);
    return removed;
}

/* Reading traces one by one does not increase the number in memory. */
static void check_table(void)
{
    char id[16];
    for (unsigned i = 0; i < n_traces; i += n_traces / 2000)
        check_found(name_of(id, i), id);
    assert_true(metric("traces_in_memory") <= RESIDENT);
}

static void check_changes(void)
{
    char id[16], content[TL_CONTENT_BYTES];
    struct tl_trace_list list;
    const struct tl_retention rule = {.raw_age_s = 1};
    check_found(content_of(content, 11), name_of(id, 11));
    assert_int_equal(tl_lake_set_labels(lake, name_of(id, 12), "k=v\n", NULL), TL_OK);
    assert_int_equal(tl_lake_delete(lake, name_of(id, 13), NULL), TL_OK);
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_NOTFOUND);
    assert_int_equal(tl_lake_trace(lake, content_of(content, 13), &list), TL_NOTFOUND);
    assert_int_equal(tl_lake_set_retention(lake, "label k=v", &rule, NULL), TL_OK);
    assert_true(tl_lake_retain(lake, tl_wall_ns() + INT64_C(3000000000), NULL) >= 0);
    assert_true(raw_removed(name_of(id, 12)));
    assert_false(raw_removed(name_of(id, 14)));
}

static void in_a_folder(void **state)
{
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    open_lake_of(20000);
    assert_int_equal(metric("start_traces"), UNFINISHED);
    check_pages(700);
    check_table();
    assert_int_equal(metric("raw_bytes"), 10 * n_traces);
    check_changes();
    assert_int_equal(metric("raw_bytes"), 10 * (n_traces - 2));
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static void wait_copied(unsigned i)
{
    char id[16], key[24];
    uint64_t size;
    snprintf(key, sizeof key, "m/%s", name_of(id, i));
    for (int64_t since = 0; backend->ops->size(backend, key, &size, NULL) < 0;)
        keep_waiting(&since, key);
}

/* After startup, copies of all rows are compared, newest first: only traces whose copy is missing
 * are read. */
static void looked_over(void **state)
{
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    open_lake_of(1000);
    wait_copied(0);
    tl_lake_close(lake);
    assert_int_equal(backend->ops->remove(backend, "m/t000000", NULL), TL_OK);
    lake = open_lake_sized(backend, 1 << 20, 1);
    wait_copied(0);
    assert_int_equal(metric("traces_read_total"), UNFINISHED + 1);
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static void in_a_cluster(void **state)
{
    (void)state;
    if (!choose_pool())
        skip_pool();
    backend = open_pool();
    open_lake_of(4000);
    assert_int_equal(metric("start_traces"), 0);
    check_pages(300);
    check_table();
    check_changes();
    for (int64_t since = 0; metric("raw_bytes") != 10 * (n_traces - 2);)
        keep_waiting(&since, "counted"); /* twice a second */
    tl_lake_close(lake);
    tl_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_folder),
        cmocka_unit_test(looked_over),
        cmocka_unit_test(in_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
