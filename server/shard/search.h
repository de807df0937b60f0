/* SPDX-License-Identifier: MIT */
/*
 * Match finder for STF. Most repeats are known from the writer. Only long data between them
 * is scanned: addresses without an image, exceptions, and new code.
 */
#ifndef TL_SHARD_SEARCH_H
#define TL_SHARD_SEARCH_H

#include "base/bytes.h"
#include "stf/flow/flow_piece.h"

#include <stdbool.h>

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_Sequence */
#include <zstd.h>

#define TL_SEARCH_BITS 13
#define TL_SEARCH_MAX  (UINT32_MAX / 2) /* bytes */

#define TL_SEARCH_MIN 8 /* minimum length of a match to be worth a sequence */

/* Last place, + 1, of each 8-byte word between repeats, by hash, 0: none yet; and unless all bytes
 * are complete, where the bytes around it begin and end that lie between the same repeats. */
struct tl_search {
    uint32_t words[1u << TL_SEARCH_BITS];
    struct tl_search_span {
        uint32_t begin, end;
    } spans[1u << TL_SEARCH_BITS];
};

/*
 * Find sequences in `stf`, at most TL_SEARCH_MAX bytes long: each repeat that is not empty, and at
 * most one per TL_SEARCH_MIN bytes, in order; bytes after the last one are literals. `repeats` are
 * in order and apart from each other. `complete`: no repeated bytes are left out, and matches may
 * extend over repeats; otherwise repeated bytes are not read. `search` needs no initialisation.
 * Returns the number found.
 */
size_t tl_search_run(struct tl_search *search, struct tl_bytes stf,
                     const struct tl_stf_repeat *repeats, size_t n, bool complete,
                     ZSTD_Sequence *out);

#endif
