/* SPDX-License-Identifier: MIT */
/* AVX-512 for a machine without it: SIMDe's functions under the names of the intrinsics, and those
 * that SIMDe lacks. Found before the compiler's header of the same name. */
#ifndef TL_TESTS_EMULATED_IMMINTRIN_H
#define TL_TESTS_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <stdint.h>
#include <string.h>

#define TL_EMULATED static inline __attribute__((unused))

/* SIMDe's version has the operands of the masked one. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16

#define _kand_mask64(a, b) ((uint64_t)(a) & (uint64_t)(b))
#define _kor_mask64(a, b)  ((uint64_t)(a) | (uint64_t)(b))
#define _cvtmask64_u64(a)  ((uint64_t)(a))

#define _mm512_maskz_compress_epi8(mask, a) tl_compress_epi8(_mm512_setzero_si512(), mask, a)
#define _mm512_mask_compress_epi8           tl_compress_epi8
TL_EMULATED simde__m512i tl_compress_epi8(simde__m512i from, uint64_t mask, simde__m512i a)
{
    uint8_t in[64], out[64];
    unsigned n = 0;
    memcpy(in, &a, 64);
    memcpy(out, &from, 64);
    for (unsigned k = 0; k < 64; k++)
        if (mask >> k & 1)
            out[n++] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_maskz_compress_epi16 tl_compress_epi16
TL_EMULATED simde__m512i tl_compress_epi16(uint32_t mask, simde__m512i a)
{
    uint16_t in[32], out[32] = {0};
    unsigned n = 0;
    memcpy(in, &a, 64);
    for (unsigned k = 0; k < 32; k++)
        if (mask >> k & 1)
            out[n++] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_i64gather_epi64 tl_i64gather_epi64
TL_EMULATED simde__m512i tl_i64gather_epi64(simde__m512i places, const void *p, int scale)
{
    int64_t at[8];
    uint64_t out[8];
    memcpy(at, &places, 64);
    for (unsigned k = 0; k < 8; k++)
        memcpy(out + k, (const uint8_t *)p + at[k] * scale, sizeof out[k]);
    memcpy(&places, out, 64);
    return places;
}

/* Only lanes in the mask are read. */
#define _mm512_maskz_loadu_epi8(mask, p) tl_loadu_epi8(_mm512_setzero_si512(), mask, p)
#define _mm512_mask_loadu_epi8           tl_loadu_epi8
TL_EMULATED simde__m512i tl_loadu_epi8(simde__m512i from, uint64_t mask, const void *p)
{
    const uint8_t *const in = p;
    uint8_t out[64];
    memcpy(out, &from, 64);
    for (unsigned k = 0; k < 64; k++)
        if (mask >> k & 1)
            out[k] = in[k];
    memcpy(&from, out, 64);
    return from;
}

#define _mm512_maskz_loadu_epi16 tl_loadu_epi16
TL_EMULATED simde__m512i tl_loadu_epi16(uint32_t mask, const void *p)
{
    uint16_t out[32] = {0};
    simde__m512i a;
    for (unsigned k = 0; k < 32; k++)
        if (mask >> k & 1)
            memcpy(out + k, (const uint8_t *)p + (size_t)2 * k, 2);
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_maskz_expandloadu_epi64 tl_expandloadu_epi64
TL_EMULATED simde__m512i tl_expandloadu_epi64(uint8_t mask, const void *p)
{
    uint64_t out[8] = {0};
    simde__m512i a;
    unsigned n = 0;
    for (unsigned k = 0; k < 8; k++)
        if (mask >> k & 1)
            memcpy(out + k, (const uint8_t *)p + (size_t)8 * n++, 8);
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_cvtepu16_epi64 tl_cvtepu16_epi64
TL_EMULATED simde__m512i tl_cvtepu16_epi64(simde__m128i from)
{
    uint16_t in[8];
    uint64_t out[8];
    simde__m512i a;
    memcpy(in, &from, 16);
    for (unsigned k = 0; k < 8; k++)
        out[k] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_cvtepu8_epi16 tl_cvtepu8_epi16
TL_EMULATED simde__m512i tl_cvtepu8_epi16(simde__m256i from)
{
    uint8_t in[32];
    uint16_t out[32];
    simde__m512i a;
    memcpy(in, &from, 32);
    for (unsigned k = 0; k < 32; k++)
        out[k] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm256_maskz_permutex_epi64 tl_permutex_epi64
TL_EMULATED simde__m256i tl_permutex_epi64(uint8_t mask, simde__m256i from, unsigned order)
{
    uint64_t in[4], out[4];
    memcpy(in, &from, 32);
    for (unsigned k = 0; k < 4; k++)
        out[k] = mask >> k & 1 ? in[order >> 2 * k & 3] : 0;
    memcpy(&from, out, 32);
    return from;
}

#define _mm512_cvtepu8_epi32 tl_cvtepu8_epi32
TL_EMULATED simde__m512i tl_cvtepu8_epi32(simde__m128i from)
{
    uint8_t in[16];
    uint32_t out[16];
    simde__m512i a;
    memcpy(in, &from, 16);
    for (unsigned k = 0; k < 16; k++)
        out[k] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_cvtepu32_epi64 tl_cvtepu32_epi64
TL_EMULATED simde__m512i tl_cvtepu32_epi64(simde__m256i from)
{
    uint32_t in[8];
    uint64_t out[8];
    simde__m512i a;
    memcpy(in, &from, 32);
    for (unsigned k = 0; k < 8; k++)
        out[k] = in[k];
    memcpy(&a, out, 64);
    return a;
}

#define _mm512_alignr_epi64 tl_alignr_epi64
TL_EMULATED simde__m512i tl_alignr_epi64(simde__m512i high, simde__m512i low, unsigned by)
{
    uint64_t both[16];
    memcpy(both, &low, 64);
    memcpy(both + 8, &high, 64);
    memcpy(&low, both + (by & 7), 64);
    return low;
}

#define _mm512_testn_epi8_mask(a, b) tl_testn_epi8(UINT64_MAX, a, b)
#define _mm512_mask_testn_epi8_mask  tl_testn_epi8
TL_EMULATED uint64_t tl_testn_epi8(uint64_t mask, simde__m512i a, simde__m512i b)
{
    uint8_t first[64], second[64];
    uint64_t none = 0;
    memcpy(first, &a, 64);
    memcpy(second, &b, 64);
    for (unsigned k = 0; k < 64; k++)
        none |= (uint64_t) !(first[k] & second[k]) << k;
    return none & mask;
}

#endif
