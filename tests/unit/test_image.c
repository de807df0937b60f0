/* SPDX-License-Identifier: MIT */
#include "image/image.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void add(struct tl_image *image, uint64_t address, const char *text, unsigned space)
{
    const struct tl_bytes bytes = {(const uint8_t *)text, strlen(text)};
    assert_int_equal(tl_image_add_bytes(image, address, bytes, space, "test", NULL), TL_OK);
}

static void expect(const struct tl_image *image, unsigned space, uint64_t address, const char *text)
{
    const struct tl_bytes got = tl_image_at(image, space, address);
    assert_int_equal(got.n, strlen(text));
    if (got.n)
        assert_memory_equal(got.p, text, got.n);
}

static void looks_up_by_space(void **state)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    add(image, 0x1000, "secure", TL_SPACE_EL1S);
    add(image, 0x1000, "normal", TL_SPACE_N);
    add(image, 0x2000, "any", TL_SPACE_ANY);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    expect(image, TL_SPACE_EL1S, 0x1000, "secure");
    expect(image, TL_SPACE_EL1N, 0x1002, "rmal");
    expect(image, TL_SPACE_EL2, 0x1005, "l");
    expect(image, TL_SPACE_EL3, 0x1000, "");
    expect(image, TL_SPACE_ANY, 0x1000, "secure");
    expect(image, TL_SPACE_ROOT, 0x2001, "ny");
    expect(image, TL_SPACE_EL1N, 0xfff, "");
    expect(image, TL_SPACE_EL1N, 0x1006, "");
    tl_image_free(image);
}

static void expect_in(const struct tl_image *image, const struct tl_image_context *context,
                      unsigned space, uint64_t address, const char *text)
{
    const struct tl_bytes got =
        tl_image_view_at(image, tl_image_view(image, context, 0, NULL), space, address);
    assert_int_equal(got.n, strlen(text));
    if (got.n)
        assert_memory_equal(got.p, text, got.n);
}

static void looks_up_by_context(void **state)
{
    static const struct tl_image_context none = {0}, p1 = {.context_id = 1, .has_context_id = true},
                                         p2 = {.context_id = 2, .has_context_id = true},
                                         vm = {.vmid = 9, .has_vmid = true},
                                         p1_vm = {1, 9, true, true}, p2_vm = {2, 9, true, true},
                                         p1_other = {1, 8, true, true}, other = {3, 8, true, true};
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    add(image, 100, "everywhere", TL_SPACE_ANY);
    assert_int_equal(tl_image_bind(image, &p2), TL_OK);
    add(image, 104, "222", TL_SPACE_EL1N);
    assert_int_equal(tl_image_bind(image, &p1_vm), TL_OK);
    add(image, 200, "both", TL_SPACE_ANY);
    assert_int_equal(tl_image_bind(image, &vm), TL_OK);
    add(image, 200, "machine", TL_SPACE_ANY);
    assert_int_equal(tl_image_bind(image, &p1), TL_OK);
    add(image, 104, "1", TL_SPACE_ANY);
    assert_int_equal(tl_image_bind(image, NULL), TL_OK);
    add(image, 106, "X", TL_SPACE_ANY);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_image_bind(image, &other), TL_LIMIT);

    expect(image, TL_SPACE_EL1N, 100, "everywXere");
    expect_in(image, &none, TL_SPACE_EL1N, 100, "everywXere");
    expect_in(image, &other, TL_SPACE_EL1N, 100, "everywXere");
    assert_true(tl_image_view(image, &other, 0, NULL) == 0);
    expect_in(image, &p1, TL_SPACE_EL1N, 100, "ever"); /* up to the region that covers it */
    expect_in(image, &p1, TL_SPACE_EL1N, 104, "1");
    expect_in(image, &p1, TL_SPACE_EL1N, 105, "wXere");
    expect_in(image, &p1_other, TL_SPACE_EL1N, 104, "1");
    expect_in(image, &p2, TL_SPACE_EL1N, 105, "22");
    expect_in(image, &p2, TL_SPACE_EL1S, 105, "wXere"); /* another space */
    expect_in(image, &p1, TL_SPACE_EL1N, 200, "");
    expect_in(image, &vm, TL_SPACE_EL1N, 200, "machine");
    expect_in(image, &p2_vm, TL_SPACE_EL1N, 200, "machine");
    expect_in(image, &p2_vm, TL_SPACE_EL1N, 104, "222");
    expect_in(image, &p1_vm, TL_SPACE_EL1N, 200, "both");
    expect_in(image, &p1_vm, TL_SPACE_EL1N, 204, "ine");
    expect_in(image, &p1_vm, TL_SPACE_EL1N, 104, "1");
    tl_image_free(image);
}

