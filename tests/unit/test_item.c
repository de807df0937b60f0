/* SPDX-License-Identifier: MIT */
/* The text of each kind of item, as specified in docs/flow-text.md. */
#include "flow/item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void expect(const struct tl_item *item, const char *text)
{
    struct tl_buf out = {0};
    assert_int_equal(tl_item_text(&out, item, 1), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((const char *)out.p, text);
    tl_buf_fini(&out);
}

static void prints_instructions(void **state)
{
    static const uint8_t a64[] = {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};
    struct tl_block b = {
        .pc = 0xffff000000001000, .n = 2, .size = 8, .isa = TL_ISA_A64, .code = a64};
    struct tl_item item = {.kind = TL_ITEM_BLOCK, .n = 2, .block = &b};
    expect(&item, "I ffff000000001000 d503201f\nI ffff000000001004 d65f03c0\n");
    item.n = 1;
    expect(&item, "I ffff000000001000 d503201f\n");
    item.n = 0;
    expect(&item, "");

    static const uint8_t t32[] = {0x08, 0xbf, 0xbf, 0xf3, 0x6f, 0x8f};
    b = (struct tl_block){.pc = 0x80, .n = 2, .size = 6, .isa = TL_ISA_T32, .code = t32};
    item.n = 2;
    expect(&item, "I 0000000000000080 bf08\nI 0000000000000082 f3bf8f6f\n");

    static const uint8_t rv[] = {0x1f, 0x00, 1, 2, 3, 4, 0x82, 0x80};
    b = (struct tl_block){.pc = 0x80, .n = 2, .size = 8, .isa = TL_ISA_RV64, .code = rv};
    expect(&item, "I 0000000000000080 1f0001020304\nI 0000000000000086 8082\n");
}

static void prints_flow(void **state)
{
    expect(&(struct tl_item){.kind = TL_ITEM_UNKNOWN, .pc = 0x10}, "N 0000000000000010\n");
    expect(&(struct tl_item){.kind = TL_ITEM_BRANCH, .value = 0x20}, "B - 0000000000000020\n");
    expect(&(struct tl_item){.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_PC, .pc = 1, .value = 2},
           "B 0000000000000001 0000000000000002\n");
    expect(&(struct tl_item){.kind = TL_ITEM_EXCEPTION,
                             .flags = TL_ITEM_HAS_PC,
                             .sub = 14,
                             .pc = 0xffffffc000592b64,
                             .text = "irq"},
           "X irq 14 ffffffc000592b64\n");
    expect(&(struct tl_item){.kind = TL_ITEM_EXCEPTION, .sub = 5}, "X - 5 -\n");
    expect(&(struct tl_item){.kind = TL_ITEM_ERET}, "R\n");
    expect(&(struct tl_item){.kind = TL_ITEM_TRACE_ON}, "O\n");
}

static void prints_modes(void **state)
{
    static const struct {
        enum tl_arch arch;
        unsigned privilege;
        enum tl_security security;
        enum tl_isa isa;
        const char *text;
    } modes[] = {
        {TL_ARCH_ARM, 0, TL_SEC_NS, TL_ISA_T32, "M el0.ns.t32\n"},
        {TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64, "M el1.ns.a64\n"},
        {TL_ARCH_ARM, 3, TL_SEC_ROOT, TL_ISA_A64, "M el3.root.a64\n"},
        {TL_ARCH_ARM, 2, TL_SEC_REALM, TL_ISA_A32, "M el2.realm.a32\n"},
        {TL_ARCH_ARM, 1, TL_SEC_S, TL_ISA_A64, "M el1.s.a64\n"},
        {TL_ARCH_ARM, 15, TL_SEC_NONE, TL_ISA_A64, "M el-.a64\n"},
        {TL_ARCH_RISCV, 0, TL_SEC_NONE, TL_ISA_RV64, "M u.rv64\n"},
        {TL_ARCH_RISCV, 3, TL_SEC_NONE, TL_ISA_RV32, "M m.rv32\n"},
        {TL_ARCH_X86, 3, TL_SEC_NONE, TL_ISA_X64, "M ring3.x64\n"},
        {TL_ARCH_OR1K, 0, TL_SEC_NONE, TL_ISA_OR1K, "M or1k\n"},
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const struct tl_item item = {
            .kind = TL_ITEM_MODE,
            .value = tl_mode(modes[i].arch, modes[i].privilege, modes[i].security, modes[i].isa)};
        expect(&item, modes[i].text);
    }
}

static void prints_the_rest(void **state)
{
    static const uint8_t payload[] = {0x78, 0x56, 0x34, 0x12};
    static const uint8_t ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    expect(&(struct tl_item){.kind = TL_ITEM_CONTEXT, .flags = TL_ITEM_HAS_PC, .pc = 0x2a},
           "C 2a -\n");
    expect(&(struct tl_item){.kind = TL_ITEM_CONTEXT, .flags = TL_ITEM_HAS_VALUE, .value = 3},
           "C - 3\n");
    expect(&(struct tl_item){.kind = TL_ITEM_TIME, .value = 49369280}, "T 49369280\n");
    expect(&(struct tl_item){.kind = TL_ITEM_CYCLES, .value = 10}, "Y 10\n");
    expect(&(struct tl_item){.kind = TL_ITEM_EVENT, .value = 0xc}, "V c\n");
    expect(&(struct tl_item){.kind = TL_ITEM_SOFTWARE,
                             .name = "itm",
                             .flags = TL_ITEM_HAS_PC,
                             .pc = 1,
                             .n = 4,
                             .data = payload},
           "S itm 1 12345678\n");
    expect(&(struct tl_item){.kind = TL_ITEM_SOFTWARE, .name = "uart", .n = 0}, "S uart - -\n");
    expect(&(struct tl_item){.kind = TL_ITEM_SOFTWARE, .name = "stm", .n = 10, .data = ten},
           "S stm - 00010203040506070809\n");
    expect(&(struct tl_item){.kind = TL_ITEM_SOFTWARE,
                             .name = "stm",
                             .flags = TL_ITEM_HAS_PC,
                             .pc = 0x4100000003,
                             .n = 1,
                             .data = ten},
           "S stm 41.3 00\n");
    expect(&(struct tl_item){.kind = TL_ITEM_GAP, .sub = TL_GAP_NO_IMAGE}, "G no-image\n");
    expect(
        &(struct tl_item){
            .kind = TL_ITEM_GAP, .flags = TL_ITEM_HAS_PC, .sub = TL_GAP_NO_IMAGE, .pc = 0x20},
        "B - 0000000000000020\nG no-image\n");
    expect(
        &(struct tl_item){
            .kind = TL_ITEM_GAP, .sub = TL_GAP_NO_PATH, .flags = TL_ITEM_HAS_VALUE, .value = 4},
        "G no-path 4\n");
    expect(&(struct tl_item){.kind = TL_ITEM_GAP,
                             .sub = TL_GAP_OVERFLOW,
                             .flags = TL_ITEM_HAS_VALUE | TL_ITEM_AT_LEAST,
                             .value = 255},
           "G overflow 255+\n");
    expect(&(struct tl_item){.kind = TL_ITEM_NOTE, .text = "transaction start"},
           "A transaction start\n");
    for (int gap = 0; gap < TL_GAP_KINDS; gap++)
        assert_string_not_equal(tl_gap_name((enum tl_gap)gap), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_instructions),
        cmocka_unit_test(prints_flow),
        cmocka_unit_test(prints_modes),
        cmocka_unit_test(prints_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
