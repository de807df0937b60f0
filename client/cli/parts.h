/* SPDX-License-Identifier: MIT */
/*
 * The text of a live stream that comes in parts, each of which can be asked for by the position of
 * its first instruction. Where the connection breaks it is asked for again from the part on that
 * was coming; the parts of the second call may begin elsewhere, their text together is the same.
 */
#ifndef TL_CLI_PARTS_H
#define TL_CLI_PARTS_H

#include "base/bytes.h"

/* Initialise with the position that is asked for first, all else zero. */
struct tl_parts {
    uint64_t part;  /* position of the first instruction of the part that is coming */
    uint64_t bytes; /* of it, that have come in this call */
    uint64_t known; /* bytes behind these that had come in calls before */
};

/* The text is asked for again, from `part` on. */
void tl_parts_again(struct tl_parts *parts);
/* A piece of the part that begins at `first` came: what is new of it. */
struct tl_bytes tl_parts_take(struct tl_parts *parts, uint64_t first, struct tl_bytes text);

#endif
