/* SPDX-License-Identifier: MIT */
/* Meaning of DWT packets: joined accesses, names by the program, handlers as frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "debug/variable_types.h"
#include "flow/callstack.h"
#include "flow/hardware.h"
#include "image/variables.h"
#include "image/vectors.h"
#include "sim/small_elf.h"
#include "stream_harness.h"
#include "unit/random.h"
#include "unit/typed_elf.h"

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
    assert_int_equal(tl_itm_ops.finish(d, TL_LOSS_CUT_OFF), TL_OK);
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

/* A synchronisation packet stands in no access. */
static void synchronisation_ends_accesses(void **state)
{
    static const uint8_t bytes[] = {0x47, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0x80, 0x85, 7};
    expect(&plain, NULL, bytes, sizeof bytes,
           "H data access 0 - - 0000000008000100 dwt0\nH data read 0 - 07 - dwt0\n", "");
}

/* The bits that are sent tell an address only where the comparator's range has one that has them.
 */
static void addresses_in_wide_ranges(void **state)
{
    static const uint8_t bytes[] = {0x4e, 0x10, 0x01, 0x85, 7};
    static const struct {
        uint64_t first, mask;
        const char *text;
    } cases[] = {{0x20000000, 16, "H data read 0 20000110 07 - dwt0\n"},
                 {0x20000000, 17, "H data read 0 xxxx0110 07 - dwt0\n"},
                 {0x20000000, 31, "H data read 0 xxxx0110 07 - dwt0\n"},
                 {0x20000100, 5, "H data read 0 20000110 07 - dwt0\n"},
                 {0x20000120, 5, "H data read 0 xxxx0110 07 - dwt0\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tl_source source = {.id = 1,
                                         .protocol = TL_PROTO_ITM,
                                         .n_regs = 2,
                                         .regs = {{.name = "DWT_COMP0", .value = cases[i].first},
                                                  {.name = "DWT_MASK0", .value = cases[i].mask}}};
        expect(&source, NULL, bytes, sizeof bytes, cases[i].text, "");
    }
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

/* Behind a change of the clock's rate, told with a timestamp of which more follows, deltas are of
 * an unknown rate until the next timestamp tells it. */
static void rate_of_the_clock_changes(void **state)
{
    static const uint8_t bytes[] = {
        0xb4, 0x81, 0x80, 0x80, 0,    0x94, 0x80, 0x80, 0x80, 0,  /* 1 << 26 */
        0x01, 'a',  0xc0, 10,   0x94, 20,   0x01, 'b',  0xc0, 10, /* of two units a tick */
        0x94, 0x81, 0x80, 0x80, 0x60, 0xb4, 0x82, 0x80, 0x80, 0,
        0x01, 'c',  0xc0, 10,   0x94, 11,   0x01, 'd',  0xc0, 10}; /* of one */
    (void)state;
    expect(&plain, NULL, bytes, sizeof bytes,
           "T 67108864\nT 67108864\nT 67108874\nS itm 0 61\nT 67108884\nT 67108904\nS itm 0 62\n"
           "T 134217729\nT 134217749\nS itm 0 63\nT 134217749\nT 134217749\nS itm 0 64\n",
           "");
}

/* ---- vector tables told by the setup -------------------------------------------------------- */

/* Two tables: that of a boot loader, which the symbol names, and the application's. */
static struct tl_buf two_tables(void)
{
    enum { SECOND = 0x400 };
    static uint8_t code[0x600];
    struct tl_buf file = {0};
    for (unsigned i = 1; i < WORDS; i++) {
        tl_put_le32(code + 4 * i, OTHER | 1);
        tl_put_le32(code + SECOND + 4 * i, i == 53 ? UART1 | 1 : OTHER | 1);
    }
    const struct tl_sim_elf elf = {.machine = EM_ARM,
                                   .address = FLASH,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = sizeof symbols / sizeof *symbols};
    assert_int_equal(tl_sim_elf_make(&elf, &file), TL_OK);
    return file;
}

static int give_tables(void *context, const char *name, struct tl_bytes *bytes,
                       struct tl_fail *fail)
{
    const struct tl_buf *const file = context;
    (void)name, (void)fail;
    *bytes = (struct tl_bytes){file->p, file->n};
    return TL_OK;
}

/* The table is where VTOR says, of whichever source; where nothing is, it is the program's own. */
static void vectors_where_the_setup_says(void **state)
{
    static const struct {
        const char *registers, *text;
    } cases[] = {
        {"", "H exception enter 53 irq37\n"},
        {"VTOR=0x08000400\n", "H exception enter 53 UART1\n"},
        {"VTOR=0x08000400\n[source cs.10]\nprotocol=etm4\n", "H exception enter 53 UART1\n"},
        {"[source cs.10]\nprotocol=etm3\nVTOR=0x08000400\n", "H exception enter 53 UART1\n"},
        {"VTOR=0x20000000\n", "H exception enter 53 irq37\n"}};
    static const uint8_t bytes[] = {0x0e, 53, 0x10};
    struct tl_buf file = two_tables();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[160];
        struct tl_setup setup;
        struct tl_image *image;
        tl_setup_init(&setup);
        const int n = snprintf(text, sizeof text,
                               "[trace]\nformat=tpiu\n[source cs.01]\nprotocol=itm\n%s"
                               "[image app]\nfile=app\n",
                               cases[i].registers);
        assert_int_equal(tl_setup_parse(&setup, text, (size_t)n, NULL), TL_OK);
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_setup_load_images(&setup, image, give_tables, &file, NULL), TL_OK);
        assert_int_equal(tl_image_freeze(image), TL_OK);
        expect(&setup.sources[0], image, bytes, sizeof bytes, cases[i].text, NULL);
        tl_image_free(image);
        tl_setup_fini(&setup);
    }
    tl_buf_fini(&file);
}

