/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream_harness.h"
#include "unit/seed.h"

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
    assert_text(hardware, sizeof hardware,
                "H counter cpi,sleep,fold\nH exception enter 4 MemoryManagement\n"
                "H pc 0000000000001000\n");
    static const uint8_t pages[] = {SYNC, 0x28, 0x51, 1, SYNC, 0x51, 1, 0x08, 0x51, 2};
    assert_text(pages, sizeof pages, "S itm 4a 01\nS itm 4a 01\nS itm a 02\n");
    /* Behind a loss the page is that of the begin: damage may have told it, or another one. */
    static const uint8_t lost[] = {SYNC, 0x28, 0x70, 0x51, 1, 0x28, 0x04, 0x51, 2};
    assert_text(lost, sizeof lost, "G overflow\nS itm a 01\nG bad-packet\nS itm a 02\n");
    /* Local times add up, also across an overflow. */
    static const uint8_t local[] = {SYNC, 0x20, 0xc0, 0x82, 0xc8, 0x04, 0x70, 0x30};
    assert_text(local, sizeof local, "A time 2\nA time 74756\nG overflow\nA time 74759\n");
    static const uint8_t global[] = {SYNC, 0x94, 0xd6, 0xe8, 0xc8, 0x07, 0xb4, 0x93,
                                     0x98, 0xa0, 0xa0, 0x80, 0x00, 0x94, 0x7a};
    assert_text(global, sizeof global,
                "T 4538991448831062\nA global-time-low 15873110\nT 4538991448831098\n");
    /* Upper bits that have changed are told with the next packet. */
    static const uint8_t wraps[] = {SYNC, 0xb4, 0x81, 0x80, 0x80, 0x00, 0x94,
                                    0x85, 0x80, 0x80, 0x00, 0x94, 0x83, 0x80,
                                    0x80, 0x40, 0xb4, 0x82, 0x80, 0x80, 0x00};
    assert_text(wraps, sizeof wraps, "T 67108864\nT 67108869\nT 134217731\n");
}

/* A local timestamp is for the packets in front of it; those in front of an overflow may have lost
 * theirs. */
static void local_time_of_packets(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x01, 'b',  0xc0, 0xe8, 0x07, 0x01, 'o',
                                    0x05, 0x20, 0x94, 0x05, 0xc0, 0x0a, 0x01, '1',
                                    0x70, 0x01, '2',  0xd0, 0x14, 0x30};
    assert_text(
        bytes, sizeof bytes,
        "A time 1000\nS itm 0 62\nA time 1010\nS itm 0 6f\nH counter cyc\n"
        "A global-time-low 5\nS itm 0 31\nG overflow\nA time 1030\nS itm 0 32\nA time 1033\n");
}

/* Without timestamps packets do not wait for them, if that is known, or after a while. */
static void no_local_time(void **state)
{
    struct tl_source untimed = source;
    struct stream_result r;
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i % 2 ? 'x' : 0x01;
    for (size_t n = 0; n < sizeof bytes; n += 2) {
        run_stream(&tl_itm_ops, &source, bytes, n, 0, &r);
        assert_int_equal(r.text.n, n / 2 * strlen("S itm 0 78\n") + 1);
        free_stream(&r);
    }
    untimed.n_regs = 1;
    untimed.regs[0] = (struct tl_register){.name = "ITMTCR", .value = 1};
    run_stream(&tl_itm_ops, &untimed, bytes, sizeof bytes, 0, &r);
    assert_int_equal(r.losses, 0);
    free_stream(&r);
}

/* The prescaler divides whichever clock is selected. */
static void prescaled_local_time(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x20, 0xc0, 0x05};
    static const struct {
        uint64_t control;
        const char *text;
    } cases[] = {{0x212, "A time 32\nA time 112\n"},
                 {0x202, "A time 32\nA time 112\n"},
                 {0x302, "A time 128\nA time 448\n"},
                 {0x102, "A time 8\nA time 28\n"},
                 {0x002, "A time 2\nA time 7\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_source divided = source;
        struct stream_result r;
        divided.n_regs = 1;
        divided.regs[0] = (struct tl_register){.name = "ITMTCR", .value = cases[i].control};
        run_stream(&tl_itm_ops, &divided, bytes, sizeof bytes, 0, &r);
        assert_string_equal((char *)r.text.p, cases[i].text);
        free_stream(&r);
    }
}

