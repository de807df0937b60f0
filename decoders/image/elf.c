/* SPDX-License-Identifier: MIT */
/*
 * Executable segments and function symbols of an ELF file.
 *
 * The file may be malicious: everything that libelf returns is checked against the file's size
 * before use, and the total size of mapped segments is limited relative to the file's size, because
 * many headers may refer to the same bytes.
 */
#include "base/buf.h"
#include "image/elf_places.h"
#include "image/image_parts.h"

#include <gelf.h>
#include <stdlib.h>

#define MAPPED_PER_BYTE 4 /* limit of mapped bytes per file byte; segments may overlap in pages */

struct elf_load {
    struct tl_image *image;
    struct tl_bytes bytes;
    uint64_t bias;
    unsigned space;
    const char *name;
    struct tl_fail *fail;
    struct tl_file_symbols *file; /* collects symbols by file offset; NULL: by address */
};

/* Of a file that is cut off, what is there is mapped. */
static int map_segments(const struct elf_load *load, Elf *elf)
{
    size_t n = 0, mapped = 0, executable = 0;
    uint64_t beyond = 0; /* file offset of a segment that is not there */
    if (elf_getphdrnum(elf, &n) != 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph))
            return tl_fail_set(load->fail, TL_BAD, "%s: its program headers are cut off",
                               load->name);
        if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || ph.p_filesz == 0)
            continue;
        executable++;
        if (ph.p_offset >= load->bytes.n) {
            beyond = ph.p_offset;
            continue;
        }
        const uint64_t there = load->bytes.n - ph.p_offset;
        const struct tl_bytes piece = {load->bytes.p + ph.p_offset,
                                       ph.p_filesz < there ? ph.p_filesz : there};
        if (piece.n > load->bytes.n * MAPPED_PER_BYTE - mapped)
            return tl_fail_set(load->fail, TL_BAD, "%s: its segments overlap each other",
                               load->name);
        mapped += piece.n;
        const int rc = tl_image_add_bytes(load->image, ph.p_vaddr + load->bias, piece, load->space,
                                          load->name, load->fail);
        if (rc < 0)
            return rc;
    }
    if (executable == 0)
        return tl_fail_set(load->fail, TL_UNSUPPORTED,
                           "%s: has no executable segment; give the linked program", load->name);
    if (mapped == 0)
        return tl_fail_at(load->fail, TL_BAD, beyond,
                          "%s: the file ends before its executable segments", load->name);
    return TL_OK;
}

/* The bytes of a section, if they are within the file and uncompressed. */
static struct tl_bytes section_bytes(const struct elf_load *load, const GElf_Shdr *sh)
{
    if (sh->sh_type == SHT_NOBITS || (sh->sh_flags & SHF_COMPRESSED) ||
        sh->sh_offset > load->bytes.n || sh->sh_size > load->bytes.n - sh->sh_offset)
        return (struct tl_bytes){NULL, 0};
    return (struct tl_bytes){load->bytes.p + sh->sh_offset, sh->sh_size};
}

static bool is_code_symbol(Elf *elf, const GElf_Sym *sym, const char *name)
{
    if (name[0] == '\0' || name[0] == '$' || sym->st_shndx == SHN_UNDEF)
        return false;
    const unsigned type = GELF_ST_TYPE(sym->st_info);
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    if (type != STT_NOTYPE || (name[0] == '.' && name[1] == 'L') || sym->st_shndx >= SHN_LORESERVE)
        return false;
    GElf_Shdr sh; /* a label in assembly code */
    Elf_Scn *section = elf_getscn(elf, sym->st_shndx);
    return section && gelf_getshdr(section, &sh) && (sh.sh_flags & SHF_EXECINSTR);
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)tl_be16(p) << 16 | tl_be16(p + 2);
}

/* Read Elf32_Sym or Elf64_Sym field by field, since alignment is not guaranteed. */
static void read_symbol(const uint8_t *p, int class, bool big_endian, GElf_Sym *out)
{
    if (big_endian && class == ELFCLASS32) {
        *out = (GElf_Sym){.st_name = be32(p),
                          .st_info = p[12],
                          .st_shndx = tl_be16(p + 14),
                          .st_value = be32(p + 4),
                          .st_size = be32(p + 8)};
    } else if (class == ELFCLASS64) {
        *out = (GElf_Sym){.st_name = tl_le32(p),
                          .st_info = p[4],
                          .st_shndx = tl_le16(p + 6),
                          .st_value = tl_le64(p + 8),
                          .st_size = tl_le64(p + 16)};
    } else {
        *out = (GElf_Sym){.st_name = tl_le32(p),
                          .st_info = p[12],
                          .st_shndx = tl_le16(p + 14),
                          .st_value = tl_le32(p + 4),
                          .st_size = tl_le32(p + 8)};
    }
}

