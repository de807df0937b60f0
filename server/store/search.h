/* SPDX-License-Identifier: MIT */
/*
 * Match finder for STF. Records of a program's flow repeat the same few thousand blocks, and their
 * writer knows where each begins. So hardly anything is searched byte by byte: at each change of
 * flow, the place is looked up where it last followed the same change as now, or else where it
 * occurred last, and what follows is compared from there. Only long data between marks is scanned:
 * addresses without an image, exceptions, and new code.
 */
#ifndef TL_STORE_SEARCH_H
#define TL_STORE_SEARCH_H

#include "base/bytes.h"
#include "simd/cpu.h"
#include "stf/flow_mark.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_Sequence */
#include <zstd.h>

#define TL_SEARCH_BITS 13
#define TL_SEARCH_MOST (UINT32_MAX / 2) /* bytes */

#define TL_SEARCH_LEAST 8 /* minimum length of a match to be worth a sequence */

/* Last place, + 1, of each change of flow, each two in a row, each block begin, and each 8-byte
 * word between marks, by hash; 0: none yet. */
struct tl_search {
    uint32_t turns[1u << TL_SEARCH_BITS];
    uint32_t pairs[1u << TL_SEARCH_BITS];
    uint32_t entries[1u << TL_SEARCH_BITS];
    uint32_t words[1u << TL_SEARCH_BITS];
};

/*
 * Find sequences in `stf`, at most TL_SEARCH_MOST bytes long: at most one per TL_SEARCH_LEAST
 * bytes, in order; bytes after the last one are literals. `marks` are hints, ascending places:
 * wrong ones only cost sequences. `search` needs no initialisation. Returns the number found.
 */
typedef size_t tl_search_run(struct tl_search *search, struct tl_bytes stf,
                             const struct tl_stf_mark *marks, size_t n, ZSTD_Sequence *out);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_search_run *tl_search_variant(enum tl_cpu level);

#endif