/* What the setup tells of a port stands behind the payload, and a value that fits it. */
static void ports_by_rule(void **state)
{
    static const struct {
        enum tl_port_form form;
        uint8_t bytes[5];
        const char *text;
    } cases[] = {
        {TL_PORT_TEXT, {0x19, 'A'}, "S itm 3 41 text\n"},
        {TL_PORT_U32, {0x1b, 42, 0, 0, 0}, "S itm 3 0000002a u32 42\n"},
        {TL_PORT_U32, {0x19, 255}, "S itm 3 ff u32 255\n"},
        {TL_PORT_U8, {0x1a, 0xff, 0}, "S itm 3 00ff u8 255\n"},
        {TL_PORT_U8, {0x1a, 0, 1}, "S itm 3 0100 u8\n"},
        {TL_PORT_I16, {0x1a, 0xfe, 0xff}, "S itm 3 fffe i16 -2\n"},
        {TL_PORT_I16, {0x1b, 0xfe, 0xff, 0xff, 0xff}, "S itm 3 fffffffe i16 -2\n"},
        {TL_PORT_I16, {0x1b, 0xfe, 0xff, 0, 0}, "S itm 3 0000fffe i16\n"},
        {TL_PORT_I32, {0x19, 0x80}, "S itm 3 80 i32 -128\n"},
        {TL_PORT_I8, {0x19, 0x80}, "S itm 3 80 i8 -128\n"},
        {TL_PORT_FLOAT, {0x1b, 0, 0, 0xc0, 0x3f}, "S itm 3 3fc00000 float 1.5\n"},
        {TL_PORT_FLOAT, {0x1b, 0xcd, 0xcc, 0xcc, 0x3d}, "S itm 3 3dcccccd float 0.1\n"},
        {TL_PORT_FLOAT, {0x1b, 0, 0, 0x80, 0xff}, "S itm 3 ff800000 float -inf\n"},
        {TL_PORT_FLOAT, {0x1a, 0, 0}, "S itm 3 0000 float\n"},
        {TL_PORT_HEX, {0x1a, 0x34, 0x12}, "S itm 3 1234 hex 0x1234\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const uint8_t sizes[] = {0, 2, 3, 5};
        struct tl_source ruled = source;
        struct stream_result r;
        ruled.ports[3] = (uint8_t)cases[i].form;
        run_stream(&tl_itm_ops, &ruled, cases[i].bytes, sizes[cases[i].bytes[0] & 3], 0, &r);
        assert_string_equal((char *)r.text.p, cases[i].text);
        free_stream(&r);
    }
}

/* Where no local timestamp follows any more, global ones are for what stands in front of them. */
static void global_time_alone(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x01, 'a',  0xc0, 0x0a, /* local: 10 */
                                    0xb4, 0x81, 0x80, 0x80, 0x00, 0x01, 'b',  0x94,
                                    0x85, 0x80, 0x80, 0x00,                         /* 2^26 + 5 */
                                    0x01, 'c',  0x01, 'd',  0x94, 0x09, 0x01, 'e'}; /* … + 9 */
    assert_text(bytes, sizeof bytes,
                "A time 10\nS itm 0 61\nA time-restart 10 67108864\nT 67108864\n"
                "T 67108869\nS itm 0 62\nT 67108873\nS itm 0 63\nS itm 0 64\nS itm 0 65\n");
}

/* High halves of global timestamps that are neither of 48 nor of 64 bits are no times, and lose
 * nothing else. */
static void odd_global_time(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0xb4, 0x01, 0x09, 1,    0xb4, 0x81,
                                    0x80, 0x80, 0x80, 0x00, 0x09, 2};
    assert_text(bytes, sizeof bytes, "G bad-packet\nS itm 1 01\nG bad-packet\nS itm 1 02\n");
}

