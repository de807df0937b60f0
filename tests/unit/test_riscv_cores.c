/* SPDX-License-Identifier: MIT */
/* RISC-V cores by name, and what the program's file says of the core it was built for. */
#include "image/image.h"
#include "setup/riscv_cores.h"
#include "sim/small_elf.h"
#include "unit/nexus_bytes.h"

#include <stdio.h>

/* nop; jr a0; nop; nop */
static const uint8_t program[] = {0x01, 0x00, 0x02, 0x85, 0x01, 0x00, 0x01, 0x00};
#define PROGRAM ((struct tl_bytes){program, sizeof program})

/* A start, a jump to the halfword behind it, and the end, of source `src`. */
static void hart(struct trace *t, unsigned src_bits, unsigned src, uint64_t at)
{
    const unsigned n = 6 + src_bits;
    message(t, 4, F(9 | src << 6, n), F(5, 4), V(0), V(at >> 1));
    message(t, 5, F(28 | src << 6, n), F(0, 2), V(2), V(4 >> 1), V(1));
    message(t, 5, F(33 | src << 6, n), F(4, 4), F(1, 2), V(1), V(1));
}

static const char high[] = "O\nM -.rv64\nI ffffffff80003000 0001\nI ffffffff80003002 8502\n"
                           "I ffffffff80003004 0001\nG off\n";

/* The name gives the width of SRC and of addresses; sources of the setup need not repeat it. */
static void named(void **state)
{
    (void)state;
    struct trace t = {0};
    char both[400];
    hart(&t, 2, 1, 0xffffffff80003000 & 0xffffffffffff);
    hart(&t, 2, 2, 0xffffffff80003000 & 0xffffffffffff);
    snprintf(both, sizeof both, "%s%s", high, high);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-p550\n", PROGRAM, 0xffffffff80003000,
               false, &t, both, "");
    check_with(
        "[trace]\nformat=nexus-sifive\n[source nt.1]\ncore=SiFive-P550\n[source nt.2]\ncore=rv64\n",
        PROGRAM, 0xffffffff80003000, false, &t, both, "");
    t = (struct trace){0};
    hart(&t, 3, 5, 0xffffffff80003000 & 0xffffffffffff);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-p550x8\n", PROGRAM, 0xffffffff80003000,
               false, &t, high, "");
    t = (struct trace){0};
    hart(&t, 0, 0, 0xffffffff80003000 & 0x7fffffffff);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-u74\n", PROGRAM, 0xffffffff80003000, false,
               &t, high, "");
    t = (struct trace){0};
    hart(&t, 0, 0, 0x80003000);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-e31\n", PROGRAM, 0x80003000, false, &t,
               "O\nM -.rv32\nI 0000000080003000 0001\nI 0000000080003002 8502\n"
               "I 0000000080003004 0001\nG off\n",
               "");
}

/* What is given is not replaced by what the name stands for. */
static void given(void **state)
{
    (void)state;
    struct trace t = {0};
    hart(&t, 3, 1, 0xffffffff80003000 & 0xffffffffffff);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-p550,src_bits=3\n", PROGRAM,
               0xffffffff80003000, false, &t, high, "");
    check_with("[trace]\nformat=nexus-sifive\n[source nt.1]\ncore=sifive-p550\ntrTeSrcBits=3\n",
               PROGRAM, 0xffffffff80003000, false, &t, high, "");
    t = (struct trace){0};
    hart(&t, 0, 0, 0xffffffff80003000 & 0x7fffffffff);
    check_with("[trace]\nformat=nexus-sifive,core=sifive-p550\n[source nt.0]\naddrbits=39\n"
               "trTeInhibitSrc=1\n",
               PROGRAM, 0xffffffff80003000, false, &t, high, "");
}

static void unknown(void **state)
{
    (void)state;
    struct tl_setup setup;
    struct tl_fail fail = {.text = ""};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "ntrace,core=p500", &fail), TL_USAGE);
    assert_string_equal(fail.text,
                        "core=p500 is not known; use rv32, rv64, sifive-p550x8, sifive-p550, "
                        "sifive-x280, sifive-u54, sifive-u64, sifive-u74, sifive-u84, sifive-e31");
    assert_int_equal(tl_setup_format(&setup, "ntrace,core=rv32imc", &fail), TL_OK);
    assert_string_equal(setup.core, "rv32imc");
    tl_setup_fini(&setup);
}

/* ---- the program's file --------------------------------------------------------------------- */

