/* SPDX-License-Identifier: MIT */
/*
 * Which name an address has: the end of symbols without a size, the best of several names, stubs of
 * the procedure linkage table of each architecture. The files are made here, byte by byte.
 */
#include "base/buf.h"
#include "image/image.h"
#include "image/names.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- an ELF file ----------------------------------------------------------------------------- */

enum { TEXT = 1, SYMBOLS, NAMES, SLOTS, PLT_RELOCATIONS, RELOCATIONS, SECTION_NAMES, SECTIONS };
static const char section_names[] = "\0.text\0.plt\0.got.plt\0.rela.plt\0.rela.dyn";
enum { NAME_TEXT = 1, NAME_PLT = 7, NAME_GOT = 12, NAME_RELA_PLT = 21, NAME_RELA_DYN = 31 };

struct symbol {
    const char *name;
    uint64_t address, size;
    unsigned info;
};

struct relocation {
    uint64_t slot, symbol, type;
};

struct file {
    uint16_t machine;
    bool is_64, with_addends;
    uint64_t code_at, got;
    const void *code;
    size_t n_code, entry; /* entry: of a section .plt; 0: of .text */
    const struct symbol *symbols;
    size_t n_symbols;
    const struct relocation *plt, *other;
    size_t n_plt, n_other;
};

static void add(struct tl_buf *b, const void *p, size_t n)
{
    assert_int_equal(tl_buf_add(b, p, n), TL_OK);
}

static void add_word(struct tl_buf *b, const struct file *f, uint64_t value)
{
    add(b, &value, f->is_64 ? 8 : 4);
}

static void add_symbols(const struct file *f, struct tl_buf *symbols, struct tl_buf *names)
{
    add(names, "", 1);
    add(symbols, &(Elf64_Sym){0}, f->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    for (size_t i = 0; i < f->n_symbols; i++) {
        const struct symbol *const s = &f->symbols[i];
        const uint16_t section = s->address ? TEXT : SHN_UNDEF;
        const Elf64_Sym wide = {
            (Elf64_Word)names->n, (unsigned char)s->info, 0, section, s->address, s->size};
        const Elf32_Sym narrow = {(Elf32_Word)names->n,
                                  (Elf32_Addr)s->address,
                                  (Elf32_Word)s->size,
                                  (unsigned char)s->info,
                                  0,
                                  section};
        add(symbols, f->is_64 ? (const void *)&wide : &narrow,
            f->is_64 ? sizeof wide : sizeof narrow);
        add(names, s->name, strlen(s->name) + 1);
    }
}

static void add_relocations(const struct file *f, const struct relocation *r, size_t n,
                            struct tl_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        add_word(out, f, r[i].slot);
        add_word(out, f, f->is_64 ? r[i].symbol << 32 | r[i].type : r[i].symbol << 8 | r[i].type);
        if (f->with_addends)
            add_word(out, f, 0);
    }
}

/* Append a section's bytes and describe it. */
static void put(struct tl_buf *out, Elf64_Shdr *sh, const struct tl_buf *bytes)
{
    while (out->n % 16)
        add(out, "", 1);
    sh->sh_offset = out->n;
    sh->sh_size = bytes->n;
    add(out, bytes->p ? (const void *)bytes->p : "", bytes->n);
}

