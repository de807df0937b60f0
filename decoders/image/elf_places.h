/* SPDX-License-Identifier: MIT */
/*
 * ELF files in memory, and where in one something is that has a name. Reads only; damaged files
 * have nothing. Not thread-safe for one `elf`.
 */
#ifndef TL_IMAGE_ELF_PLACES_H
#define TL_IMAGE_ELF_PLACES_H

#include "base/bytes.h"
#include "base/err.h"

#include <libelf.h>
#include <stdbool.h>

/* A file as libelf reads it: from a copy, which libelf may write. */
struct tl_elf {
    Elf *elf;
    char *copy;
};
/* TL_NOMEM; TL_BAD: it is no ELF file. There is nothing to be finished then. */
TL_MUST_USE int tl_elf_init(struct tl_elf *out, struct tl_bytes file);
void tl_elf_fini(struct tl_elf *elf);

/* The section of this name that has bytes in the file: their offset and number. */
bool tl_elf_section(Elf *elf, const char *name, uint64_t *offset, uint64_t *size);
/* The value of the symbol. */
bool tl_elf_symbol(Elf *elf, const char *name, uint64_t *value);

/* The lowest address that a loadable segment is linked to. */
bool tl_elf_lowest(Elf *elf, uint64_t *address);

/* The same of a file in memory: 1 if it has it, 0, or TL_NOMEM. */
TL_MUST_USE int tl_elf_bytes_section(struct tl_bytes file, const char *name, uint64_t *offset,
                                     uint64_t *size);
TL_MUST_USE int tl_elf_bytes_symbol(struct tl_bytes file, const char *name, uint64_t *value);
TL_MUST_USE int tl_elf_bytes_lowest(struct tl_bytes file, uint64_t *address);

#endif
