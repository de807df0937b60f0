/* SPDX-License-Identifier: MIT */
/* Every record type with boundary values: encoding and decoding, truncation, sizes, listings. */
#include "test_stf_util.h"

struct golden {
    struct tl_stf_record record;
    struct tl_stf_layout layout;
    const char *hex;  /* bytes */
    const char *text; /* listing after offset and size */
};

static const uint8_t all_ones[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t one_word[8] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
static const uint8_t tilelink_a[] = {1,    0x40, 0x41, 0x42, 1,    2,    3,    4,    5,    6,
                                     7,    8,    2,    0,    0xaa, 0xbb, 0x10, 0x20, 0x30, 0x40,
                                     0x50, 0x60, 0x70, 0x80, 9,    0,    0xff, 0x01};
static const uint8_t tilelink_e[] = {5, 1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t metadata[] = {0, 0x77, 2, 0x88, 0x88, 0x88, 0x88};

static const struct golden goldens[] = {
    {{.type = TL_STF_IDENTIFIER,
      .magic = "ST"
               "F"},
     {0},
     "01 535446",
     "IDENTIFIER magic=\"STF\""},
    {{.type = TL_STF_VERSION, .version = {1, 3}},
     {0},
     "02 01000000 03000000",
     "VERSION major=1 minor=3"},
    {{.type = TL_STF_VERSION, .version = {UINT32_MAX, 0}},
     {0},
     "02 ffffffff 00000000",
     "VERSION major=4294967295 minor=0"},
    {{.type = TL_STF_COMMENT, .text = {NULL, 0}}, {0}, "03 00000000", "COMMENT len=0 text=\"\""},
    {{.type = TL_STF_COMMENT, .text = {(const uint8_t *)"a\"\\\n\xe9", 5}},
     {0},
     "03 05000000 61225c0ae9",
     "COMMENT len=5 text=\"a\\\"\\\\\\x0a\\xe9\""},
    {{.type = TL_STF_ISA, .isa = 1}, {0}, "04 0100", "ISA isa=1"},
    {{.type = TL_STF_ISA, .isa = UINT16_MAX}, {0}, "04 ffff", "ISA isa=65535"},
    {{.type = TL_STF_INST_IEM, .iem = 2}, {0}, "05 0200", "INST_IEM iem=2"},
    {{.type = TL_STF_TRACE_INFO, .info = {12, 1, 2, 3, {(const uint8_t *)"hi", 2}}},
     {0},
     "06 0c 01 02 03 0200 6869",
     "TRACE_INFO gen=12 ver=1.2.3 len=2 text=\"hi\""},
    {{.type = TL_STF_TRACE_INFO_FEATURE, .features = 0x80021},
     {0},
     "07 2100080000000000",
     "TRACE_INFO_FEATURE features=0x80021"},
    {{.type = TL_STF_TRACE_INFO_FEATURE, .features = UINT64_MAX},
     {0},
     "07 ffffffffffffffff",
     "TRACE_INFO_FEATURE features=0xffffffffffffffff"},
    {{.type = TL_STF_PROCESS_ID_EXT, .process = {1, 2, UINT32_MAX}},
     {0},
     "08 01000000 02000000 ffffffff",
     "PROCESS_ID_EXT tgid=1 tid=2 asid=4294967295"},
    {{.type = TL_STF_FORCE_PC, .pc = 0xffffffc000000001},
     {0},
     "09 01000000c0ffffff",
     "FORCE_PC pc=0xffffffc000000001"},
    {{.type = TL_STF_VLEN_CONFIG, .vlen = 64}, {0}, "0a 40000000", "VLEN_CONFIG vlen=64"},
    {{.type = TL_STF_VLEN_CONFIG, .vlen = UINT32_MAX},
     {0},
     "0a ffffffff",
     "VLEN_CONFIG vlen=4294967295"},
    {{.type = TL_STF_PROTOCOL_ID, .protocol = 1}, {0}, "0b 01", "PROTOCOL_ID protocol=1"},
    {{.type = TL_STF_CLOCK_ID, .clock = {1, {(const uint8_t *)"clk", 3}}},
     {0},
     "0c 01 0300 636c6b",
     "CLOCK_ID clock=1 len=3 name=\"clk\""},
    {{.type = TL_STF_ISA_EXTENDED, .text = {(const uint8_t *)"rv64gc", 6}},
     {0},
     "0d 06000000 727636346763",
     "ISA_EXTENDED len=6 text=\"rv64gc\""},
    {{.type = TL_STF_END_HEADER}, {0}, "13", "END_HEADER"},
    {{.type = TL_STF_INST_PC_TARGET, .target = UINT64_MAX},
     {0},
     "1f ffffffffffffffff",
     "INST_PC_TARGET target=0xffffffffffffffff"},
    {{.type = TL_STF_INST_REG, .reg = {5, 0x21, {one_word, 8}}},
     {0},
     "28 0500 21 8877665544332211",
     "INST_REG reg=5 meta=0x21 value=0x1122334455667788 ; REG_5"},
    {{.type = TL_STF_INST_REG, .reg = {32, 0x11, {one_word, 8}}},
     {0},
     "28 2000 11 8877665544332211",
     "INST_REG reg=32 meta=0x11 value=0x1122334455667788 ; PC"},
    {{.type = TL_STF_INST_REG, .reg = {31, 0x32, {all_ones, 8}}},
     {0},
     "28 1f00 32 ffffffffffffffff",
     "INST_REG reg=31 meta=0x32 value=0xffffffffffffffff ; REG_F31"},
    {{.type = TL_STF_INST_REG, .reg = {0x300, 0x34, {all_ones, 8}}},
     {0},
     "28 0003 34 ffffffffffffffff",
     "INST_REG reg=768 meta=0x34 value=0xffffffffffffffff ; REG_CSR_MSTATUS"},
    /* 1.3: a vector register of one word, without VLEN_CONFIG */
    {{.type = TL_STF_INST_REG, .reg = {1, 0x23, {one_word, 8}}},
     {0},
     "28 0100 23 8877665544332211",
     "INST_REG reg=1 meta=0x23 value=0x1122334455667788 ; REG_V1"},
    {{.type = TL_STF_INST_REG, .reg = {1, 0x23, {one_word, 8}}},
     {.vlen = 64},
     "28 0100 23 8877665544332211",
     "INST_REG reg=1 meta=0x23 value=0x1122334455667788 ; REG_V1"},
    {{.type = TL_STF_INST_REG, .reg = {1, 0x23, {all_ones, 16}}},
     {.vlen = 65},
     "28 0100 23 ffffffffffffffffffffffffffffffff",
     "INST_REG reg=1 meta=0x23 value=0xffffffffffffffff,0xffffffffffffffff ; REG_V1"},
    {{.type = TL_STF_INST_REG, .reg = {UINT16_MAX, 0xff, {all_ones, 8}}},
     {0},
     "28 ffff ff ffffffffffffffff",
     "INST_REG reg=65535 meta=0xff value=0xffffffffffffffff"},
    {{.type = TL_STF_INST_READY_REG, .ready_reg = 7}, {0}, "29 0700", "INST_READY_REG reg=7"},
    {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {0x1000, 2, 4096, {NULL, 0}}},
     {0},
     "32 0010000000000000 0200000000000000 00100000 00",
     "PAGE_TABLE_WALK va=0x1000 index=2 size=4096 n=0"},
    {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {1, UINT64_MAX, 0, {all_ones, 16}}},
     {0},
     "32 0100000000000000 ffffffffffffffff 00000000 01 ffffffffffffffffffffffffffffffff",
     "PAGE_TABLE_WALK va=0x1 index=18446744073709551615 size=0 n=1 "
     "pte=0xffffffffffffffff:0xffffffffffffffff"},
    {{.type = TL_STF_INST_MEM_ACCESS, .access = {0x80001000, 32, 0, TL_STF_READ}},
     {0},
     "3c 0010008000000000 2000 0000 01",
     "INST_MEM_ACCESS addr=0x80001000 size=32 attr=0x0 access=1"},
    {{.type = TL_STF_INST_MEM_ACCESS, .access = {UINT64_MAX, UINT16_MAX, UINT16_MAX, 255}},
     {0},
     "3c ffffffffffffffff ffff ffff ff",
     "INST_MEM_ACCESS addr=0xffffffffffffffff size=65535 attr=0xffff access=255"},
    {{.type = TL_STF_INST_MEM_CONTENT, .data = 0},
     {0},
     "3d 0000000000000000",
     "INST_MEM_CONTENT data=0x0"},
    {{.type = TL_STF_BUS_MASTER_ACCESS, .bus = {16, 8, 6, 255, 0x80000001, TL_STF_WRITE}},
     {0},
     "3e 1000000000000000 0800 06 ff 01000080 02",
     "BUS_MASTER_ACCESS addr=0x10 size=8 master=6 index=255 attr=0x80000001 access=2"},
    {{.type = TL_STF_BUS_MASTER_CONTENT, .data = UINT64_MAX},
     {0},
     "3f ffffffffffffffff",
     "BUS_MASTER_CONTENT data=0xffffffffffffffff"},
    {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {one_word, 8}}},
     {0},
     "64 00000040 01 8877665544332211",
     "EVENT event=0x4000000000000000 n=1 data=0x1122334455667788 ; MODE_CHANGE"},
    {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {one_word, 8}}},
     {.event64 = true},
     "64 0000000000000040 01 8877665544332211",
     "EVENT event=0x4000000000000000 n=1 data=0x1122334455667788 ; MODE_CHANGE"},
    {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_INTERRUPT | 7, {NULL, 0}}},
     {0},
     "64 07000080 00",
     "EVENT event=0x8000000000000007 n=0 data=- ; INT_MACHINE_TIMER"},
    {{.type = TL_STF_EVENT, .event = {UINT64_C(0xc00000003fffffff), {NULL, 0}}},
     {0},
     "64 ffffffff 00",
     "EVENT event=0xc00000003fffffff n=0 data=-"},
    {{.type = TL_STF_EVENT, .event = {UINT64_MAX, {NULL, 0}}},
     {.event64 = true},
     "64 ffffffffffffffff 00",
     "EVENT event=0xffffffffffffffff n=0 data=-"},
    {{.type = TL_STF_EVENT_PC_TARGET, .target = 0x9000},
     {0},
     "65 0090000000000000",
     "EVENT_PC_TARGET target=0x9000"},
    {{.type = TL_STF_INST_MICROOP, .microop = {255, UINT32_MAX}},
     {0},
     "e6 ff ffffffff",
     "INST_MICROOP size=255 uop=0xffffffff"},
    {{.type = TL_STF_INST_32, .opcode = UINT32_MAX},
     {0},
     "f0 ffffffff",
     "INST_32 opcode=0xffffffff"},
    {{.type = TL_STF_INST_16, .opcode = UINT16_MAX}, {0}, "f1 ffff", "INST_16 opcode=0xffff"},
    {{.type = TL_STF_TRANSACTION,
      .transaction = {1, 5, 1, 2, {metadata, sizeof metadata}, {tilelink_a, sizeof tilelink_a}}},
     {0},
     "fa 0100000000000000 0500000000000000 01 0200 0077 0288888888"
     "01 40 41 42 0102030405060708 0200 aabb 1020304050607080 0900 ff01",
     "TRANSACTION id=1 delta=5 clock=1 n=2 metadata=00770288888888 "
     "data=0140414201020304050607080200aabb10203040506070800900ff01"},
    {{.type = TL_STF_TRANSACTION,
      .transaction = {UINT64_MAX, 0, 0, 0, {NULL, 0}, {tilelink_e, sizeof tilelink_e}}},
     {.protocol = 1},
     "fa ffffffffffffffff 0000000000000000 00 0000 050102030405060708",
     "TRANSACTION id=18446744073709551615 delta=0 clock=0 n=0 metadata=- "
     "data=050102030405060708"},
    {{.type = TL_STF_TRANSACTION_DEPENDENCY, .transaction = {.id = 1, .delta = 9, .clock = 1}},
     {0},
     "fb 0100000000000000 0900000000000000 01",
     "TRANSACTION_DEPENDENCY id=1 delta=9 clock=1"},
    {{.type = TL_STF_RESERVE_END}, {0}, "ff", "RESERVE_END"},
};
#define N_GOLDENS (sizeof goldens / sizeof *goldens)

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        unsigned v;
        assert_int_equal(sscanf(hex, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        hex++;
    }
    return n;
}