static void put_headers(const struct file *f, struct tl_buf *out, const Elf64_Shdr *sh)
{
    const uint64_t at = out->n, code = sh[TEXT].sh_offset, n = sh[TEXT].sh_size;
    for (size_t i = 0; i < SECTIONS; i++) {
        const Elf64_Shdr *const s = &sh[i];
        const Elf32_Shdr narrow = {s->sh_name,
                                   s->sh_type,
                                   (Elf32_Word)s->sh_flags,
                                   (Elf32_Addr)s->sh_addr,
                                   (Elf32_Off)s->sh_offset,
                                   (Elf32_Word)s->sh_size,
                                   s->sh_link,
                                   0,
                                   0,
                                   (Elf32_Word)s->sh_entsize};
        add(out, f->is_64 ? (const void *)s : &narrow, f->is_64 ? sizeof *s : sizeof narrow);
    }
    const Elf64_Ehdr wide = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_type = ET_EXEC,
                             .e_machine = f->machine,
                             .e_version = EV_CURRENT,
                             .e_phoff = sizeof wide,
                             .e_shoff = at,
                             .e_ehsize = sizeof wide,
                             .e_phentsize = sizeof(Elf64_Phdr),
                             .e_phnum = 1,
                             .e_shentsize = sizeof(Elf64_Shdr),
                             .e_shnum = SECTIONS,
                             .e_shstrndx = SECTION_NAMES};
    const Elf32_Ehdr narrow = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = f->machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof narrow,
        .e_shoff = (Elf32_Off)at,
        .e_ehsize = sizeof narrow,
        .e_phentsize = sizeof(Elf32_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf32_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = SECTION_NAMES};
    const Elf64_Phdr load = {.p_type = PT_LOAD,
                             .p_flags = PF_R | PF_X,
                             .p_offset = code,
                             .p_vaddr = f->code_at,
                             .p_filesz = n,
                             .p_memsz = n};
    const Elf32_Phdr load32 = {.p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_offset = (Elf32_Off)code,
                               .p_vaddr = (Elf32_Addr)f->code_at,
                               .p_filesz = (Elf32_Word)n,
                               .p_memsz = (Elf32_Word)n};
    memcpy(out->p, f->is_64 ? (const void *)&wide : &narrow,
           f->is_64 ? sizeof wide : sizeof narrow);
    memcpy(out->p + (f->is_64 ? sizeof wide : sizeof narrow),
           f->is_64 ? (const void *)&load : &load32, f->is_64 ? sizeof load : sizeof load32);
}

static void make_file(const struct file *f, struct tl_buf *out)
{
    static const uint8_t space[sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)];
    struct tl_buf parts[SECTIONS] = {{0}};
    Elf64_Shdr sh[SECTIONS] = {
        [TEXT] = {.sh_name = f->entry ? NAME_PLT : NAME_TEXT,
                  .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                  .sh_addr = f->code_at,
                  .sh_entsize = f->entry},
        [SYMBOLS] = {.sh_type = f->n_plt + f->n_other ? SHT_DYNSYM : SHT_SYMTAB, .sh_link = NAMES},
        [NAMES] = {.sh_type = SHT_STRTAB},
        [SLOTS] = {.sh_name = NAME_GOT, .sh_type = SHT_NOBITS, .sh_addr = f->got},
        [PLT_RELOCATIONS] = {.sh_name = NAME_RELA_PLT, .sh_link = SYMBOLS},
        [RELOCATIONS] = {.sh_name = NAME_RELA_DYN, .sh_link = SYMBOLS},
        [SECTION_NAMES] = {.sh_type = SHT_STRTAB}};
    sh[PLT_RELOCATIONS].sh_type = sh[RELOCATIONS].sh_type = f->with_addends ? SHT_RELA : SHT_REL;
    add(out, space, sizeof space);
    add(&parts[TEXT], f->code, f->n_code);
    add_symbols(f, &parts[SYMBOLS], &parts[NAMES]);
    add_relocations(f, f->plt, f->n_plt, &parts[PLT_RELOCATIONS]);
    add_relocations(f, f->other, f->n_other, &parts[RELOCATIONS]);
    add(&parts[SECTION_NAMES], section_names, sizeof section_names);
    for (size_t i = 1; i < SECTIONS; i++) {
        put(out, &sh[i], &parts[i]);
        tl_buf_fini(&parts[i]);
    }
    while (out->n % 16)
        add(out, "", 1);
    put_headers(f, out, sh);
}

static struct tl_image *image_of(const struct file *f)
{
    struct tl_buf bytes = {0};
    struct tl_fail fail = {0};
    struct tl_image *image;
    make_file(f, &bytes);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_elf(image, (struct tl_bytes){bytes.p, bytes.n}, 0, TL_SPACE_ANY,
                                      "made", &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&bytes);
    return image;
}

