/* SPDX-License-Identifier: MIT */
/* Rows of shards are the same on the heap and in a file; copies do not change. */
#include "lake/shardrows.h"

#include "store/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { MANY = 3 * TL_ROWS_HEAP + 40000, MORE = 3 };

static struct tl_shard_row row_of(uint64_t i)
{
    return (struct tl_shard_row){.number = i,
                                 .first = 1000 * i,
                                 .n = 1000,
                                 .events = i % 5,
                                 .gaps = i % 3,
                                 .anchors = i > 2 ? 2 : 0,
                                 .anchor_first = {.time = 10 * i},
                                 .anchor_last = {.time = 10 * i + 4},
                                 .size = 100 + i % 7};
}

static void add(struct tl_rows *rows, uint64_t to, struct tl_backend *backend)
{
    while (rows->n < to) {
        const struct tl_shard_row row = row_of(rows->n);
        assert_int_equal(tl_rows_add(rows, &row, backend), TL_OK);
    }
}

static void are_there(const struct tl_shard_row *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_shard_row row = row_of(i);
        if (v[i].number != row.number || v[i].first != row.first || v[i].size != row.size ||
            v[i].anchor_last.time != row.anchor_last.time)
            fail_msg("row %zu is another one", i);
    }
}

static void totals_are(const struct tl_rows *rows)
{
    struct tl_rows_totals t = {0};
    for (size_t i = 0; i < rows->n; i++) {
        t.events += rows->v[i].events;
        t.gaps += rows->v[i].gaps;
        t.bytes += rows->v[i].size;
        t.times.anchors += rows->v[i].anchors;
    }
    assert_int_equal(rows->totals.events, t.events);
    assert_int_equal(rows->totals.gaps, t.gaps);
    assert_int_equal(rows->totals.bytes, t.bytes);
    assert_int_equal(rows->totals.times.anchors, t.times.anchors);
    assert_int_equal(rows->totals.times.first, 30);
    assert_int_equal(rows->totals.times.last, 10 * (rows->n - 1) + 4);
}

/* A copy of the rows with further rows of its own. */
static void copy(struct tl_rows_copy *out, const struct tl_rows *rows)
{
    assert_int_equal(tl_rows_copy(out, rows, MORE), TL_OK);
    for (size_t i = 0; i < MORE; i++)
        out->v[rows->n + i] = row_of(7);
}

/* Add rows, with copies made in between that must not change; from row `fixed` on, the file cannot
 * grow. */
static void fill(struct tl_backend *backend, bool maps, size_t fixed)
{
    struct tl_rows rows = {0};
    struct tl_rows_copy copies[12];
    size_t n[12];
    for (unsigned i = 0; i < 12; i++) {
        add(&rows, (uint64_t)MANY * (i + 1) / 12 + i, backend);
        if (rows.is_mapped && rows.n >= fixed)
            assert_int_equal(fcntl(rows.file, F_ADD_SEALS, F_SEAL_GROW), 0);
        n[i] = rows.n;
        copy(&copies[i], &rows);
    }
    assert_int_equal(rows.is_mapped, maps);
    are_there(rows.v, rows.n);
    totals_are(&rows);
    for (unsigned i = 0; i < 12; i++) {
        are_there(copies[i].v, n[i]);
        for (size_t k = 0; k < MORE; k++)
            assert_int_equal(copies[i].v[n[i] + k].number, 7);
        tl_rows_copy_fini(&copies[i]);
    }
    struct tl_shard_row other = row_of(5);
    other.size = 1;
    tl_rows_replace(&rows, &other);
    assert_int_equal(rows.v[5].size, 1);
    totals_are(&rows);
    tl_rows_fini(&rows);
    assert_int_equal(rows.n, 0);
}

static int scratch(struct tl_backend *backend, struct tl_fail *fail)
{
    (void)backend;
    (void)fail;
    return memfd_create("rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static int no_scratch(struct tl_backend *backend, struct tl_fail *fail)
{
    (void)backend;
    return tl_fail_set(fail, TL_NOSPACE, "no room");
}

static void in_a_file(void **state)
{
    (void)state;
    const struct tl_backend_ops ops = {.scratch = scratch};
    fill(&(struct tl_backend){.ops = &ops}, true, SIZE_MAX);
}

static void in_a_file_until_it_is_full(void **state)
{
    (void)state;
    const struct tl_backend_ops ops = {.scratch = scratch};
    fill(&(struct tl_backend){.ops = &ops}, false, MANY / 2);
}

static void on_the_heap(void **state)
{
    (void)state;
    const struct tl_backend_ops ops = {.scratch = no_scratch};
    fill(&(struct tl_backend){.ops = &ops}, false, SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_file),
        cmocka_unit_test(in_a_file_until_it_is_full),
        cmocka_unit_test(on_the_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
