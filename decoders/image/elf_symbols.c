/* SPDX-License-Identifier: MIT */
/*
 * Function symbols of an ELF file, with what is needed to choose among several at one address and
 * to find the end of those without a size. Tables are read from the file's bytes, because libelf
 * would copy them.
 */
#include "base/buf.h"
#include "image/elf_load.h"

#include <gelf.h>
#include <stdlib.h>

/* The bytes of a section, if they are within the file and uncompressed. */
struct tl_bytes tl_elf_section_bytes(const struct tl_elf_load *load, const GElf_Shdr *sh)
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

bool tl_elf_symbol_at(const struct tl_elf_load *load, struct tl_bytes table, size_t i,
                      GElf_Sym *out)
{
    const int class = load->bytes.p[EI_CLASS];
    const size_t size = class == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    if (i >= table.n / size)
        return false;
    read_symbol(table.p + i * size, class, load->bytes.p[EI_DATA] == ELFDATA2MSB, out);
    return true;
}

/* Is it an object file, such as a kernel module? Its addresses are offsets in sections. */
static bool is_object(Elf *elf)
{
    GElf_Ehdr eh;
    return gelf_getehdr(elf, &eh) && eh.e_type == ET_REL;
}

/* Bytes from an address to the end of its section, or if that is not known, of its segment. */
static uint64_t bytes_left_at(Elf *elf, size_t section, uint64_t address)
{
    GElf_Shdr sh;
    GElf_Phdr ph;
    size_t n = 0;
    Elf_Scn *const scn = section && section < SHN_LORESERVE ? elf_getscn(elf, section) : NULL;
    if (scn && gelf_getshdr(scn, &sh)) {
        const uint64_t offset = address - (is_object(elf) ? 0 : sh.sh_addr);
        if (offset < sh.sh_size)
            return sh.sh_size - offset;
    }
    if (elf_getphdrnum(elf, &n) != 0)
        return 0;
    for (size_t i = 0; i < n && gelf_getphdr(elf, (int)i, &ph); i++)
        if (ph.p_type == PT_LOAD && address - ph.p_vaddr < ph.p_filesz)
            return ph.p_filesz - (address - ph.p_vaddr);
    return 0;
}

/* File offset of an address. False: unknown. */
static bool file_offset(Elf *elf, size_t section_index, uint64_t address, uint64_t *out)
{
    GElf_Shdr sh;
    GElf_Phdr ph;
    size_t n = 0;
    if (is_object(elf)) {
        Elf_Scn *const section =
            section_index < SHN_LORESERVE ? elf_getscn(elf, section_index) : NULL;
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

int tl_elf_add_symbol(const struct tl_elf_load *load, Elf *elf, size_t section,
                      const struct tl_part_symbol *symbol)
{
    struct tl_file_symbols *const file = load->file;
    struct tl_part_symbol s = *symbol;
    s.max_size = s.size ? s.size : bytes_left_at(elf, section, s.offset);
    if (s.max_size == 0) /* "_end": it names what is in front of it, or nothing */
        return TL_OK;
    if (!file) {
        s.offset += load->bias;
        return tl_symbols_add(load->image, load->space, &s);
    }
    if (!file_offset(elf, section, symbol->offset, &s.offset) || file->n >= UINT32_MAX)
        return TL_OK;
    if (tl_grow(&file->v, &file->cap, file->n + 1, sizeof *file->v) < 0)
        return TL_NOMEM;
    s.order = (uint32_t)file->n;
    file->v[file->n++] = s;
    return TL_OK;
}

/* How good a name it is among several of one address; 0: the best. A function is better than a
 * label, a global name better than a local one, one with a size better than one without. */
static uint8_t rank_of(const GElf_Sym *sym)
{
    const unsigned type = GELF_ST_TYPE(sym->st_info);
    const bool is_label = type == STT_NOTYPE, is_local = GELF_ST_BIND(sym->st_info) == STB_LOCAL;
    return (uint8_t)(is_label * 4 + is_local * 2 + (sym->st_size == 0));
}

/* One copy for all names, terminated by a NUL; NULL: out of memory. */
static const char *copy_names(struct tl_image *image, struct tl_bytes text)
{
    char *const names = malloc(text.n + 1);
    if (!names)
        return NULL;
    memcpy(names, text.p, text.n);
    names[text.n] = '\0';
    const char *const kept = tl_image_keep(image, names, text.n + 1);
    free(names);
    return kept;
}

/* Variables are named by address only: those of file parts, which may be anywhere, are left out. */
static int add_variable(const struct tl_elf_load *load, const GElf_Sym *sym, const char *name)
{
    const struct tl_part_symbol symbol = {.offset = sym->st_value + load->bias,
                                          .size = sym->st_size,
                                          .name = name,
                                          .rank = rank_of(sym)};
    const bool named = GELF_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_shndx != SHN_UNDEF &&
                       sym->st_size > 0 && name[0] && name[0] != '$';
    return named && !load->file ? tl_variables_add(load->image, &symbol) : TL_OK;
}

static int take_table(const struct tl_elf_load *load, Elf *elf, const GElf_Shdr *table)
{
    GElf_Shdr sh;
    Elf_Scn *section = elf_getscn(elf, table->sh_link);
    if (!section || !gelf_getshdr(section, &sh))
        return TL_OK;
    const struct tl_bytes text = tl_elf_section_bytes(load, &sh);
    const struct tl_bytes symbols = tl_elf_section_bytes(load, table);
    if (text.n == 0 || symbols.n == 0)
        return TL_OK;
    const char *const names = copy_names(load->image, text);
    if (!names)
        return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name);

    GElf_Ehdr eh;
    GElf_Sym sym;
    const bool arm = gelf_getehdr(elf, &eh) && eh.e_machine == EM_ARM;
    for (size_t i = 0; tl_elf_symbol_at(load, symbols, i, &sym); i++) {
        if (sym.st_name >= text.n)
            continue;
        if (load->image->jump_table == 0 && sym.st_shndx != SHN_UNDEF &&
            !strcmp(names + sym.st_name, "__jvt_base$"))
            load->image->jump_table = sym.st_value + load->bias;
        if (add_variable(load, &sym, names + sym.st_name) < 0)
            return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name);
        if (!is_code_symbol(elf, &sym, names + sym.st_name))
            continue;
        const struct tl_part_symbol symbol = {.offset = arm ? sym.st_value & ~1ULL
                                                            : sym.st_value, /* bit 0: Thumb */
                                              .size = sym.st_size,
                                              .name = names + sym.st_name,
                                              .rank = rank_of(&sym)};
        if (tl_elf_add_symbol(load, elf, sym.st_shndx, &symbol) < 0)
            return tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory for symbols", load->name);
    }
    return TL_OK;
}

int tl_elf_symbols(const struct tl_elf_load *load, Elf *elf)
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
    const int rc = found.sh_type ? take_table(load, elf, &found) : TL_OK;
    return rc < 0 ? rc : tl_elf_stubs(load, elf);
}
