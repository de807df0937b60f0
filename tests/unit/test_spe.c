/* SPDX-License-Identifier: MIT */
/* Records of Arm SPE: each packet, padding and alignment, and bytes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf/spe.h"

#include <stdlib.h>
#include <string.h>

static struct tl_spe_record r;
static uint64_t bad;

static size_t parse_at(const void *bytes, size_t n, uint64_t at)
{
    bad = 0;
    return tl_spe_parse((struct tl_bytes){bytes, n}, at, &r, &bad);
}

#define PARSE(text) parse_at(text, sizeof text - 1, 0)

static void the_documents_example(void **state)
{
    static const char record[] = "\xb0\x40\x05\x40\0\0\0\0\x80\xb1\x80\x05\x40\0\0\0\0\x80"
                                 "\x98\x12\0\x52\x82\0\x4a\x01\x71\x08\x07\x06\x05\x04\x03\x02\x01";
    char text[TL_SPE_TEXT];
    assert_int_equal(PARSE(record), sizeof record - 1);
    assert_int_equal(r.address[TL_SPE_PC], 0x400540);
    assert_int_equal(r.address[TL_SPE_TARGET], 0x400580);
    assert_int_equal(r.time, 0x0102030405060708);
    assert_true(tl_spe_is_retired(&r) && tl_spe_is_taken(&r) && r.has_time && !r.has_context);
    assert_string_equal(tl_spe_text(&r, text), "branch conditional mispredicted cycles 18");
    /* Cut anywhere it does not end, and nothing beyond its bytes is read. */
    for (size_t n = 0; n < sizeof record - 1; n++) {
        char *const part = malloc(n ? n : 1);
        memcpy(part, record, n);
        assert_int_equal(parse_at(part, n, 0), 0);
        free(part);
    }
}

static void addresses(void **state)
{
    /* EL1, non-secure: of the kernel's half. EL0 is not; data and physical addresses differ. */
    assert_int_equal(PARSE("\xb0\0\0\0\x81\xff\xff\xff\xa0\x01"), 10);
    assert_int_equal(r.address[TL_SPE_PC], 0xffffffff81000000);
    assert_int_equal(PARSE("\xb0\0\0\0\x81\xff\xff\0\x80\x01"), 10);
    assert_int_equal(r.address[TL_SPE_PC], 0x0000ffff81000000);
    assert_int_equal(PARSE("\xb2\x10\0\0\x81\xff\xff\xff\x12\x01"), 10);
    assert_int_equal(r.address[TL_SPE_DATA], 0xffffffff81000010);
    assert_int_equal(PARSE("\xb2\x10\0\0\x81\0\0\0\x12\x01"), 10);
    assert_int_equal(r.address[TL_SPE_DATA], 0x81000010);
    assert_int_equal(PARSE("\xb3\x10\0\0\x81\0\0\0\xc5\x01"), 10);
    assert_int_equal(r.address[TL_SPE_PHYSICAL], 0x81000010);
    assert_int_equal(PARSE("\xb4\x10\0\0\x81\0\0\0\0\x01"), 10);
    assert_int_equal(r.addresses, 1 << TL_SPE_BACK);
}

static void other_packets(void **state)
{
    char text[TL_SPE_TEXT];
    assert_int_equal(PARSE("\x65\x02\0\0\0\x64\x07\0\0\0\x43\x0d\x99\x03\0\x9a\x01\0\x9f\xff\xff"
                           "\x62\x0a\0\x01\0\x49\x07\x01"),
                     29);
    assert_true(r.has_context && r.has_source);
    assert_int_equal(r.context, 2);
    assert_int_equal(r.counters, 1 << TL_SPE_ISSUE | 1 << TL_SPE_TRANSLATION);
    assert_string_equal(tl_spe_text(&r, text),
                        "store atomic l1d-refill transaction issue 3 translation 1 source 0xd");
    assert_int_equal(PARSE("\x49\x00\x42\x00\x01"), 5);
    assert_false(tl_spe_is_retired(&r));
    assert_string_equal(tl_spe_text(&r, text), "load");
    assert_int_equal(PARSE("\x4a\x0a\x42\x42\x01"), 5); /* not taken */
    assert_string_equal(tl_spe_text(&r, text), "branch indirect call not-taken");
    assert_int_equal(PARSE("\x4a\x12\x01"), 3);
    assert_true(tl_spe_is_retired(&r)); /* as nothing says that it is not */
    /* Extended headers: counters and addresses of higher numbers are of no known meaning. */
    assert_int_equal(PARSE("\x21\x98\x05\0\x20\x98\x06\0\x01"), 9);
    assert_int_equal(r.counters, 1 << TL_SPE_TOTAL);
    assert_int_equal(r.counter[TL_SPE_TOTAL], 6);
}

static void padding_and_alignment(void **state)
{
    assert_int_equal(PARSE("\0\0\0\x48\0\x01\x48"), 6);
    assert_int_equal(PARSE("\0\0\0\0"), 0);
    assert_int_equal(PARSE(""), 0);
    /* To the next multiple of 8, of 16, counted from the buffer's begin. */
    assert_int_equal(parse_at("\x22\0\xee\xee\xee\xee\xee\xee\x48\0\x01", 11, 0), 11);
    assert_int_equal(bad, 0);
    assert_int_equal(parse_at("\x23\0\xee\xee\xee\xee\x48\0\x01", 9, 10), 9);
    assert_int_equal(bad, 0);
}

static void no_packets(void **state)
{
    assert_int_equal(PARSE("\xff\x05\x48\0\x01"), 5);
    assert_int_equal(bad, 2);
    assert_true(r.has_class);
    /* Anything ends, within its bytes. */
    srand(1);
    for (unsigned i = 0; i < 20000; i++) {
        const size_t n = (size_t)rand() % 40;
        uint8_t *const bytes = malloc(n ? n : 1);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)rand();
        assert_true(parse_at(bytes, n, i) <= n);
        char text[TL_SPE_TEXT];
        assert_true(strlen(tl_spe_text(&r, text)) < TL_SPE_TEXT);
        free(bytes);
    }
}

/* The longest text is cut. */
static void a_long_text(void **state)
{
    char text[TL_SPE_TEXT];
    r = (struct tl_spe_record){.has_class = true,
                               .class = TL_SPE_MEMORY,
                               .op = 0x1e,
                               .has_events = true,
                               .events = UINT64_MAX,
                               .counters = 7,
                               .addresses = 0xff,
                               .has_source = true,
                               .source = UINT64_MAX};
    assert_int_equal(strlen(tl_spe_text(&r, text)), TL_SPE_TEXT - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documents_example),
        cmocka_unit_test(addresses),
        cmocka_unit_test(other_packets),
        cmocka_unit_test(padding_and_alignment),
        cmocka_unit_test(no_packets),
        cmocka_unit_test(a_long_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
