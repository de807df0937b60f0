/* SPDX-License-Identifier: MIT */
/*
 * Which vector instructions the kernels may use. Looked up once; thread-safe.
 *
 * The environment variable TRACELAKE_CPU (scalar, sse42, avx2, avx512; on AArch64 scalar, neon)
 * limits the level, never raises it above what the machine can do. Results do not depend on the
 * level, only speed does.
 */
#ifndef TL_SIMD_CPU_H
#define TL_SIMD_CPU_H

enum tl_cpu {
    TL_CPU_SCALAR, /* portable C */
    TL_CPU_SSE42,  /* up to SSE4.2, with POPCNT */
    TL_CPU_AVX2,   /* with BMI1 and BMI2 */
    TL_CPU_AVX512, /* F, BW, DQ, VL, VBMI */
    TL_CPU_LEVELS,
    TL_CPU_NEON = TL_CPU_SSE42 /* of AArch64, vectors of 16 bytes, too; no level above it */
};

/* The level in force. */
enum tl_cpu tl_cpu_level(void);

/* What the machine can do, whatever the environment says: for tests of all variants. */
enum tl_cpu tl_cpu_supported(void);

/* Lower-case name as in TRACELAKE_CPU. Static storage. */
const char *tl_cpu_name(enum tl_cpu level);

#endif
