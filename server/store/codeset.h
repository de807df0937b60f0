/* SPDX-License-Identifier: MIT */
/*
 * Addresses of code that was executed: a bit for every two bytes of each page that has any, which
 * is as short as instructions are but those of x86. Not thread-safe.
 */
#ifndef TL_STORE_CODESET_H
#define TL_STORE_CODESET_H

#include "base/numbers.h"
#include "base/state.h"

#define TL_CODE_SHIFT 1     /* a bit stands for 1 << 1 bytes */
#define TL_CODE_PAGES 1024u /* at most */
#define TL_CODE_EDGES 2048u

struct tl_code_page;

/* Zeroed it is empty. */
struct tl_code_set {
    struct tl_numbers numbers; /* of pages, by address >> 12 */
    struct tl_code_page *pages;
    size_t cap;
    bool full; /* there are more, or no memory: it does not tell */
};

void tl_code_set_fini(struct tl_code_set *set);
/* Empty it; its memory stays. */
void tl_code_set_reset(struct tl_code_set *set);
/* Add the `size` bytes from `pc` on, at least one. */
void tl_code_set_add(struct tl_code_set *set, uint64_t pc, uint64_t size);

/* Into bytes or, of an empty set, from them. */
void tl_code_set_state(struct tl_code_set *set, struct tl_state *state);

/*
 * Append to the array `*edges` of `*n` (and room for `*cap`, see tl_grow()) where executed code
 * begins, where it ends, and so on, rising: addresses >> TL_CODE_SHIFT. Of more than TL_CODE_EDGES
 * the shortest gaps are left out. TL_NOMEM.
 */
TL_MUST_USE int tl_code_set_edges(const struct tl_code_set *set, uint64_t **edges, size_t *n,
                                  size_t *cap);

#endif