/* File offset of a symbol. False: unknown. */
static bool file_offset(Elf *elf, const GElf_Sym *sym, uint64_t address, uint64_t *out)
{
    GElf_Ehdr eh;
    GElf_Shdr sh;
    GElf_Phdr ph;
    size_t n = 0;
    if (gelf_getehdr(elf, &eh) && eh.e_type == ET_REL) { /* a kernel module */
        Elf_Scn *const section =
            sym->st_shndx < SHN_LORESERVE ? elf_getscn(elf, sym->st_shndx) : NULL;
        if (!section || !gelf_getshdr(section, &sh))
            return false;
        *out = sh.sh_offset + address;
        return true;
    }
    if (elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++) {
        if (ph.p_type != PT_LOAD || address < ph.p_vaddr || address - ph.p_vaddr >= ph.p_filesz)
            continue;
        *out = ph.p_offset + (address - ph.p_vaddr);
        return true;
    }
    return false;
}

static int take_symbol(const struct elf_load *load, Elf *elf, const GElf_Sym *sym, uint64_t address,
                       const char *name)
{
    struct tl_file_symbols *const file = load->file;
    uint64_t offset;
    if (!file)
        return tl_symbols_add(load->image, address + load->bias, sym->st_size, load->space, name);
    if (!file_offset(elf, sym, address, &offset) || file->n >= UINT32_MAX)
        return TL_OK;
    if (tl_grow(&file->v, &file->cap, file->n + 1, sizeof *file->v) < 0)
        return TL_NOMEM;
    file->v[file->n] = (struct tl_part_symbol){offset, sym->st_size, name, (uint32_t)file->n};
    file->n++;
    return TL_OK;
}

static int take_table(const struct elf_load *load, Elf *elf, const GElf_Shdr *table)
{
    GElf_Shdr sh;
    Elf_Scn *section = elf_getscn(elf, table->sh_link);
    if (!section || !gelf_getshdr(section, &sh))
        return TL_OK;
    const struct tl_bytes text = section_bytes(load, &sh);
    const struct tl_bytes symbols = section_bytes(load, table);
    if (text.n == 0 || symbols.n == 0)
        return TL_OK;
    char *names = malloc(text.n + 1); /* one copy for all names, terminated by a NUL */
    if (!names || tl_image_own(load->image, names) < 0)
        return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name);
    memcpy(names, text.p, text.n);
    names[text.n] = '\0';

    GElf_Ehdr eh;
    const int class = gelf_getclass(elf);
    const size_t size = class == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    const bool arm = gelf_getehdr(elf, &eh) && eh.e_machine == EM_ARM;
    for (size_t at = 0; symbols.n - at >= size; at += size) {
        GElf_Sym sym;
        read_symbol(symbols.p + at, class, load->bytes.p[EI_DATA] == ELFDATA2MSB, &sym);
        if (sym.st_name >= text.n)
            continue;
        if (load->image->jump_table == 0 && sym.st_shndx != SHN_UNDEF &&
            !strcmp(names + sym.st_name, "__jvt_base$"))
            load->image->jump_table = sym.st_value + load->bias;
        if (!is_code_symbol(elf, &sym, names + sym.st_name))
            continue;
        const uint64_t address = arm ? sym.st_value & ~1ULL : sym.st_value; /* bit 0: Thumb */
        if (take_symbol(load, elf, &sym, address, names + sym.st_name) < 0)
            return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name);
    }
    return TL_OK;
}

/* Read the full symbol table, or the dynamic one that a stripped file still has. */
static int take_symbols(const struct elf_load *load, Elf *elf)
{
    GElf_Shdr found = {0};
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr sh;
        if (!gelf_getshdr(section, &sh))
            continue;
        if (sh.sh_type == SHT_SYMTAB || (sh.sh_type == SHT_DYNSYM && found.sh_type == 0))
            found = sh;
        if (sh.sh_type == SHT_SYMTAB)
            break;
    }
    return found.sh_type ? take_table(load, elf, &found) : TL_OK;
}

