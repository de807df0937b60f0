/* SPDX-License-Identifier: MIT */
/*
 * The complete ELF files of an image, to speak of them by name. Parts of files have none.
 * Thread-safe for a frozen image, which may be NULL.
 */
#ifndef TL_IMAGE_ELFS_H
#define TL_IMAGE_ELFS_H

#include "image/image.h"

/* Number of ELF files. */
size_t tl_image_elfs(const struct tl_image *image);
/* Name of one. */
const char *tl_image_elf_name(const struct tl_image *image, size_t elf);
/* The only one with code at an address, whatever its context; -1: none, or several. */
int64_t tl_image_elf_at(const struct tl_image *image, uint64_t address);

/* Name one, before the image is frozen: a copy is kept. TL_NOMEM. */
TL_MUST_USE int tl_image_name_elf(struct tl_image *image, size_t elf, const char *name);

#endif
