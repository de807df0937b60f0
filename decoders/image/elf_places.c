/* SPDX-License-Identifier: MIT */
/*
 * Each lookup goes through a file's tables from the beginning, since a file is asked only a few
 * times. Whatever libelf returns may be missing in a damaged file, and then so is the answer.
 */
#include "image/elf_places.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool tl_elf_lowest(Elf *elf, uint64_t *address)
{
    size_t n = 0;
    bool found = false;
    if (elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n && i < INT32_MAX; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
            continue;
        if (!found || ph.p_vaddr < *address)
            *address = ph.p_vaddr;
        found = true;
    }
    return found;
}

int tl_elf_init(struct tl_elf *out, struct tl_bytes file)
{
    *out = (struct tl_elf){.copy = file.n > 0 ? malloc(file.n) : NULL};
    if (!out->copy)
        return file.n > 0 ? TL_NOMEM : TL_BAD;
    memcpy(out->copy, file.p, file.n);
    out->elf = elf_version(EV_CURRENT) != EV_NONE ? elf_memory(out->copy, file.n) : NULL;
    if (out->elf && elf_kind(out->elf) == ELF_K_ELF)
        return TL_OK;
    tl_elf_fini(out);
    return TL_BAD;
}

void tl_elf_fini(struct tl_elf *elf)
{
    if (elf->elf)
        elf_end(elf->elf);
    free(elf->copy);
}

unsigned tl_elf_file_machine(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf *const elf =
        fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    GElf_Ehdr head;
    const unsigned machine = gelf_getehdr(elf, &head) ? head.e_machine : EM_NONE;
    elf_end(elf); /* accepts NULL */
    if (fd >= 0)
        close(fd);
    return machine;
}

int tl_elf_bytes_section(struct tl_bytes file, const char *name, uint64_t *offset, uint64_t *size)
{
    struct tl_elf elf;
    const int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : 0;
    const bool found = tl_elf_section(elf.elf, name, offset, size);
    tl_elf_fini(&elf);
    return found;
}

int tl_elf_bytes_symbol(struct tl_bytes file, const char *name, uint64_t *value)
{
    struct tl_elf elf;
    const int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : 0;
    const bool found = tl_elf_symbol(elf.elf, name, value);
    tl_elf_fini(&elf);
    return found;
}

int tl_elf_bytes_lowest(struct tl_bytes file, uint64_t *address)
{
    struct tl_elf elf;
    const int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : 0;
    const bool found = tl_elf_lowest(elf.elf, address);
    tl_elf_fini(&elf);
    return found;
}