static const char *name_at(const struct tl_image *image, uint64_t pc)
{
    const struct tl_symbol *const s = tl_image_symbol_at(image, pc);
    return s ? s->name : "none";
}

#define FUNC(bind)  ((bind) << 4 | STT_FUNC)
#define LABEL(bind) ((bind) << 4 | STT_NOTYPE)

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A symbol without a size ends with the next one, or with its section, even if something else is
 * mapped behind it. What stands at the end of the section is the name of nothing. */
static void symbols_without_size(void **state)
{
    (void)state;
    static const struct symbol symbols[] = {{"first", 0x1000, 4, FUNC(STB_GLOBAL)},
                                            {"second", 0x1008, 0, FUNC(STB_GLOBAL)},
                                            {"last", 0x100c, 0, FUNC(STB_GLOBAL)},
                                            {"_end", 0x1010, 0, LABEL(STB_GLOBAL)}};
    const struct file f = {.machine = EM_X86_64,
                           .is_64 = true,
                           .code_at = 0x1000,
                           .code = "0123456789abcdef",
                           .n_code = 16,
                           .symbols = symbols,
                           .n_symbols = 4};
    struct tl_buf bytes = {0};
    struct tl_fail fail = {0};
    struct tl_image *image;
    make_file(&f, &bytes);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_elf(image, (struct tl_bytes){bytes.p, bytes.n}, 0, TL_SPACE_ANY,
                                      "made", &fail),
                     TL_OK);
    assert_int_equal(tl_image_add_bytes(image, 0x1010,
                                        (struct tl_bytes){(const uint8_t *)"other", 5},
                                        TL_SPACE_ANY, "other", &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_string_equal(name_at(image, 0x1003), "first");
    assert_string_equal(name_at(image, 0x1004), "none");
    assert_string_equal(name_at(image, 0x100b), "second");
    assert_string_equal(name_at(image, 0x100f), "last");
    assert_string_equal(name_at(image, 0x1010), "none");
    assert_string_equal(name_at(image, 0x1011), "none");
    tl_image_free(image);
    tl_buf_fini(&bytes);
}

/* Of a part of a file, symbols without a size end with the part. */
static void symbols_of_a_part(void **state)
{
    (void)state;
    static const struct symbol symbols[] = {{"f", 0x1000, 0, FUNC(STB_GLOBAL)}};
    const struct file f = {.machine = EM_X86_64,
                           .is_64 = true,
                           .code_at = 0x1000,
                           .code = "0123456789abcdef",
                           .n_code = 16,
                           .symbols = symbols,
                           .n_symbols = 1};
    struct tl_buf bytes = {0};
    struct tl_fail fail = {0};
    struct tl_image *image;
    make_file(&f, &bytes);
    const struct tl_bytes file = {bytes.p, bytes.n};
    const uint8_t *const code = memmem(bytes.p, bytes.n, f.code, f.n_code);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_part(image, 0x7000, (struct tl_bytes){code, 8}, TL_SPACE_ANY,
                                       "made", (uint64_t)(code - bytes.p), 8, &fail),
                     TL_OK);
    assert_int_equal(tl_image_part_functions(image, 0x7000, file, TL_SPACE_ANY, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_string_equal(name_at(image, 0x7007), "f");
    assert_string_equal(name_at(image, 0x7008), "none");
    tl_image_free(image);
    tl_buf_fini(&bytes);
}

/* ---- several names --------------------------------------------------------------------------- */

static void best_of_several_names(void **state)
{
    (void)state;
    static const struct symbol symbols[] = {
        {"a_local", 0x1000, 4, FUNC(STB_LOCAL)},   {"global", 0x1000, 4, FUNC(STB_GLOBAL)},
        {"a_label", 0x1004, 0, LABEL(STB_GLOBAL)}, {"function", 0x1004, 4, FUNC(STB_LOCAL)},
        {"a_bare", 0x1008, 0, FUNC(STB_GLOBAL)},   {"sized", 0x1008, 4, FUNC(STB_GLOBAL)},
        {"__write", 0x100c, 4, FUNC(STB_GLOBAL)},  {"write", 0x100c, 4, FUNC(STB_WEAK)}};
    enum { N = sizeof symbols / sizeof *symbols };
    struct symbol turned[N];
    for (size_t i = 0; i < N; i++)
        turned[i] = symbols[N - 1 - i];
    for (unsigned round = 0; round < 2; round++) {
        const struct file f = {.machine = EM_X86_64,
                               .is_64 = true,
                               .code_at = 0x1000,
                               .code = "0123456789abcdef",
                               .n_code = 16,
                               .symbols = round ? turned : symbols,
                               .n_symbols = N};
        struct tl_image *const image = image_of(&f);
        assert_string_equal(name_at(image, 0x1000), "global");
        assert_string_equal(name_at(image, 0x1004), "function");
        assert_string_equal(name_at(image, 0x1008), "sized");
        assert_string_equal(name_at(image, 0x100c), "write");
        tl_image_free(image);
    }
}

/* How many functions a whole name finds; `address`: of one of them. */
static size_t count_named(const struct tl_image *image, const char *name, uint64_t *address)
{
    uint8_t wanted[16] = {0};
    size_t n;
    const struct tl_symbol *const symbols = tl_image_symbols(image, &n);
    assert_true(n <= sizeof wanted);
    const size_t found = tl_image_named(image, name, strlen(name), TL_NAMING_WHOLE, wanted);
    for (size_t i = 0; i < n; i++)
        *address = wanted[i] ? symbols[i].address : *address;
    return found;
}

/* Functions of one name are told apart by their programs, those of another name, or of a file that
 * nobody named, are not; and a program in brackets means just its function. */
static void names_of_several_programs(void **state)
{
    (void)state;
    static const char *const programs[] = {"ls", "cat", "cat", NULL};
    static const struct symbol symbols[][2] = {
        {{"main", 0x1000, 4, FUNC(STB_GLOBAL)}, {"list", 0x1004, 4, FUNC(STB_GLOBAL)}},
        {{"main", 0x2000, 4, FUNC(STB_GLOBAL)}, {"copy", 0x2004, 4, FUNC(STB_GLOBAL)}},
        {{"copy", 0x3000, 4, FUNC(STB_LOCAL)}, {"_Z1fi", 0x3004, 4, FUNC(STB_LOCAL)}},
        {{"main", 0x4000, 4, FUNC(STB_GLOBAL)}, {"_Z1fi", 0x4004, 4, FUNC(STB_LOCAL)}},
    };
    static const char *const told[] = {"main [ls]", "list",         "main [cat]", "copy",
                                       "copy",      "f(int) [cat]", "main",       "f(int)"};
    struct tl_image *image;
    struct tl_fail fail;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (size_t i = 0; i < 4; i++) {
        const struct file f = {.machine = EM_X86_64,
                               .is_64 = true,
                               .code_at = 0x1000 * (i + 1),
                               .code = "01234567",
                               .n_code = 8,
                               .symbols = symbols[i],
                               .n_symbols = 2};
        struct tl_buf bytes = {0};
        make_file(&f, &bytes);
        assert_int_equal(tl_image_set_program(image, programs[i]), TL_OK);
        assert_int_equal(tl_image_add_elf(image, (struct tl_bytes){bytes.p, bytes.n}, 0,
                                          TL_SPACE_ANY, "made", &fail),
                         TL_OK);
        tl_buf_fini(&bytes);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(tl_image_symbol_told(image, i), told[i]);
    assert_string_equal(tl_image_symbol_name(image, 0), "main");
    assert_string_equal(tl_image_symbol_program(image, 5), "cat");
    assert_string_equal(tl_image_symbol_program(image, 6), "");
    uint64_t at = 0;
    assert_int_equal(count_named(image, "main", &at), 3);
    assert_int_equal(count_named(image, "main [cat]", &at), 1);
    assert_int_equal(at, 0x2000);
    assert_int_equal(count_named(image, "f [cat]", &at), 1);
    assert_int_equal(at, 0x3004);
    assert_int_equal(count_named(image, "list [cat]", &at), 0);
    assert_int_equal(count_named(image, "main [cp]", &at), 0);
    tl_image_free(image);
}

/* A function is found without what linkers and compilers add to its name, if no other one has just
 * this name. */
static void names_with_additions(void **state)
{
    (void)state;
    static const struct symbol symbols[] = {
        {"foo@V1", 0x1000, 1, FUNC(STB_GLOBAL)},
        {"foo@@V2", 0x1001, 1, FUNC(STB_GLOBAL)},
        {"bar", 0x1002, 1, FUNC(STB_GLOBAL)},
        {"bar.cold", 0x1003, 1, FUNC(STB_LOCAL)},
        {"qux.isra.0", 0x1004, 1, FUNC(STB_LOCAL)},
        {"_Z1fi@@V2", 0x1005, 1, FUNC(STB_GLOBAL)},
        {"_Z1gi.isra.0", 0x1006, 1, FUNC(STB_LOCAL)},
        {".dot", 0x1007, 1, FUNC(STB_LOCAL)},
        {"far@plt", 0x1008, 1, FUNC(STB_LOCAL)},
        {"_ZN1AIiLi5EE4convIdEET_S2_", 0x1009, 1, FUNC(STB_WEAK)}};
    static const struct {
        const char *name;
        size_t n;
        uint64_t address;
    } wanted[] = {{"foo", 2, 0x1001},     {"foo@V1", 1, 0x1000},
                  {"bar", 1, 0x1002},     {"bar.cold", 1, 0x1003},
                  {"qux", 1, 0x1004},     {"f", 1, 0x1005},
                  {"f(int)", 1, 0x1005},  {"g", 1, 0x1006},
                  {"g(int)", 1, 0x1006},  {"_Z1gi.isra", 0, 0},
                  {".dot", 1, 0x1007},    {"far", 0, 0},
                  {"far@plt", 1, 0x1008}, {"A<int, 5>::conv", 1, 0x1009},
                  {"A::conv", 1, 0x1009}, {"A<char, 5>::conv", 0, 0},
                  {"fo", 0, 0},           {"", 0, 0}};
    const struct file f = {.machine = EM_X86_64,
                           .is_64 = true,
                           .code_at = 0x1000,
                           .code = "0123456789abcdef",
                           .n_code = 16,
                           .symbols = symbols,
                           .n_symbols = sizeof symbols / sizeof *symbols};
    struct tl_image *const image = image_of(&f);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        uint64_t address = 0;
        assert_int_equal(count_named(image, wanted[i].name, &address), wanted[i].n);
        assert_int_equal(address, wanted[i].address);
    }
    tl_image_free(image);
}

/* ---- stubs ----------------------------------------------------------------------------------- */

static const struct symbol imported[] = {{"puts", 0, 0, FUNC(STB_GLOBAL)},
                                         {"exit", 0, 0, FUNC(STB_GLOBAL)}};

static void expect_stubs(struct file f, const uint64_t (*stubs)[2], size_t n)
{
    f.symbols = imported;
    f.n_symbols = 2;
    struct tl_image *const image = image_of(&f);
    for (size_t i = 0; i < n; i++) {
        const char *const name = i % 2 ? "exit@plt" : "puts@plt";
        assert_string_equal(name_at(image, stubs[i][0]), name);
        assert_string_equal(name_at(image, stubs[i][1]), name);
        assert_int_equal(tl_image_symbol_at(image, stubs[i][0])->address, stubs[i][0]);
    }
    assert_string_equal(name_at(image, stubs[0][0] - 1), "none");
    tl_image_free(image);
}

static void stubs_of_x86_64(void **state)
{
    (void)state;
    static const uint8_t lazy[] = {0xff, 0x35, 0xe2, 0x2f, 0,    0,    0xff, 0x25, 0xe4, 0x2f, 0,
                                   0,    0x0f, 0x1f, 0x40, 0, /* the common part has no name */
                                   0xff, 0x25, 0xe2, 0x2f, 0,    0,    0x68, 0,    0,    0,    0,
                                   0xe9, 0xe0, 0xff, 0xff, 0xff, 0xff, 0x25, 0xda, 0x2f, 0,    0,
                                   0x68, 1,    0,    0,    0,    0xe9, 0xd0, 0xff, 0xff, 0xff};
    static const uint8_t protected[] = {
        0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xed, 0x2f, 0, 0,    0x0f, 0x1f, 0x44, 0, 0,
        0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xe6, 0x2f, 0,    0, 0x66, 0x0f, 0x1f, 0x44, 0, 0};
    static const uint8_t pushing[] = {
        0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xf2, 0xe9, 0xe1, 0xff, 0xff, 0xff, 0x90,
        0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0xd1, 0xff, 0xff, 0xff, 0x90};
    static const uint8_t by_mold[] = {
        0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 0, 0, 0, 0, 0xff, 0x25, 0xe8, 0x2f, 0, 0,
        0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 1, 0, 0, 0, 0xff, 0x25, 0xe0, 0x2f, 0, 0};
    static const uint8_t got[] = {0xff, 0x25, 0xf2, 0x2f, 0, 0, 0x66, 0x90,
                                  0xff, 0x25, 0xf2, 0x2f, 0, 0, 0x66, 0x90};
    static const struct relocation at_3ff8[] = {{0x3ff8, 1, R_X86_64_JUMP_SLOT},
                                                {0x4000, 2, R_X86_64_JUMP_SLOT}};
    static const struct relocation data[] = {{0x3ff8, 1, R_X86_64_GLOB_DAT},
                                             {0x4000, 2, R_X86_64_GLOB_DAT}};
    struct file f = {.machine = EM_X86_64,
                     .is_64 = true,
                     .with_addends = true,
                     .code_at = 0x1000,
                     .code = lazy,
                     .n_code = sizeof lazy,
                     .entry = 16,
                     .plt = at_3ff8,
                     .n_plt = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1010, 0x101f}, {0x1020, 0x102f}}, 2);
    f.code = protected;
    f.n_code = sizeof protected;
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
    f.code = by_mold;
    f.n_code = sizeof by_mold;
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
    f.code = pushing;
    f.n_code = sizeof pushing;
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
    f = (struct file){.machine = EM_X86_64,
                      .is_64 = true,
                      .with_addends = true,
                      .code_at = 0x1000,
                      .code = got,
                      .n_code = sizeof got,
                      .entry = 8,
                      .other = data,
                      .n_other = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x1007}, {0x1008, 0x100f}}, 2);
}

