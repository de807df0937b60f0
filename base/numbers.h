/* SPDX-License-Identifier: MIT */
/*
 * Numbers 64-bit keys 0, 1, 2, … in order of first appearance, so that the caller can keep per-key
 * data in an array. A hash table with open addressing, at most half full. Keys can only be removed
 * all at once. All zero: empty. Not thread-safe.
 */
#ifndef TL_BASE_NUMBERS_H
#define TL_BASE_NUMBERS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tl_numbers {
    uint64_t *keys;  /* by number */
    uint32_t *slots; /* number + 1, by hash of the key; 0: free */
    uint32_t n;
    uint32_t mask; /* number of slots - 1; 0: no slots */
};

#define TL_NO_NUMBER UINT32_MAX

static inline uint32_t tl_numbers_hash(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32);
}

/*
 * Where the search for a key begins. Keys that differ only in the lowest four bits begin in
 * neighbouring slots, since they often appear together: addresses of adjacent code.
 */
static inline uint32_t tl_numbers_slot(uint64_t key, uint32_t mask)
{
    return tl_numbers_hash(key >> 4) >> __builtin_clz(mask) ^ (key & 15);
}

/* The key's number, or TL_NO_NUMBER. */
static inline uint32_t tl_numbers_find(const struct tl_numbers *t, uint64_t key)
{
    if (t->mask == 0)
        return TL_NO_NUMBER;
    for (uint32_t i = tl_numbers_slot(key, t->mask);; i = (i + 1) & t->mask) {
        const uint32_t number = t->slots[i] - 1; /* a free slot gives TL_NO_NUMBER */
        if (number == TL_NO_NUMBER || t->keys[number] == key)
            return number;
    }
}

/* Assign the next number to a key that has none. On TL_NOMEM the table is unchanged. */
TL_MUST_USE int tl_numbers_add(struct tl_numbers *t, uint64_t key);

/* Remove all keys, keep the memory. */
void tl_numbers_reset(struct tl_numbers *t);
void tl_numbers_fini(struct tl_numbers *t);

#endif
