/* SPDX-License-Identifier: MIT */
/*
 * MTB: records one by one, dumps of random programs in rings of all sizes, damaged dumps, and the
 * buffers with known truth where they are available.
 */
#include "decode/ops.h"
#include "sim/small_elf.h"
#include "steps.h"
#include "unit/data.h"
#include "unit/mtb_world.h"

#include <stdlib.h>
#include <zlib.h>

enum { ROUNDS = 120 };

struct said {
    struct tl_buf text;
    struct steps steps;
    unsigned wrong; /* gaps that mean that trace and program differ */
};

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct said *const said = context;
    assert_string_equal(stream->name, "mtb.0");
    for (size_t i = 0; i < n; i++)
        said->wrong += items[i].kind == TL_ITEM_GAP && items[i].sub != TL_GAP_OFF;
    steps_take(&said->steps, items, n);
    return tl_item_text(&said->text, items, n);
}

static void decode(const struct tl_setup *setup, const struct tl_image *image, struct tl_bytes ram,
                   size_t chunk, struct said *said)
{
    const struct tl_decode_sink sink = {.context = said, .items = hear};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    *said = (struct said){0};
    assert_int_equal(tl_decode_new(&d, setup, image, &sink, &fail), TL_OK);
    for (size_t at = 0; at < ram.n; at += chunk)
        assert_int_equal(tl_decode_push(d, ram.p + at, chunk < ram.n - at ? chunk : ram.n - at),
                         TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* Lines I, X and R, the latter without the exception's name. */
static void keep_lines(struct tl_buf *text)
{
    struct tl_buf out = {0};
    const char *p = (const char *)text->p, *const end = p + text->n;
    while (p < end) {
        const char *const stop = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
        const char *rest = p + 1;
        if (*p == 'X')
            rest = (const char *)memchr(p + 2, ' ', (size_t)(stop - p - 2));
        if (strchr("IXR", *p)) {
            assert_int_equal(tl_buf_add(&out, p, 1), TL_OK);
            assert_int_equal(tl_buf_add(&out, rest, (size_t)(stop - rest)), TL_OK);
        }
        p = stop;
    }
    tl_buf_fini(text);
    *text = out;
}

static void assert_same(const struct tl_buf *a, const struct tl_buf *b, unsigned round)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->p[i] == b->p[i])
        i++;
    const size_t from = i > 30 ? i - 30 : 0;
    if (a->n != b->n || i < a->n)
        fail_msg("round %u: at %zu of %zu and %zu: '%.*s' is told as '%.*s'", round, i, a->n, b->n,
                 (int)(a->n - from < 60 ? a->n - from : 60), (char *)a->p + from,
                 (int)(b->n - from < 60 ? b->n - from : 60), (char *)b->p + from);
}

static struct tl_bytes bytes_of(const struct tl_buf *b)
{
    return (struct tl_bytes){b->p, b->n};
}

static void tells_the_truth(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {7};
    uint64_t insns = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mtb_world w;
        struct said whole, chunks;
        mtb_world_init(&w, round, 3000, &rng);
        decode(&w.setup, w.image, bytes_of(&w.mtb.ram), w.mtb.ram.n, &whole);
        decode(&w.setup, w.image, bytes_of(&w.mtb.ram), 1 + tl_sim_below(&rng, 40), &chunks);
        assert_same(&whole.text, &chunks.text, round);
        keep_lines(&whole.text);
        assert_same(&w.mtb.truth, &whole.text, round);
        assert_int_equal(whole.wrong, 0);
        assert_int_equal(whole.steps.impossible, 0);
        insns += whole.steps.insns;
        tl_buf_fini(&whole.text);
        tl_buf_fini(&chunks.text);
        mtb_world_fini(&w);
    }
    assert_true(insns > ROUNDS * 1000);
}

static void damage_makes_gaps(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {8};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct mtb_world w;
        struct said whole, chunks;
        mtb_world_init(&w, round, 3000, &rng);
        mtb_damage(&w.mtb.ram, &rng);
        decode(&w.setup, w.image, bytes_of(&w.mtb.ram), w.mtb.ram.n, &whole);
        decode(&w.setup, w.image, bytes_of(&w.mtb.ram), 1 + tl_sim_below(&rng, 40), &chunks);
        assert_same(&whole.text, &chunks.text, round);
        if (whole.steps.impossible)
            fail_msg("round %u: %s", round, whole.steps.what);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&chunks.text);
        mtb_world_fini(&w);
    }
}

/* ---- records by hand ------------------------------------------------------------------------- */

