/* SPDX-License-Identifier: MIT */
/*
 * Searches the vector table for a handler. In memory its length is not known: it ends at the latest
 * where the code of a handler begins, since most linkers put that behind the table. A table that is
 * not there may be in an ELF file, which knows its own.
 */
#include "mtb/vectors.h"

#include "base/bytes.h"
#include "flow/item.h"
#include "image/vectors.h"

enum { FIRST = 1, VECTORS = 16 + 480, ENTRY = 4 };

static bool find_in_memory(const struct tl_image *image, unsigned space, uint32_t table,
                           uint32_t handler, unsigned *number)
{
    bool found = false;
    uint32_t end = table + VECTORS * ENTRY;
    for (uint32_t n = FIRST, at = table + ENTRY; n < VECTORS && at < end; n++, at += ENTRY) {
        const struct tl_bytes entry = tl_image_at(image, space, at);
        if (entry.n < ENTRY)
            break;
        const uint32_t to = tl_le32(entry.p) & ~1u;
        if (to > table && to < end)
            end = to;
        if (to != handler || to == 0)
            continue;
        *number = found ? TL_EXCEPTION_UNKNOWN : n;
        found = true;
    }
    return found;
}

static bool find_in_file(const struct tl_image *image, uint32_t handler, unsigned *number)
{
    bool found = false;
    for (unsigned n = FIRST; n < VECTORS; n++) {
        const uint64_t to = tl_image_handler(image, n);
        if (to == 0 || to != handler)
            continue;
        *number = found ? TL_EXCEPTION_UNKNOWN : n;
        found = true;
    }
    return found;
}

bool tl_find_vector(const struct tl_image *image, unsigned space, uint32_t table, uint32_t handler,
                    unsigned *number)
{
    return find_in_memory(image, space, table, handler, number) ||
           find_in_file(image, handler, number);
}
