/* SPDX-License-Identifier: MIT */
/*
 * Binary search in arrays whose keys do not decrease. The result is a number of elements, and so
 * also the index of the first one after them. Header only, pure, thread-safe; the array may be NULL
 * if it is empty.
 */
#ifndef TL_BASE_SEARCH_H
#define TL_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inlined, sizes and offsets are constants, and a search is as quick as a loop for its type. */
#define TL_SEARCH __attribute__((always_inline)) static inline size_t

/* Is the element before the key? */
typedef bool tl_is_before(const void *element, const void *key);

/* How many of `n` elements of `size` bytes are before `key`; all those are first. */
TL_SEARCH tl_count_before(const void *v, size_t size, size_t n, tl_is_before *is_before,
                          const void *key)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_before((const char *)v + middle * size, key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline bool tl_is_below(const void *element, const void *key)
{
    return *(const uint64_t *)element < *(const uint64_t *)key;
}

/* How many of `n` elements of `size` bytes, with a uint64_t at `offset`, have one below `key`. */
TL_SEARCH tl_count_below(const void *v, size_t size, size_t offset, size_t n, uint64_t key)
{
    return n ? tl_count_before((const char *)v + offset, size, n, tl_is_below, &key) : 0;
}

/* As above, at most `key`. */
TL_SEARCH tl_count_upto(const void *v, size_t size, size_t offset, size_t n, uint64_t key)
{
    return key == UINT64_MAX ? n : tl_count_below(v, size, offset, n, key + 1);
}

/* The first three arguments of these two, for a member of the elements of `v`. Does not compile for
 * one of another size. */
#define TL_KEYS(v, member)                                                                         \
    (v), sizeof(*(v)) + 0 * sizeof(char[sizeof((v)->member) == 8 ? 1 : -1]),                       \
        offsetof(__typeof__(*(v)), member)

#endif
