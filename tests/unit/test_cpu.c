/* SPDX-License-Identifier: MIT */
/* Levels by name: the machine's own are accepted, those of other machines and unknown names are
 * rejected. */
#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < TL_CPU_LEVELS; i++) {
        const char *const name = tl_cpu_name((enum tl_cpu)i);
        assert_int_equal(setenv("TRACELAKE_CPU", name, 1), 0);
        if (tl_cpu_has((enum tl_cpu)i))
            assert_null(tl_cpu_unknown());
        else
            assert_string_equal(tl_cpu_unknown(), name);
    }
    assert_int_equal(setenv("TRACELAKE_CPU", "mmx", 1), 0);
    assert_string_equal(tl_cpu_unknown(), "mmx");
    assert_int_equal(setenv("TRACELAKE_CPU", "", 1), 0);
    assert_null(tl_cpu_unknown());
}

static void test_levels(void **state)
{
    (void)state;
    assert_true(tl_cpu_has(TL_CPU_SCALAR));
    assert_true(tl_cpu_has(tl_cpu_supported()));
    assert_false(tl_cpu_has(TL_CPU_NEON) && tl_cpu_has(TL_CPU_SSE42)); /* no machine is both */
    assert_string_equal(tl_cpu_name(TL_CPU_LEVELS), "?");
    assert_int_equal(setenv("TRACELAKE_CPU", "scalar", 1), 0);
    assert_int_equal(tl_cpu_level(), TL_CPU_SCALAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
