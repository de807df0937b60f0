/* SPDX-License-Identifier: MIT */
/* Core trace with an image: RISC-V instructions of 16 and 32 bits, symbols of RISC-V and OpenRISC
 * programs, call stacks with and without instructions, STF records. */
#include "decode/ops.h"
#include "flow/callstack.h"
#include "sim/osd_encoder.h"
#include "sim/small_elf.h"
#include "steps.h"
#include "stf/flow/flow_writer.h"
#include "stf/reader.h"
#include "stf/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define BASE 0x80000000u

/*
 * main at BASE, leaf at BASE + 0x40, other at BASE + 0x60:
 *      0  jal   ra, leaf            0x40  c.jr ra
 *      4  c.jal other (rv32)        0x60  ret (jalr x0, 0(ra))
 *      6  jalr  ra, 0(a0)
 *     10  c.jalr a0
 *     12  j     main
 */
static const struct {
    uint32_t at;
    uint32_t encoding;
    unsigned size;
} program[] = {{0x00, 0x040000ef, 4}, {0x04, 0x2fb1, 2}, {0x06, 0x000500e7, 4}, {0x0a, 0x9502, 2},
               {0x0c, 0xff5ff06f, 4}, {0x40, 0x8082, 2}, {0x60, 0x00008067, 4}};

static const struct tl_sim_elf_symbol symbols[] = {
    {"main", BASE, 0x40}, {"leaf", BASE + 0x40, 0x20}, {"other", BASE + 0x60, 0x20}};

struct run {
    struct tl_buf text;
    struct tl_stf_flow *stf;
    struct tl_callstack *calls;
    uint32_t deepest;
    unsigned pushes;
    struct steps steps;
};

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    struct run *const r = context;
    r->pushes += change == TL_FRAME_PUSH && frame->kind == TL_FRAME_CALL;
    if (change == TL_FRAME_PUSH && depth + 1 > r->deepest)
        r->deepest = depth + 1;
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct run *const r = context;
    struct tl_stf_flow_at at = {0};
    assert_string_equal(stream->name, "di.0.1");
    steps_demand(&r->steps, items, n);
    assert_int_equal(tl_callstack_push(r->calls, items, n), TL_OK);
    assert_int_equal(tl_stf_flow_items(r->stf, items, n, UINT64_MAX, &at), TL_OK);
    return tl_item_text(&r->text, items, n);
}

static struct tl_image *make_image(const struct tl_sim_elf *elf)
{
    struct tl_buf file = {0};
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    assert_int_equal(tl_sim_elf_make(elf, &file), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    const struct tl_bytes bytes = {file.p, file.n};
    const int rc = tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "program", &fail);
    if (rc != TL_OK)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&file);
    return image;
}

static void fill_code(uint8_t code[static 0x80])
{
    for (unsigned i = 0; i < 0x80; i += 2)
        tl_put_le16(code + i, 0x0001); /* c.nop */
    for (size_t i = 0; i < sizeof program / sizeof program[0]; i++) {
        tl_put_le16(code + program[i].at, (uint16_t)program[i].encoding);
        if (program[i].size == 4)
            tl_put_le16(code + program[i].at + 2, (uint16_t)(program[i].encoding >> 16));
    }
}

static void run_init(struct run *r, const struct tl_image *image)
{
    *r = (struct run){0};
    const struct tl_stf_flow_options options = {0};
    assert_int_equal(tl_stf_flow_new(&r->stf, &options, NULL), TL_OK);
    r->calls = calloc(1, sizeof *r->calls);
    assert_non_null(r->calls);
    tl_callstack_init(r->calls, image, 0, on_frame, r);
}

static void run_fini(struct run *r)
{
    tl_buf_fini(&r->text);
    tl_stf_flow_free(r->stf);
    free(r->calls);
}