static void stubs_of_i386(void **state)
{
    (void)state;
    static const uint8_t fixed[] = {0xff, 0x25, 0x0c, 0x40, 0,    0,    0x68, 0,    0,    0,   0,
                                    0xe9, 0xe0, 0xff, 0xff, 0xff, 0xff, 0x25, 0x10, 0x40, 0,   0,
                                    0x68, 8,    0,    0,    0,    0xe9, 0xd0, 0xff, 0xff, 0xff};
    static const uint8_t shared[] = {0xff, 0xa3, 0x0c, 0,    0,    0,    0x68, 0,    0,    0,    0,
                                     0xe9, 0xe0, 0xff, 0xff, 0xff, 0xf3, 0x0f, 0x1e, 0xfb, 0x68, 8,
                                     0,    0,    0,    0xe9, 0xd0, 0xff, 0xff, 0xff, 0x66, 0x90};
    static const struct relocation slots[] = {{0x400c, 1, R_386_JMP_SLOT},
                                              {0x4010, 2, R_386_JMP_SLOT}};
    struct file f = {.machine = EM_386,
                     .code_at = 0x1000,
                     .got = 0x4000,
                     .code = fixed,
                     .n_code = sizeof fixed,
                     .entry = 16,
                     .plt = slots,
                     .n_plt = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
    f.code = shared;
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
}

static void stubs_of_aarch64(void **state)
{
    (void)state;
    /* The common part, then one stub, then one behind a landing pad. */
    static const uint32_t code[] = {0xa9bf7bf0, 0xf0000010, 0xf947fe11, 0x913fe210, 0xd61f0220,
                                    0xd503201f, 0xd503201f, 0xd503201f, 0x90000030, 0xf9400211,
                                    0x91000210, 0xd61f0220, 0xd503245f, 0x90000030, 0xf9400611,
                                    0x91002210, 0xd61f0220, 0xd503201f};
    static const struct relocation slots[] = {{0x5000, 1, R_AARCH64_JUMP_SLOT},
                                              {0x5008, 2, R_AARCH64_JUMP_SLOT}};
    const struct file f = {.machine = EM_AARCH64,
                           .is_64 = true,
                           .with_addends = true,
                           .code_at = 0x1000,
                           .code = code,
                           .n_code = sizeof code,
                           .entry = 16,
                           .plt = slots,
                           .n_plt = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1020, 0x102f}, {0x1030, 0x1043}}, 2);
}

