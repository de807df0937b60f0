/* SPDX-License-Identifier: MIT */
/* Bounded functions of texts say what SQLite's own say, and end where those do not. */
#include "base/now.h"
#include "sql/functions.h"
#include "sql/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static sqlite3 *open_database(bool ours)
{
    static struct tl_asking asking;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000);
    if (ours)
        assert_int_equal(tl_sql_functions_add(db, &asking), 0);
    return db;
}

/* Evaluate: the result code, and type and text of the value. */
static int value_of(sqlite3 *db, const char *expression, char out[512])
{
    sqlite3_stmt *s;
    char *const text = sqlite3_mprintf("SELECT %s AS v", expression);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &s, NULL), SQLITE_OK);
    const int r = sqlite3_step(s);
    if (r == SQLITE_ROW)
        sqlite3_snprintf(512, out, "%d %s", sqlite3_column_type(s, 0), sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    sqlite3_free(text);
    return r;
}

static void test_as_sqlite(void **state)
{
    static const char *const all[] = {
        "printf('%d|%5d|%-5d|%05d|%+d|%,d', 42, 42, 42, 42, 42, 1234567)",
        "printf('%x %X %o %u', -1, 255, 8, 7)",
        "printf('%.2f %e %g %10.3f %!g', 1.5, 1e10, 0.1, 3.14159, 0.1)",
        "printf('%s|%10s|%-10s|%.2s|%c|%3c', 'text', 'text', 'text', 'text', 'xyz', 'q')",
        "printf('%q %Q %w', 'it''s', 'it''s', 'a\"b')",
        "printf('%*d|%.*f|%-*d', 7, 1, 2, 1.23456, 5, 3)",
        "printf('%d %s %f')",
        "printf('100%%')",
        "printf('%s %s', NULL, 7)",
        "printf(NULL)",
        "printf('%Q', NULL)",
        "format('%lld %ld', 1, 2)",
        "printf('größe %5s', 'ü')",
        "printf('%d', '12abc')",
        "instr('größe', 'ö')",
        "instr('größe', 'e')",
        "instr('abc', '')",
        "instr('', 'a')",
        "instr('abc', 'x')",
        "instr(x'010203', x'03')",
        "instr(x'010203', x'09')",
        "instr(NULL, 'a')",
        "instr('a', NULL)",
        "instr(12345, 34)",
        "replace('aaaa', 'a', 'bc')",
        "replace('abc', '', 'x')",
        "replace('abcabc', 'bc', '')",
        "replace('größe', 'ß', 'ss')",
        "replace(NULL, 'a', 'b')",
        "replace('a', NULL, 'b')",
        "replace('a', 'b', NULL)",
        "replace(10203, 0, 9)",
        "replace('', 'a', 'b')",
        "trim('  a b  ') || '|'",
        "ltrim('  a b  ') || '|'",
        "rtrim('  a b  ') || '|'",
        "trim('xyaxy', 'yx')",
        "ltrim('ßßaß', 'ß')",
        "rtrim('aßöß', 'öß')",
        "trim('aaa', 'a')",
        "trim('aaa', '')",
        "trim('', 'a')",
        "trim(NULL, 'a')",
        "trim('a', NULL)",
        "trim(1211, 1)",
    };
    sqlite3 *const ours = open_database(true), *const theirs = open_database(false);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char a[512] = "", b[512] = "";
        assert_int_equal(value_of(ours, all[i], a), value_of(theirs, all[i], b));
        if (strcmp(a, b) != 0)
            fail_msg("%s: %s, not %s", all[i], a, b);
    }
    sqlite3_close(ours);
    sqlite3_close(theirs);
}

/* Each of these took seconds or minutes. */
static void test_bounded(void **state)
{
#define LONG "hex(hex(hex(hex(hex(format('%1000s', 'x'))))))"
    static const struct {
        const char *expression;
        int result;
    } all[] = {
        {"printf('%.*c', 2000000000, 'x')", SQLITE_ERROR},
        {"printf('%*d', 2000000000, 1)", SQLITE_ERROR},
        {"printf('%.2000000000f', 1.0)", SQLITE_ERROR},
        {"printf('%n', 1)", SQLITE_ERROR},
        {"rtrim(" LONG ", " LONG ")", SQLITE_ERROR},
        {"printf('%')", SQLITE_ERROR},
        {"length(replace(" LONG ", '3', hex(" LONG ")))", SQLITE_ERROR},
        {"instr(replace(" LONG ", '0', '3'), substr(replace(" LONG ", '0', '3'), 1, 16000) || 'x')",
         SQLITE_ROW},
    };
    sqlite3 *const db = open_database(true);
    const int64_t begin = tl_monotonic_ns();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char out[512];
        const int r = value_of(db, all[i].expression, out);
        if ((r & 0xff) != all[i].result && !(all[i].result == SQLITE_ERROR && r == SQLITE_TOOBIG))
            fail_msg("%s: %d %s", all[i].expression, r, sqlite3_errmsg(db));
    }
    /* Two thousand million steps take longer under any load. */
    assert_true(tl_monotonic_ns() - begin < INT64_C(5000000000));
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_sqlite),
                                       cmocka_unit_test(test_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
