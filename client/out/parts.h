/* SPDX-License-Identifier: MIT */
/*
 * The text of a live stream, which arrives in parts, each identified by the position of its first
 * instruction. After a broken connection the text is requested again from the part that was being
 * received; the parts of the second call may begin elsewhere, but their concatenated text is the
 * same.
 */
#ifndef TL_OUT_PARTS_H
#define TL_OUT_PARTS_H

#include "base/bytes.h"

/* Initialise with the first requested position, all else zero. */
struct tl_parts {
    uint64_t part;  /* position of the first instruction of the part being received */
    uint64_t bytes; /* bytes of it received in this call */
    uint64_t known; /* bytes after these that were received in earlier calls */
};

/* The text is being requested again, from `part`. */
void tl_parts_again(struct tl_parts *parts);
/* Process a received piece of the part that begins at `first`; return what is new in it. */
struct tl_bytes tl_parts_take(struct tl_parts *parts, uint64_t first, struct tl_bytes text);

#endif
