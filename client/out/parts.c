/* SPDX-License-Identifier: MIT */
/*
 * Counts the bytes of a live stream's part that were printed before the connection broke. After a
 * repeated request the parts may begin elsewhere, so that only positions and bytes tell what is
 * new.
 */
#include "out/parts.h"

void tl_parts_again(struct tl_parts *parts)
{
    parts->known += parts->bytes;
    parts->bytes = 0;
}

struct tl_bytes tl_parts_take(struct tl_parts *parts, uint64_t first, struct tl_bytes text)
{
    if (first != parts->part)
        parts->bytes = 0;
    parts->part = first;
    parts->bytes += text.n;
    const size_t known = parts->known < text.n ? (size_t)parts->known : text.n;
    parts->known -= known;
    return (struct tl_bytes){text.p + known, text.n - known};
}
