/* SPDX-License-Identifier: MIT */
/*
 * Packets of ETMv3 and PTM one by one, and what they mean: bytes written by hand from the
 * standards, over a page of instructions. Cases in which other decoders go wrong are among them.
 */
#include "decode/decode.h"
#include "unit/etm3_world.h"

#include <stdlib.h>

enum { PAGE = 0x10000 };

/* An A-sync, and an I-sync: trace on at 0x1000, Thumb. */
#define A "\0\0\0\0\0\x80"
#define I "\x08\x21\x01\x10\0\0"
/* The same at 0x2000, where LDR, STRB and LDM of two registers are. */
#define L "\x08\x21\x01\x20\0\0"
/* The same at 0x2100, where BNE 0x2110 is behind a NOP. */
#define B "\x08\x21\x01\x21\0\0"
/* An access to memory, as a line. */
#define ACCESS(address, size, type, value)                                                         \
    "A INST_MEM_ACCESS addr=0x" address " size=" size " attr=0x0 access=" type                     \
    "; A INST_MEM_CONTENT data=0x" value

struct kind {
    const char *format, *core, *registers;
};

static const struct kind etm35 = {"etm3", "Cortex-A7", "ETMIDR=0x410CF250\nETMCCER=0x344008F2\n"};
static const struct kind m4 = {"etm3", "Cortex-M4", "ETMIDR=0x4114F250\nETMCCER=0x18541800\n"};
static const struct kind data = {"etm3", "Cortex-A7",
                                 "ETMIDR=0x410CF250\nETMCCER=0x344008F2\nETMCR=0xC\n"};
static const struct kind data_m4 = {"etm3", "Cortex-M4",
                                    "ETMIDR=0x4114F250\nETMCCER=0x18541800\nETMCR=0xC\n"};
static const struct kind data_values = {"etm3", "Cortex-A7", "ETMIDR=0x410CF250\nETMCR=0x4\n"};
static const struct kind data_addresses = {"etm3", "Cortex-A7", "ETMIDR=0x410CF250\nETMCR=0x8\n"};
static const struct kind cycles = {"etm3", "Cortex-A7", "ETMIDR=0x410CF250\nETMCR=0x1000\n"};
static const struct kind ptm11 = {"ptm", "Cortex-A15", "ETMIDR=0x411CF312\nETMCCER=0x34C01AC2\n"};
static const struct kind ptm_cycles = {"ptm", "Cortex-A15",
                                       "ETMIDR=0x411CF312\nETMCCER=0x34C01AC2\nETMCR=0x1000\n"};

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    (void)stream;
    return tl_item_text(context, items, n);
}

static int hear_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    (void)stream;
    return tl_buf_printf(context, "%s\n", line);
}

