/* SPDX-License-Identifier: MIT */
/*
 * Decoders have the factor that is fastest. The others are compiled here, from the same body, so
 * that tests find what goes wrong at a block's edges, and a benchmark prints the table by factor.
 */
#include "sim/etm4_kernels.h"

#define FACTORS(of)    of(1) of(2) of(4) of(8) of(16) of(32) of(64)
#define KERNEL(unroll) static TL_KERNEL(unrolled_##unroll, unroll)
#define ROW(unroll)    {LEVEL, unroll, unrolled_##unroll},

#if defined(__x86_64__)
#include "etm4/unrolled_avx2_body.h"
#define LEVEL TL_CPU_AVX2
TL_TARGET_BEGIN(TL_AVX2_TARGET)
FACTORS(KERNEL)
TL_TARGET_END
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#include "etm4/unrolled_neon_body.h"
#define LEVEL TL_CPU_NEON
FACTORS(KERNEL)
#else
#undef FACTORS
#define FACTORS(of)
#endif

const struct tl_etm4_kernel *tl_sim_etm4_kernels(size_t *n)
{
    static const struct tl_etm4_kernel kernels[] = {FACTORS(ROW){TL_CPU_LEVELS, 0, NULL}};
    *n = sizeof kernels / sizeof *kernels - 1;
    return kernels;
}
