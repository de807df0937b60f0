/* SPDX-License-Identifier: MIT */
/* Which ELF file an address is in. They are few, and asked for where something went wrong only, so
 * they are looked at one by one. */
#include "image/elfs.h"

#include "base/buf.h"
#include "image/image_parts.h"

#include <string.h>

int tl_elfs_begin(struct tl_image *image, const char *name)
{
    const char *const slash = strrchr(name, '/');
    image->n_elfs++;
    return tl_image_name_elf(image, image->n_elfs - 1, slash ? slash + 1 : name);
}

int tl_elfs_add(struct tl_image *image, uint64_t first, uint64_t size)
{
    if (tl_grow(&image->elf_ranges, &image->cap_elf_ranges, image->n_elf_ranges + 1,
                sizeof *image->elf_ranges) < 0)
        return TL_NOMEM;
    image->elf_ranges[image->n_elf_ranges++] =
        (struct tl_elf_range){first, size, (uint32_t)image->n_elfs - 1};
    return TL_OK;
}

size_t tl_image_elfs(const struct tl_image *image)
{
    return image ? image->n_elfs : 0;
}

const char *tl_image_elf_name(const struct tl_image *image, size_t elf)
{
    return elf < TL_IMAGE_ELFS && image->elfs[elf] ? image->elfs[elf] : "";
}

int tl_image_name_elf(struct tl_image *image, size_t elf, const char *name)
{
    if (elf >= TL_IMAGE_ELFS)
        return TL_OK;
    const char *const kept = tl_image_keep(image, name, strlen(name) + 1);
    if (kept)
        image->elfs[elf] = kept;
    return kept ? TL_OK : TL_NOMEM;
}

int64_t tl_image_elf_at(const struct tl_image *image, uint64_t address)
{
    int64_t found = -1;
    for (size_t i = 0; image && i < image->n_elf_ranges; i++) {
        const struct tl_elf_range *const range = &image->elf_ranges[i];
        if (address - range->first >= range->size)
            continue;
        if (found >= 0 && found != range->elf)
            return -1;
        found = range->elf;
    }
    return found;
}