static void test_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        uint8_t want[256];
        const size_t n = from_hex(goldens[i].hex, want);
        struct tl_buf out = {0};
        assert_int_equal(tl_stf_record_encode(&goldens[i].layout, &goldens[i].record, &out), TL_OK);
        assert_int_equal(out.n, n);
        assert_memory_equal(out.p, want, n);
        tl_buf_fini(&out);
    }
}

static void test_decode_and_listing(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        uint8_t raw[256];
        const size_t n = from_hex(goldens[i].hex, raw);
        struct tl_stf_record record = {.offset = 77};
        assert_int_equal(
            tl_stf_record_decode(&goldens[i].layout, (struct tl_bytes){raw, n}, &record), n);
        struct tl_buf text = {0}, again = {0};
        char want[512];
        snprintf(want, sizeof want, "77 %zu %s", n, goldens[i].text);
        assert_int_equal(tl_stf_record_text(&record, &text), TL_OK);
        assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
        assert_string_equal((const char *)text.p, want);
        assert_int_equal(tl_stf_record_encode(&goldens[i].layout, &record, &again), TL_OK);
        assert_int_equal(again.n, n);
        assert_memory_equal(again.p, raw, n);
        tl_buf_fini(&text);
        tl_buf_fini(&again);
    }
}

