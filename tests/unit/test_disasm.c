/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "disasm/disasm.h"

static const struct {
    enum tl_isa isa;
    uint64_t pc;
    uint8_t code[4];
    int size;
    const char *text;
} known[] = {
    {TL_ISA_A64, 0x1000, {0xc0, 0x03, 0x5f, 0xd6}, 4, "ret"},
    {TL_ISA_A64, 0x1000, {0x1f, 0x20, 0x03, 0xd5}, 4, "nop"},
    {TL_ISA_A64, 0x400040, {0x58, 0x04, 0x00, 0x94}, 4, "bl 0x4011a0"},
    {TL_ISA_A64, 0x1208, {0x46, 0xff, 0xff, 0xb5}, 4, "cbnz x6, 0x11f0"},
    {TL_ISA_A64, 0x11e0, {0x6c, 0x00, 0x20, 0x37}, 4, "tbnz w12, #0x4, 0x11ec"},
    {TL_ISA_T32, 0x1000, {0x70, 0x47}, 2, "bx lr"},
    {TL_ISA_T32, 0x4f9a04, {0x51, 0xd0}, 2, "beq 0x4f9aaa"},
    {TL_ISA_T32, 0x4f9a18, {0x00, 0xf0, 0xf2, 0xf9}, 4, "bl 0x4f9e00"},
    {TL_ISA_A32, 0x1000, {0x1e, 0xff, 0x2f, 0xe1}, 4, "bx lr"},
    {TL_ISA_RV64, 0x1000, {0x82, 0x80}, 2, "ret"},
    {TL_ISA_RV64, 0x1000, {0x63, 0x04, 0xb5, 0x00}, 4, "beq a0, a1, 0x1008"},
    {TL_ISA_RV64, 0x1000, {0xef, 0x00, 0x00, 0x01}, 4, "jal 0x1010"},
    {TL_ISA_X64, 0x1000, {0x74, 0x02}, 2, "je 0x1004"},
    {TL_ISA_RV64, 0x1000, {0x13, 0x05, 0x05, 0x00}, 4, "mv a0, a0"},
};

static void known_instructions(void **state)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct tl_disasm *d;
        struct tl_fail fail;
        const int rc = tl_disasm_new(&d, known[i].isa, &fail);
        if (rc == TL_UNSUPPORTED) {
            print_message("skipped: %s\n", fail.text);
            skip();
        }
        assert_int_equal(rc, TL_OK);
        char text[80];
        const struct tl_bytes code = {known[i].code, (size_t)known[i].size};
        assert_int_equal(tl_disasm_text(d, known[i].pc, code, text, sizeof text), known[i].size);
        assert_string_equal(text, known[i].text);
        tl_disasm_free(d);
    }
}

static void what_is_no_instruction(void **state)
{
    struct tl_disasm *d;
    struct tl_fail fail;
    if (tl_disasm_new(&d, TL_ISA_A64, &fail) < 0) {
        print_message("skipped: %s\n", fail.text);
        skip();
    }
    char text[80];
    const struct tl_bytes code = {(const uint8_t *)"\0\0\0\0", 4};
    (void)!tl_disasm_text(d, 0, code, text, sizeof text);
    const struct tl_bytes none = {(const uint8_t *)"", 0};
    assert_int_equal(tl_disasm_text(d, 0, none, text, sizeof text), TL_BAD);
    tl_disasm_free(d);
    assert_int_equal(tl_disasm_new(&d, TL_ISA_NONE, &fail), TL_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instructions),
        cmocka_unit_test(what_is_no_instruction),
    };
    return cmocka_run_group_tests_name("disasm", tests, NULL, NULL);
}
