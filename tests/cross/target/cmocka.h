/* SPDX-License-Identifier: MIT */
/* The part of cmocka that the decoders' tests use, for machines that are only emulated: Debian has
 * a cross compiler for them, but no library. The first failure ends the program. */
#ifndef TL_CROSS_CMOCKA_H
#define TL_CROSS_CMOCKA_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(f)                                                                        \
    {                                                                                              \
#f, f                                                                                      \
    }
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    run_group(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
    cmocka_run_group_tests(tests, setup, teardown)

#define print_message(...) printf(__VA_ARGS__)
#define skip()             return
#define fail()             fail_msg("failed")
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)

#define assert_true(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("%s", #condition);                                                            \
    } while (0)
#define assert_false(condition)    assert_true(!(condition))
#define assert_non_null(p)         assert_true((p) != NULL)
#define assert_null(p)             assert_true((p) == NULL)
#define assert_ptr_equal(a, b)     assert_true((const void *)(a) == (const void *)(b))
#define assert_ptr_not_equal(a, b) assert_true((const void *)(a) != (const void *)(b))
#define assert_int_equal(a, b)                                                                     \
    do {                                                                                           \
        const uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b);                                     \
        if (a_ != b_)                                                                              \
            fail_msg("%s is %#" PRIx64 ", %s is %#" PRIx64, #a, a_, #b, b_);                       \
    } while (0)
#define assert_int_not_equal(a, b)    assert_true((uint64_t)(a) != (uint64_t)(b))
#define assert_memory_equal(a, b, n)  assert_true(memcmp(a, b, n) == 0)
#define assert_string_not_equal(a, b) assert_true(strcmp(a, b) != 0)
#define assert_string_equal(a, b)                                                                  \
    do {                                                                                           \
        const char *const a_ = (a), *const b_ = (b);                                               \
        if (strcmp(a_, b_) != 0)                                                                   \
            fail_msg("\"%s\" is not \"%s\"", a_, b_);                                              \
    } while (0)

static inline int run_group(const struct CMUnitTest *tests, size_t n, int (*setup)(void **state),
                            int (*teardown)(void **state))
{
    void *state = NULL;

    if (setup != NULL && setup(&state) != 0)
        fail_msg("setup failed");
    for (size_t i = 0; i < n; i++) {
        tests[i].run(&state);
        printf("ok %s\n", tests[i].name);
    }
    return teardown != NULL ? teardown(&state) : 0;
}

#endif