/* A truncated record needs more bytes, whatever follows the cut. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        uint8_t raw[256];
        const size_t n = from_hex(goldens[i].hex, raw);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *const exact = malloc(cut ? cut : 1);
            assert_non_null(exact);
            memcpy(exact, raw, cut);
            struct tl_stf_record record;
            assert_int_equal(
                tl_stf_record_decode(&goldens[i].layout, (struct tl_bytes){exact, cut}, &record),
                TL_AGAIN);
            free(exact);
        }
    }
}

static void test_all_types_have_a_golden(void **state)
{
    (void)state;
    unsigned known = 0;
    for (unsigned type = 0; type < 256; type++) {
        bool seen = false;
        for (size_t i = 0; i < N_GOLDENS; i++)
            seen |= goldens[i].record.type == type;
        assert_int_equal(seen, tl_stf_type_known((uint8_t)type));
        known += seen;
    }
    assert_int_equal(known, 30); /* all of 1.6, and RESERVE_END of 1.3 */
}

static void test_unknown_descriptors(void **state)
{
    (void)state;
    const struct tl_stf_layout layout = {0};
    for (unsigned type = 0; type < 256; type++) {
        const uint8_t byte = (uint8_t)type;
        const int size = tl_stf_record_size(&layout, (struct tl_bytes){&byte, 1});
        if (!tl_stf_type_known(byte)) {
            assert_int_equal(size, TL_BAD);
            struct tl_buf out = {0};
            assert_int_equal(
                tl_stf_record_encode(&layout, &(struct tl_stf_record){.type = byte}, &out),
                TL_USAGE);
            assert_int_equal(out.n, 0);
            tl_buf_fini(&out);
        } else {
            assert_true(size > 0 || size == TL_AGAIN);
        }
    }
}

