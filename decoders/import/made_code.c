/* SPDX-License-Identifier: MIT */
/*
 * The code becomes a real ELF file, so that it reaches the server, its store of images and symbol
 * lookup in the same way as any other. Symbols have the piece's file offset as their address, since
 * each piece may be mapped anywhere.
 */
#include "import/made_code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE = 128, /* offset of the first piece in the file */
    ALIGN = 16
};

/* Section numbers, and the section name string table. */
enum { NONE, TEXT, SYMBOLS, NAMES, SECTIONS };
static const char section_names[] = "\0.text\0.symtab\0.strtab";

void tl_made_code_fini(struct tl_made_code *made)
{
    tl_buf_fini(&made->code);
    tl_buf_fini(&made->names);
    free(made->functions);
    *made = (struct tl_made_code){0};
}

int tl_made_code_add(struct tl_made_code *made, struct tl_bytes code, const char *name,
                     uint64_t *offset)
{
    static const uint8_t zeros[ALIGN];
    const size_t padding = (ALIGN - code.n % ALIGN) % ALIGN;
    if (code.n > TL_MADE_CODE_MAX - made->code.n)
        return TL_LIMIT;
    *offset = CODE + made->code.n;
    if (name[0]) {
        /* Names follow those of the sections. */
        const size_t at = sizeof section_names + made->names.n;
        if (tl_grow(&made->functions, &made->cap, made->n + 1, sizeof *made->functions) < 0 ||
            tl_buf_add(&made->names, name, strlen(name) + 1) < 0)
            return TL_NOMEM;
        made->functions[made->n++] = (struct tl_made_function){*offset, code.n, at};
    }
    if (tl_buf_reserve(&made->code, code.n + padding) < 0)
        return TL_NOMEM;
    const int rc = code.n ? tl_buf_add(&made->code, code.p, code.n) : TL_OK;
    return rc < 0 ? rc : tl_buf_add(&made->code, zeros, padding);
}

static int put_symbols(const struct tl_made_code *made, struct tl_buf *out)
{
    const Elf64_Sym none = {0};
    int rc = tl_buf_add(out, &none, sizeof none);
    for (size_t i = 0; rc == TL_OK && i < made->n; i++) {
        const struct tl_made_function *const f = &made->functions[i];
        const Elf64_Sym symbol = {.st_name = (Elf64_Word)f->name,
                                  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                  .st_shndx = TEXT,
                                  .st_value = f->offset,
                                  .st_size = f->size};
        rc = tl_buf_add(out, &symbol, sizeof symbol);
    }
    return rc;
}

int tl_made_code_file(const struct tl_made_code *made, uint16_t machine, struct tl_buf *out)
{
    const uint64_t symbols = CODE + made->code.n; /* a multiple of 16 */
    const uint64_t n_symbols = (made->n + 1) * sizeof(Elf64_Sym);
    const uint64_t names = symbols + n_symbols, n_names = sizeof section_names + made->names.n;
    const uint64_t sections = (names + n_names + 7) / 8 * 8;
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_shoff = sections,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = NAMES,
    };
    const Elf64_Phdr segment = {.p_type = PT_LOAD,
                                .p_flags = PF_R | PF_X,
                                .p_filesz = symbols,
                                .p_memsz = symbols,
                                .p_align = 1};
    const Elf64_Shdr tables[SECTIONS] = {
        [TEXT] = {.sh_name = 1,
                  .sh_type = SHT_PROGBITS,
                  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                  .sh_addr = CODE,
                  .sh_offset = CODE,
                  .sh_size = made->code.n,
                  .sh_addralign = ALIGN},
        [SYMBOLS] = {.sh_name = 7,
                     .sh_type = SHT_SYMTAB,
                     .sh_offset = symbols,
                     .sh_size = n_symbols,
                     .sh_link = NAMES,
                     .sh_info = 1,
                     .sh_addralign = 8,
                     .sh_entsize = sizeof(Elf64_Sym)},
        [NAMES] = {.sh_name = 15,
                   .sh_type = SHT_STRTAB,
                   .sh_offset = names,
                   .sh_size = n_names,
                   .sh_addralign = 1},
    };
    static const uint8_t zeros[CODE];
    int rc = tl_buf_add(out, &header, sizeof header);
    if (rc == TL_OK)
        rc = tl_buf_add(out, &segment, sizeof segment);
    if (rc == TL_OK)
        rc = tl_buf_add(out, zeros, CODE - sizeof header - sizeof segment);
    if (rc == TL_OK && made->code.n)
        rc = tl_buf_add(out, made->code.p, made->code.n);
    if (rc == TL_OK)
        rc = put_symbols(made, out);
    if (rc == TL_OK)
        rc = tl_buf_add(out, section_names, sizeof section_names);
    if (rc == TL_OK && made->names.n)
        rc = tl_buf_add(out, made->names.p, made->names.n);
    if (rc == TL_OK)
        rc = tl_buf_add(out, zeros, (size_t)(sections - names - n_names));
    return rc < 0 ? rc : tl_buf_add(out, tables, sizeof tables);
}
