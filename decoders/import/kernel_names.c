/* SPDX-License-Identifier: MIT */
/*
 * Lists of a kernel's functions have addresses and names, but neither ends nor code. Written as the
 * symbols of an ELF file they are an image like any other, here and on a server, whether or not the
 * file has code.
 */
#include "import/kernel_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)

static int add_text(struct tl_kernel_names *names, const char *text, uint32_t *at)
{
    if (names->text.n > UINT32_MAX / 2)
        return TL_NOMEM;
    *at = (uint32_t)names->text.n;
    return tl_buf_add(&names->text, text, strlen(text) + 1);
}

static const char *text_at(const struct tl_kernel_names *names, uint32_t at)
{
    return (const char *)names->text.p + at;
}

/* `module`: "" for the kernel itself. Those of one module follow each other. */
static int add_function(struct tl_kernel_names *names, struct tl_kernel_function f,
                        const char *name, const char *module)
{
    const uint32_t last = names->n ? names->functions[names->n - 1].module : 0;
    int rc = TL_OK;
    if (tl_grow(&names->functions, &names->cap, names->n + 1, sizeof *names->functions) < 0)
        return TL_NOMEM;
    if (strcmp(text_at(names, last), module) == 0)
        f.module = last;
    else if (*module)
        rc = add_text(names, module, &f.module);
    if (rc >= 0)
        rc = add_text(names, name, &f.name);
    names->functions[names->n++] = f;
    return rc;
}

static int by_address(const void *a, const void *b)
{
    const struct tl_kernel_function *const x = a, *const y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* "ffffffff81000000 T _text", and "\t[module]" behind those of modules. Nothing is at 0, nor where
 * no page follows: set_sizes(). */
static int read_line(struct tl_kernel_names *names, const char *line)
{
    char name[512], module[64] = "", type;
    struct tl_kernel_function f = {0};
    const int n = sscanf(line, "%" SCNx64 " %c %511s %63s", &f.address, &type, name, module);
    if (n < 3 || f.address == 0 || f.address >= UINT64_MAX - 2 * PAGE || !strchr("tTwW", type))
        return TL_OK;
    f.is_global = type == 'T' || type == 'W';
    return add_function(names, f, name, module);
}

int tl_kernel_names_read(struct tl_kernel_names *names, const char *path)
{
    char line[1024];
    FILE *const f = fopen(path, "re");
    if (!f)
        return TL_IO;
    int rc = tl_buf_add(&names->text, "", 1);
    while (rc >= 0 && fgets(line, sizeof line, f))
        rc = read_line(names, line);
    if (rc >= 0 && ferror(f))
        rc = TL_IO;
    fclose(f);
    if (names->n > 1)
        qsort(names->functions, names->n, sizeof *names->functions, by_address);
    return rc < 0 ? rc : TL_OK;
}

void tl_kernel_names_fini(struct tl_kernel_names *names)
{
    free(names->functions);
    tl_buf_fini(&names->text);
}

bool tl_kernel_names_find(const struct tl_kernel_names *names, const char *name, uint64_t *address)
{
    for (size_t i = 0; i < names->n; i++) {
        const struct tl_kernel_function *const f = &names->functions[i];
        if (f->module != 0 || strcmp(text_at(names, f->name), name) != 0)
            continue;
        *address = f->address;
        return true;
    }
    return false;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Each function ends at the next one. Between the kernel and its modules is memory of other kinds:
 * there, as behind the last one, a function ends with the page after its first. */
static void set_sizes(struct tl_kernel_names *names)
{
    const struct tl_kernel_function *next = NULL; /* the next one that begins elsewhere */
    for (size_t i = names->n; i-- > 0;) {
        struct tl_kernel_function *const f = &names->functions[i];
        next = i + 1 < names->n && f[1].address != f->address ? f + 1 : next;
        const uint64_t pages = (f->address / PAGE + 2) * PAGE - f->address;
        const uint64_t room = next ? next->address - f->address : pages;
        const bool together =
            next && strcmp(text_at(names, next->module), text_at(names, f->module)) == 0;
        f->size = together || room < pages ? room : pages;
    }
}

/* Zeros up to a multiple of 8; then *at is where the next byte is in the file. */
static int align(struct tl_buf *out, size_t start, uint64_t *at)
{
    static const uint8_t zeros[8];
    const int rc = tl_buf_add(out, zeros, (8 - (out->n - start) % 8) % 8);
    *at = out->n - start;
    return rc;
}

static int write_symbols(const struct tl_kernel_names *names, struct tl_buf *out)
{
    for (size_t i = 0; i < names->n; i++) {
        const struct tl_kernel_function *const f = &names->functions[i];
        const Elf64_Sym symbol = {
            .st_name = f->name,
            .st_info = ELF64_ST_INFO(f->is_global ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
            .st_shndx = SHN_ABS,
            .st_value = f->address,
            .st_size = f->size,
        };
        const int rc = f->size > 0 ? tl_buf_add(out, &symbol, sizeof symbol) : TL_OK;
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_kernel_names_sections(const struct tl_kernel_names *names, size_t start, Elf64_Ehdr *header,
                             struct tl_buf *out)
{
    enum { NONE, SYMBOLS, NAMES, SECTIONS };
    Elf64_Shdr sections[SECTIONS] = {
        [SYMBOLS] = {.sh_type = SHT_SYMTAB, .sh_link = NAMES, .sh_entsize = sizeof(Elf64_Sym)},
        [NAMES] = {.sh_type = SHT_STRTAB, .sh_size = names->text.n},
    };
    int rc = align(out, start, &sections[SYMBOLS].sh_offset);
    if (rc >= 0)
        rc = write_symbols(names, out);
    sections[NAMES].sh_offset = out->n - start;
    sections[SYMBOLS].sh_size = sections[NAMES].sh_offset - sections[SYMBOLS].sh_offset;
    if (rc >= 0)
        rc = tl_buf_add(out, names->text.p, names->text.n);
    if (rc >= 0)
        rc = align(out, start, &header->e_shoff);
    if (rc >= 0)
        rc = tl_buf_add(out, sections, sizeof sections);
    header->e_shnum = SECTIONS;
    header->e_shentsize = sizeof *sections;
    header->e_shstrndx = NAMES;
    return rc;
}

int tl_kernel_names_file(struct tl_kernel_names *names, unsigned machine, struct tl_buf *out)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = (uint16_t)machine,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof header};
    const size_t start = out->n;
    if (names->n == 0)
        return TL_NOTFOUND;
    set_sizes(names);
    int rc = tl_buf_add(out, &header, sizeof header); /* again when offsets are known */
    if (rc >= 0)
        rc = tl_kernel_names_sections(names, start, &header, out);
    if (rc >= 0)
        memcpy(out->p + start, &header, sizeof header);
    return rc < 0 ? rc : TL_OK;
}

/* ---- modules --------------------------------------------------------------------------------- */

bool tl_kernel_module_read(struct tl_kernel_module *out, const char *line)
{
    return sscanf(line, "%63s %" SCNu64 " %*s %*s %*s 0x%" SCNx64, out->name, &out->size,
                  &out->address) == 3 &&
           out->size > 0 && out->address > 0;
}