static void later_regions_win(void **state)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    add(image, 100, "aaaaaaaaaa", TL_SPACE_ANY);
    add(image, 103, "bbb", TL_SPACE_ANY);
    add(image, 104, "c", TL_SPACE_EL1N);
    add(image, 108, "dddd", TL_SPACE_ANY);
    add(image, 108, "dddd", TL_SPACE_ANY);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    expect(image, TL_SPACE_EL1N, 100, "aaabcbaadddd"); /* joined where they touch */
    expect(image, TL_SPACE_EL1S, 100, "aaabbbaadddd");
    expect(image, TL_SPACE_EL1S, 111, "d");
    expect(image, TL_SPACE_EL1S, 112, "");
    tl_image_free(image);
}

static void reaches_the_end_of_the_address_space(void **state)
{
    struct tl_image *image;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    add(image, UINT64_MAX - 3, "last", TL_SPACE_ANY);
    const struct tl_bytes five = {(const uint8_t *)"wraps", 5};
    assert_int_equal(tl_image_add_bytes(image, UINT64_MAX - 3, five, TL_SPACE_ANY, "x", &fail),
                     TL_USAGE);
    add(image, 0, "zero", TL_SPACE_ANY);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    expect(image, TL_SPACE_EL2, UINT64_MAX, "t");
    expect(image, TL_SPACE_EL2, 0, "zero");
    tl_image_free(image);
}

/* Random regions compared with a plain array of bytes. */
static void agrees_with_a_plain_array(void **state)
{
    enum { SIZE = 600 };
    const unsigned seed = 20240611;
    print_message("seed %u\n", seed);
    srandom(seed);
    for (int round = 0; round < 200; round++) {
        struct tl_image *image;
        uint8_t plain[2][SIZE] = {{0}};
        assert_int_equal(tl_image_new(&image), TL_OK);
        for (int i = random() % 20; i >= 0; i--) {
            uint8_t bytes[64];
            const size_t n = 1 + (size_t)random() % sizeof bytes;
            const size_t at = (size_t)random() % (SIZE - n);
            const unsigned which = 1 + random() % 3; /* one of two spaces, or both */
            for (size_t k = 0; k < n; k++)
                bytes[k] = (uint8_t)(1 + random() % 255);
            for (unsigned s = 0; s < 2; s++)
                if (which >> s & 1)
                    memcpy(plain[s] + at, bytes, n);
            assert_int_equal(tl_image_add_bytes(image, 1000 + at, (struct tl_bytes){bytes, n},
                                                which, NULL, NULL),
                             TL_OK);
        }
        assert_int_equal(tl_image_freeze(image), TL_OK);
        for (unsigned s = 0; s < 2; s++) {
            for (size_t at = 0; at < SIZE; at++) {
                size_t n = 0;
                while (at + n < SIZE && plain[s][at + n])
                    n++;
                const struct tl_bytes got = tl_image_at(image, 1u << s, 1000 + at);
                assert_int_equal(got.n, n);
                if (n)
                    assert_memory_equal(got.p, plain[s] + at, n);
            }
        }
        tl_image_free(image);
    }
}

/* Random regions of one process and of all, at random times, compared with one array of bytes for
 * each. */