/* cm.jt 3 to a nop and jr a0, 8 bytes on; at 64 the table, whose entry 3 is that */
static void make_elf(struct tl_buf *out, struct tl_bytes attributes)
{
    static uint8_t code[128];
    static const struct tl_sim_elf_symbol symbols[] = {{"start", 0x80000000, 16, 0},
                                                       {"__jvt_base$", 0x80000040, 0, STT_OBJECT}};
    for (unsigned i = 0; i < 32; i += 2)
        tl_put_le16(code + i, 0x0001);
    tl_put_le16(code, 0xa00e);
    tl_put_le16(code + 10, 0x8502);
    tl_put_le32(code + 64 + 3 * 4, 0x80000008);
    const struct tl_sim_elf elf = {.machine = EM_RISCV,
                                   .address = 0x80000000,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = 2,
                                   .attributes = attributes};
    assert_int_equal(tl_sim_elf_make(&elf, out), TL_OK);
}

static struct tl_image *image_of(struct tl_bytes attributes)
{
    struct tl_buf file = {0};
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    make_elf(&file, attributes);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){file.p, file.n}, 0, TL_SPACE_ANY, "a.elf", &fail),
        TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&file);
    return image;
}

/* Stack alignment, then the architecture; another vendor's part is in front. */
static const char zcmt[] = "A\x0b\0\0\0gnu\0\x01\x2c\x00"
                           "\x35\0\0\0riscv\0\x01\x2b\0\0\0\x04\x10\x05"
                           "rv32i2p1_m2p0_zca1p0_zcmp1p0_zcmt1";
#define ZCMT ((struct tl_bytes){(const uint8_t *)zcmt, sizeof zcmt})

static void follows(struct tl_image *image, const char *ini, const uint8_t *p, size_t n,
                    const char *text)
{
    struct tl_setup setup;
    struct tl_decode *d;
    struct said said = {0};
    struct tl_fail fail = {.text = ""};
    const struct tl_decode_sink sink = {.context = &said, .items = hear, .loss = lose};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, ini, strlen(ini), &fail), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, image, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_push(d, p, n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(tl_buf_add(&said.text, "", 1), TL_OK);
    assert_string_equal((char *)said.text.p, text);
    tl_buf_fini(&said.text);
    tl_buf_fini(&said.losses);
    tl_decode_free(d);
    tl_setup_fini(&setup);
}

/* Zcmt needs no setup: the file says that the core has it, and where its table is. */
static void attributes(void **state)
{
    (void)state;
    struct trace t = {0};
    struct tl_image *const image = image_of(ZCMT);
    assert_true(tl_image_has_zcm(image));
    sync_at(&t, 0, 0x80000000);
    message(&t, 5, F(28, 6), F(0, 2), V(3), V(0x0c >> 1), V(1));
    message(&t, 5, F(33, 6), F(4, 4), F(1, 2), V(1), V(1));
    follows(image, "[trace]\nformat=ntrace\n", t.p, t.n,
            "O\nM -.rv32\nI 0000000080000000 a00e\nI 0000000080000008 0001\n"
            "I 000000008000000a 8502\nI 000000008000000c 0001\nG off\n");
    /* start; the jump's target; the end */
    static const uint8_t packets[] = {0x05, 0x73, 0x00, 0x00, 0x00, 0x20, 0x01, 0x1a, 0x01, 0x4f};
    follows(image, "[trace]\nformat=etrace-encap\n", packets, sizeof packets,
            "M m.rv32\nI 0000000080000000 a00e\nI 0000000080000008 0001\n"
            "I 000000008000000a 8502\nI 000000008000000c 0001\nG off\n");
    tl_image_free(image);
}

/* A file that says nothing, or is damaged there, is for another core. */
static void no_attributes(void **state)
{
    (void)state;
    static const char plain[] = "A\x1b\0\0\0riscv\0\x01\x11\0\0\0\x05rv32imac_q";
    struct tl_image *image = image_of((struct tl_bytes){(const uint8_t *)plain, sizeof plain});
    assert_false(tl_image_has_zcm(image));
    tl_image_free(image);
    for (size_t n = 0; n + 1 < sizeof zcmt; n++) {
        uint8_t *const cut = malloc(n + 1);
        memcpy(cut, zcmt, n);
        image = image_of((struct tl_bytes){cut, n});
        assert_false(tl_image_has_zcm(image));
        tl_image_free(image);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),      cmocka_unit_test(given),         cmocka_unit_test(unknown),
        cmocka_unit_test(attributes), cmocka_unit_test(no_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
