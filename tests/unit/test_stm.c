/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream_harness.h"
#include "unit/seed.h"

#include <time.h>

static const struct tl_source source = {.id = 0x20, .protocol = TL_PROTO_STM};

#define ASYNC "fffffffffffffffffffff0"

/* Convert hex digits, with spaces between, to bytes, the first nibble in the low half. */
static size_t nibbles(const char *text, uint8_t *out)
{
    size_t n = 0;
    for (; *text; text++) {
        if (*text == ' ')
            continue;
        const unsigned v = (unsigned)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
        if (n % 2)
            out[n / 2] |= (uint8_t)(v << 4);
        else
            out[n / 2] = (uint8_t)v;
        n++;
    }
    return (n + 1) / 2;
}

static void assert_text(const char *stream, const char *expected)
{
    uint8_t bytes[512];
    struct stream_result r;
    run_stream(&tl_stm_ops, &source, bytes, nibbles(stream, bytes), 0, &r);
    assert_string_equal((char *)r.text.p, expected);
    free_stream(&r);
}

static void data_of_every_size(void **state)
{
    assert_text(ASYNC "f003 141 301 4ab", "S stm 41.1 ab\n");
    assert_text(ASYNC "f003 c5 4ab 51234 612345678 7123456789abcdef0",
                "S stm 0.0 05\nS stm 0.0 ab\nS stm 0.0 1234\nS stm 0.0 12345678\n"
                "S stm 0.0 123456789abcdef0\n");
    assert_text(ASYNC "f003 fd7 f8ab f91234 fa12345678 fb1111111122222222",
                "S stm 0.0 07\nA stm marker 0.0\nS stm 0.0 ab\nA stm marker 0.0\n"
                "S stm 0.0 1234\nA stm marker 0.0\nS stm 0.0 12345678\nA stm marker 0.0\n"
                "S stm 0.0 1111111122222222\nA stm marker 0.0\n");
    assert_text(ASYNC "f003 f4ab11 8ab12", "A time 1\nS stm 0.0 ab\n"
                                           "A time 2\nS stm 0.0 ab\nA stm marker 0.0\n");
}

static void masters_and_channels(void **state)
{
    assert_text(ASYNC "f003 141 f31234 4aa 356 4bb 142 4cc",
                "S stm 41.1234 aa\nS stm 41.1256 bb\nS stm 42.0 cc\n");
}

static void timestamps_replace_low_nibbles(void **state)
{
    /* 0x123, then low nibble 4, then no nibble (the same value), 14 and 16 nibbles. */
    assert_text(
        ASYNC "f003 e3123 e14 e0 ed12345678123456 ee1000000000000001",
        "A time 291\nA stm flag 0.0\nA time 292\nA stm flag 0.0\nA time 292\nA stm flag 0.0\n"
        "A time 5124095567082582\nA stm flag 0.0\n"
        "A time 1152921504606846977\nA stm flag 0.0\n");
    /* Version 4: Gray code; 0b110 is 4. */
    assert_text(ASYNC "f004 e16 f0110", "A time 4\nA stm flag 0.0\nA time 0\n");
}

static void timestamps_begin_again(void **state)
{
    assert_text(ASYNC "f003 ee0000000000100000 ee0000000000001000",
                "A time 1048576\nA stm flag 0.0\nA time-restart 1048576 4096\nA time 4096\n"
                "A stm flag 0.0\n");
}

static void the_other_packets(void **state)
{
    assert_text(ASYNC "f003 fe f0642 f0800000064 20f f20e 0",
                "A stm flag 0.0\nA stm trigger 66\nA stm frequency 100\n"
                "A stm master-error 0 15\nA stm global-error 14\n");
}

static void a_bad_header_costs_one_sync_period(void **state)
{
    /* An interrupted synchronisation. */
    assert_text(ASYNC "f003 ffff3 402 " ASYNC " f003 403", "G bad-packet\nS stm 0.0 03\n");
    assert_text("4ab 0 " ASYNC "f003 404", "G sync\nS stm 0.0 04\n");
}

static void any_bytes_any_chunking(void **state)
{
    const unsigned seed = (unsigned)test_seed();
    srand(seed);
    static uint8_t bytes[4000];
    for (unsigned round = 0; round < test_rounds(300); round++) {
        size_t n = 0;
        while (n < sizeof bytes - 64 && rand() % 50) {
            if (rand() % 4 == 0)
                n += nibbles(ASYNC "f003", bytes + n);
            for (int i = rand() % 30; i > 0; i--)
                bytes[n++] = (uint8_t)rand();
        }
        struct stream_result whole;
        struct stream_result pieces;
        run_stream(&tl_stm_ops, &source, bytes, n, 0, &whole);
        run_stream(&tl_stm_ops, &source, bytes, n, 1 + (size_t)rand() % 9, &pieces);
        assert_true(same_stream(&whole, &pieces));
        free_stream(&whole);
        free_stream(&pieces);
    }
}