static void decode(struct run *r, const struct tl_sim_osd *e, const struct tl_image *image)
{
    const struct tl_decode_sink sink = {.context = r, .items = on_items};
    struct tl_setup setup;
    tl_setup_init(&setup);
    setup.container = TL_CONTAINER_DI;
    struct tl_decode *d;
    assert_int_equal(tl_decode_new(&d, &setup, image, &sink, NULL), TL_OK);
    assert_int_equal(tl_decode_push(d, e->out.p, e->out.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    assert_int_equal(tl_stf_flow_finish(r->stf), TL_OK);
    tl_setup_fini(&setup);
}

static void event(struct tl_sim_osd *e, unsigned width, uint32_t time, uint32_t from, uint32_t to,
                  bool call)
{
    const struct tl_sim_osd_truth t = {
        .time = time, .pc = BASE + from, .npc = BASE + to, .mode = 3, .call = call, .ret = !call};
    assert_int_equal(tl_sim_osd_ctm(e, 1, width, &t), TL_OK);
}

/* main calls leaf, other, leaf by pointer, other by pointer, and starts again. */
static void play(struct tl_sim_osd *e, unsigned width)
{
    tl_sim_osd_init(e);
    const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 0},
                                                {1, TL_SIM_OSD_CTM, (uint8_t)width}};
    assert_int_equal(tl_sim_osd_enumerate(e, modules, 2), TL_OK);
    for (uint32_t round = 0; round < 3; round++) {
        const uint32_t t = 100 * round;
        event(e, width, t + 1, 0x00, 0x40, true);
        event(e, width, t + 2, 0x40, 0x04, false);
        event(e, width, t + 3, 0x04, 0x60, true);
        event(e, width, t + 4, 0x60, 0x06, false);
        event(e, width, t + 5, 0x06, 0x40, false); /* jalr counts as a return */
        event(e, width, t + 6, 0x40, 0x0a, false);
        event(e, width, t + 7, 0x0a, 0x60, false);
        event(e, width, t + 8, 0x60, 0x0c, false);
        event(e, width, t + 9, 0x0c, 0x00, true); /* jal counts as a call */
    }
}

static void expect_text(const struct run *r, const char *mode, bool encodings)
{
    struct tl_buf x = {0};
    static const struct {
        unsigned insn;
        uint32_t to;
    } steps[] = {{0, 0x40}, {5, 4},    {1, 0x60}, {6, 6}, {2, 0x40},
                 {5, 10},   {3, 0x60}, {6, 12},   {4, 0}};
    for (uint32_t round = 0; round < 3; round++)
        for (uint32_t i = 0; i < 9; i++) {
            const unsigned k = steps[i].insn;
            const uint32_t time = 100 * round + 1 + i;
            if (!encodings)
                assert_int_equal(tl_buf_printf(&x, "T %u\n", time), TL_OK);
            if (round == 0 && i == 0)
                assert_int_equal(tl_buf_printf(&x, "M %s\n", mode), TL_OK);
            if (encodings)
                assert_int_equal(tl_buf_printf(&x, "I %016x %0*x\n", BASE + program[k].at,
                                               (int)program[k].size * 2, program[k].encoding),
                                 TL_OK);
            assert_int_equal(
                tl_buf_printf(&x, "B %016x %016x\n", BASE + program[k].at, BASE + steps[i].to),
                TL_OK);
            if (encodings) /* the time of the branch is the end of what ran up to it */
                assert_int_equal(tl_buf_printf(&x, "T %u\n", time), TL_OK);
        }
    assert_int_equal(x.n, r->text.n);
    assert_memory_equal(x.p, r->text.p, x.n);
    tl_buf_fini(&x);
}

struct counts {
    unsigned insn16, insn32, targets, forced, modes;
    uint16_t isa;
};

static void count_records(const struct run *r, struct counts *c)
{
    const struct tl_bytes stf = tl_stf_flow_bytes(r->stf);
    struct tl_stf_layout layout = {0};
    *c = (struct counts){0};
    for (size_t at = 0; at < stf.n;) {
        struct tl_stf_record record;
        const struct tl_bytes rest = {stf.p + at, stf.n - at};
        const int n = tl_stf_record_decode(&layout, rest, &record);
        assert_true(n > 0);
        c->insn16 += record.type == TL_STF_INST_16;
        c->insn32 += record.type == TL_STF_INST_32;
        c->targets += record.type == TL_STF_INST_PC_TARGET;
        c->forced += record.type == TL_STF_FORCE_PC;
        c->modes += record.type == TL_STF_EVENT && record.event.number == TL_STF_EVENT_MODE_CHANGE;
        if (record.type == TL_STF_ISA)
            c->isa = record.isa;
        at += (size_t)n;
    }
}

