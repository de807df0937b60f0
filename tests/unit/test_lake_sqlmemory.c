/* SPDX-License-Identifier: MIT */
/* What SQLite allocates on a thread counts for that thread alone. */
#include "lake_sql.h"
#include "sql/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sqlite3.h>

#define LARGE (32 << 20)

static void *allocate(void *context)
{
    void **const out = context;
    *out = sqlite3_malloc(LARGE);
    assert_true(*out && tl_sql_memory_used() >= LARGE);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    sqlite3 *db;
    tl_lake_sql_count();
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    const int64_t before = tl_sql_memory_used();
    assert_true(before > 0);
    pthread_t other;
    void *large = NULL;
    assert_int_equal(pthread_create(&other, NULL, allocate, &large), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_true(sqlite3_memory_used() >= LARGE);
    assert_int_equal(tl_sql_memory_used(), before);
    char *own = sqlite3_malloc(1000);
    own = sqlite3_realloc(own, LARGE);
    assert_true(tl_sql_memory_used() - before >= LARGE);
    own = sqlite3_realloc(own, 1000);
    assert_true(tl_sql_memory_used() - before < LARGE);
    sqlite3_free(own);
    assert_int_equal(tl_sql_memory_used(), before);
    sqlite3_free(large);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
