/* SPDX-License-Identifier: MIT */
/* SQLite's temporary files in memory: large sorts come out right, within a bound, and leave
 * nothing. */
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
static int sort(sqlite3 *db, int n, struct tl_sql_temp *temp)
{
    char *const text = sqlite3_mprintf(SORTED, n);
    sqlite3_stmt *s;
    sqlite3_int64 last = -1;
    int rows = 0, r;
    bool used = false;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), SQLITE_OK);
    while ((r = sqlite3_step(s)) == SQLITE_ROW) {
        const sqlite3_int64 k = sqlite3_column_int64(s, 0);
        assert_true(k > last);
        last = k;
        used |= temp->bytes > 0;
        rows++;
    }
    sqlite3_finalize(s);
    sqlite3_free(text);
    assert_true(r != SQLITE_DONE || (rows == n && used));
    return r;
}

static void *sort_much(void *unused)
{
    struct tl_sql_temp temp = {.most = (size_t)64 << 20};
    tl_sql_temp_use(&temp);
    sqlite3 *const db = open_database();
    assert_int_equal(sort(db, 900000, &temp), SQLITE_DONE);
    assert_false(temp.full);
    sqlite3_close(db);
    assert_int_equal(temp.bytes, 0);
    tl_sql_temp_use(NULL);
    return unused;
}

/* Each thread has files of its own. */
static void test_sorted(void **state)
{
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, sort_much, NULL), 0);
    sort_much(NULL);
    pthread_join(other, NULL);
}

static void test_bounded(void **state)
{
    struct tl_sql_temp temp = {.most = (size_t)1 << 20};
    tl_sql_temp_use(&temp);
    sqlite3 *const db = open_database();
    assert_int_equal(sort(db, 900000, &temp), SQLITE_FULL);
    assert_true(temp.full);
    assert_int_equal(temp.bytes, 0);
    sqlite3_close(db);
    tl_sql_temp_use(NULL);
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