/* Is it a 32-bit big-endian OpenRISC file? OpenRISC has no other kind. */
static bool is_openrisc(struct tl_bytes bytes)
{
    return bytes.n >= sizeof(Elf32_Ehdr) && bytes.p[EI_DATA] == ELFDATA2MSB &&
           bytes.p[EI_CLASS] == ELFCLASS32 &&
           tl_be16(bytes.p + offsetof(Elf32_Ehdr, e_machine)) == EM_OPENRISC;
}

int tl_image_add_elf(struct tl_image *image, struct tl_bytes bytes, uint64_t bias, unsigned space,
                     const char *name, struct tl_fail *fail)
{
    if (!name)
        name = "image";
    if (bytes.n < EI_NIDENT || memcmp(bytes.p, ELFMAG, SELFMAG) != 0)
        return tl_fail_set(fail, TL_BAD, "%s: is no ELF file", name);
    if (bytes.p[EI_DATA] != ELFDATA2LSB && !is_openrisc(bytes))
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "%s: is big-endian, which is supported for OpenRISC only", name);
    if (image->frozen)
        return tl_fail_set(fail, TL_USAGE, "%s: the image takes no more", name);

    struct tl_elf elf;
    int rc = tl_elf_init(&elf, bytes);
    if (rc == TL_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "%s: out of memory for %zu bytes", name, bytes.n);
    if (rc < 0)
        return tl_fail_set(fail, TL_BAD, "%s: is damaged: %s", name, elf_errmsg(-1));
    const struct elf_load load = {image, bytes, bias, space, name, fail, NULL};
    GElf_Ehdr eh;
    if (image->machine == 0 && gelf_getehdr(elf.elf, &eh)) {
        image->machine = eh.e_machine;
        image->is_narrow = eh.e_ident[EI_CLASS] == ELFCLASS32;
    }
    rc = map_segments(&load, elf.elf);
    if (rc == TL_OK)
        rc = take_symbols(&load, elf.elf);
    tl_elf_fini(&elf);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct tl_part_symbol *const x = a, *const y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int read_symbols(struct tl_image *image, struct tl_file_symbols *out, struct tl_bytes file)
{
    if (file.n < EI_NIDENT || memcmp(file.p, ELFMAG, SELFMAG) != 0 ||
        file.p[EI_DATA] != ELFDATA2LSB)
        return TL_OK;
    struct tl_elf elf;
    int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : TL_OK;
    const struct elf_load load = {.image = image, .bytes = file, .name = out->file, .file = out};
    GElf_Ehdr eh;
    if (image->machine == 0 && gelf_getehdr(elf.elf, &eh)) {
        image->machine = eh.e_machine;
        image->is_narrow = eh.e_ident[EI_CLASS] == ELFCLASS32;
    }
    rc = take_symbols(&load, elf.elf);
    tl_elf_fini(&elf);
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, by_place);
    return rc;
}

/* The functions of a file, which is read only once regardless of how many parts are mapped. */
static int symbols_of(struct tl_image *image, const char *name, struct tl_bytes file,
                      const struct tl_file_symbols **out)
{
    for (size_t i = image->n_files; i-- > 0;)
        if (strcmp(image->files[i].file, name) == 0) {
            *out = &image->files[i];
            return TL_OK;
        }
    if (tl_grow(&image->files, &image->cap_files, image->n_files + 1, sizeof *image->files) < 0)
        return TL_NOMEM;
    struct tl_file_symbols *const symbols = &image->files[image->n_files++];
    *symbols = (struct tl_file_symbols){.file = name};
    *out = symbols;
    return read_symbols(image, symbols, file);
}

int tl_elf_part_symbols(struct tl_image *image, struct tl_image_part *part, struct tl_bytes file)
{
    const struct tl_file_symbols *symbols;
    if (image->frozen)
        return TL_OK;
    const int rc = symbols_of(image, part->name, file, &symbols);
    if (rc < 0)
        return rc;
    size_t first = 0, high = symbols->n; /* the first one in the part */
    while (first < high) {
        const size_t middle = first + (high - first) / 2;
        if (symbols->v[middle].offset < part->offset)
            first = middle + 1;
        else
            high = middle;
    }
    size_t n = 0;
    while (n < symbols->n - first && symbols->v[first + n].offset - part->offset < part->bytes.n)
        n++;
    if (n == 0)
        return TL_OK;
    if (tl_grow(&part->symbols, &part->cap_symbols, n, sizeof *part->symbols) < 0)
        return TL_NOMEM;
    memcpy(part->symbols, symbols->v + first, n * sizeof *part->symbols);
    for (size_t i = 0; i < n; i++)
        part->symbols[i].offset -= part->offset;
    part->n_symbols = n;
    return TL_OK;
}