static void changes_as_plain_arrays_do(void **state)
{
    enum { SIZE = 80, TIMES = 12 };
    static const struct tl_image_context contexts[2] = {{0},
                                                        {.context_id = 7, .has_context_id = true}};
    uint64_t changed = 0;
    srandom(20240612);
    for (int round = 0; round < 300; round++) {
        static uint8_t plain[2][TIMES][SIZE];
        struct tl_image *image;
        memset(plain, 0, sizeof plain);
        assert_int_equal(tl_image_new(&image), TL_OK);
        for (int i = random() % 20; i >= 0; i--) {
            uint8_t bytes[30];
            const size_t n = 1 + (size_t)random() % sizeof bytes;
            const size_t at = (size_t)random() % (SIZE - n);
            const unsigned whose = random() % 2;
            const struct tl_image_span span = {(uint64_t)random() % TIMES,
                                               (uint64_t)random() % (TIMES + 1)};
            memset(bytes, (int)(1 + random() % 255), n);
            for (size_t t = span.from; t < (span.until ? span.until : TIMES) && t < TIMES; t++)
                memcpy(plain[whose][t] + at, bytes, n);
            assert_int_equal(tl_image_bind(image, &contexts[whose]), TL_OK);
            tl_image_set_period(image, span);
            assert_int_equal(tl_image_add_bytes(image, 1000 + at, (struct tl_bytes){bytes, n},
                                                TL_SPACE_ANY, NULL, NULL),
                             TL_OK);
        }
        assert_int_equal(tl_image_freeze(image), TL_OK);
        for (unsigned whose = 0; whose < 2; whose++) {
            uint64_t view = 0, until = 0;
            for (uint64_t t = 0; t < TIMES; t++) {
                uint64_t end;
                const uint64_t now = tl_image_view(image, &contexts[whose], t, &end);
                assert_true(end > t && (t == 0 || now == view || t == until));
                assert_true(now == view || t == 0 || tl_image_last_change(image, t) == t);
                assert_true(now == tl_image_view(image, &contexts[whose],
                                                 tl_image_last_change(image, t), NULL));
                changed += t > 0 && now != view;
                view = now;
                until = end;
                for (size_t at = 0; at < SIZE; at++) {
                    const uint8_t own = plain[whose][t][at];
                    const uint8_t byte = own ? own : plain[0][t][at];
                    const struct tl_bytes got =
                        tl_image_view_at(image, view, TL_SPACE_EL1N, 1000 + at);
                    assert_true(byte ? got.n > 0 && *got.p == byte : got.n == 0);
                }
            }
        }
        tl_image_free(image);
    }
    assert_true(changed > 1000);
}

/* Contents mapped at many places are stored once. */
static void parts_are_kept_once(void **state)
{
    static const struct tl_image_context none = {0}, p1 = {.context_id = 1, .has_context_id = true};
    static const struct tl_bytes bytes = {(const uint8_t *)"part", 4};
    struct tl_image *image;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_again(image, 100, TL_SPACE_ANY, "f", 8, 4, &fail), TL_NOTFOUND);
    assert_int_equal(tl_image_add_part(image, 100, bytes, TL_SPACE_ANY, "f", 8, 4, &fail), TL_OK);
    assert_int_equal(tl_image_bind(image, &p1), TL_OK);
    tl_image_set_period(image, (struct tl_image_span){50, 0});
    assert_int_equal(tl_image_add_again(image, 200, TL_SPACE_ANY, "f", 8, 4, &fail), TL_OK);
    assert_int_equal(tl_image_add_again(image, 300, TL_SPACE_ANY, "f", 7, 4, &fail), TL_NOTFOUND);
    assert_int_equal(tl_image_add_again(image, 300, TL_SPACE_ANY, "f", 8, 3, &fail), TL_NOTFOUND);
    assert_int_equal(tl_image_add_again(image, 300, TL_SPACE_ANY, "g", 8, 4, &fail), TL_NOTFOUND);
    assert_int_equal(tl_image_add_again(image, UINT64_MAX, TL_SPACE_ANY, "f", 8, 4, &fail),
                     TL_USAGE);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    const struct tl_bytes a =
        tl_image_view_at(image, tl_image_view(image, &none, 0, NULL), TL_SPACE_EL1N, 100);
    const struct tl_bytes b =
        tl_image_view_at(image, tl_image_view(image, &p1, 50, NULL), TL_SPACE_EL1N, 200);
    assert_true(a.n == 4 && b.n == 4 && a.p == b.p);
    assert_memory_equal(a.p, "part", 4);
    assert_int_equal(
        tl_image_view_at(image, tl_image_view(image, &p1, 49, NULL), TL_SPACE_EL1N, 200).n, 0);
    tl_image_free(image);
}

