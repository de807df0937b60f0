/* SPDX-License-Identifier: MIT */
/* Meaning of DWT packets: joined accesses, names by the program, handlers as frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/callstack.h"
#include "flow/hardware.h"
#include "image/vectors.h"
#include "sim/small_elf.h"
#include "stream_harness.h"

enum {
    FLASH = 0x08000000,
    WORDS = 80,
    SYSTICK = 0x08000200,
    UART1 = 0x08000210,
    OTHER = 0x08000220
};

static const struct tl_sim_elf_symbol symbols[] = {
    {"__Vectors", FLASH, 4 * WORDS, STT_OBJECT}, {"SysTick_Handler", SYSTICK | 1, 16, 0},
    {"UART1_IRQHandler", UART1 | 1, 16, 0},      {"Default_Handler", OTHER | 1, 16, 0},
    {"TIM2_IRQHandler", OTHER | 1, 16, 0},       {"buf", 0x20000100, 16, STT_OBJECT},
    {"count", 0x20000110, 4, STT_OBJECT},
};

/* A program whose IRQ37 is UART1's, and whose others share a handler. */
static struct tl_image *make_image(void)
{
    static uint8_t code[0x230];
    struct tl_buf file = {0};
    struct tl_image *image;
    for (unsigned i = 0; i < WORDS; i++)
        tl_put_le32(code + 4 * i, i == 0    ? 0x20001000
                                  : i == 15 ? SYSTICK | 1
                                  : i == 53 ? UART1 | 1
                                            : OTHER | 1);
    const struct tl_sim_elf elf = {.machine = EM_ARM,
                                   .address = FLASH,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = sizeof symbols / sizeof *symbols};
    assert_int_equal(tl_sim_elf_make(&elf, &file), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_elf(image, (struct tl_bytes){file.p, file.n}, 0, TL_SPACE_ANY,
                                      "program", NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&file);
    return image;
}

struct frames {
    struct tl_callstack *calls;
    struct tl_buf *text;
    struct tl_buf changes;
    const char *reason; /* of the last loss */
};

static int on_change(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                     uint32_t depth, uint64_t insn)
{
    struct frames *const f = context;
    assert_true(frame->insn <= insn);
    return tl_buf_printf(&f->changes, "%c%u/%u ", change == TL_FRAME_PUSH ? '+' : '-', depth,
                         frame->exception);
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct frames *const f = context;
    assert_int_equal(tl_item_text(f->text, items, n), TL_OK);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(tl_callstack_push(f->calls, &items[i], 1), TL_OK);
        f->calls->insns += items[i].kind == TL_ITEM_HARDWARE;
        struct tl_item again;
        if (items[i].kind != TL_ITEM_HARDWARE)
            continue;
        assert_true(tl_hardware_parse(items[i].text, &again));
        assert_int_equal(tl_item_head(&again), tl_item_head(&items[i]));
        assert_true(again.pc == items[i].pc && again.value == items[i].value);
    }
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)offset, (void)bytes;
    ((struct frames *)context)->reason = reason;
    return TL_OK;
}

/* Decode and compare flow text and, unless NULL, changes of the stack: +depth/exception. */
static void expect(const struct tl_source *source, const struct tl_image *image,
                   const uint8_t *bytes, size_t n, const char *text, const char *changes)
{
    struct tl_buf out = {0};
    struct tl_callstack *const calls = malloc(sizeof *calls);
    struct frames f = {.calls = calls, .text = &out};
    const struct tl_stream_sink sink = {.context = &f, .items = on_items, .loss = on_loss};
    struct tl_stream_decoder *d;
    tl_callstack_init(calls, image, 0, on_change, &f);
    assert_int_equal(tl_itm_ops.create(&d, source, image, &sink, NULL), TL_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tl_itm_ops.push(d, &(struct tl_run){bytes + i, 1, i, NULL}), TL_OK);
    assert_int_equal(tl_itm_ops.finish(d), TL_OK);
    assert_true(tl_buf_add(&out, "", 1) >= 0 && tl_buf_add(&f.changes, "", 1) >= 0);
    assert_string_equal((char *)out.p, text);
    if (changes)
        assert_string_equal((char *)f.changes.p, changes);
    tl_itm_ops.destroy(d);
    tl_buf_fini(&out);
    tl_buf_fini(&f.changes);
    free(calls);
}

