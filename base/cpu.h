/* SPDX-License-Identifier: MIT */
/*
 * Selection of vector instructions for the kernels. Determined once; thread-safe.
 *
 * The environment variable TRACELAKE_CPU selects the level, which must be supported by the machine:
 * scalar; neon on AArch64; sse42, avx2 on x86-64. The level affects only speed, not
 * results.
 */
#ifndef TL_BASE_CPU_H
#define TL_BASE_CPU_H

#include <stdbool.h>

/* Each x86 level includes the lower ones. */
enum tl_cpu {
    TL_CPU_SCALAR, /* portable C */
    TL_CPU_NEON,   /* AArch64's Advanced SIMD */
    TL_CPU_SSE42,  /* up to SSE4.2, with POPCNT */
    TL_CPU_AVX2,   /* with BMI1 and BMI2 */
    TL_CPU_LEVELS
};

/* The level in use. */
enum tl_cpu tl_cpu_level(void);

/* The highest level the machine supports, regardless of the environment. */
enum tl_cpu tl_cpu_supported(void);

/* Does the machine support `level`? For tests of all variants. */
bool tl_cpu_has(enum tl_cpu level);

/* Lower-case name as in TRACELAKE_CPU. Static storage. */
const char *tl_cpu_name(enum tl_cpu level);

/*
 * Value of TRACELAKE_CPU if it is not a supported level, and therefore ignored; else NULL. For a
 * warning message.
 */
const char *tl_cpu_unknown(void);

#endif
