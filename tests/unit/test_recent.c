/* SPDX-License-Identifier: MIT */
/* The most recently used of some entries, compared with what was done to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/recent.h"

enum { N = 4 };

static void expect(const uint64_t v[N], uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t all[N] = {a, b, c, d};
    assert_memory_equal(v, all, sizeof all);
}

static uint64_t put(uint64_t v[N], uint64_t entry)
{
    uint64_t last;
    tl_recent_put(v, sizeof entry, N, &entry, &last);
    return last;
}

static void what_was_used_last_is_first(void **state)
{
    uint64_t v[N] = {0}, out;
    (void)state;
    for (uint64_t i = 1; i <= N; i++)
        assert_int_equal(put(v, i), 0);
    expect(v, 4, 3, 2, 1);
    tl_recent_use(v, sizeof *v, 3);
    expect(v, 1, 4, 3, 2);
    tl_recent_use(v, sizeof *v, 0);
    expect(v, 1, 4, 3, 2);
    assert_int_equal(put(v, 5), 2);
    expect(v, 5, 1, 4, 3);
    tl_recent_take(v, sizeof *v, N, 1, &out);
    assert_int_equal(out, 1);
    expect(v, 5, 4, 3, 0);
    tl_recent_take(v, sizeof *v, N, 3, &out);
    assert_int_equal(out, 0);
    tl_recent_take(v, sizeof *v, N, 0, &out);
    assert_int_equal(out, 5);
    assert_int_equal(put(v, 6), 0);
    expect(v, 6, 4, 3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_used_last_is_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