static void reads_files(void **state)
{
    char path[] = "/tmp/tl_image_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    close(fd);
    struct tl_image *image;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_file(image, path, 0x100, 2, 3, TL_SPACE_ANY, &fail), TL_OK);
    assert_int_equal(tl_image_add_file(image, path, 0x200, 7, UINT64_MAX, TL_SPACE_ANY, &fail),
                     TL_OK);
    assert_int_equal(tl_image_add_file(image, path, 0x300, 10, 0, TL_SPACE_ANY, &fail), TL_OK);
    assert_int_equal(tl_image_add_file(image, path, 0x300, 11, 0, TL_SPACE_ANY, &fail), TL_BAD);
    assert_int_equal(tl_image_add_file(image, path, 0x300, 5, 6, TL_SPACE_ANY, &fail), TL_BAD);
    assert_int_equal(fail.offset, 5);
    unlink(path);
    assert_int_equal(tl_image_add_file(image, path, 0x300, 0, 1, TL_SPACE_ANY, &fail), TL_IO);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    expect(image, TL_SPACE_ANY, 0x100, "234");
    expect(image, TL_SPACE_ANY, 0x200, "789");
    tl_image_free(image);
}

/* Parts of a file are where it is in memory, of one that was taken before copies. */
static void uses_files_in_place(void **state)
{
    char paths[][24] = {"/tmp/tl_image_XXXXXX", "/tmp/tl_image_XXXXXX"};
    static const char *const contents[] = {"0123456789", "abcdefghij"};
    struct tl_image *image;
    struct tl_bytes files[2], none;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned i = 0; i < 2; i++) {
        const int fd = mkstemp(paths[i]);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, contents[i], 10), 10);
        close(fd);
        assert_int_equal(tl_image_file(image, paths[i], &files[i], &fail), TL_OK);
        assert_memory_equal(files[i].p, contents[i], files[i].n);
        unlink(paths[i]);
    }
    assert_int_equal(tl_image_file(image, paths[0], &none, &fail), TL_IO);
    assert_int_equal(tl_image_file(image, "/dev/null", &none, &fail), TL_OK);
    assert_int_equal(none.n, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(tl_image_add_bytes(image, 0x100 * (i + 1),
                                            (struct tl_bytes){files[i].p + 3, 4}, TL_SPACE_ANY,
                                            paths[i], &fail),
                         TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    expect(image, TL_SPACE_ANY, 0x100, "3456");
    expect(image, TL_SPACE_ANY, 0x200, "defg");
    assert_true(tl_image_at(image, TL_SPACE_ANY, 0x100).p != files[0].p + 3);
    assert_ptr_equal(tl_image_at(image, TL_SPACE_ANY, 0x200).p, files[1].p + 3);
    tl_image_free(image);
}

static void names_spaces(void **state)
{
    static const char *const names[] = {"EL1S", "EL1N", "EL1R", "EL2", "EL2S", "EL2R",
                                        "EL3",  "ROOT", "S",    "N",   "R",    "ANY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(tl_space_parse(names[i]) > 0);
        assert_string_equal(tl_space_name((unsigned)tl_space_parse(names[i])), names[i]);
    }
    assert_int_equal(tl_space_parse("el2n"), TL_SPACE_EL2);
    assert_int_equal(tl_space_parse("EL4"), TL_BAD);
}

/* ---- ELF --------------------------------------------------------------------------------- */

static const char strings[] = "\0main\0helper\0$a\0label\0data";
enum { MAIN = 1, HELPER = 6, MAPPING = 13, LABEL = 16, DATA = 22 };

struct elf64 {
    Elf64_Ehdr eh;
    Elf64_Phdr ph[2];
    char text[16];
    Elf64_Sym sym[6];
    char str[sizeof strings];
    Elf64_Shdr sh[4];
};

static void make_elf64(struct elf64 *e)
{
    *e = (struct elf64){
        .eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
               .e_type = ET_EXEC,
               .e_machine = EM_AARCH64,
               .e_version = EV_CURRENT,
               .e_phoff = offsetof(struct elf64, ph),
               .e_shoff = offsetof(struct elf64, sh),
               .e_ehsize = sizeof(Elf64_Ehdr),
               .e_phentsize = sizeof(Elf64_Phdr),
               .e_phnum = 2,
               .e_shentsize = sizeof(Elf64_Shdr),
               .e_shnum = 4},
        .ph = {{.p_type = PT_LOAD,
                .p_flags = PF_R | PF_X,
                .p_offset = offsetof(struct elf64, text),
                .p_vaddr = 0x400000,
                .p_filesz = 16,
                .p_memsz = 32},
               {.p_type = PT_LOAD,
                .p_flags = PF_R | PF_W,
                .p_offset = offsetof(struct elf64, str),
                .p_vaddr = 0x500000,
                .p_filesz = 4,
                .p_memsz = 4}},
        .text = "code of the elf",
        .sym = {{0},
                {MAIN, STB_GLOBAL << 4 | STT_FUNC, 0, 1, 0x400004, 8},
                {HELPER, STB_LOCAL << 4 | STT_FUNC, 0, 1, 0x400000, 0},
                {MAPPING, STB_LOCAL << 4 | STT_NOTYPE, 0, 1, 0x400000, 0},
                {LABEL, STB_LOCAL << 4 | STT_NOTYPE, 0, 1, 0x40000c, 0},
                {DATA, STB_GLOBAL << 4 | STT_OBJECT, 0, 1, 0x400008, 4}},
        .sh = {{0},
               {.sh_type = SHT_PROGBITS,
                .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                .sh_addr = 0x400000,
                .sh_offset = offsetof(struct elf64, text),
                .sh_size = 16},
               {.sh_type = SHT_SYMTAB,
                .sh_offset = offsetof(struct elf64, sym),
                .sh_size = sizeof e->sym,
                .sh_link = 3,
                .sh_entsize = sizeof(Elf64_Sym)},
               {.sh_type = SHT_STRTAB,
                .sh_offset = offsetof(struct elf64, str),
                .sh_size = sizeof strings}},
    };
    memcpy(e->str, strings, sizeof strings);
}

