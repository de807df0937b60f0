/* SPDX-License-Identifier: MIT */
/*
 * The most recently used of some objects: an array of fixed size, the one used last first, and
 * zeros behind the last one. For a few hundred of them, since they are looked up one by one. Header
 * only; whoever shares the array locks it.
 */
#ifndef TL_BASE_RECENT_H
#define TL_BASE_RECENT_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define TL_RECENT_SIZE 16 /* bytes of an entry, at most */

/* Entry `i`, of `size` bytes, is used: it becomes the first one. */
static inline void tl_recent_use(void *entries, size_t size, size_t i)
{
    char one[TL_RECENT_SIZE];
    assert(size <= sizeof one);
    memcpy(one, (char *)entries + i * size, size);
    memmove((char *)entries + size, entries, i * size);
    memcpy(entries, one, size);
}

/* Take entry `i` of `n`, of `size` bytes each, out to `*out`, which is not of the array. */
static inline void tl_recent_take(void *entries, size_t size, size_t n, size_t i, void *out)
{
    char *const at = (char *)entries + i * size;
    memcpy(out, at, size);
    memmove(at, at + size, (n - 1 - i) * size);
    memset((char *)entries + (n - 1) * size, 0, size);
}

/* Put an entry first. The least recently used one drops out if there was no space: `*last` is that
 * one, or zeros. */
static inline void tl_recent_put(void *entries, size_t size, size_t n, const void *entry,
                                 void *last)
{
    memcpy(last, (char *)entries + (n - 1) * size, size);
    memmove((char *)entries + size, entries, (n - 1) * size);
    memcpy(entries, entry, size);
}

#endif
