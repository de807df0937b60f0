/* SPDX-License-Identifier: MIT */
/*
 * What a decoder predicts ends where the trace no longer supports it: small captures by hand, with
 * the flow that there was. They are decoded whole and byte by byte, with and without paths, since
 * predictions are kept in other ways there.
 */
#include "decode/decode.h"
#include "image/image.h"
#include "steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

struct piece {
    uint64_t address;
    const char *bytes; /* hexadecimal */
};

struct capture {
    const char *setup;
    const struct piece *code; /* up to one without bytes */
    const char *trace;        /* hexadecimal */
};

struct heard {
    struct tl_buf text;
    struct steps steps;
};

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct heard *const h = context;
    (void)stream;
    steps_take(&h->steps, items, n);
    return tl_item_text(&h->text, items, n);
}

static size_t read_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    for (; *hex; hex += *hex == ' ') {
        unsigned byte;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[n++] = (uint8_t)byte;
        hex += 2;
    }
    return n;
}

static struct tl_image *read_code(const struct piece *code)
{
    struct tl_image *image;
    uint8_t bytes[64];
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (; code->bytes; code++) {
        const size_t n = read_hex(code->bytes, bytes);
        assert_int_equal(tl_image_add_bytes(image, code->address, (struct tl_bytes){bytes, n},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

static void decode(const struct capture *c, size_t chunk, bool paths, struct heard *out)
{
    struct tl_image *const image = read_code(c->code);
    const struct tl_decode_sink sink = {.context = out, .items = hear};
    struct tl_setup setup;
    struct tl_decode *d;
    struct tl_fail fail = {0};
    uint8_t bytes[256];
    const size_t n = read_hex(c->trace, bytes);
    *out = (struct heard){0};
    tl_setup_init(&setup);
    if (tl_setup_parse(&setup, c->setup, strlen(c->setup), &fail) < 0 ||
        tl_decode_new(&d, &setup, image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    if (paths)
        tl_decode_allow_paths(d);
    for (size_t at = 0; at < n; at += chunk)
        assert_int_equal(tl_decode_push(d, bytes + at, chunk < n - at ? chunk : n - at), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(tl_buf_add(&out->text, "", 1), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    tl_image_free(image);
}

/* The text, of instructions only the addresses. */
static void shorten(struct tl_buf *text)
{
    char *to = (char *)text->p;
    for (const char *line = to; *line;) {
        const char *const end = strchr(line, '\n') + 1;
        const bool insn = line[0] == 'I';
        const char *from = insn ? line + 2 + strspn(line + 2, "0") : line;
        const char *const stop = insn ? strchr(from, ' ') : end - 1;
        while (from < stop)
            *to++ = *from++;
        *to++ = '\n';
        line = end;
    }
    *to = 0;
}

static void expect(const struct capture *c, const char *text)
{
    for (unsigned way = 0; way < 4; way++) {
        struct heard h;
        decode(c, way & 1 ? 1 : 256, way & 2, &h);
        shorten(&h.text);
        assert_string_equal((const char *)h.text.p, text);
        if (h.steps.impossible > 0)
            fail_msg("%s", h.steps.what);
        tl_buf_fini(&h.text);
    }
}

/* ---- ETMv4 ---------------------------------------------------------------------------------- */

/* A Cortex-M with a return stack. */
#define M_PROFILE                                                                                  \
    "[trace]\nformat=etm4,id=0x10\n[source cs.10]\nprotocol=etm4\ncore=ARMv7-M\n"                  \
    "TRCCONFIGR=0x1800\nTRCTRACEIDR=0x10\nTRCIDR0=0x080006e1\nTRCIDR1=0x4100f401\nTRCIDR2=4\n"

static const struct piece m_code[] = {
    {0x1000, "00bf 00f02df8 00bf 00bf fee7"},      /* nop; bl 1060; nop; nop; b . */
    {0x1040, "00bf 00bf 00bf 7047"},               /* nop; nop; nop; bx lr */
    {0x1060, "10b5 fff7edff 0028 00d0 00bf 10bd"}, /* push; bl 1040; cmp; beq 106c; nop; pop {pc} */
    {0x1080, "00bf 7047"},                         /* two handlers: nop; bx lr */
    {0x10a0, "00bf 7047"},
    {0, NULL}};

#define SYNC    "000000000000000000000080 0100 " /* and Trace Info */
#define M_BEGIN SYNC "04 830010000000 "
#define M_CALLS "O\nM el0.s.t32\n1000\n1002\n1060\n1062\n1040\n"

/* The exception return of a handler is not predicted, so that the next handler, directly behind it,
 * pops nothing. */
static void tail_chained_handlers(void **state)
{
    const struct capture c = {M_PROFILE, m_code,
                              M_BEGIN "f7 f7 0621 9b21100000 9b40100000 f7 07 0623 9b7fffffff "
                                      "9b50100000 f7 07 9b21100000 f7 f6 f7 f7 f7 f7"};
    (void)state;
    expect(&c, M_CALLS "X irq0 16 0000000000001042\n1080\n1082\nR\nX irq1 17 -\n10a0\n10a2\nR\n"
                       "1042\n1044\n1046\n1066\n1068\n106a\n106c\n1006\n1008\n100a\n100a\n100a\n");
}

/* Trace Info repeats the state for those who begin there; it does not interrupt the flow. */
static void trace_info_at_a_return(void **state)
{
    const struct capture c = {M_PROFILE, m_code,
                              M_BEGIN "f7 f7 f7 " SYNC "f6 f7 f7 f7 830510000000 f7 f7"};
    (void)state;
    expect(&c, M_CALLS "1042\n1044\n1046\n1066\n1068\n106a\n106c\n1006\n1008\n100a\n100a\n100a\n"
                       "100a\n");
}

/* Behind an address that Trace Info brought, nothing returns to calls in front of it. */
static void trace_info_ends_the_stack(void **state)
{
    const struct capture c = {M_PROFILE, m_code,
                              M_BEGIN "f7 f7 " SYNC "832010000000 f7 f7 830510000000 f7"};
    (void)state;
    expect(&c, M_CALLS "1042\n1044\n1046\nG no-path\n100a\n");
}

/* What is not in the image calls and returns, too: its outcomes say nothing about code behind it.
 */
static void code_that_is_missing(void **state)
{
    static const struct piece without[] = {
        {0x1000, "00bf 00f02df8 00bf 00bf fee7"}, {0x1040, "00bf 00bf 00bf 7047"}, {0, NULL}};
    const struct capture c = {M_PROFILE, without,
                              M_BEGIN "f7 f7 f7 9b20100000 f7 f7 f7 9b04100000 f7"};
    (void)state;
    expect(&c, "O\nM el0.s.t32\n1000\n1002\nG no-image\n1040\n1042\n1044\n1046\nG no-path\n1008\n"
               "100a\n");
}

/* ---- Intel PT ------------------------------------------------------------------------------- */

#define PT  "[trace]\nformat=pt\n[source pt.0]\nprotocol=pt\n"
#define PSB "02820282028202820282028202820282 9901 5d00104000 0223 "

/* A call to 700000, which is not there, and a function that it calls; another one with a call. */
static const struct piece pt_code[] = {
    {0x401000, "e8fbef2f00 85c0 7402 ffc3 ffc1 ebfe"},
    {0x401100, "89f8 29f0 c3"},
    {0x401200, "e8fbfeffff 7402 ffc3 ebfe"}, /* call 401100; je 401209; inc; jmp . */
    {0, NULL}};

#define CALL    "O\nM ring3.x64\n401000\nB - 0000000000700000\nG no-image\n"
#define BEHIND  "401102\n401104\nG no-path\n401205\nG off\n"
#define COMPARE "401100\n401102\n401104\n"

/* A library without a file calls back: its call is not known, so neither is where its callee
 * returns. */
static void calls_back(void **state)
{
    const struct capture c = {PT, pt_code, PSB "2d0011 0e 2d0011 0e 2d0011 36 3d0d10 01"};
    (void)state;
    expect(&c, CALL COMPARE "G no-path\n" COMPARE "G no-path\n" COMPARE "G no-path\nG off\n");
}

/* A call that was followed returns as predicted, also behind one that was not. */
static void calls_again(void **state)
{
    const struct capture c = {PT, pt_code, PSB "2d0012 0e 3d0912 01"};
    (void)state;
    expect(&c, CALL "401200\n" COMPARE "401205\nG off\n");
}

/* The processor keeps its stack while tracing is off, but not over an overflow or a PSB. */
static void stack_of_the_processor(void **state)
{
    const struct capture off = {PT, pt_code, PSB "2d0012 3d0211 01 310211 06 3d0512 01"};
    const struct capture lost = {PT, pt_code,
                                 PSB "2d0012 3d0211 02f3 7d021140000000 06 2d0512 04 3d0712 01"};
    const struct capture psb = {PT, pt_code,
                                PSB
                                "2d0012 02820282028202820282028202820282 9901 5d02114000 0223 06 "
                                "2d0512 04 3d0712 01"};
    (void)state;
    expect(&off, CALL "401200\n401100\nG off\nO\n401102\n401104\nG off\n");
    expect(&lost, CALL "G overflow\n" BEHIND);
    expect(&psb, CALL "401200\n401100\n" BEHIND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail_chained_handlers),
        cmocka_unit_test(trace_info_at_a_return),
        cmocka_unit_test(trace_info_ends_the_stack),
        cmocka_unit_test(code_that_is_missing),
        cmocka_unit_test(calls_back),
        cmocka_unit_test(calls_again),
        cmocka_unit_test(stack_of_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
