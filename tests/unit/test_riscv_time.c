/* SPDX-License-Identifier: MIT */
/* Wraps and restarts of RISC-V timestamps. */
#include "riscv/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void narrow_counters_wrap(void **state)
{
    assert_int_equal(tl_riscv_unwrap(0, 5, 8), 5);
    assert_int_equal(tl_riscv_unwrap(250, 5, 8), 261);
    assert_int_equal(tl_riscv_unwrap(100, 90, 8), 346);
    assert_int_equal(tl_riscv_unwrap(261, 4, 8), 516);
    assert_int_equal(tl_riscv_unwrap(5000, 100, 64), 100);
}

static void wide_counters_begin_again(void **state)
{
    const uint64_t wrap = UINT64_C(1) << 40;
    assert_int_equal(tl_riscv_unwrap(200000, 1000, 40), 1000);
    assert_int_equal(tl_riscv_unwrap(wrap - 10, 10, 40), wrap + 10);
    assert_int_equal(tl_riscv_unwrap(wrap + 200000, 1000, 40), wrap + 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_counters_wrap),
        cmocka_unit_test(wide_counters_begin_again),
    };
    return cmocka_run_group_tests_name("riscv_time", tests, NULL, NULL);
}
