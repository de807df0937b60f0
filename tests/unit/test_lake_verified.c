/* SPDX-License-Identifier: MIT */
/* What is known about the frames of shards, and that it is forgotten. */
#include "lake/verified.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_frames(void **state)
{
    const uint64_t a = UINT64_C(0x1234567890abcdef), same_row = a + 1;
    struct tl_verified *const v = calloc(1, sizeof *v);
    assert_non_null(v);
    tl_verified_init(v);
    assert_int_equal(tl_verified_run(v, a, 0, 10), 0);
    tl_verified_add(v, a, 2, 3);
    assert_int_equal(tl_verified_run(v, a, 2, 10), 3);
    assert_int_equal(tl_verified_run(v, a, 2, 2), 2);
    assert_int_equal(tl_verified_run(v, a, 1, 10), 0);
    tl_verified_add(v, same_row, 0, 1); /* takes its place */
    assert_int_equal(tl_verified_run(v, a, 2, 10), 0);
    assert_int_equal(tl_verified_run(v, same_row, 0, 10), 1);
    for (int i = 0; i < 3; i++) {
        tl_verified_forget(v);
        assert_int_equal(tl_verified_run(v, same_row, 0, 10), 0);
        tl_verified_add(v, same_row, 1, 1);
        assert_int_equal(tl_verified_run(v, same_row, 1, 10), 1);
        assert_int_equal(tl_verified_run(v, same_row, 0, 10), 0);
    }
    tl_verified_fini(v);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
