/* SPDX-License-Identifier: MIT */
#include "sim/program.h"

#include "base/bytes.h"
#include "sim/program_dwarf.h"

#include <elf.h>
#include <string.h>

/* The layout of the file: ELF header, program headers, the sections' code, symbols, symbol names,
 * section names, debug information, section headers. */
enum {
    SH_NULL,
    SH_TASKS,
    SH_KERNEL,
    SH_SYMTAB,
    SH_STRTAB,
    SH_SHSTRTAB,
    SH_ABBREV,
    SH_INFO,
    SH_LINE,
    SH_COUNT
};

static const char section_names[] = "\0.text\0.text.kernel\0.symtab\0.strtab\0.shstrtab"
                                    "\0.debug_abbrev\0.debug_info\0.debug_line";

static uint32_t name_of(const char *name)
{
    for (size_t i = 1; i < sizeof section_names; i += strlen(section_names + i) + 1)
        if (strcmp(section_names + i, name) == 0)
            return (uint32_t)i;
    return 0;
}

static unsigned section_of(const struct tl_sim_program *program, uint32_t insn)
{
    return insn >= program->sections[1].first;
}

static int add_symbols(const struct tl_sim_program *program, struct tl_buf *out, uint64_t *strings)
{
    const Elf64_Sym null = {0};
    uint32_t name = 1;
    int result = tl_buf_add(out, &null, sizeof null);

    for (size_t i = 0; i < program->n_functions && result == 0; i++) {
        const struct tl_sim_function *f = &program->functions[i];
        const Elf64_Sym symbol = {
            .st_name = name,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
            .st_shndx = (Elf64_Half)(SH_TASKS + section_of(program, f->first)),
            .st_value = tl_sim_program_address(program, f->first),
            .st_size = f->n * 4ull,
        };
        name += (uint32_t)strlen(f->name) + 1;
        result = tl_buf_add(out, &symbol, sizeof symbol);
    }
    *strings = out->n;
    if (result == 0)
        result = tl_buf_add(out, "", 1);
    for (size_t i = 0; i < program->n_functions && result == 0; i++)
        result =
            tl_buf_add(out, program->functions[i].name, strlen(program->functions[i].name) + 1);
    return result;
}

static Elf64_Phdr program_header(const struct tl_sim_section *section, uint64_t offset)
{
    return (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_X,
        .p_offset = offset,
        .p_vaddr = section->base,
        .p_paddr = section->base,
        .p_filesz = section->n * 4ull,
        .p_memsz = section->n * 4ull,
        .p_align = 4,
    };
}

static Elf64_Shdr code_header(const struct tl_sim_section *section, const char *name,
                              uint64_t offset)
{
    return (Elf64_Shdr){
        .sh_name = name_of(name),
        .sh_type = SHT_PROGBITS,
        .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
        .sh_addr = section->base,
        .sh_offset = offset,
        .sh_size = section->n * 4ull,
        .sh_addralign = 4,
    };
}

static Elf64_Shdr table_header(Elf64_Word type, const char *name, uint64_t from, uint64_t to)
{
    return (Elf64_Shdr){
        .sh_name = name_of(name),
        .sh_type = type,
        .sh_offset = from,
        .sh_size = to - from,
        .sh_addralign = 8,
    };
}

static int add_debug(const struct tl_sim_program *program, struct tl_buf *out,
                     Elf64_Shdr headers[static SH_COUNT])
{
    static const char *const names[] = {".debug_abbrev", ".debug_info", ".debug_line"};
    struct tl_buf parts[3] = {0};
    int result = tl_sim_program_dwarf(program, &parts[0], &parts[1], &parts[2]);

    for (unsigned i = 0; i < 3 && result == 0; i++) {
        const uint64_t from = out->n;
        result = tl_buf_add(out, parts[i].p, parts[i].n);
        headers[SH_ABBREV + i] = table_header(SHT_PROGBITS, names[i], from, out->n);
        headers[SH_ABBREV + i].sh_addralign = 1;
    }
    for (unsigned i = 0; i < 3; i++)
        tl_buf_fini(&parts[i]);
    return result;
}

int tl_sim_program_elf(const struct tl_sim_program *program, struct tl_buf *out)
{
    struct tl_buf file = {0};
    uint64_t code[2], strings;
    Elf64_Shdr headers[SH_COUNT] = {0};
    Elf64_Ehdr elf = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_AARCH64,
        .e_version = EV_CURRENT,
        .e_entry = tl_sim_program_address(program, program->reset),
        .e_phoff = sizeof elf,
        .e_ehsize = sizeof elf,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 2,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SH_COUNT,
        .e_shstrndx = SH_SHSTRTAB,
    };

    code[0] = sizeof elf + 2 * sizeof(Elf64_Phdr);
    code[1] = code[0] + program->sections[0].n * 4ull;
    const Elf64_Phdr loads[2] = {program_header(&program->sections[0], code[0]),
                                 program_header(&program->sections[1], code[1])};

    int result = tl_buf_add(&file, &elf, sizeof elf);
    if (result == 0)
        result = tl_buf_add(&file, loads, sizeof loads);
    for (unsigned s = 0; s < 2 && result == 0; s++)
        result = tl_sim_program_code(program, s, &file);
    const uint64_t symbols = file.n;
    if (result == 0)
        result = add_symbols(program, &file, &strings);
    const uint64_t names = file.n;
    if (result == 0)
        result = tl_buf_add(&file, section_names, sizeof section_names);
    if (result == 0) {
        headers[SH_TASKS] = code_header(&program->sections[0], ".text", code[0]);
        headers[SH_KERNEL] = code_header(&program->sections[1], ".text.kernel", code[1]);
        headers[SH_SYMTAB] = table_header(SHT_SYMTAB, ".symtab", symbols, strings);
        headers[SH_SYMTAB].sh_link = SH_STRTAB;
        headers[SH_SYMTAB].sh_info = 1;
        headers[SH_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
        headers[SH_STRTAB] = table_header(SHT_STRTAB, ".strtab", strings, names);
        headers[SH_SHSTRTAB] = table_header(SHT_STRTAB, ".shstrtab", names, file.n);
        result = add_debug(program, &file, headers);
    }
    while (result == 0 && file.n % 8 != 0)
        result = tl_buf_add(&file, "", 1);
    if (result == 0) {
        elf.e_shoff = file.n;
        memcpy(file.p, &elf, sizeof elf);
        result = tl_buf_add(&file, headers, sizeof headers);
    }
    if (result == 0)
        result = tl_buf_add(out, file.p, file.n);
    tl_buf_fini(&file);
    return result;
}