static void test_contradictions(void **state)
{
    (void)state;
    const struct {
        const char *hex;
        int want;
        struct tl_stf_layout layout;
    } cases[] = {
        {"01 535447", TL_BAD, {0}},                     /* not STF */
        {"0a 3f000000", TL_BAD, {0}},                   /* vlen 63 */
        {"0a 00000000", TL_BAD, {0}},                   /* vlen 0 */
        {"03 ffffffff", TL_LIMIT, {0}},                 /* 4 GiB comment */
        {"0d fbffff00", TL_AGAIN, {0}},                 /* 16 MiB in total: the limit */
        {"0d fcffff00", TL_LIMIT, {0}},                 /* one more */
        {"28 0100 23", TL_LIMIT, {.vlen = UINT32_MAX}}, /* 512 MiB register */
        {"fa 0100000000000000 0500000000000000 01 0000 06", TL_BAD, {0}}, /* channel 6 */
        {"fa 0100000000000000 0500000000000000 01 0000 00", TL_BAD, {0}}, /* channel 0 */
        {"fa 0100000000000000 0500000000000000 01 0100 ff", TL_LIMIT, {0}},
        {"fa 0100000000000000 0500000000000000 01 0000 05", TL_BAD, {.protocol = 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t raw[64];
        const size_t n = from_hex(cases[i].hex, raw);
        struct tl_stf_record record;
        assert_int_equal(tl_stf_record_decode(&cases[i].layout, (struct tl_bytes){raw, n}, &record),
                         cases[i].want);
    }
}

/* The longest arrays, and one element more. */
static void test_array_limits(void **state)
{
    (void)state;
    static uint8_t zeros[65537];
    const struct tl_stf_layout layout = {0};
    struct {
        struct tl_stf_record record;
        int want;
    } cases[] = {
        {{.type = TL_STF_EVENT, .event = {0, {zeros, 255 * 8}}}, TL_OK},
        {{.type = TL_STF_EVENT, .event = {0, {zeros, 256 * 8}}}, TL_USAGE},
        {{.type = TL_STF_EVENT, .event = {0, {zeros, 7}}}, TL_USAGE},
        {{.type = TL_STF_EVENT, .event = {UINT64_C(1) << 30, {zeros, 0}}}, TL_USAGE},
        {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {.entries = {zeros, 255 * 16}}}, TL_OK},
        {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {.entries = {zeros, 256 * 16}}}, TL_USAGE},
        {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {.entries = {zeros, 8}}}, TL_USAGE},
        {{.type = TL_STF_TRACE_INFO, .info = {.text = {zeros, 65535}}}, TL_OK},
        {{.type = TL_STF_TRACE_INFO, .info = {.text = {zeros, 65536}}}, TL_USAGE},
        {{.type = TL_STF_CLOCK_ID, .clock = {1, {zeros, 65536}}}, TL_USAGE},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x21, {zeros, 16}}}, TL_USAGE},
        {{.type = TL_STF_INST_16, .opcode = 65536}, TL_USAGE},
        {{.type = TL_STF_VLEN_CONFIG, .vlen = 63}, TL_USAGE},
        {{.type = TL_STF_TRANSACTION, .transaction = {.data = {zeros, 9}}}, TL_USAGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_buf out = {0};
        assert_int_equal(tl_stf_record_encode(&layout, &cases[i].record, &out), cases[i].want);
        if (cases[i].want == TL_OK) {
            struct tl_stf_record back;
            assert_int_equal(tl_stf_record_decode(&layout, bytes_of(&out), &back), out.n);
        } else {
            assert_int_equal(out.n, 0);
        }
        tl_buf_fini(&out);
    }
}

