/* SPDX-License-Identifier: MIT */
/*
 * Labels in their text: a key is found as a whole and nothing else of a line is, since values are
 * what people write.
 */
#include "base/labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const char text[] = "board=a\nboards=b=c\nempty=\nkeep=no\nlast=x";

static void assert_value(const char *labels, const char *key, const char *value)
{
    const char *const found = tl_label_value(labels, key);
    assert_non_null(found);
    assert_int_equal(strcspn(found, "\n"), strlen(value));
    assert_memory_equal(found, value, strlen(value));
}

static void values_are_found_by_their_whole_key(void **state)
{
    (void)state;
    assert_value(text, "board", "a");
    assert_value(text, "boards", "b=c");
    assert_value(text, "empty", "");
    assert_value(text, "last", "x");
    assert_null(tl_label_value(text, "boar"));
    assert_null(tl_label_value(text, "a"));
    assert_null(tl_label_value(text, "b"));
    assert_null(tl_label_value("key", "key"));
    assert_null(tl_label_value("", "board"));
    assert_null(tl_label_value(NULL, "board"));
}

static void labels_are_compared_whole(void **state)
{
    (void)state;
    assert_true(tl_label_is(text, "keep=no"));
    assert_true(tl_label_is(text, "keep=no\nother=1"));
    assert_true(tl_label_is(text, "last=x"));
    assert_true(tl_label_is(text, "empty="));
    assert_false(tl_label_is(text, "keep=n"));
    assert_false(tl_label_is(text, "keep=now"));
    assert_false(tl_label_is(text, "eep=no"));
    assert_false(tl_label_is(text, "boards=b"));
    assert_false(tl_label_is(NULL, "keep=no"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_by_their_whole_key),
        cmocka_unit_test(labels_are_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
