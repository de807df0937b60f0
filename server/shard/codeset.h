/* SPDX-License-Identifier: MIT */
/*
 * Set of addresses of executed code: one bit per two bytes, the smallest instruction size except on
 * x86, for each page that contains any. Not thread-safe.
 */
#ifndef TL_SHARD_CODESET_H
#define TL_SHARD_CODESET_H

#include "base/numbers.h"
#include "base/state.h"

#define TL_CODE_SHIFT 1     /* a bit stands for 1 << 1 bytes */
#define TL_CODE_PAGES 1024u /* maximum */
#define TL_CODE_EDGES 2048u

struct tl_code_page;

/* Zero-initialised: empty. */
struct tl_code_set {
    struct tl_numbers numbers; /* of pages, by address >> 12 */
    struct tl_code_page *pages;
    size_t cap;
    bool full; /* overflowed or out of memory: the set is incomplete */
};

void tl_code_set_fini(struct tl_code_set *set);
/* Clear, keeping the memory. */
void tl_code_set_reset(struct tl_code_set *set);
/* Add `size` bytes (at least one) beginning at `pc`. */
void tl_code_set_add(struct tl_code_set *set, uint64_t pc, uint64_t size);

/* Save to bytes, or load into an empty set. */
void tl_code_set_state(struct tl_code_set *set, struct tl_state *state);

/*
 * Append to the array `*edges` of `*n` elements (capacity `*cap`, see tl_grow()) where executed
 * code begins, where it ends, and so on, ascending: addresses >> TL_CODE_SHIFT. If there are more
 * than TL_CODE_EDGES, the shortest gaps are merged. TL_NOMEM.
 */
TL_MUST_USE int tl_code_set_edges(const struct tl_code_set *set, uint64_t **edges, size_t *n,
                                  size_t *cap);

#endif
