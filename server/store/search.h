/* SPDX-License-Identifier: MIT */
/*
 * The search for what STF said before. Records of a program's flow say the same few thousand
 * blocks over and over, and whoever wrote them knows where each begins. So hardly anything is
 * searched for byte by byte: wherever the flow turns, the place where it last turned the same way
 * is looked up, and what follows is compared from there. Only what is left between marks, and is
 * long, is gone over: addresses where there is no image, exceptions, and code that is new.
 */
#ifndef TL_STORE_SEARCH_H
#define TL_STORE_SEARCH_H

#include "base/bytes.h"
#include "simd/cpu.h"
#include "stf/flow_mark.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_Sequence */
#include <zstd.h>

#define TL_SEARCH_BITS 12
#define TL_SEARCH_MOST (UINT32_MAX / 2) /* bytes */

#define TL_SEARCH_LEAST 8 /* bytes that a match must have to be worth a sequence */

/* The last place of each turn, of each block's begin, and of eight bytes between marks, + 1; 0:
 * none yet. By their hashes. */
struct tl_search {
    uint32_t turns[1u << TL_SEARCH_BITS];
    uint32_t entries[1u << TL_SEARCH_BITS];
    uint32_t words[1u << TL_SEARCH_BITS];
};

/*
 * Find sequences in `stf`, of not more than TL_SEARCH_MOST bytes: at most one for each
 * TL_SEARCH_LEAST bytes, in order; what is behind the last one is literal. `marks` are hints,
 * rising places: wrong ones cost sequences, nothing else. `search` needs no initial value. Returns
 * how many were found.
 */
typedef size_t tl_search_run(struct tl_search *search, struct tl_bytes stf,
                             const struct tl_stf_mark *marks, size_t n, ZSTD_Sequence *out);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_search_run *tl_search_variant(enum tl_cpu level);

#endif
