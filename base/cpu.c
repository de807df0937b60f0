/* SPDX-License-Identifier: MIT */
/*
 * A level requires all features that its kernels use, because a virtual machine may have only some
 * of them. A level that is not supported is ignored instead of trusted: its instructions would end
 * the program.
 */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TL_CPU_LEVELS] = {"scalar", "neon", "sse42", "avx2"};

const char *tl_cpu_name(enum tl_cpu level)
{
    return (unsigned)level < TL_CPU_LEVELS ? names[level] : "?";
}

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#define FIRST TL_CPU_SSE42 /* lowest level above portable C */

#define HAS(feature) __builtin_cpu_supports(feature)

/* Not every compiler has a name for this feature: CPUID 8000_0001, ECX bit 5. */
static bool has_lzcnt(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && c >> 5 & 1;
}

enum tl_cpu tl_cpu_supported(void)
{
    __builtin_cpu_init();
    if (!HAS("sse4.2") || !HAS("popcnt"))
        return TL_CPU_SCALAR;
    const bool wide = HAS("avx2") && HAS("bmi") && HAS("bmi2") && has_lzcnt();
    return wide ? TL_CPU_AVX2 : TL_CPU_SSE42;
}
#else
#define FIRST TL_CPU_NEON

/* Every AArch64 has it. The kernels assume little-endian. */
enum tl_cpu tl_cpu_supported(void)
{
#if defined(__aarch64__) && !defined(__AARCH64EB__)
    return TL_CPU_NEON;
#else
    return TL_CPU_SCALAR;
#endif
}
#endif

bool tl_cpu_has(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR || (level >= FIRST && level <= tl_cpu_supported());
}

/* The level with this name, -1 if not supported by the machine. */
static int named(const char *name)
{
    for (int i = 0; i < TL_CPU_LEVELS; i++)
        if (strcmp(name, names[i]) == 0 && tl_cpu_has((enum tl_cpu)i))
            return i;
    return -1;
}

static int detect(void)
{
    const char *const wish = getenv("TRACELAKE_CPU");
    const int level = wish != NULL ? named(wish) : -1;
    return level >= 0 ? level : (int)tl_cpu_supported();
}

const char *tl_cpu_unknown(void)
{
    const char *const wish = getenv("TRACELAKE_CPU");
    return wish != NULL && *wish != '\0' && named(wish) < 0 ? wish : NULL;
}

/* Concurrent callers compute the same value, so a plain store is sufficient. */
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
