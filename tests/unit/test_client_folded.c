/* SPDX-License-Identifier: MIT */
/* Folded stacks can be taken apart again, whatever the functions are called. */
#include "out/profile_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The line of one stack with these two frames. */
static void expect(const char *outer, const char *inner, const char *line)
{
    char *got = NULL;
    size_t n = 0;
    FILE *const out = open_memstream(&got, &n);
    struct tracelake_profile_node nodes[] = {{.name = outer},
                                             {.name = inner, .depth = 1, .self = 7}};
    const struct tracelake_profile_tree tree = {.nodes = nodes, .n_nodes = 2};
    assert_non_null(out);
    assert_true(tl_profile_write_stacks(TL_PROFILE_FOLDED, &tree, out));
    fclose(out);
    assert_string_equal(got, line);
    free(got);
}

static void names(void **state)
{
    expect("main", "read", "main;read 7\n");
    expect("operator new(unsigned long)", "a b", "operator new(unsigned long);a b 7\n");
    expect("a;b", "c", "a\\x3bb;c 7\n");
    expect("a:b", "c", "a:b;c 7\n");
    expect("a\nb", "c\r\td", "a\\x0ab;c\\x0d\\x09d 7\n");
    expect("a\\x3bb", "\\", "a\\\\x3bb;\\\\ 7\n");
    expect(" a", "b ", "\\x20a;b\\x20 7\n");
    expect("main", "part 12", "main;part\\x2012 7\n");
    expect("main", "part 1.5", "main;part\\x201.5 7\n");
    expect("main", "part 12b", "main;part 12b 7\n");
    expect("main", "a  12", "main;a \\x2012 7\n");
    expect("\x7f\x01", "\xc2\x85\xe2\x80\xa8\xe2\x80\xa9",
           "\\x7f\\x01;\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xa9 7\n");
    expect("na\xc3\xafve", "\xe2\x80\x94", "na\xc3\xafve;\xe2\x80\x94 7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
