/* SPDX-License-Identifier: MIT */
#include "sim/x86_program.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* The layout of the file: ELF header, program headers, the zones' code, symbols, symbol names,
 * section headers. There is a section for each zone, after section 0, and then the two tables. */
enum { SYMTAB = TL_SIM_X86_ZONES + 1, STRTAB, SECTIONS };

static void add(struct tl_buf *out, const void *p, size_t n)
{
    if (tl_buf_add(out, p, n) < 0)
        abort();
}

static const struct tl_sim_x86_insn *first_of(const struct tl_sim_x86_program *program, uint32_t k)
{
    const uint32_t *const functions = (const uint32_t *)(const void *)program->functions.p;
    return tl_sim_x86_insn(program, functions[k]);
}

/* A symbol for each function; their names are the index in the zone. */
static void add_symbols(const struct tl_sim_x86_program *program, struct tl_buf *out,
                        struct tl_buf *names)
{
    static const char *const zones[] = {"kernel", "user", "compat", "real"};
    const Elf64_Sym none = {0};
    add(out, &none, sizeof none);
    add(names, "", 1);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        const uint32_t first = program->parts[zone].function, n = program->parts[zone].functions;
        for (uint32_t k = first; k < first + n; k++) {
            const uint64_t pc = first_of(program, k)->pc;
            const uint64_t end = k + 1 < first + n
                                     ? first_of(program, k + 1)->pc
                                     : program->parts[zone].base + program->parts[zone].code.n;
            const Elf64_Sym symbol = {.st_name = (Elf64_Word)names->n,
                                      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                      .st_shndx = (Elf64_Half)(zone + 1),
                                      .st_value = pc,
                                      .st_size = end - pc};
            char name[32];
            const int length = snprintf(name, sizeof name, "%s_%u", zones[zone], k - first);
            add(names, name, (size_t)length + 1);
            add(out, &symbol, sizeof symbol);
        }
    }
}

void tl_sim_x86_program_elf(const struct tl_sim_x86_program *program, struct tl_buf *out)
{
    struct tl_buf symbols = {0}, names = {0};
    Elf64_Phdr loads[TL_SIM_X86_ZONES] = {0};
    Elf64_Shdr headers[SECTIONS] = {0};
    Elf64_Ehdr elf = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = program->parts[TL_SIM_X86_USER].base,
        .e_phoff = sizeof elf,
        .e_ehsize = sizeof elf,
        .e_phentsize = sizeof *loads,
        .e_phnum = TL_SIM_X86_ZONES,
        .e_shentsize = sizeof *headers,
        .e_shnum = SECTIONS,
    };
    uint64_t at = sizeof elf + sizeof loads;
    add_symbols(program, &symbols, &names);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++) {
        const uint64_t base = program->parts[zone].base, n = program->parts[zone].code.n;
        loads[zone] = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R | PF_X,
                                   .p_offset = at,
                                   .p_vaddr = base,
                                   .p_paddr = base,
                                   .p_filesz = n,
                                   .p_memsz = n,
                                   .p_align = 1};
        headers[zone + 1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                         .sh_addr = base,
                                         .sh_offset = at,
                                         .sh_size = n,
                                         .sh_addralign = 1};
        at += n;
    }
    headers[SYMTAB] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                   .sh_offset = at,
                                   .sh_size = symbols.n,
                                   .sh_link = STRTAB,
                                   .sh_info = 1,
                                   .sh_addralign = 1,
                                   .sh_entsize = sizeof(Elf64_Sym)};
    headers[STRTAB] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = at + symbols.n, .sh_size = names.n, .sh_addralign = 1};
    elf.e_shoff = at + symbols.n + names.n;
    add(out, &elf, sizeof elf);
    add(out, loads, sizeof loads);
    for (unsigned zone = 0; zone < TL_SIM_X86_ZONES; zone++)
        add(out, program->parts[zone].code.p, program->parts[zone].code.n);
    add(out, symbols.p, symbols.n);
    add(out, names.p, names.n);
    add(out, headers, sizeof headers);
    tl_buf_fini(&symbols);
    tl_buf_fini(&names);
}