static const struct tl_source plain = {.id = 1, .protocol = TL_PROTO_ITM};

static void accesses_are_joined(void **state)
{
    static const uint8_t bytes[] = {
        0x47, 0xf4, 1,    0, 8, 0x4e, 0x10, 0x01, 0x8f, 1, 2, 3, 4, /* all of comparator 0 */
        0x57, 0,    2,    0, 8, 0x85, 7,    0x9e, 2,    3,          /* two, interleaved */
        0x47, 0,    1,    0, 8, 0x47, 2,    1,    0,    8,          /* no value */
        0x01, 'x',  0x75, 1};
    expect(&plain, NULL, bytes, sizeof bytes,
           "H data write 0 xxxx0110 04030201 00000000080001f4 dwt0\n"
           "H data read 0 - 07 - dwt0\nH data write 1 - 0302 0000000008000200 dwt1\n"
           "H data access 0 - - 0000000008000100 dwt0\nH data access 0 - - 0000000008000102 dwt0\n"
           "S itm 0 78\nH match 3 dwt3\n",
           "");
}

/* The registers tell the address, or all of its bits. */
static void variables_by_their_names(void **state)
{
    struct tl_image *const image = make_image();
    struct tl_source source = plain;
    assert_int_equal(tl_source_set_reg(&source, "DWT_COMP0", 0x20000110), TL_OK);
    assert_int_equal(tl_source_set_reg(&source, "DWT_COMP1", 0x20000100), TL_OK);
    assert_int_equal(tl_source_set_reg(&source, "DWT_MASK1", 5), TL_OK);
    assert_int_equal(tl_source_set_reg(&source, "DWT_COMP2", 0x2000fff0), TL_OK);
    assert_int_equal(tl_source_set_reg(&source, "DWT_COMP3", 0x20010010), TL_OK);
    assert_int_equal(tl_source_set_reg(&source, "DWT_FUNCTION3", 7), TL_OK);
    static const uint8_t bytes[] = {0x8d, 1,    0x5e, 0x0c, 0x01, 0x95, 2, 0x95, 3, 0x5e,
                                    0x40, 0x01, 0x95, 4,    0x6e, 8,    0, 0xa5, 5};
    expect(&source, image, bytes, sizeof bytes,
           "H data write 0 20000110 01 - count\nH data read 1 2000010c 02 - buf+12\n"
           "H data read 1 - 03 - buf\nH data read 1 xxxx0140 04 - buf\n"
           "H data read 2 20010008 05 - dwt2\n",
           "");
    tl_image_free(image);
}

static void handlers_are_frames(void **state)
{
    struct tl_image *const image = make_image();
    /* SysTick, preempted by UART1; after it another one, tail-chained, without a return. */
    static const uint8_t nested[] = {0x0e, 15,   0x10, 0x0e, 53,   0x10, 0x0e, 53,
                                     0x20, 0x0e, 15,   0x30, 0x0e, 15,   0x20, 0x0e,
                                     17,   0x10, 0x0e, 17,   0x20, 0x0e, 0,    0x30};
    expect(&plain, image, nested, sizeof nested,
           "H exception enter 15 SysTick\nH exception enter 53 UART1\n"
           "H exception exit 53 UART1\nH exception return 15 SysTick\n"
           "H exception exit 15 SysTick\nH exception enter 17 irq1\n"
           "H exception exit 17 irq1\nH exception return 0 thread\n",
           "+0/0 +1/15 +2/53 -2/53 -1/15 +1/17 -1/17 ");
    /* Begun in a handler; the stack is not known behind lost trace. */
    static const uint8_t begun[] = {0x0e, 53, 0x20, 0x0e, 15, 0x30, 0x70,
                                    0x0e, 15, 0x20, 0x0e, 0,  0x30};
    expect(&plain, image, begun, sizeof begun,
           "H exception exit 53 UART1\nH exception return 15 SysTick\nG overflow\n"
           "H exception exit 15 SysTick\nH exception return 0 thread\n",
           "+0/0 +1/15 -1/15 -0/0 +0/0 ");
    assert_int_equal(tl_image_handler(image, 53), UART1);
    tl_image_free(image);
}

