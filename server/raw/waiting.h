/* SPDX-License-Identifier: MIT */
/* Bytes of a capture that wait to be written, with their checksums. Not thread-safe. */
#ifndef TL_RAW_WAITING_H
#define TL_RAW_WAITING_H

#include "lake_ingest.h"

struct tl_waiting_piece;

/* A zero-initialised one is empty and valid. */
struct tl_waiting {
    struct tl_waiting_piece *first, *last;
    size_t n; /* bytes */
};

/*
 * Add the bytes of `given`, except the first `skip` ones. If its block is taken over, it is NULL
 * there afterwards; without a block, or if they are few, the bytes are copied. TL_NOMEM: nothing
 * has changed.
 */
TL_MUST_USE int tl_waiting_add(struct tl_waiting *waiting, struct tl_given *given, size_t skip);
/* Free everything: it is empty then. */
void tl_waiting_free(struct tl_waiting *waiting);

/* Where reading is: begins with the first piece; NULL at the end. */
struct tl_waiting_walk {
    const struct tl_waiting_piece *piece;
    size_t at; /* in the piece */
};
#define TL_WAITING_PARTS 16
/* Go on by up to `most` bytes, at least one: they are in `parts`, and `*crc` is their CRC32C.
 * Returns how many. */
size_t tl_waiting_next(struct tl_waiting_walk *walk, size_t most,
                       struct tl_bytes parts[static TL_WAITING_PARTS], size_t *n_parts,
                       uint32_t *crc);

#endif
