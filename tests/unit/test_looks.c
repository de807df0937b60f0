/* SPDX-License-Identifier: MIT */
/*
 * What files look like by their first bytes: one row for each kind, and every prefix of it, which
 * may tell less but nothing else.
 */
#include "import/looks.h"

#include "base/filekind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name, *magic;
    size_t n, at;
    enum tl_looks_like like;
    const char *format;
    bool may_hold_stf, is_trace; /* is_trace: its bytes may be trace as they are */
} kinds[] = {
    {"perf", "PERFILE2", 8, 0, TL_LOOKS_PERF, "perf", false, true},
    {"perf, big endian", "2ELIFREP", 8, 0, TL_LOOKS_PERF, "perf", false, true},
    {"program", "\177ELF", 4, 0, TL_LOOKS_PROGRAM, NULL, false, false},
    {"log", "core   0: 0x80000000 (0x00000297)", 33, 0, TL_LOOKS_LOG, "spike", false, true},
    {"plain STF", "\1STF", 4, 0, TL_LOOKS_STF, "stf", false, true},
    {"STF in chunks", "ZSTF", 4, 0, TL_LOOKS_STF, "stf", false, false},
    {"gzip", "\x1f\x8b\x08", 3, 0, TL_LOOKS_PACKED, NULL, true, false},
    {"zstd", "\x28\xb5\x2f\xfd", 4, 0, TL_LOOKS_PACKED, NULL, true, false},
    {"pzstd", "\x50\x2a\x4d\x18", 4, 0, TL_LOOKS_RAW, NULL, true, true},
    {"zip", "PK\3\4", 4, 0, TL_LOOKS_PACKED, NULL, false, false},
    {"tar", "ustar", 5, 257, TL_LOOKS_PACKED, NULL, false, false},
    {"nothing known", "\x03\x02", 2, 0, TL_LOOKS_RAW, NULL, false, true},
};

static void each_kind_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint8_t head[TL_FILE_KIND_BYTES] = {0};
        memcpy(head + kinds[i].at, kinds[i].magic, kinds[i].n);
        const struct tl_looks looks = tl_looks((struct tl_bytes){head, sizeof head});
        print_message("%s\n", kinds[i].name);
        assert_int_equal(looks.like, kinds[i].like);
        assert_int_equal(looks.format != NULL, kinds[i].format != NULL);
        if (looks.format)
            assert_string_equal(looks.format, kinds[i].format);
        assert_int_equal(looks.may_hold_stf, kinds[i].may_hold_stf);
        assert_int_equal(looks.no_trace == NULL, kinds[i].is_trace);
        assert_false(looks.is_text);
    }
}

static void prefixes_tell_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint8_t head[TL_FILE_KIND_BYTES] = {0};
        memcpy(head + kinds[i].at, kinds[i].magic, kinds[i].n);
        for (size_t n = 0; n < sizeof head; n++) {
            const struct tl_looks looks = tl_looks((struct tl_bytes){head, n});
            if (looks.like != TL_LOOKS_RAW && looks.like != TL_LOOKS_TEXT)
                assert_int_equal(looks.like, kinds[i].like);
        }
    }
}

static void text_is_text(void **state)
{
    static const char words[] = "the quick brown fox jumps over it";
    (void)state;
    const struct tl_looks looks = tl_looks((struct tl_bytes){(const uint8_t *)words, 32});
    assert_int_equal(looks.like, TL_LOOKS_TEXT);
    assert_true(looks.is_text);
    assert_null(looks.no_trace);
    assert_null(looks.format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_known),
        cmocka_unit_test(prefixes_tell_nothing_else),
        cmocka_unit_test(text_is_text),
    };
    return cmocka_run_group_tests_name("looks", tests, NULL, NULL);
}