/* The header of a packet that cannot be is dropped; what follows it may be packets. */
static void impossible_packets(void **state)
{
    static const uint8_t bytes[] = {0x01, 'a', 0x0e, 0x09, 0x01, 0x01, 'b', 0x15, 0x09, 2};
    expect(&plain, NULL, bytes, sizeof bytes,
           "S itm 0 61\nG bad-packet\nS itm 1 01\nS itm 0 62\nG bad-packet\nS itm 1 02\n", "");
    static const uint8_t others[] = {0x15, 0xff, 0x15, 0, 0x1d, 3, 0x26, 1, 2, 0x05, 0x21};
    expect(&plain, NULL, others, sizeof others,
           "H prohibited\nH sleep\nH pmu 03\nH source 4 0201\nH counter cpi,cyc\n", "");
}

/* Deltas of a local clock that runs at half the speed, between global timestamps. */
static void one_axis(void **state)
{
    static const uint8_t bytes[] = {
        0xb4, 0x81, 0x80, 0x80, 0,    0x94, 0x80, 0x80, 0x80, 0, /* 1 << 26 */
        0x01, 'a',  0xc0, 10,                                    /* the scale is not known yet */
        0x94, 20,   0x01, 'b',  0xc0, 10,   0x70, 0x01, 'c',  0xc0,
        5,    0x94, 90,   0x01, 'd',  0xc0, 5};
    expect(&plain, NULL, bytes, sizeof bytes,
           "T 67108864\nT 67108864\nT 67108874\nS itm 0 61\nT 67108884\nT 67108904\nS itm 0 62\n"
           "G overflow\nT 67108914\nS itm 0 63\nT 67108954\nT 67108964\nS itm 0 64\n",
           "");
}

/* The reason for the last loss of what is no ITM stream. */
static const char *reason_of(const uint8_t *bytes, size_t n)
{
    struct tl_buf out = {0};
    struct tl_callstack *const calls = malloc(sizeof *calls);
    struct frames f = {.calls = calls, .text = &out};
    const struct tl_stream_sink sink = {.context = &f, .items = on_items, .loss = on_loss};
    struct tl_stream_decoder *d;
    tl_callstack_init(calls, NULL, 0, NULL, NULL);
    assert_int_equal(tl_itm_ops.create(&d, &plain, NULL, &sink, NULL), TL_OK);
    assert_int_equal(tl_itm_ops.push(d, &(struct tl_run){bytes, n, 0, NULL}), TL_OK);
    assert_int_equal(tl_itm_ops.finish(d), TL_OK);
    tl_itm_ops.destroy(d);
    tl_buf_fini(&out);
    free(calls);
    return f.reason;
}

static void framing_and_noise_are_said(void **state)
{
    static uint8_t bytes[4096];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "baud rate"));
    for (size_t i = 0; i + 20 <= sizeof bytes; i += 20)
        memcpy(bytes + i, (const uint8_t[]){0xff, 0xff, 0xff, 0x7f}, 4);
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "TPIU"));
    /* A few bad bytes are neither. */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i == 1000 ? 0x04 : i % 2 ? 0x41 : 0x01;
    bytes[1001] = 0x01;
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "reserved"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_are_joined),
        cmocka_unit_test(variables_by_their_names),
        cmocka_unit_test(handlers_are_frames),
        cmocka_unit_test(impossible_packets),
        cmocka_unit_test(one_axis),
        cmocka_unit_test(framing_and_noise_are_said),
    };
    return cmocka_run_group_tests_name("dwt", tests, NULL, NULL);
}
