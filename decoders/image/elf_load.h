/* SPDX-License-Identifier: MIT */
/* Reading an ELF file into an image; private to this folder. */
#ifndef TL_IMAGE_ELF_LOAD_H
#define TL_IMAGE_ELF_LOAD_H

#include "image/image_parts.h"

#include <gelf.h>

struct tl_elf_load {
    struct tl_image *image;
    struct tl_bytes bytes; /* of the file */
    uint64_t bias;
    unsigned space;
    const char *name;
    struct tl_fail *fail;
    struct tl_file_symbols *file; /* collects symbols by file offset; NULL: by address */
};

/* The bytes of a section, if they are within the file and uncompressed. */
struct tl_bytes tl_elf_section_bytes(const struct tl_elf_load *load, const GElf_Shdr *sh);

/* Read symbol `i` of a table; alignment is not guaranteed. False: there is none. */
bool tl_elf_symbol_at(const struct tl_elf_load *load, struct tl_bytes table, size_t i,
                      GElf_Sym *out);

/* Add a function at a link address; `section` (0: unknown): it is in. TL_NOMEM. */
TL_MUST_USE int tl_elf_add_symbol(const struct tl_elf_load *load, Elf *elf, size_t section,
                                  const struct tl_part_symbol *symbol);

/* Add the functions of the full symbol table, or of the dynamic one that a stripped file still has,
 * and the stubs. TL_NOMEM. */
TL_MUST_USE int tl_elf_symbols(const struct tl_elf_load *load, Elf *elf);

/* Note what kind of processor the file is for: of the first file its machine, of any whether it has
 * RISC-V's Zcmp or Zcmt. */
void tl_elf_attributes(const struct tl_elf_load *load, Elf *elf);

/* Copy the vector table of an M-profile program, unless the image has one: vectors.c. TL_NOMEM. */
TL_MUST_USE int tl_elf_vectors(const struct tl_elf_load *load, Elf *elf);

/* Add the stubs of the procedure linkage table, named as the functions they call: "puts@plt". x86,
 * Arm and RISC-V. TL_NOMEM. */
TL_MUST_USE int tl_elf_stubs(const struct tl_elf_load *load, Elf *elf);

#endif
