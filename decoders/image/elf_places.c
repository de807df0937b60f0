/* SPDX-License-Identifier: MIT */
#include "image/elf_places.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

bool tl_elf_section(Elf *elf, const char *name, uint64_t *offset, uint64_t *size)
{
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        GElf_Shdr sh;
        const char *const its = gelf_getshdr(s, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
        if (its && !strcmp(its, name) && sh.sh_type == SHT_PROGBITS) {
            *offset = sh.sh_offset;
            *size = sh.sh_size;
            return true;
        }
    }
    return false;
}

bool tl_elf_symbol(Elf *elf, const char *name, uint64_t *value)
{
    for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
        GElf_Shdr sh;
        GElf_Sym sym;
        if (!gelf_getshdr(s, &sh) || sh.sh_type != SHT_SYMTAB || sh.sh_entsize == 0)
            continue;
        Elf_Data *const data = elf_getdata(s, NULL);
        for (size_t i = 0; data && i < sh.sh_size / sh.sh_entsize && i < INT32_MAX; i++) {
            if (!gelf_getsym(data, (int)i, &sym))
                break;
            const char *const its = elf_strptr(elf, sh.sh_link, sym.st_name);
            if (its && !strcmp(its, name)) {
                *value = sym.st_value;
                return true;
            }
        }
    }
    return false;
}

/* libelf wants memory that it may write. NULL: it is no ELF file, or there is no memory. */
static Elf *begin(struct tl_bytes file, char **copy)
{
    Elf *elf = NULL;
    *copy = file.n > 0 ? malloc(file.n) : NULL;
    if (*copy) {
        memcpy(*copy, file.p, file.n);
        elf = elf_version(EV_CURRENT) != EV_NONE ? elf_memory(*copy, file.n) : NULL;
    }
    if (elf && elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        elf = NULL;
    }
    return elf;
}

bool tl_elf_bytes_section(struct tl_bytes file, const char *name, uint64_t *offset, uint64_t *size)
{
    char *copy;
    Elf *const elf = begin(file, &copy);
    const bool found = elf && tl_elf_section(elf, name, offset, size);
    if (elf)
        elf_end(elf);
    free(copy);
    return found;
}

bool tl_elf_bytes_symbol(struct tl_bytes file, const char *name, uint64_t *value)
{
    char *copy;
    Elf *const elf = begin(file, &copy);
    const bool found = elf && tl_elf_symbol(elf, name, value);
    if (elf)
        elf_end(elf);
    free(copy);
    return found;
}