static void stubs_of_arm(void **state)
{
    (void)state;
    /* One stub of three words, one of four behind a switch from Thumb. */
    static const uint32_t code[] = {0xe28fc600, 0xe28cca03, 0xe5bcfff8, 0x46c04778,
                                    0xe28fc200, 0xe28cc600, 0xe28cca03, 0xe5bcfff0};
    static const uint8_t thumb[] = {0x40, 0xf6, 0xf4, 0x7c, 0xc0, 0xf2, 0,    0x0c,
                                    0xfc, 0x44, 0xdc, 0xf8, 0,    0xf0, 0xfc, 0xe7};
    static const struct relocation slots[] = {{0x5000, 1, R_ARM_JUMP_SLOT},
                                              {0x5008, 2, R_ARM_JUMP_SLOT}};
    static const struct relocation one[] = {{0x2000, 1, R_ARM_JUMP_SLOT}};
    const struct file f = {.machine = EM_ARM,
                           .code_at = 0x1000,
                           .code = code,
                           .n_code = sizeof code,
                           .entry = 4,
                           .plt = slots,
                           .n_plt = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100b}, {0x100c, 0x101f}}, 2);
    const struct file t = {.machine = EM_ARM,
                           .code_at = 0x1000,
                           .code = thumb,
                           .n_code = sizeof thumb,
                           .entry = 4,
                           .plt = one,
                           .n_plt = 1};
    expect_stubs(t, (uint64_t[][2]){{0x1000, 0x100f}}, 1);
}