static void decode(const struct kind *kind, const char *bytes, size_t n, bool packets,
                   struct tl_buf *out)
{
    /* T32 MOV r0, r0 everywhere; as A32: MOVMI... it has no effect on the flow. */
    static uint8_t page[PAGE];
    char text[256];
    struct tl_image *image;
    struct tl_setup setup;
    struct tl_decode *d;
    struct tl_fail fail = {0};
    for (size_t i = 0; i < PAGE; i += 2)
        page[i] = 0, page[i + 1] = 0x46;
    static const uint8_t accesses[] = {0x08, 0x68, 0x08, 0x70, 0x03, 0xc9};
    memcpy(page + 0x2000, accesses, sizeof accesses);
    page[0x2102] = 0x05, page[0x2103] = 0xd1; /* BNE 0x2110 */
    page[0x212a] = 0xf1, page[0x212b] = 0xe7; /* B 0x2110 */
    const int length = snprintf(text, sizeof text,
                                "[trace]\nformat=%s,id=0x10\n[source cs.10]\nid=0x10\nprotocol=%s\n"
                                "core=%s\n%s",
                                kind->format, kind->format, kind->core, kind->registers);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, (size_t)length, &fail), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_bytes(image, 0, (struct tl_bytes){page, PAGE}, TL_SPACE_ANY, NULL, &fail),
        TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    const struct tl_decode_sink sink = {
        .context = out, .items = packets ? NULL : hear, .packet = packets ? hear_packet : NULL};
    assert_int_equal(tl_decode_new(&d, &setup, image, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_push(d, (const uint8_t *)bytes, n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
    tl_decode_free(d);
    tl_image_free(image);
    tl_setup_fini(&setup);
}

/* The lines of classes IXRTYGO, with the numbers of addresses shortened. */
static void shorten(const struct tl_buf *text, char *out, size_t size)
{
    char *const copy = strdup((const char *)text->p);
    size_t n = 0;
    *out = 0;
    for (char *save = NULL, *line = strtok_r(copy, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *const pc = strstr(line, "000000000000");
        if (!strchr("IXRTYGOA", *line))
            continue;
        if (*line == 'I')
            pc[16] = 0;
        if (pc)
            memmove(pc, pc + 12, strlen(pc + 12) + 1);
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "; " : "", line);
    }
    free(copy);
}

struct example {
    const struct kind *kind;
    const char *bytes;
    size_t n;
    const char *says;
};

#define BYTES(text) text, sizeof text - 1

static const struct example examples[] = {
    /* a place that the walk did not come to */
    {&etm35, BYTES(A I "\x84" A "\x08\x01\x05\x10\0\0\x84"), "O; I 1000; G no-path; I 1004"},
    /* data trace: of an instruction that is no load or store; a load, a byte, several transfers */
    {&data, BYTES(A I "\x84\x2e\x84\xa0\x01\x11\x22\x33\x44\x84"),
     "O; I 1000; A data access addr=0x5004 value=0x44332211; I 1002"},
    {&data, BYTES(A L "\x84\x2e\x84\xa0\x01\x11\x22\x33\x44\x84"),
     "O; I 2000; " ACCESS("5004", "4", "1", "44332211") "; I 2002"},
    {&data, BYTES(A L "\x88\x26\x84\xa0\x01\x7f"),
     "O; I 2000; I 2002; " ACCESS("5004", "1", "2", "7f")},
    {&data, BYTES(A L "\x8c\x22\xfc\xff\xff\xff\x1f\x2a\x00\x34\x12\x84"),
     "O; I 2000; I 2002; I 2004; " ACCESS("fffffffc", "4", "1", "0") "; " ACCESS(
         "ffffff80", "4", "1", "1234") "; I 2006"},
    /* the addresses of further transfers of one instruction are not sent */
    {&data, BYTES(A L "\x8c\x2a\x84\xa0\x01\x34\x12\x06\x56\x84"),
     "O; I 2000; I 2002; I 2004; " ACCESS("5004", "4", "1", "1234") "; " ACCESS("5008", "4", "1",
                                                                                "56") "; I 2006"},
    /* of the load or store traced last, which other instructions may follow; or precede its trace
     */
    {&data, BYTES(A L "\x94\x2a\x84\xa0\x01\x34\x12\x84"),
     "O; I 2000; I 2002; I 2004; " ACCESS("5004", "4", "1", "1234") "; I 2006; I 2008; I 200a"},
    {&data, BYTES(A L "\x94\x84\x84\x2a\x84\xa0\x01\x34\x12"),
     "O; I 2000; I 2002; I 2004; " ACCESS("5004", "4", "1", "1234") "; I 2006; I 2008; I 200a; I "
                                                                    "200c"},
    /* a value that comes later, of the load before */
    {&data, BYTES(A L "\x84\x74\x84\xa0\x01\x84\x2c\x11\x22\x33\x44\x4c\x01\0\0\0"),
     "O; I 2000; A INST_MEM_ACCESS addr=0x5004 size=4 attr=0x0 access=1; A INST_MEM_CONTENT "
     "data=0x44332211; I 2002; A data late value=0x1 pending=2"},
    /* what is not told of an access */
    {&data, BYTES(A L "\x88\x50\x62\x7a\x85\x20\x6a"),
     "O; I 2000; I 2002; A data store-failed; A data suppressed; A data not-traced addr=0x1005; "
     "A data not-traced addr=0x1009"},
    {&data_values, BYTES(A L "\x84\x0e\x11\x22\x33\x44"),
     "O; I 2000; A data read value=0x44332211"},
    {&data_addresses, BYTES(A L "\x84\x22\x84\xa0\x01\x6a\x84"),
     "O; I 2000; A data read addr=0x5004; A data not-traced addr=0x5008; I 2002"},
    /* with what was cancelled its accesses go */
    {&data_m4, BYTES(A L "\x8c\x2e\x84\xa0\x01\x11\x22\x33\x44\x81\x48\x30"),
     "O; I 2000; I 2002; X irq0 16 2004"},
    /* behind damage only a whole address is known */
    {&data, BYTES(A L "\x84\x92" A L "\x84\x26\x04\x01\x26\x84\x80\x80\x80\x02\x09"),
     "O; I 2000; G bad-packet; O; I 2000; A data read value=0x1; " ACCESS("20000004", "4", "1",
                                                                          "9")},
    /* reserved P-headers are no atoms */
    {&etm35, BYTES(A I "\x84\xc2\x84"), "O; I 1000; G bad-packet"},
    {&cycles,
     BYTES(A "\x70\x05"
             "\x21\x01\x10\0\0"
             "\x88\xa4\x84\x92\x96"),
     "Y 5; O; Y 1; I 1000; Y 1; I 1002; Y 3; I 1004; I 1006; I 1008"},
    {&ptm11, BYTES(A "\x08\x01\x10\0\0\x21\x72\x09"), "O; I 1000; I 1002; I 1004; I 1006; I 1008"},
    {&ptm_cycles,
     BYTES(A "\x08\x01\x10\0\0\x21\x04"
             "\x42\x80\x80\x80\x80\x80\x80\x80\x80\x01\x0c"),
     "Y 1; O; T 72057594037927936; Y 3"},
    /* the same behind PTM */
    {&ptm11, BYTES(A "\x08\x01\x10\0\0\x21\x72\x05\x01\0\0\0\0"), "O; I 1000; I 1002; I 1004"},
    /* a condition that failed: the instruction was executed, a branch did not branch */
    {&etm35, BYTES(A B "\xc0\xc0\x84"), "O; I 2100; I 2102; I 2104"},
    {&etm35, BYTES(A B "\xc4\xc0"), "O; I 2100; I 2102; I 2104"},
    {&etm35, BYTES(A B "\x8c"), "O; I 2100; I 2102; I 2110"},
    /* one that always branches did not: the program was another one */
    {&etm35, BYTES(A "\x08\x21\x21\x21\0\0\x94\xc0\x84"),
     "O; I 2120; I 2122; I 2124; I 2126; I 2128; I 212a; G no-path"},
    /* ThumbEE is passed over, up to the next address in another state */
    {&etm35, BYTES(A "\x08\x25\x01\x10\0\0\x84\x84" L "\x84"),
     "O; A thumbee; G no-path; G off; O; I 2000"},
    {&etm35, BYTES(A I "\x84\x91\xa0\x80\x80\x50\x40\x84\x84\x91\x80\x80\x80\x50\0\x84"),
     "O; I 1000; A thumbee; G no-path; I 0010"},
    {&ptm11, BYTES(A "\x08\x01\x10\0\0\x25\x84"), "O; A thumbee; G no-path"},
    /* bytecodes, too */
    {&etm35, BYTES(A "\x08\x31\0\x10\0\0\x84\x91\xa0\x80\x80\x10\x84"),
     "O; A jazelle; G no-path; I 1010"},
    {&etm35,
     BYTES(A "\x08\x31\0\x10\0\0\x84"
             "\x08\x21\x01\x10\0\0\x84"),
     "O; A jazelle; G no-path; G off; O; I 1000"},
};

static void examples_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *const e = &examples[i];
        struct tl_buf text = {0};
        char said[512];
        decode(e->kind, e->bytes, e->n, false, &text);
        shorten(&text, said, sizeof said);
        if (strcmp(said, e->says) != 0)
            fail_msg("example %zu: '%s', not '%s'", i, said, e->says);
        tl_buf_fini(&text);
    }
}

static void packets_are_listed(void **state)
{
    (void)state;
    struct tl_buf text = {0};
    decode(&m4, BYTES(A I "\xc8\x81\x48\xb0\x43\x76\x3c\x05\x04\x85\x01\x0c\x66\xc2"), true, &text);
    assert_string_equal(
        (const char *)text.p,
        "0 10 A_SYNC\n"
        "6 10 I_SYNC reason=trace-on addr=0x00001000 isa=thumb ns=0 hyp=0\n"
        "12 10 P_HDR atoms=EEN\n"
        "13 10 BRANCH_ADDRESS addr=0x00000400 isa=thumb ns=0 hyp=0 exc=8 cancelled=1\n"
        "17 10 EXCEPTION_EXIT\n"
        "18 10 VMID vmid=0x5\n"
        "20 10 CYCLE_COUNT cycles=133\n"
        "23 10 TRIGGER\n"
        "24 10 IGNORE\n"
        "25 10 RESERVED bytes=1\n"
        "25 10 NOTSYNC bytes=1\n");
    tl_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_are_read),
                                       cmocka_unit_test(packets_are_listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
