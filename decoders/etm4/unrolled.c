/* SPDX-License-Identifier: MIT */
#include "etm4/unrolled.h"

#include "etm4/unrolled_parts.h"

#define ADDRESS(kind) (0x80 | (kind))

const uint8_t tl_etm4_kinds[64] = {
    [0x10] = ADDRESS(0),
    [0x11] = ADDRESS(1 << 4),
    [0x12] = ADDRESS(2 << 4),
    [0x15] = ADDRESS(TL_KIND_SHORT),
    [0x16] = ADDRESS(TL_KIND_SHORT | TL_KIND_IS1),
    [0x1a] = ADDRESS(TL_KIND_LONG32),
    [0x1b] = ADDRESS(TL_KIND_LONG32 | TL_KIND_IS1),
    [0x1d] = ADDRESS(TL_KIND_LONG64),
    [0x1e] = ADDRESS(TL_KIND_LONG64 | TL_KIND_IS1),
    [0x02] = ADDRESS(TL_KIND_LONG32), /* with a context */
    [0x03] = ADDRESS(TL_KIND_LONG32 | TL_KIND_IS1),
    [0x05] = ADDRESS(TL_KIND_LONG64),
    [0x06] = ADDRESS(TL_KIND_LONG64 | TL_KIND_IS1),
};

#define LONG_IS0 0xffff7f7f
#define LONG_IS1 0xffffff7f

const uint32_t tl_etm4_said[16] = {
    0, 0, 0x7f, 0xff7f, LONG_IS0, LONG_IS0, LONG_IS0, LONG_IS0,
    0, 0, 0x7f, 0xff7f, LONG_IS1, LONG_IS1, LONG_IS1, LONG_IS1,
};
const uint32_t tl_etm4_kept[16] = {
    [0] = UINT32_MAX, [1] = UINT32_MAX, [2] = ~0x1ffu,
    [3] = ~0x1ffffu,  [10] = ~0xffu,    [11] = ~0xffffu,
};

#if defined(__x86_64__)

static const struct tl_etm4_kernel kernels[] = {
    {TL_CPU_AVX2, 8, tl_etm4_avx2_8},       {TL_CPU_AVX2, 16, tl_etm4_avx2_16},
    {TL_CPU_AVX2, 32, tl_etm4_avx2_32},     {TL_CPU_AVX2, 64, tl_etm4_avx2_64},
    {TL_CPU_AVX512, 1, tl_etm4_avx512_1},   {TL_CPU_AVX512, 2, tl_etm4_avx512_2},
    {TL_CPU_AVX512, 4, tl_etm4_avx512_4},   {TL_CPU_AVX512, 8, tl_etm4_avx512_8},
    {TL_CPU_AVX512, 16, tl_etm4_avx512_16}, {TL_CPU_AVX512, 32, tl_etm4_avx512_32},
    {TL_CPU_AVX512, 64, tl_etm4_avx512_64},
};
#define N_KERNELS (sizeof kernels / sizeof kernels[0])

/* The level promises VBMI; these kernels compress bytes, too. */
static bool has_vbmi2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi2");
}

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    if (level >= TL_CPU_AVX512 && has_vbmi2())
        return &kernels[N_KERNELS - 1];
    return level >= TL_CPU_AVX2 ? &kernels[3] : NULL;
}

#else

static const struct tl_etm4_kernel kernels[1];
#define N_KERNELS 0

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    (void)level;
    return NULL;
}

#endif

const struct tl_etm4_kernel *tl_etm4_kernels(size_t *n)
{
    *n = N_KERNELS;
    return kernels;
}