/* One gap, and decoding goes on right behind it. */
static void bad_bytes_are_dropped(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x09, 1, 0x04, 0x09, 2, 0x84, 0x04, 0x80, 0x09, 3};
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, bytes, sizeof bytes, 0, &r);
    assert_string_equal((char *)r.text.p,
                        "S itm 1 01\nG bad-packet\nS itm 1 02\nG bad-packet\nS itm 1 03\n");
    assert_int_equal(r.losses, 2);
    assert_int_equal(r.lost, 4);
    free_stream(&r);
    /* Zeros that are not a synchronisation packet, and one that is longer than necessary. */
    static const uint8_t zeros[] = {SYNC, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 2};
    run_stream(&tl_itm_ops, &source, zeros, sizeof zeros, 0, &r);
    assert_string_equal((char *)r.text.p, "G bad-packet\nS itm 1 01\nS itm 1 02\n");
    assert_int_equal(r.lost, 2);
    free_stream(&r);
    static const uint8_t last[] = {0x09, 1, 0x04, 0x04};
    run_stream(&tl_itm_ops, &source, last, sizeof last, 0, &r);
    assert_string_equal((char *)r.text.p, "S itm 1 01\nG bad-packet\n");
    assert_int_equal(r.lost, 2);
    free_stream(&r);
}

/* Most streams have no synchronisation packets. */
static void begins_at_the_first_byte(void **state)
{
    static const uint8_t bytes[] = {0x09, 0x55, 0, 0, SYNC, 0x09, 1};
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, bytes, sizeof bytes, 0, &r);
    assert_string_equal((char *)r.text.p, "S itm 1 55\nS itm 1 01\n");
    assert_string_equal((char *)r.packets.p, "0 01 ITM_SWIT src=0x01 data=0x55\n4 01 ITM_ASYNC\n"
                                             "10 01 ITM_SWIT src=0x01 data=0x01\n");
    free_stream(&r);
    /* … and some begin within a packet. */
    static const uint8_t within[] = {0x04, 0x09, 1};
    run_stream(&tl_itm_ops, &source, within, sizeof within, 0, &r);
    assert_string_equal((char *)r.text.p, "G sync\nS itm 1 01\n");
    free_stream(&r);
}

