/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream_harness.h"

#include <time.h>

static const struct tl_source source = {.id = 1, .protocol = TL_PROTO_ITM};

#define SYNC 0, 0, 0, 0, 0, 0x80

static void assert_text(const uint8_t *p, size_t n, const char *expected)
{
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, p, n, 0, &r);
    assert_string_equal((char *)r.text.p, expected);
    free_stream(&r);
}

static void every_kind_of_packet(void **state)
{
    static const uint8_t stimulus[] = {SYNC, 0x09, 0xac, 0x0a, 0x45, 0x23, 0x0b, 1, 2, 3, 4};
    assert_text(stimulus, sizeof stimulus, "S itm 1 ac\nS itm 1 2345\nS itm 1 04030201\n");
    static const uint8_t hardware[] = {SYNC, 0x05, 0x15, 0x0e, 0x04, 0x10, 0x17, 0, 0x10, 0, 0};
    assert_text(hardware, sizeof hardware, "S dwt 0 15\nS dwt 1 1004\nS dwt 2 00001000\n");
    static const uint8_t pages[] = {SYNC, 0x28, 0x51, 1, 0x08, 0x51, 2};
    assert_text(pages, sizeof pages, "S itm 4a 01\nS itm a 02\n");
    /* Local times add up; an overflow begins the sum anew. */
    static const uint8_t local[] = {SYNC, 0x20, 0xc0, 0x82, 0xc8, 0x04, 0x70, 0x30};
    assert_text(local, sizeof local, "A time 2\nA time 74756\nG overflow\nA time 3\n");
    static const uint8_t global[] = {SYNC, 0x94, 0xd6, 0xe8, 0xc8, 0x07, 0xb4, 0x93,
                                     0x98, 0xa0, 0xa0, 0x80, 0x00, 0x94, 0x7a};
    assert_text(global, sizeof global,
                "A global-time 15873110\nA global-time 4538991448831062\n"
                "A global-time 4538991448831098\n");
}

static void a_bad_header_costs_one_sync_period(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x09, 1, 0x04, 0x09, 2, 0x09, 3, SYNC, 0x09, 4};
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, bytes, sizeof bytes, 0, &r);
    assert_string_equal((char *)r.text.p, "S itm 1 01\nG bad-packet\nS itm 1 04\n");
    assert_int_equal(r.losses, 1);
    assert_int_equal(r.lost, 5);
    free_stream(&r);
    /* Zeros that are no synchronisation packet, and one that is longer than it must be. */
    static const uint8_t zeros[] = {SYNC, 0, 0, 7, 0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 2};
    run_stream(&tl_itm_ops, &source, zeros, sizeof zeros, 0, &r);
    assert_string_equal((char *)r.text.p, "G bad-packet\nS itm 1 02\n");
    free_stream(&r);
}

static void not_synchronised_at_the_start(void **state)
{
    static const uint8_t bytes[] = {0x09, 0x55, 0, 0, SYNC, 0x09, 1};
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, bytes, sizeof bytes, 0, &r);
    assert_string_equal((char *)r.text.p, "G sync\nS itm 1 01\n");
    assert_string_equal((char *)r.packets.p, "0 01 ITM_NOTSYNC bytes=4\n4 01 ITM_ASYNC\n"
                                             "10 01 ITM_SWIT src=0x01 data=0x01\n");
    free_stream(&r);
}

static void any_bytes_any_chunking(void **state)
{
    const unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    srand(seed);
    static uint8_t bytes[3000];
    for (int round = 0; round < 300; round++) {
        const size_t n = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(rand() % 3 ? rand() : rand() % 2 ? 0 : 0x80);
        struct stream_result whole;
        struct stream_result pieces;
        run_stream(&tl_itm_ops, &source, bytes, n, 0, &whole);
        run_stream(&tl_itm_ops, &source, bytes, n, 1 + (size_t)rand() % 9, &pieces);
        assert_true(same_stream(&whole, &pieces));
        assert_true(whole.lost <= n);
        free_stream(&whole);
        free_stream(&pieces);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_packet),
        cmocka_unit_test(a_bad_header_costs_one_sync_period),
        cmocka_unit_test(not_synchronised_at_the_start),
        cmocka_unit_test(any_bytes_any_chunking),
    };
    return cmocka_run_group_tests_name("itm", tests, NULL, NULL);
}