static void stubs_of_riscv(void **state)
{
    (void)state;
    static const uint32_t wide[] = {0x00004e17, 0x000e3e03, 0x000e0367, 0x00000013,
                                    0x00004e17, 0xff8e3e03, 0x000e0367, 0x00000013};
    static const uint32_t narrow[] = {0x00004e17, 0x000e2e03, 0x000e0367, 0x00000013};
    static const struct relocation slots[] = {{0x5000, 1, R_RISCV_JUMP_SLOT},
                                              {0x5008, 2, R_RISCV_JUMP_SLOT}};
    struct file f = {.machine = EM_RISCV,
                     .is_64 = true,
                     .with_addends = true,
                     .code_at = 0x1000,
                     .code = wide,
                     .n_code = sizeof wide,
                     .entry = 16,
                     .plt = slots,
                     .n_plt = 2};
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}, {0x1010, 0x101f}}, 2);
    f.is_64 = false;
    f.code = narrow;
    f.n_code = sizeof narrow;
    expect_stubs(f, (uint64_t[][2]){{0x1000, 0x100f}}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_without_size),
        cmocka_unit_test(symbols_of_a_part),
        cmocka_unit_test(best_of_several_names),
        cmocka_unit_test(names_with_additions),
        cmocka_unit_test(names_of_several_programs),
        cmocka_unit_test(stubs_of_x86_64),
        cmocka_unit_test(stubs_of_i386),
        cmocka_unit_test(stubs_of_aarch64),
        cmocka_unit_test(stubs_of_arm),
        cmocka_unit_test(stubs_of_riscv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
