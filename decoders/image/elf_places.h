/* SPDX-License-Identifier: MIT */
/*
 * ELF files in memory, and lookup of named sections and symbols in them. Read-only access; lookups
 * in damaged files fail. Not thread-safe for the same `elf`.
 */
#ifndef TL_IMAGE_ELF_PLACES_H
#define TL_IMAGE_ELF_PLACES_H

#include "base/bytes.h"
#include "base/err.h"

#include <libelf.h>
#include <stdbool.h>

/* A file opened by libelf, from a copy, since libelf may modify its input. */
struct tl_elf {
    Elf *elf;
    char *copy;
};
/* Returns TL_NOMEM; TL_BAD: not an ELF file. On failure there is nothing to finalise. */
TL_MUST_USE int tl_elf_init(struct tl_elf *out, struct tl_bytes file);
void tl_elf_fini(struct tl_elf *elf);

/* The machine that a file in the file system is for; EM_NONE: it is no ELF file, or cannot be
 * read. */
unsigned tl_elf_file_machine(const char *path);

/* Find the section with this name that has bytes in the file: its file offset and size. */
bool tl_elf_section(Elf *elf, const char *name, uint64_t *offset, uint64_t *size);
/* Find the symbol's value. */
bool tl_elf_symbol(Elf *elf, const char *name, uint64_t *value);

/* Find the lowest link address of a loadable segment. */
bool tl_elf_lowest(Elf *elf, uint64_t *address);

/* The same for a file in memory. Return 1 if found, 0 if not, or TL_NOMEM. */
TL_MUST_USE int tl_elf_bytes_section(struct tl_bytes file, const char *name, uint64_t *offset,
                                     uint64_t *size);
TL_MUST_USE int tl_elf_bytes_symbol(struct tl_bytes file, const char *name, uint64_t *value);
TL_MUST_USE int tl_elf_bytes_lowest(struct tl_bytes file, uint64_t *address);

#endif