/*
 * 0x100: MOV, MOV, BNE 0x120, MOV, B 0x100, then MOV up to the end; 0x120: BX LR; 0x140: SVC, MOV…;
 * vectors: 2 and 3 go to 0x180, 11 to 0x190, 22 to 0x1a0.
 */
static void make_page(uint8_t page[0x200])
{
    static const struct {
        uint16_t at, code;
    } code[] = {{0x104, 0xd10c}, {0x108, 0xe7fa}, {0x120, 0x4770}, {0x140, 0xdf00},
                {0x184, 0x4770}, {0x194, 0x4770}, {0x1a4, 0x4770}};
    static const uint32_t vectors[] = {0x20004000, 0x101, 0x181, 0x181, [11] = 0x191, [22] = 0x1a1};
    memset(page, 0, 0x200);
    for (unsigned i = 0x100; i < 0x200; i += 2)
        tl_put_le16(page + i, 0x4600);
    for (unsigned i = 0; i < sizeof code / sizeof *code; i++)
        tl_put_le16(page + code[i].at, code[i].code);
    for (unsigned i = 0; i < sizeof vectors / sizeof *vectors; i++)
        tl_put_le32(page + 4 * i, vectors[i]);
}

struct example {
    const char *registers;
    uint32_t words[16];
    unsigned n; /* words */
    const char *says;
};

#define E    0xfffffff9u /* EXC_RETURN as a source */
#define BACK 0xfffffff8u /* and as a destination */

static const struct example examples[] = {
    /* a branch not taken on the way, then one that is */
    {"",
     {0, 0x101, 0x108, 0x100, 0x104, 0x120},
     6,
     "O; I 0100; I 0102; I 0104; I 0106; I 0108; I 0100; I 0102; I 0104"},
    /* an exception, and the return from it */
    {"",
     {0, 0x101, 0x103, 0x190, 0x194, BACK, E, 0x102, 0x104, 0x120},
     10,
     "O; I 0100; X SVCall 11 0102; I 0190; I 0192; I 0194; R; I 0102; I 0104"},
    /* the next handler follows at once, and returns to where the first one interrupted */
    {"",
     {0, 0x101, 0x103, 0x190, 0x194, BACK, E, 0x1a0, 0x1a4, BACK, E, 0x102, 0x104, 0x120},
     14,
     "O; I 0100; X SVCall 11 0102; I 0190; I 0192; I 0194; X irq6 22 -; I 01a0; I 01a2; I 01a4; R; "
     "I 0102; I 0104"},
    /* a handler that was interrupted before its first instruction is returned to, not entered */
    {"",
     {0, 0x101, 0x103, 0x190, 0x191, 0x1a0, 0x1a4, BACK, E, 0x190, 0x194, BACK, E, 0x102},
     14,
     "O; I 0100; X SVCall 11 0102; X irq6 22 0190; I 01a0; I 01a2; I 01a4; R; I 0190; I 0192; I "
     "0194; "
     "R"},
    /* one handler of two exceptions */
    {"", {0, 0x101, 0x103, 0x180}, 4, "O; I 0100; X - - 0102"},
    /* an SVC returns behind itself */
    {"", {0, 0x141, 0x143, 0x190}, 4, "O; I 0140; X SVCall 11 0142"},
    /* tracing stopped and started again: by a branch, by an exception */
    {"",
     {0, 0x101, 0x104, 0x120, 0x120, 0x107, 0x108, 0x100},
     8,
     "O; I 0100; I 0102; I 0104; G off; O; I 0106; I 0108"},
    {"",
     {0, 0x101, 0x104, 0x120, 0x107, 0x191, 0x194, BACK, E, 0x106, 0x108, 0x100},
     12,
     "O; I 0100; I 0102; I 0104; G off; O; X SVCall 11 0106; I 0190; I 0192; I 0194; R; I 0106; I "
     "0108"},
    /* an unconditional branch on the way; a source that is behind; one that is no branch */
    {"", {0, 0x107, 0x120, 0x100, 0x104, 0x120}, 6, "O; G no-path; I 0100; I 0102; I 0104"},
    {"", {0, 0x107, 0x104, 0x120, 0x120, 0x106}, 6, "O; G no-path; I 0120"},
    {"", {0, 0x101, 0x102, 0x120, 0x120, 0x106}, 6, "O; G no-path; I 0120"},
    /* the branch goes elsewhere */
    {"",
     {0, 0x101, 0x104, 0x106, 0x108, 0x100},
     6,
     "O; I 0100; I 0102; I 0104; G no-path; I 0106; I 0108"},
    /* the second record of a return is missing */
    {"",
     {0, 0x191, 0x194, BACK, 0x108, 0x100, 0x104, 0x120},
     8,
     "O; I 0190; I 0192; I 0194; R; G no-path; I 0100; I 0102; I 0104"},
    /* up to the halt, as long as no branch is on the way */
    {"PC=0x104\n", {0, 0x101}, 2, "O; I 0100; I 0102"},
    {"PC=0x108\n", {0, 0x101}, 2, "O"},
    /* memory that was never written, in front and behind; a source that is no code */
    {"", {0, 0, 0, 0x101, 0x104, 0x120, ~0u, ~0u}, 8, "O; I 0100; I 0102; I 0104"},
    {"", {0, 0x101, 0x104, 0x120, 0x12345678, 0x9abcdef0}, 6, "O; I 0100; I 0102; I 0104"},
    /* a ring of 32 bytes: the oldest record is at the pointer */
    {"POSITION=0x14\nMASTER=1\n",
     {0x120, 0x100, 0x104, 0x120, 0x103, 0x100, 0x108, 0x100},
     8,
     "O; I 0100; I 0102; I 0104; I 0106; I 0108; I 0100; I 0102; I 0104; G no-path; I 0100; I "
     "0102; "
     "I 0104"},
    /* it begins behind the dump's first byte; the pointer counts from an aligned RAM */
    {"POSITION=0x28\nMASTER=1\nRAM=0x20000000\nBASE=0x20000000\n",
     {1, 1, 1, 1, 1, 1, 1, 1, 0, 0x101, 7, 7},
     12,
     "O"},
    {"MTB_POSITION=0x8\nMTB_MASTER=0\nRAM=0x20000000\nBASE=0x20000010\n",
     {1, 1, 1, 1, 0, 0x101, 7, 7},
     8,
     "O"},
    {"POSITION=0x18\nMASTER=0\nBASE=0x2010\nAWIDTH=12\n", {0, 0x101, 7, 7}, 4, "O"},
};