static void reads_elf(void **state)
{
    struct elf64 e;
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    make_elf64(&e);
    assert_int_equal(tl_image_new(&image), TL_OK);
    const struct tl_bytes bytes = {(const uint8_t *)&e, sizeof e};
    assert_int_equal(tl_image_add_elf(image, bytes, 0x1000, TL_SPACE_ANY, "e", &fail), TL_OK);
    memset(&e, 0, sizeof e); /* copied */
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_memory_equal(tl_image_at(image, TL_SPACE_EL1N, 0x401000).p, "code of the elf", 16);
    assert_int_equal(tl_image_at(image, TL_SPACE_EL1N, 0x401000).n, 16);
    assert_int_equal(tl_image_at(image, TL_SPACE_EL1N, 0x501000).n, 0); /* data */
    size_t n;
    const struct tl_symbol *s = tl_image_symbols(image, &n);
    assert_int_equal(n, 3);
    assert_string_equal(s[0].name, "helper");
    assert_int_equal(s[0].size, 4); /* up to main */
    assert_string_equal(s[1].name, "main");
    assert_string_equal(s[2].name, "label");
    assert_string_equal(tl_image_symbol_at(image, 0x40100b)->name, "main");
    assert_int_equal(tl_image_symbol_index(image, 0x401003), 0);
    assert_null(tl_image_symbol_at(image, 0x400fff));
    tl_image_free(image);
}

