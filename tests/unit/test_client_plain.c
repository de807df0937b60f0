/* SPDX-License-Identifier: MIT */
/* Characters that a terminal would interpret are printed as \xHH, and occupy the number of columns
 * that is reported. */
#include "terminal/plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, int width, const char *printed)
{
    char *got = NULL;
    size_t n = 0;
    FILE *const out = open_memstream(&got, &n);
    assert_non_null(out);
    const int took = tl_print_plain(out, text, width);
    fclose(out);
    assert_string_equal(got, printed);
    assert_int_equal(took, n);
    assert_int_equal(tl_plain_width(printed), n);
    assert_true(tl_plain_width(text) <= took);
    free(got);
    struct tl_buf appended = {0};
    assert_int_equal(tl_plain_append(&appended, text), TL_OK);
    assert_int_equal(appended.n, tl_plain_width(text)); /* and no padding */
    assert_memory_equal(appended.n ? (const void *)appended.p : "", printed, appended.n);
    tl_buf_fini(&appended);
}

static void hostile_texts(void **state)
{
    (void)state;
    expect("", 0, "");
    expect("rig", 5, "rig  ");
    expect("wide", 2, "wide");
    expect("J\xc3\xbcrgen", 0, "J\xc3\xbcrgen");
    expect("\x1b[2J", 0, "\\x1b[2J");
    expect("a\x1b]0;t\x07", 14, "a\\x1b]0;t\\x07 ");
    expect("one\r\ntwo\x7f", 0, "one\\x0d\\x0atwo\\x7f");
    expect("\xc2\x9b"
           "2J",
           0, "\\xc2\\x9b2J");
    expect("\xc2\xa0", 0, "\xc2\xa0"); /* not a control character any more */
    expect("\xc2", 0, "\xc2");
    expect("a\u202egnp", 14, "a\\xe2\\x80\\xaegnp");
    expect("\u2028\u2066", 0, "\\xe2\\x80\\xa8\\xe2\\x81\\xa6");
    expect("\u2027\u202f\u2065\u206a\u05e9", 0, "\u2027\u202f\u2065\u206a\u05e9");
    expect("\xe2\x80", 0, "\xe2\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
