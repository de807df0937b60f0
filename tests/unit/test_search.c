/* SPDX-License-Identifier: MIT */
/* Binary search, compared with a look at one element after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/search.h"

#include <string.h>

struct element {
    char name[5]; /* the key is not the first member */
    uint64_t key;
    uint32_t other;
};

static size_t count(const struct element *v, size_t n, uint64_t key, bool with_key)
{
    size_t i = 0;
    while (i < n && (v[i].key < key || (with_key && v[i].key == key)))
        i++;
    return i;
}

static void check_all(const struct element *v, size_t n, uint64_t key)
{
    assert_int_equal(tl_count_below(TL_KEYS(v, key), n, key), count(v, n, key, false));
    assert_int_equal(tl_count_upto(TL_KEYS(v, key), n, key), count(v, n, key, true));
}

static void numbers_up_to_the_largest(void **state)
{
    static const uint64_t keys[] = {0, 0, 3, 4, 4, 4, 9, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX};
    struct element v[sizeof keys / sizeof *keys];
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        v[i] = (struct element){.key = keys[i]};
    for (size_t n = 0; n <= sizeof keys / sizeof *keys; n++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            check_all(v, n, keys[i]);
            check_all(v, n, keys[i] + 1);
            check_all(v, n, keys[i] - 1);
            assert_int_equal(tl_count_upto(keys, sizeof *keys, 0, n, keys[i]),
                             count(v, n, keys[i], true));
        }
}

static void arrays_of_any_length(void **state)
{
    struct element v[200];
    uint64_t random = 1;
    (void)state;
    for (size_t n = 0; n <= 200; n++) {
        for (size_t i = 0; i < n; i++)
            v[i] = (struct element){.key = (i ? v[i - 1].key : 0) + tl_random64(&random) % 3};
        for (uint64_t key = 0; key < 20; key++)
            check_all(v, n, n ? v[tl_random64(&random) % n].key + key - 10 : key);
    }
}

static bool name_is_before(const void *element, const void *name)
{
    return strcmp(((const struct element *)element)->name, name) < 0;
}

static void other_keys(void **state)
{
    static const struct element v[] = {{.name = "a"}, {.name = "b"}, {.name = "b"}, {.name = "d"}};
    (void)state;
    assert_int_equal(tl_count_before(v, sizeof *v, 4, name_is_before, ""), 0);
    assert_int_equal(tl_count_before(v, sizeof *v, 4, name_is_before, "b"), 1);
    assert_int_equal(tl_count_before(v, sizeof *v, 4, name_is_before, "c"), 3);
    assert_int_equal(tl_count_before(v, sizeof *v, 4, name_is_before, "e"), 4);
}

static void no_array(void **state)
{
    const struct element *const v = NULL;
    (void)state;
    assert_int_equal(tl_count_below(TL_KEYS(v, key), 0, 7), 0);
    assert_int_equal(tl_count_upto(TL_KEYS(v, key), 0, UINT64_MAX), 0);
    assert_int_equal(tl_count_before(v, sizeof *v, 0, name_is_before, "a"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_up_to_the_largest),
        cmocka_unit_test(arrays_of_any_length),
        cmocka_unit_test(other_keys),
        cmocka_unit_test(no_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