static void shorten(const struct tl_buf *text, char *out, size_t size)
{
    char copy[4096];
    size_t n = 0;
    *out = 0;
    snprintf(copy, sizeof copy, "%.*s", (int)text->n, text->n ? (const char *)text->p : "");
    for (char *save = NULL, *line = strtok_r(copy, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *const pc = strstr(line, "000000000000");
        if (*line == 'M')
            continue;
        if (*line == 'I')
            pc[16] = 0;
        if (pc)
            memmove(pc, pc + 12, strlen(pc + 12) + 1);
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "; " : "", line);
    }
}

static void decode_example(const struct example *e, struct said *said)
{
    uint8_t page[0x200], ram[sizeof e->words];
    char text[256];
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_fail fail = {0};
    make_page(page);
    for (unsigned i = 0; i < e->n; i++)
        tl_put_le32(ram + 4 * i, e->words[i]);
    const int n = snprintf(text, sizeof text,
                           "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\n%s", e->registers);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, (size_t)n, &fail), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, 0, (struct tl_bytes){page, sizeof page},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    decode(&setup, image, (struct tl_bytes){ram, 4 * e->n}, 4 * e->n, said);
    tl_image_free(image);
    tl_setup_fini(&setup);
}

static void examples_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct said said;
        char text[1024];
        decode_example(&examples[i], &said);
        shorten(&said.text, text, sizeof text);
        if (strcmp(text, examples[i].says) != 0)
            fail_msg("example %zu: '%s', not '%s'", i, text, examples[i].says);
        tl_buf_fini(&said.text);
    }
}

/* A program whose vector table is elsewhere than VTOR's default says itself where. */
static void vectors_of_an_elf_file(void **state)
{
    (void)state;
    enum { FLASH = 0x08000000, HANDLER = FLASH + 0x60, MAIN = FLASH + 0x50 };
    static const uint32_t words[] = {0,          MAIN | 1,   MAIN + 6, HANDLER | 1, HANDLER + 2,
                                     0xfffffff8, 0xfffffff9, MAIN + 6, MAIN + 10,   MAIN};
    static const char ini[] = "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\n";
    const struct tl_sim_elf_symbol symbols[] = {{.name = "main", .address = MAIN, .size = 16},
                                                {.name = "TIMER0_IRQHandler", .address = HANDLER}};
    uint8_t code[0x70], ram[sizeof words];
    struct tl_buf file = {0};
    struct tl_setup setup;
    struct tl_image *image;
    struct said said;
    memset(code, 0, sizeof code);
    for (unsigned i = 0; i < 0x10; i++)
        tl_put_le32(code + 4 * i, i == 0 ? 0x20001000 : i == 15 ? HANDLER | 1 : MAIN | 1);
    for (unsigned i = 0x50; i < sizeof code; i += 2)
        tl_put_le16(code + i, i == 0x62 ? 0x4770 : i == 0x5a ? 0xe7f9 : 0x4600);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        tl_put_le32(ram + 4 * i, words[i] | (i == 2));
    const struct tl_sim_elf elf = {.machine = EM_ARM,
                                   .address = FLASH,
                                   .code = {code, sizeof code},
                                   .symbols = symbols,
                                   .n_symbols = sizeof symbols / sizeof *symbols};
    assert_int_equal(tl_sim_elf_make(&elf, &file), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_elf(image, bytes_of(&file), 0, TL_SPACE_ANY, "program", NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, ini, sizeof ini - 1, NULL), TL_OK);
    decode(&setup, image, (struct tl_bytes){ram, sizeof ram}, sizeof ram, &said);
    assert_int_equal(tl_buf_add(&said.text, "", 1), TL_OK);
    assert_non_null(strstr((const char *)said.text.p, " 15 0000000008000056\n"));
    assert_int_equal(said.wrong, 0);
    tl_image_free(image);
    tl_setup_fini(&setup);
    tl_buf_fini(&file);
    tl_buf_fini(&said.text);
}

