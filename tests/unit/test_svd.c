/* SPDX-License-Identifier: MIT */
/* Names of interrupts and registers by the description of a chip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "image/svd.h"
#include "image/variables.h"
#include "image/vectors.h"

#include <string.h>

static struct tl_image *read_chip(void)
{
    struct tl_image *image;
    struct tl_buf file = {0};
    struct tl_fail fail = {0};
    assert_int_equal(
        tl_buf_read_file(&file, TL_SOURCE_DIR "/tests/fuzz/corpus/svd/chip.svd", SIZE_MAX, &fail),
        TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_true(tl_svd_is((struct tl_bytes){file.p, file.n}));
    assert_int_equal(tl_image_add_svd(image, (struct tl_bytes){file.p, file.n}, "chip.svd", &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&file);
    return image;
}

static void interrupts_by_number(void **state)
{
    struct tl_image *const image = read_chip();
    char name[48];
    assert_true(tl_image_interrupt_name(image, 16 + 37, name, sizeof name));
    assert_string_equal(name, "USART1"); /* the first of two */
    assert_true(tl_image_interrupt_name(image, 16 + 38, name, sizeof name));
    assert_string_equal(name, "USART2");
    for (unsigned n = 0; n < 1000; n++)
        assert_true(n == 53 || n == 54 || !tl_image_interrupt_name(image, n, name, sizeof name));
    assert_false(tl_image_interrupt_name(NULL, 53, name, sizeof name));
    tl_image_free(image);
}

static void registers_by_address(void **state)
{
    static const struct {
        uint64_t address;
        const char *name; /* NULL: none */
    } known[] = {{0x40011000, "USART1.SR"},
                 {0x40011004, "USART1.DR"},
                 {0x40011005, "USART1.DR+1"},
                 {0x40011006, NULL},
                 {0x4001100c, "USART1.CR1"},
                 {0x40011010, "USART1.CR2"},
                 {0x40004404, "USART2.DR"},
                 {0x40026008, "DMA.CH[A].CFG"},
                 {0x40026009, NULL},
                 {0x40026010, "DMA.CH[A].SG.PTR"},
                 {0x40026020, "DMA.CH[B].SG.PTR"},
                 {0x40026024, NULL}};
    struct tl_image *const image = read_chip();
    char text[100];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct tl_image_access access = {known[i].address, 0, 0};
        const bool named = tl_image_variable_text(image, &access, text, sizeof text);
        assert_int_equal(named, known[i].name != NULL);
        if (named)
            assert_string_equal(text, known[i].name);
    }
    struct tl_image_range range;
    assert_int_equal(tl_image_variables_named(image, "USART2.CR2", &range, 1), 1);
    assert_int_equal(range.from, 0x40004410);
    tl_image_free(image);
}

static void what_is_no_description(void **state)
{
    static const char *const texts[] = {
        "",
        "<?xml?>",
        "<?xml?><svd></svd>",
        "<device>",
        "<device></device",
        "<device></other>",
        "<device><peripherals></device></peripherals>",
        "<device><peripherals><peripheral><registers><register><dim>0xffffffff</dim><name>R%s</"
        "name>"
        "</register></registers></peripheral></peripherals></device>",
        "<device><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>"
        "</a></a></a></a></a></a></a></a></device>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tl_image *image;
        struct tl_fail fail = {0};
        const struct tl_bytes file = {(const uint8_t *)texts[i], strlen(texts[i])};
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_image_add_svd(image, file, "x", &fail), TL_BAD);
        assert_true(fail.text[0] != '\0');
        tl_image_free(image);
    }
    assert_false(tl_svd_is((struct tl_bytes){(const uint8_t *)"\177ELF<device", 11}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupts_by_number),
        cmocka_unit_test(registers_by_address),
        cmocka_unit_test(what_is_no_description),
    };
    return cmocka_run_group_tests_name("svd", tests, NULL, NULL);
}
