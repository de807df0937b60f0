/* SPDX-License-Identifier: MIT */
/*
 * Where in an ELF file something is that has a name. Reads only; damaged files have nothing. Not
 * thread-safe for one `elf`.
 */
#ifndef TL_IMAGE_ELF_PLACES_H
#define TL_IMAGE_ELF_PLACES_H

#include "base/bytes.h"

#include <libelf.h>
#include <stdbool.h>

/* The section of this name that has bytes in the file: their offset and number. */
bool tl_elf_section(Elf *elf, const char *name, uint64_t *offset, uint64_t *size);
/* The value of the symbol. */
bool tl_elf_symbol(Elf *elf, const char *name, uint64_t *value);

/* The same of a file in memory. */
bool tl_elf_bytes_section(struct tl_bytes file, const char *name, uint64_t *offset, uint64_t *size);
bool tl_elf_bytes_symbol(struct tl_bytes file, const char *name, uint64_t *value);

#endif