/* Of a file that is cut off, the code that is there. */
static void reads_part_of_elf(void **state)
{
    struct elf64 e;
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    make_elf64(&e);
    assert_int_equal(tl_image_new(&image), TL_OK);
    const struct tl_bytes bytes = {(const uint8_t *)&e, offsetof(struct elf64, text) + 7};
    assert_int_equal(tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "e", &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_image_at(image, TL_SPACE_ANY, 0x400000).n, 7);
    assert_int_equal(tl_image_at(image, TL_SPACE_ANY, 0x400007).n, 0);
    tl_image_free(image);
}

/* The same file with other symbol names: each 'm' becomes `letter`. */
static void add_elf(struct tl_image *image, char letter, unsigned space)
{
    struct elf64 e;
    struct tl_fail fail;
    make_elf64(&e);
    for (size_t i = 0; i < sizeof e.str; i++)
        e.str[i] = e.str[i] == 'm' ? letter : e.str[i];
    const struct tl_bytes bytes = {(const uint8_t *)&e, sizeof e};
    assert_int_equal(tl_image_add_elf(image, bytes, 0, space, "e", &fail), TL_OK);
}

static void expect_symbol(const struct tl_image *image, const struct tl_image_context *context,
                          unsigned space, uint64_t address, const char *name)
{
    size_t n;
    const uint64_t view = tl_image_view(image, context, 0, NULL);
    const int64_t i = tl_image_view_symbol(image, view, space, address);
    const char *const found = i < 0 ? "none" : tl_image_symbols(image, &n)[i].name;
    assert_string_equal(found, name);
}

/* Where images overlap, the symbols are those of the one present at that time. */
static void symbols_are_bound_like_memory(void **state)
{
    static const struct tl_image_context none = {0}, p1 = {.context_id = 1, .has_context_id = true},
                                         p2 = {.context_id = 2, .has_context_id = true},
                                         p3 = {.context_id = 3, .has_context_id = true},
                                         p1_vm = {1, 9, true, true};
    struct tl_image *image;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_bind(image, &p2), TL_OK);
    add_elf(image, '2', TL_SPACE_ANY);
    assert_int_equal(tl_image_bind(image, &p1), TL_OK);
    add_elf(image, '1', TL_SPACE_EL1N);
    assert_int_equal(tl_image_bind(image, &p3), TL_OK); /* … whose functions have no names */
    const struct tl_bytes code = {(const uint8_t *)"other code", 10};
    assert_int_equal(tl_image_add_bytes(image, 0x400000, code, TL_SPACE_ANY, "", &fail), TL_OK);
    assert_int_equal(tl_image_bind(image, NULL), TL_OK);
    add_elf(image, 'm', TL_SPACE_ANY);
    add_elf(image, 'S', TL_SPACE_EL1S);
    assert_int_equal(tl_image_freeze(image), TL_OK);

    expect_symbol(image, &none, TL_SPACE_EL1N, 0x400004, "main");
    expect_symbol(image, &none, TL_SPACE_EL1S, 0x400004, "Sain");
    expect_symbol(image, &none, TL_SPACE_EL2, 0x400008, "main");
    expect_symbol(image, &p1, TL_SPACE_EL1N, 0x400004, "1ain");
    expect_symbol(image, &p1_vm, TL_SPACE_EL1N, 0x400008, "1ain");
    expect_symbol(image, &p1, TL_SPACE_EL2, 0x400004, "main"); /* not its space */
    expect_symbol(image, &p2, TL_SPACE_EL2, 0x400004, "2ain");
    expect_symbol(image, &p3, TL_SPACE_EL1N, 0x400004, "none");
    expect_symbol(image, &p3, TL_SPACE_EL1N, 0x40000c, "label"); /* after its code */
    expect_symbol(image, &p1, TL_SPACE_EL1N, 0x500000, "none");
    assert_string_equal(tl_image_symbol_at(image, 0x400002)->name, "helper");
    tl_image_free(image);
}