/* ---- types ----------------------------------------------------------------------------------- */

static int give_typed(void *context, const char *name, struct tl_bytes *bytes, struct tl_fail *fail)
{
    (void)context, (void)name, (void)fail;
    *bytes = (struct tl_bytes){typed_elf, sizeof typed_elf};
    return TL_OK;
}

static struct tl_image *typed_image(void)
{
    struct tl_setup setup;
    struct tl_image *image;
    tl_setup_init(&setup);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_add_image_at(&setup, "typed", 0, 0, UINT64_MAX, TL_SPACE_ANY), TL_OK);
    assert_int_equal(tl_setup_load_images(&setup, image, give_typed, NULL, NULL), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_setup_fini(&setup);
    return image;
}

/* A write of a comparator that watches RAM, as address and value. */
static void put_write(struct tl_buf *out, uint16_t address, unsigned size, uint32_t value)
{
    const uint8_t where[] = {0x4e, (uint8_t)address, (uint8_t)(address >> 8)};
    const uint8_t what[] = {size == 4   ? 0x8f
                            : size == 2 ? 0x8e
                                        : 0x8d,
                            (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                            (uint8_t)(value >> 24)};
    assert_int_equal(tl_buf_add(out, where, sizeof where), TL_OK);
    assert_int_equal(tl_buf_add(out, what, 1 + size), TL_OK);
}

/* Variables are named down to the part that was accessed, with the value as the program has it. */
static void variables_have_types(void **state)
{
    static const struct {
        uint16_t address;
        unsigned size;
        uint32_t value;
        const char *text;
    } cases[] = {
        {0x14, 4, 0xfffffffe, "fffffffe - count = -2 (int32_t)"},
        {0x14, 2, 0xfffe, "fffe - count"},
        {0x16, 2, 0xffff, "ffff - count+2"},
        {0x10, 4, 0x3fc00000, "3fc00000 - speed = 1.5 (float)"},
        {0x01, 1, 1, "01 - ready = true (_Bool)"},
        {0x00, 1, 'A', "41 - letter = 'A' (char)"},
        {0x00, 1, 7, "07 - letter = 7 (char)"},
        {0x0c, 4, 1, "00000001 - state = ON (power)"},
        {0x34, 4, 7, "00000007 - grid[1][2] = 7 (int)"},
        {0x04, 4, 9, "00000009 - main.turns = 9 (unsigned int)"},
        {0x54, 4, 5, "00000005 - motors[1].mode = RUN (enum mode)"},
        {0x54, 4, 0xffffffff, "ffffffff - motors[1].mode = LOST (enum mode)"},
        {0x54, 4, 3, "00000003 - motors[1].mode = 3 (enum mode)"},
        {0x62, 2, 0xfff6, "fff6 - motors[1].at[2].y = -10 (short)"},
        {0x60, 4, 0xfff60001, "fff60001 - motors[1].at[2]"},
        {0x64, 4, 0x40000000, "40000000 - motors[1].ratio = 2 (float)"},
        {0x65, 1, 0x20, "20 - motors[1].raw[1] = 32 (uint8_t)"},
        {0x68, 4, 0x20000038, "20000038 - motors[1].next = 0x20000038 (struct motor *)"},
        {0x6c, 4, 0x41, "00000041 - motors[1]+24"},
        {0x08, 4, 0x08000041, "08000041 - handler = 0x08000041 <main> (function *)"},
        {0x1c, 4, 1, "00000001 - wide+4"},
    };
    struct tl_image *const image = typed_image();
    const struct tl_source source = {
        .protocol = TL_PROTO_ITM,
        .n_regs = 2,
        .regs = {{.name = "DWT_COMP0", .value = 0x20000000}, {.name = "DWT_MASK0", .value = 7}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[160];
        struct tl_buf bytes = {0};
        put_write(&bytes, cases[i].address, cases[i].size, cases[i].value);
        snprintf(text, sizeof text, "H data write 0 200000%02x %s\n", cases[i].address,
                 cases[i].text);
        expect(&source, image, bytes.p, bytes.n, text, NULL);
        tl_buf_fini(&bytes);
    }
    tl_image_free(image);
}

/* The fields of such a line, for JSON. */
static void typed_values_are_fields(void **state)
{
    static const char line[] = "H data write 0 20000014 fffffffe - a<b>::c = -2 (unsigned int)";
    struct tl_line_field fields[TL_LINE_FIELDS];
    const size_t n = tl_line_fields((struct tl_bytes){(const uint8_t *)line, strlen(line)}, fields);
    static const struct {
        const char *name, *text;
    } wanted[] = {{"event", "data"},        {"access", "write"},   {"comparator", "0"},
                  {"address", "20000014"},  {"value", "fffffffe"}, {"typed", "-2"},
                  {"type", "unsigned int"}, {"name", "a<b>::c"}};
    assert_int_equal(n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(fields[i].name, wanted[i].name);
        assert_int_equal(fields[i].text.n, strlen(wanted[i].text));
        assert_memory_equal(fields[i].text.p, wanted[i].text, fields[i].text.n);
    }
}

/* Types are read from any bytes. */
static void damaged_types(void **state)
{
    for (unsigned round = 0; round < 3000; round++) {
        uint8_t bytes[sizeof typed_elf];
        struct tl_image *image;
        memcpy(bytes, typed_elf, sizeof bytes);
        for (unsigned i = 0; i < 1 + round % 8; i++)
            bytes[next() % sizeof bytes] = (uint8_t)next();
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_variable_types((struct tl_bytes){bytes, sizeof bytes}, 0,
                                           tl_image_keep_text, image, tl_image_types(image)),
                         TL_OK);
        struct tl_types *const types = tl_image_types(image);
        tl_types_sort(types);
        for (size_t i = 0; i < types->n_variables; i++)
            for (uint64_t offset = 0; offset < 64; offset += 3) {
                char path[24], value[40];
                uint64_t rest;
                const uint32_t type = tl_types_find(types, types->variables[i].type, offset,
                                                    1u << offset % 3, path, sizeof path, &rest);
                assert_true(rest <= offset && type < types->n_types);
                (void)tl_types_value(types, type, offset, 4, value, sizeof value);
            }
        tl_image_free(image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_are_joined),
        cmocka_unit_test(synchronisation_ends_accesses),
        cmocka_unit_test(addresses_in_wide_ranges),
        cmocka_unit_test(variables_by_their_names),
        cmocka_unit_test(handlers_are_frames),
        cmocka_unit_test(impossible_packets),
        cmocka_unit_test(one_axis),
        cmocka_unit_test(rate_of_the_clock_changes),
        cmocka_unit_test(vectors_where_the_setup_says),
        cmocka_unit_test(variables_have_types),
        cmocka_unit_test(typed_values_are_fields),
        cmocka_unit_test(damaged_types),
    };
    begin_random();
    return cmocka_run_group_tests_name("dwt", tests, NULL, NULL);
}
