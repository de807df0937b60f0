/* SPDX-License-Identifier: MIT */
/*
 * Hashes that tell keys apart in tables and notes in comparisons, and numbers that look random. Not
 * for keys by which somebody could slow a table down on purpose. Pure functions.
 */
#ifndef TL_BASE_HASH_H
#define TL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits: begin with TL_FNV, and go on with what follows. */
#define TL_FNV UINT64_C(0xcbf29ce484222325)

static inline uint64_t tl_fnv(uint64_t hash, const void *bytes, size_t n)
{
    const uint8_t *const p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t tl_fnv_text(const char *text)
{
    uint64_t hash = TL_FNV;
    for (; *text; text++)
        hash = tl_fnv(hash, text, 1);
    return hash;
}

/* Each bit of the result depends on all of `x`: how splitmix64 ends. */
static inline uint64_t tl_mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The next number of splitmix64, from any state. */
static inline uint64_t tl_random64(uint64_t *state)
{
    return tl_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