/* A register that would need more memory than any chip has. */
static void large_buffers_are_refused(void **state)
{
    (void)state;
    static const char text[] =
        "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\nPOSITION=4\nMASTER=0x8000001f\n";
    struct tl_setup setup;
    struct tl_stream_decoder *d;
    struct tl_fail fail = {0};
    const struct tl_stream_sink sink = {0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, text, sizeof text - 1, &fail), TL_OK);
    assert_int_equal(tl_mtb_ops.create(&d, &setup.sources[0], NULL, &sink, &fail), TL_UNSUPPORTED);
    assert_non_null(strstr(fail.text, "MASTER"));
    tl_setup_fini(&setup);
}

/* ---- buffers with known truth ---------------------------------------------------------------- */

static void read_truth(const char *path, struct tl_buf *out)
{
    char chunk[4096];
    gzFile file = gzopen(path, "rb");
    assert_non_null(file);
    for (int n; (n = gzread(file, chunk, sizeof chunk)) > 0;)
        assert_int_equal(tl_buf_add(out, chunk, (size_t)n), TL_OK);
    gzclose(file);
}

static void check_folder(const char *folder, const char *name)
{
    char path[512];
    struct tl_buf ini = {0}, ram = {0}, code = {0}, truth = {0}, text = {0};
    struct tl_setup setup;
    struct tl_image *image;
    struct said said;
    snprintf(path, sizeof path, "%s/mtb.ini", folder);
    assert_int_equal(tl_buf_read_file(&ini, path, 4096, NULL), TL_OK);
    snprintf(path, sizeof path, "%s/ram.bin", folder);
    assert_int_equal(tl_buf_read_file(&ram, path, 1 << 24, NULL), TL_OK);
    snprintf(path, sizeof path, "%s/image.bin", folder);
    assert_int_equal(tl_buf_read_file(&code, path, 1 << 24, NULL), TL_OK);
    snprintf(path, sizeof path, "%s/%s.flow.gz", folder, name);
    read_truth(path, &truth);
    assert_int_equal(tl_buf_add(&ini, "", 1), TL_OK);
    assert_int_equal(tl_buf_printf(&text, "[trace]\nformat=mtb\n[source mtb.0]\nprotocol=mtb\n"),
                     0);
    for (char *save = NULL, *line = strtok_r((char *)ini.p, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "BASE=") || strstr(line, "POSITION=") || strstr(line, "MASTER="))
            assert_int_equal(tl_buf_printf(&text, "%s\n", line), TL_OK);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, (const char *)text.p, text.n, NULL), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, 0, bytes_of(&code), TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    decode(&setup, image, bytes_of(&ram), ram.n, &said);
    keep_lines(&said.text);
    keep_lines(&truth);
    assert_same(&truth, &said.text, 0);
    tl_image_free(image);
    tl_setup_fini(&setup);
    tl_buf_fini(&ini);
    tl_buf_fini(&ram);
    tl_buf_fini(&code);
    tl_buf_fini(&truth);
    tl_buf_fini(&text);
    tl_buf_fini(&said.text);
}

static void buffers_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {"mtb-plain", "mtb-wrap"};
    for (unsigned i = 0; i < 2; i++) {
        char name[64], folder[400];
        snprintf(name, sizeof name, "mtb/%s", names[i]);
        if (!test_data(folder, sizeof folder, name))
            skip();
        check_folder(folder, names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_read),         cmocka_unit_test(tells_the_truth),
        cmocka_unit_test(damage_makes_gaps),         cmocka_unit_test(vectors_of_an_elf_file),
        cmocka_unit_test(large_buffers_are_refused), cmocka_unit_test(buffers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