static void rarer_packets(void **state)
{
    /* Version 2: timestamps are differences. */
    assert_text(ASYNC "f002 e15 e17", "A time 5\nA stm flag 0.0\nA time 12\nA stm flag 0.0\n");
    /* After a master error, the channel is no longer valid; after a global one, nor is the master.
     */
    assert_text(ASYNC "f003 141 305 201 407", "A stm master-error 41 1\nS stm 41.0 07\n");
    assert_text(ASYNC "f003 141 305 f201 407", "A stm global-error 1\nS stm 0.0 07\n");
}

/* Nibbles lost before a synchronisation: a packet extends into it, but only that packet is lost. */
static void synchronisation_amid_a_packet(void **state)
{
    assert_text(ASYNC "f003 401 6123 " ASYNC "f003 402",
                "S stm 0.0 01\nS stm 0.0 123fffff\nG bad-packet\nS stm 0.0 02\n");
    assert_text(ASYNC "f003 401 71 " ASYNC "f003 402",
                "S stm 0.0 01\nS stm 0.0 1fffffffffffffff\nG bad-packet\nS stm 0.0 02\n");
    /* Data consisting of ones is not a synchronisation. */
    assert_text(ASYNC "f003 7ffffffffffffffff fbffffffffffffffff 0 402",
                "S stm 0.0 ffffffffffffffff\nS stm 0.0 ffffffffffffffff\n"
                "A stm marker 0.0\nS stm 0.0 02\n");
}

/* Convert "(Ma:0x41; Ch:0x00) 0xffffffc0; …" to our flow text. */
static int convert_element(struct tl_buf *out, const char *line)
{
    unsigned master, channel;
    char data[20];
    const char *const p = strstr(line, "(Ma:0x");
    if (!p || strstr(p, "Freq") ||
        sscanf(p, "(Ma:0x%x; Ch:0x%x) 0x%16[0-9a-f]", &master, &channel, data) != 3)
        return TL_OK;
    return tl_buf_printf(out, "S stm %x.%x %s\n", master, channel, data);
}

static int convert_packet(struct tl_buf *out, const char *line)
{
    char name[32];
    const char *const p = strstr(line, "];\t");
    if (!p || sscanf(p + 3, "%31[A-Z_0-9]", name) != 1 || !strcmp(name, "NOTSYNC"))
        return TL_OK;
    return tl_buf_printf(out, "%s\n", name);
}

static void names_only(const struct tl_buf *packets, struct tl_buf *out)
{
    unsigned long long offset;
    unsigned id;
    char name[32];
    for (const char *p = (const char *)packets->p; *p; p = strchr(p, '\n') + 1)
        if (sscanf(p, "%llu %x %31s", &offset, &id, name) == 3 && strcmp(name, "NOTSYNC"))
            assert_true(tl_buf_printf(out, "%s\n", name) >= 0);
}

/*
 * The reference stops in the middle of some captures, so ours may continue after the end of theirs.
 */
static void check_capture(const char *golden, const char *capture)
{
    char name[256];
    struct stream_result r;
    struct tl_buf theirs = {0}, ours = {0}, their_names = {0}, our_names = {0};
    snprintf(name, sizeof name, "coresight/golden/%s.decode.ppl.gz", golden);
    if (!read_golden(name, convert_element, &theirs) ||
        !run_capture(&tl_stm_ops, capture, 0x20, true, &r)) {
        print_message("skipped: %s is not here\n", golden);
        return;
    }
    filter(&r.text, "S ", &ours);
    assert_true(theirs.n > 500 && ours.n >= theirs.n);
    assert_memory_equal(ours.p, theirs.p, theirs.n);
    snprintf(name, sizeof name, "coresight/golden/%s.packets.ppl.gz", golden);
    assert_true(read_golden(name, convert_packet, &their_names));
    names_only(&r.packets, &our_names);
    assert_true(their_names.n > 100 && our_names.n >= their_names.n);
    assert_memory_equal(our_names.p, their_names.p, their_names.n);
    tl_buf_fini(&theirs);
    tl_buf_fini(&ours);
    tl_buf_fini(&their_names);
    tl_buf_fini(&our_names);
    free_stream(&r);
}

static void real_captures(void **state)
{
    check_capture("stm_only", "coresight/snapshots/stm_only/cstraceitm.bin");
    check_capture("stm_only-juno", "coresight/snapshots/stm_only-juno/cstraceitm.bin");
    check_capture("juno_r1_1.ETB_1", "coresight/snapshots/juno_r1_1/cstraceitm.bin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_of_every_size),
        cmocka_unit_test(masters_and_channels),
        cmocka_unit_test(timestamps_replace_low_nibbles),
        cmocka_unit_test(timestamps_begin_again),
        cmocka_unit_test(the_other_packets),
        cmocka_unit_test(a_bad_header_costs_one_sync_period),
        cmocka_unit_test(any_bytes_any_chunking),
        cmocka_unit_test(rarer_packets),
        cmocka_unit_test(synchronisation_amid_a_packet),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests_name("stm", tests, NULL, NULL);
}