static void any_bytes_any_chunking(void **state)
{
    const unsigned seed = (unsigned)test_seed();
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

/* A byte lost before a synchronisation packet shortens that packet, but only that byte is lost. */
static void synchronisation_amid_a_packet(void **state)
{
    static const uint8_t bytes[] = {SYNC, 0x09, 1, 0x0b, 2, SYNC, 0x09, 3, 0x0b, SYNC, 0x09, 4};
    struct stream_result r;
    run_stream(&tl_itm_ops, &source, bytes, sizeof bytes, 0, &r);
    assert_string_equal((char *)r.text.p, "S itm 1 01\nS itm 1 00000002\nG bad-packet\nS itm 1 03\n"
                                          "S itm 1 00000000\nG bad-packet\nS itm 1 04\n");
    assert_int_equal(r.losses, 2);
    free_stream(&r);
}

/* The reference begins again at 0 after an overflow: its deltas are added up here. */
static unsigned long long reference_time;

/* Convert "ITM_SWIT (ch: 0x4a; Data: 0x2345)" to our flow text, and likewise local time. */
static int convert_element(struct tl_buf *out, const char *line)
{
    const char *p = line;
    int rc = TL_OK;
    while (rc >= 0 && (p = strstr(p, "ITM_")) != NULL) {
        unsigned channel;
        char data[20];
        unsigned long long time;
        if (sscanf(p, "ITM_SWIT (ch: 0x%x; Data: 0x%16[0-9a-f])", &channel, data) == 2)
            rc = tl_buf_printf(out, "S itm %x %s\n", channel, data);
        else if (sscanf(p, "ITM_DWT (desc: 0x%x; Data: 0x%16[0-9a-f])", &channel, data) == 2)
            rc = tl_buf_printf(out, "D %x %s\n", channel, data);
        else if (strncmp(p, "ITM_TS_LOCAL", 12) == 0 &&
                 sscanf(strstr(p, "delta:"), "delta: 0x%llx", &time) == 1)
            rc = tl_buf_printf(out, "A time %llu\n", reference_time += time);
        else if (strncmp(p, "ITM_OVERFLOW", 12) == 0)
            rc = tl_buf_printf(out, "G overflow\n");
        p += 4;
    }
    return rc;
}

/* Convert "Idx:22; ID:0; [0x70 ];	ITM_OVERFLOW: …" to name and number of bytes. */
static int convert_packet(struct tl_buf *out, const char *line)
{
    char name[32];
    const char *const p = strstr(line, "];\t");
    if (!p || sscanf(p + 3, "%31[A-Z_0-9]", name) != 1 || !strcmp(name, "ITM_NOTSYNC"))
        return TL_OK;
    return tl_buf_printf(out, "%s\n", name);
}

static void names_only(const struct tl_buf *packets, struct tl_buf *out)
{
    unsigned long long offset;
    unsigned id;
    char name[32];
    for (const char *p = (const char *)packets->p; *p; p = strchr(p, '\n') + 1)
        if (sscanf(p, "%llu %x %31s", &offset, &id, name) == 3 && strcmp(name, "ITM_NOTSYNC"))
            assert_true(tl_buf_printf(out, "%s\n", name) >= 0);
}

/* The reference decodes nothing in front of the first synchronisation packet. */
static void assert_ends_with(const struct tl_buf *ours, const struct tl_buf *theirs)
{
    assert_true(theirs->n > 1 && ours->n >= theirs->n && ours->n < theirs->n + 100);
    assert_memory_equal(ours->p + ours->n - theirs->n, theirs->p, theirs->n);
}

/* What our packets say that the reference's elements do: local times, added up, and DWT sources. */
static void from_packets(const struct tl_buf *packets, struct tl_buf *out)
{
    unsigned long long offset, time, sum = 0;
    unsigned id, which;
    char data[20];
    for (const char *p = (const char *)packets->p; *p; p = strchr(p, '\n') + 1)
        if (sscanf(p, "%llu %x ITM_TS_LOCAL ts=0x%llx", &offset, &id, &time) == 3)
            assert_true(tl_buf_printf(out, "A time %llu\n", sum += time) >= 0);
        else if (sscanf(p, "%llu %x ITM_DWT desc=0x%x data=0x%16[0-9a-f]", &offset, &id, &which,
                        data) == 4)
            assert_true(tl_buf_printf(out, "D %x %s\n", which, data) >= 0);
}

static void check_capture(const char *golden, const char *capture, uint8_t id, bool framed)
{
    static const char *const kinds[] = {"S ", "A time", "D "};
    char name[256];
    struct stream_result r;
    struct tl_buf theirs = {0}, ours = {0}, their_names = {0}, our_names = {0};
    snprintf(name, sizeof name, "coresight/golden/%s.decode.ppl.gz", golden);
    reference_time = 0;
    if (!read_golden(name, convert_element, &theirs) ||
        !run_capture(&tl_itm_ops, capture, id, framed, &r)) {
        print_message("skipped: %s is not here\n", golden);
        return;
    }
    from_packets(&r.packets, &ours);
    assert_true(tl_buf_add(&theirs, "", 1) >= 0 && tl_buf_add(&ours, "", 1) >= 0);
    /* The reference reports overflows together with what follows, and local times behind what they
     * are for. */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct tl_buf a = {0}, b = {0};
        filter(i == 0 ? &r.text : &ours, kinds[i], &a);
        filter(&theirs, kinds[i], &b);
        assert_ends_with(&a, &b);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
    snprintf(name, sizeof name, "coresight/golden/%s.packets.ppl.gz", golden);
    assert_true(read_golden(name, convert_packet, &their_names));
    names_only(&r.packets, &our_names);
    assert_true(tl_buf_add(&their_names, "", 1) >= 0 && tl_buf_add(&our_names, "", 1) >= 0);
    const char *const synchronised = strstr((char *)our_names.p, "ITM_ASYNC");
    assert_non_null(synchronised);
    assert_string_equal(synchronised, (char *)their_names.p);
    tl_buf_fini(&theirs);
    tl_buf_fini(&ours);
    tl_buf_fini(&their_names);
    tl_buf_fini(&our_names);
    free_stream(&r);
}

static void real_captures(void **state)
{
    check_capture("itm_only_raw", "coresight/snapshots/itm_only_raw/itm_testdata.bin", 0, false);
    check_capture("itm_only_csformat",
                  "coresight/snapshots/itm_only_csformat/itm_testdata_ID_0x14.bin", 0x14, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_packet),
        cmocka_unit_test(local_time_of_packets),
        cmocka_unit_test(no_local_time),
        cmocka_unit_test(prescaled_local_time),
        cmocka_unit_test(ports_by_rule),
        cmocka_unit_test(odd_global_time),
        cmocka_unit_test(global_time_alone),
        cmocka_unit_test(bad_bytes_are_dropped),
        cmocka_unit_test(begins_at_the_first_byte),
        cmocka_unit_test(any_bytes_any_chunking),
        cmocka_unit_test(synchronisation_amid_a_packet),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests_name("itm", tests, NULL, NULL);
}
