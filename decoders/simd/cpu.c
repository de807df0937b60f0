/* SPDX-License-Identifier: MIT */
#include "simd/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
static const char *const names[TL_CPU_LEVELS] = {"scalar", "neon", "?", "?"};
#else
static const char *const names[TL_CPU_LEVELS] = {"scalar", "sse42", "avx2", "avx512"};
#endif

const char *tl_cpu_name(enum tl_cpu level)
{
    return (unsigned)level < TL_CPU_LEVELS ? names[level] : "?";
}

#if defined(__x86_64__) || defined(__i386__)
enum tl_cpu tl_cpu_supported(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
        return TL_CPU_SCALAR;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return TL_CPU_SSE42;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vbmi"))
        return TL_CPU_AVX2;
    return TL_CPU_AVX512;
}
#elif defined(__aarch64__)
enum tl_cpu tl_cpu_supported(void)
{
    return TL_CPU_NEON; /* every one has it */
}
#else
enum tl_cpu tl_cpu_supported(void)
{
    return TL_CPU_SCALAR;
}
#endif

static int detect(void)
{
    int level = (int)tl_cpu_supported();
    const char *wish = getenv("TRACELAKE_CPU");
    for (int i = 0; wish && i < level; i++)
        if (strcmp(wish, names[i]) == 0)
            level = i;
    return level;
}

/* Threads that come here at the same time find the same answer, so a plain store is enough. */
enum tl_cpu tl_cpu_level(void)
{
    static atomic_int known = -1;
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level < 0) {
        level = detect();
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (enum tl_cpu)level;
}