static void with_instructions(unsigned width, const char *mode)
{
    uint8_t code[0x80];
    fill_code(code);
    const struct tl_sim_elf elf = {.machine = EM_RISCV,
                                   .wide = width == 64,
                                   .address = BASE,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = 3};
    struct tl_image *const image = make_image(&elf);
    struct tl_sim_osd e;
    struct run r;
    struct counts c;
    run_init(&r, image);
    play(&e, width);
    decode(&r, &e, image);
    expect_text(&r, mode, true);
    count_records(&r, &c);
    assert_int_equal(c.insn16 + c.insn32, 27);
    assert_int_equal(c.insn16, 12); /* c.jr twice, c.jal (or what it is there), c.jalr */
    /* What is c.jal with 32 bits is no branch with 64: its target is where the PC is forced to. */
    assert_int_equal(c.targets, width == 32 ? 27 : 24);
    assert_true(width == 32 || c.forced >= 3);
    assert_true(c.modes > 0);
    assert_int_equal(c.isa, TL_STF_ISA_RISCV);
    assert_int_equal(r.deepest, 2);
    assert_int_equal(r.pushes, width == 32 ? 12 : 9); /* 0x2fb1 is no call with 64 bits */
    run_fini(&r);
    tl_sim_osd_fini(&e);
    tl_image_free(image);
}

static void test_rv32(void **state)
{
    with_instructions(32, "m.rv32");
}

static void test_rv64(void **state)
{
    with_instructions(64, "m.rv64");
}

/* Code of another architecture is not used as instructions, but its symbols are. */
static void test_openrisc(void **state)
{
    uint8_t code[0x80] = {0};
    const struct tl_sim_elf elf = {.machine = EM_OPENRISC,
                                   .big_endian = true,
                                   .address = BASE,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = 3};
    struct tl_image *const image = make_image(&elf);
    assert_string_equal(tl_image_symbol_at(image, BASE + 0x44)->name, "leaf");
    assert_int_equal(tl_image_symbol_at(image, BASE + 0x44)->size, 0x20);
    struct tl_sim_osd e;
    struct run r;
    run_init(&r, image);
    play(&e, 32);
    decode(&r, &e, image);
    expect_text(&r, "or1k", false);
    /* "l.j main" is reported as a call, too. */
    assert_int_equal(r.deepest, 4);
    assert_int_equal(r.pushes, 15);
    run_fini(&r);
    tl_sim_osd_fini(&e);
    tl_image_free(image);
}

/* Without instructions and symbols, the addresses of calls determine where returns go. */
static void test_no_image(void **state)
{
    struct tl_sim_osd e;
    struct run r;
    struct counts c;
    run_init(&r, NULL);
    play(&e, 32);
    decode(&r, &e, NULL);
    expect_text(&r, "m.rv32", false);
    assert_true(r.deepest <= 5);
    count_records(&r, &c);
    assert_int_equal(c.insn16 + c.insn32, 0);
    assert_int_equal(c.targets, 0);
    assert_true(c.forced >= 27); /* no instruction carries the branches */
    assert_int_equal(c.isa, TL_STF_ISA_RISCV);
    run_fini(&r);
    tl_sim_osd_fini(&e);
}

static unsigned count_lines(const struct tl_buf *text, const char *line)
{
    unsigned n = 0;
    const size_t size = strlen(line);
    for (const uint8_t *p = text->p; (p = memmem(p, text->n - (size_t)(p - text->p), line, size));
         p++)
        n++;
    return n;
}

/* From time 103 on, the first instruction differs. */
static void test_code_that_changes(void **state)
{
    static const struct tl_image_span spans[] = {{0, 103}, {103, 0}};
    struct tl_image *image;
    struct tl_sim_osd e;
    struct run r;
    uint8_t code[0x80];
    (void)state;
    fill_code(code);
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        tl_image_set_period(image, spans[i]);
        tl_put_le16(code, i ? 0x9502 : 0x00ef);
        tl_put_le16(code + 2, i ? 0x0001 : 0x0400);
        assert_int_equal(tl_image_add_bytes(image, BASE, (struct tl_bytes){code, sizeof code},
                                            TL_SPACE_ANY, "code", NULL),
                         TL_OK);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    run_init(&r, image);
    play(&e, 32);
    decode(&r, &e, image);
    /* Three rounds, at times 1, 101 and 201. */
    assert_int_equal(count_lines(&r.text, "I 0000000080000000 040000ef\n"), 2);
    assert_int_equal(count_lines(&r.text, "I 0000000080000000 9502\n"), 1);
    run_fini(&r);
    tl_sim_osd_fini(&e);
    tl_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_that_changes),
        cmocka_unit_test(test_rv32),
        cmocka_unit_test(test_rv64),
        cmocka_unit_test(test_openrisc),
        cmocka_unit_test(test_no_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