static void test_layout_follows_the_header(void **state)
{
    (void)state;
    struct tl_stf_layout layout = {0};
    tl_stf_layout_apply(&layout, &(struct tl_stf_record){.type = TL_STF_TRACE_INFO_FEATURE,
                                                         .features = TL_STF_FEATURE_EVENT64});
    assert_true(layout.event64);
    tl_stf_layout_apply(&layout, &(struct tl_stf_record){.type = TL_STF_TRACE_INFO_FEATURE,
                                                         .features = ~TL_STF_FEATURE_EVENT64});
    assert_false(layout.event64);
    tl_stf_layout_apply(&layout, &(struct tl_stf_record){.type = TL_STF_VLEN_CONFIG, .vlen = 512});
    assert_int_equal(layout.vlen, 512);
    tl_stf_layout_apply(&layout,
                        &(struct tl_stf_record){.type = TL_STF_PROTOCOL_ID, .protocol = 3});
    assert_int_equal(layout.protocol, 3);
    tl_stf_layout_apply(&layout, &(struct tl_stf_record){.type = TL_STF_END_HEADER});
    assert_int_equal(layout.vlen, 512);
}

/* Register names are those of stf_lib. */
static void test_register_names(void **state)
{
    (void)state;
    static const struct {
        uint16_t number;
        uint8_t meta;
        const char *name;
    } names[] = {
        {0, 0x11, "REG_0"},
        {31, 0x21, "REG_31"},
        {32, 0x31, "PC"},
        {33, 0x31, "REG_33"},
        {0, 0x12, "REG_F0"},
        {31, 0x13, "REG_V31"},
        {0x000, 0x14, "REG_CSR_UNK_0"},
        {0x001, 0x14, "REG_CSR_FFLAGS"},
        {0x003, 0x14, "REG_CSR_FCSR"},
        {0x10d, 0x14, "REG_CSR_SSTATEEN1"},
        {0x151, 0x14, "REG_CSR_SIREG"},
        {0x153, 0x14, "REG_CSR_SIREG3"},
        {0x154, 0x14, "REG_CSR_SIPH"},
        {0x155, 0x14, "REG_CSR_SIREG4"},
        {0x180, 0x14, "REG_CSR_SATP"},
        {0x300, 0x14, "REG_CSR_MSTATUS"},
        {0x31e, 0x14, "REG_CSR_MSTATEEN2H"},
        {0x323, 0x14, "REG_CSR_MHPMEVENT3"},
        {0x33f, 0x14, "REG_CSR_MHPMEVENT31"},
        {0x3a0, 0x14, "REG_CSR_PMPCFG0"},
        {0x3ef, 0x14, "REG_CSR_PMPADDR63"},
        {0x647, 0x14, "REG_CSR_HVIPRIO2"},
        {0x73f, 0x14, "REG_CSR_MHPMEVENT31H"},
        {0x7b3, 0x14, "REG_CSR_DSCRATCH1"},
        {0x7c0, 0x14, "REG_CSR_NONST_7c0"},
        {0x8ff, 0x14, "REG_CSR_NONST_8ff"},
        {0x900, 0x14, "REG_CSR_UNK_900"},
        {0xb1f, 0x14, "REG_CSR_MHPMCOUNTER31"},
        {0xc9f, 0x14, "REG_CSR_HPMCOUNTER31H"},
        {0xf15, 0x14, "REG_CSR_MCONFIGPTR"},
        {0xfb0, 0x14, "REG_CSR_MTOPI"},
        {0xfff, 0x14, "REG_CSR_NONST_fff"},
        {0xffff, 0x14, "REG_CSR_UNK_ffff"},
        {5, 0x10, ""},
        {5, 0x15, ""},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[TL_STF_REG_NAME];
        assert_string_equal(tl_stf_reg_name(names[i].number, names[i].meta, out), names[i].name);
    }
    /* The table is sorted: each number with a name is found, and no name is truncated. */
    unsigned named = 0;
    for (unsigned i = 0; i <= UINT16_MAX; i++) {
        char out[TL_STF_REG_NAME];
        tl_stf_reg_name((uint16_t)i, 0x14, out);
        assert_true(strlen(out) < sizeof out - 1);
        named += !strstr(out, "_UNK_") && !strstr(out, "_NONST_");
    }
    assert_int_equal(named, 444);
}

