/* SPDX-License-Identifier: MIT */
/*
 * Which vector instructions the kernels may use. Looked up once; thread-safe.
 *
 * The environment variable TRACELAKE_CPU names the level to use, one of those that the machine
 * has: scalar, then neon on AArch64; sse42, avx2, avx512 on x86-64. Results do not depend on the
 * level, only speed does.
 */
#ifndef TL_SIMD_CPU_H
#define TL_SIMD_CPU_H

#include <stdbool.h>

/* Those of x86 build on each other. */
enum tl_cpu {
    TL_CPU_SCALAR, /* portable C */
    TL_CPU_NEON,   /* AArch64's Advanced SIMD */
    TL_CPU_SSE42,  /* up to SSE4.2, with POPCNT */
    TL_CPU_AVX2,   /* with BMI1 and BMI2 */
    TL_CPU_AVX512, /* F, BW, DQ, VL, VBMI, VBMI2, BITALG */
    TL_CPU_LEVELS
};

/* The level in force. */
enum tl_cpu tl_cpu_level(void);

/* The best that the machine can do, whatever the environment says. */
enum tl_cpu tl_cpu_supported(void);

/* Can the machine do it? For tests of all variants. */
bool tl_cpu_has(enum tl_cpu level);

/* Lower-case name as in TRACELAKE_CPU. Static storage. */
const char *tl_cpu_name(enum tl_cpu level);

/*
 * What TRACELAKE_CPU says if that names no level that the machine has, and is so of no effect;
 * else NULL. For programs that want to say so.
 */
const char *tl_cpu_unknown(void);

#endif
