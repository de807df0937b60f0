/* SPDX-License-Identifier: MIT */
/*
 * Hashes for table keys and for comparisons, and pseudo-random numbers. Not resistant to deliberate
 * collisions. Pure functions.
 */
#ifndef TL_BASE_HASH_H
#define TL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 64-bit FNV-1a: start with TL_FNV, then pass the previous result to continue. */
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

/* Mix so that each result bit depends on all of `x`: splitmix64's finaliser. */
static inline uint64_t tl_mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Next number of splitmix64; any state is valid. */
static inline uint64_t tl_random64(uint64_t *state)
{
    return tl_mix64(*state += UINT64_C(0x9e3779b97f4a7c15));
}

#endif