/* One file after another at the same place. */
static void symbols_have_their_time(void **state)
{
    static const struct {
        char letter;
        struct tl_image_span span;
    } files[] = {{'a', {0, 100}}, {'b', {100, 200}}, {'c', {150, 0}}};
    static const struct {
        uint64_t time;
        const char *name;
    } expected[] = {{0, "aain"},   {99, "aain"},  {100, "bain"}, {149, "bain"},
                    {150, "cain"}, {199, "cain"}, {200, "cain"}, {UINT64_MAX, "cain"}};
    static const struct tl_image_context none = {0};
    struct tl_image *image;
    size_t n;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (size_t i = 0; i < 3; i++) {
        tl_image_set_period(image, files[i].span);
        add_elf(image, files[i].letter, TL_SPACE_ANY);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const uint64_t view = tl_image_view(image, &none, expected[i].time, NULL);
        const int64_t s = tl_image_view_symbol(image, view, TL_SPACE_EL1N, 0x400004);
        assert_true(s >= 0);
        assert_string_equal(tl_image_symbols(image, &n)[s].name, expected[i].name);
    }
    tl_image_free(image);
}

static void refuses_what_is_no_elf(void **state)
{
    struct elf64 e;
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    make_elf64(&e);
    const struct tl_bytes bytes = {(const uint8_t *)&e, sizeof e};
    assert_int_equal(tl_image_new(&image), TL_OK);
    e.eh.e_ident[EI_DATA] = ELFDATA2MSB;
    assert_int_equal(tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "e", &fail), TL_UNSUPPORTED);
    make_elf64(&e);
    e.ph[0].p_offset = sizeof e;
    assert_int_equal(tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "e", &fail), TL_BAD);
    assert_int_equal(fail.offset, sizeof e);
    e.ph[0].p_flags = PF_R;
    assert_int_equal(tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "e", &fail), TL_UNSUPPORTED);
    e.eh.e_ident[0] = 'x';
    assert_int_equal(tl_image_add_elf(image, bytes, 0, TL_SPACE_ANY, "e", &fail), TL_BAD);
    tl_image_free(image);
}

/* Damage anywhere gives some result, and no errors afterwards. */
static void survives_damaged_elf(void **state)
{
    struct elf64 good, e;
    const unsigned seed = 7;
    print_message("seed %u\n", seed);
    srandom(seed);
    make_elf64(&good);
    for (int round = 0; round < 20000; round++) {
        struct tl_image *image;
        struct tl_fail fail;
        e = good;
        for (int i = random() % 4; i >= 0; i--)
            ((uint8_t *)&e)[(size_t)random() % sizeof e] = (uint8_t)(random() % 4 ? random() : 255);
        const size_t n = random() % 4 ? sizeof e : (size_t)random() % sizeof e;
        uint8_t *exact = malloc(n ? n : 1);
        memcpy(exact, &e, n);
        assert_int_equal(tl_image_new(&image), TL_OK);
        if (tl_image_add_elf(image, (struct tl_bytes){exact, n}, 0, TL_SPACE_ANY, "e", &fail) ==
            TL_OK) {
            size_t count;
            assert_int_equal(tl_image_freeze(image), TL_OK);
            const struct tl_symbol *s = tl_image_symbols(image, &count);
            for (size_t i = 0; i < count; i++)
                assert_true(strlen(s[i].name) > 0 && s[i].size > 0);
        }
        free(exact);
        tl_image_free(image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_up_by_space),
        cmocka_unit_test(looks_up_by_context),
        cmocka_unit_test(later_regions_win),
        cmocka_unit_test(reaches_the_end_of_the_address_space),
        cmocka_unit_test(agrees_with_a_plain_array),
        cmocka_unit_test(changes_as_plain_arrays_do),
        cmocka_unit_test(parts_are_kept_once),
        cmocka_unit_test(symbols_have_their_time),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(uses_files_in_place),
        cmocka_unit_test(names_spaces),
        cmocka_unit_test(reads_elf),
        cmocka_unit_test(reads_part_of_elf),
        cmocka_unit_test(symbols_are_bound_like_memory),
        cmocka_unit_test(refuses_what_is_no_elf),
        cmocka_unit_test(survives_damaged_elf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