static void test_random_bytes(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("random_bytes");
    for (int round = 0; round < 200000; round++) {
        uint8_t raw[64];
        const size_t n = 1 + rng_next(&seed) % sizeof raw;
        for (size_t i = 0; i < n; i++)
            raw[i] = (uint8_t)(rng_next(&seed) % (i % 3 ? 256 : 4));
        raw[0] = (uint8_t)rng_next(&seed);
        const struct tl_stf_layout layout = {.event64 = rng_next(&seed) & 1,
                                             .vlen = rng_next(&seed) & 1 ? 128 : 0};
        struct tl_stf_record record;
        const int size = tl_stf_record_decode(&layout, (struct tl_bytes){raw, n}, &record);
        if (size < 0)
            continue;
        assert_true((size_t)size <= n);
        struct tl_buf out = {0};
        assert_int_equal(tl_stf_record_encode(&layout, &record, &out), TL_OK);
        assert_int_equal(out.n, size);
        assert_memory_equal(out.p, raw, (size_t)size);
        tl_buf_reset(&out);
        assert_int_equal(tl_stf_record_text(&record, &out), TL_OK);
        tl_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_decode_and_listing),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_all_types_have_a_golden),
        cmocka_unit_test(test_unknown_descriptors),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_array_limits),
        cmocka_unit_test(test_layout_follows_the_header),
        cmocka_unit_test(test_register_names),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
