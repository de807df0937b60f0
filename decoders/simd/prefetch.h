/* SPDX-License-Identifier: MIT */
/* Hints for memory that is written soon. */
#ifndef TL_SIMD_PREFETCH_H
#define TL_SIMD_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

/*
 * `p` + `ahead` bytes is written soon, by this thread alone: fetch it, and take it from other
 * processors' caches. Any address is fine. Compilers use the instruction only where they are told
 * that the processor has it; one that does not takes it for none.
 */
static inline void tl_prefetch_write(const void *p, size_t ahead)
{
    const void *const there = (const void *)((uintptr_t)p + ahead);
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const uint8_t *)there));
#else
    __builtin_prefetch(there, 1);
#endif
}

#endif
