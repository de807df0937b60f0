/* SPDX-License-Identifier: MIT */
/* SQLite's temporary files in memory: large sorts come out right, within a bound, and leave
 * nothing. */
#include "sql/memory.h"
#include "sql/tempfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#define SORTED                                                                                     \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) "                    \
    "SELECT i * 7919 %% 1000003 AS k FROM n ORDER BY k"
#define SORTED_WIDE                                                                                \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) "                    \
    "SELECT printf('%%100d', i) AS k FROM n ORDER BY k"

static sqlite3 *open_database(void)
{
    sqlite3 *db;
    const char *const files = tl_sql_tempfiles();
    assert_non_null(files);
    assert_int_equal(
        sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, files),
        SQLITE_OK);
    return db;
}

/* Sort `n` different numbers: SQLite's result code. */
static int sort(sqlite3 *db, const char *sorted, int n, const struct tl_sql_memory *memory)
{
    char *const text = sqlite3_mprintf(sorted, n);
    sqlite3_stmt *s;
    sqlite3_int64 last = -1;
    int rows = 0, r;
    bool used = false;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), SQLITE_OK);
    while ((r = sqlite3_step(s)) == SQLITE_ROW) {
        const sqlite3_int64 k = sqlite3_column_int64(s, 0);
        assert_true(k > last);
        last = k;
        used |= memory->collected > 0;
        rows++;
    }
    sqlite3_finalize(s);
    sqlite3_free(text);
    assert_true(r != SQLITE_DONE || (rows == n && used));
    return r;
}

static struct tl_seats seats;

static bool goes_on(void *context)
{
    (void)context;
    return false;
}

static void *sort_much(void *unused)
{
    struct tl_sql_memory memory = {.seats = &seats, .goes_on = goes_on};
    tl_sql_memory_begin(&memory);
    sqlite3 *const db = open_database();
    assert_int_equal(sort(db, SORTED, 900000, &memory), SQLITE_DONE);
    assert_false(memory.full || memory.refused);
    sqlite3_close(db);
    assert_int_equal(memory.collected, 0);
    tl_sql_memory_end(&memory);
    return unused;
}

/* Each thread has files of its own. */
static void test_sorted(void **state)
{
    pthread_t other;
    (void)state;
    tl_seats_init(&seats, 2);
    assert_int_equal(pthread_create(&other, NULL, sort_much, NULL), 0);
    sort_much(NULL);
    pthread_join(other, NULL);
    tl_seats_fini(&seats);
}

/* Somebody else has the only seat: what is larger than little fails. */
static void test_bounded(void **state)
{
    struct tl_sql_memory memory = {.seats = &seats, .goes_on = goes_on};
    (void)state;
    tl_seats_init(&seats, 1);
    assert_true(tl_seats_take(&seats, goes_on, NULL));
    tl_sql_memory_begin(&memory);
    sqlite3 *const db = open_database();
    assert_int_equal(sort(db, SORTED_WIDE, 300000, &memory), SQLITE_FULL);
    assert_true(memory.refused && !memory.full);
    assert_int_equal(memory.collected, 0);
    sqlite3_close(db);
    tl_sql_memory_end(&memory);
    tl_seats_fini(&seats);
}

/* There are no files with names, whatever is asked. */
static void test_no_files(void **state)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2("/tmp/x.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                     tl_sql_tempfiles()),
                     SQLITE_CANTOPEN);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sorted),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_no_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
