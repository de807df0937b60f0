/* SPDX-License-Identifier: MIT */
#include "frame/gather.h"

#include "base/bytes.h"
#include "frame/vectors.h"
#include "simd/target.h"

static size_t gather_scalar(uint8_t *out, const uint8_t *in, size_t frames)
{
    size_t i = 0;
    for (; i < frames; i++, in += 16, out += 15) {
        const uint64_t low = tl_le64(in);
        const uint64_t high = tl_le64(in + 8);
        if ((low | high) & TL_GATHER_ID_BITS)
            break;
        tl_put_le64(out, low | tl_gather_bits(in[15], 0));
        tl_put_le64(out + 8, high | tl_gather_bits(in[15], 1));
    }
    return i;
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_SSE42_TARGET) static inline __m128i patch_sse42(__m128i frame)
{
    const __m128i select = _mm_setr_epi8(TL_BIT_OF_BYTE);
    const __m128i aux = _mm_shuffle_epi8(frame, _mm_set1_epi8(15));
    const __m128i none = _mm_cmpeq_epi8(_mm_and_si128(aux, select), _mm_setzero_si128());
    return _mm_or_si128(frame, _mm_andnot_si128(none, _mm_set1_epi8(1)));
}

TL_TARGET(TL_SSE42_TARGET)
static size_t gather_sse42(uint8_t *out, const uint8_t *in, size_t frames)
{
    const __m128i id_bits = _mm_set1_epi16(1);
    size_t i = 0;
    for (; i < frames; i++, in += 16, out += 15) {
        const __m128i frame = _mm_loadu_si128((const __m128i *)in);
        if (!_mm_testz_si128(frame, id_bits))
            break;
        _mm_storeu_si128((__m128i *)out, patch_sse42(frame));
    }
    return i;
}

/* Four frames at a time; the last store of each goes one byte too far and is overwritten. */
TL_TARGET(TL_AVX2_TARGET) static size_t gather_avx2(uint8_t *out, const uint8_t *in, size_t frames)
{
    const __m256i select = _mm256_setr_epi8(TL_BIT_OF_BYTE, TL_BIT_OF_BYTE);
    const __m256i one = _mm256_set1_epi8(1);
    const __m256i zero = _mm256_setzero_si256();
    const __m256i fifteen = _mm256_set1_epi8(15);
    size_t i = 0;
    for (; frames - i >= 4; i += 4, in += 64, out += 60) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)in);
        const __m256i b = _mm256_loadu_si256((const __m256i *)(in + 32));
        if (!_mm256_testz_si256(_mm256_or_si256(a, b), _mm256_set1_epi16(1)))
            break;
        const __m256i aux_a = _mm256_and_si256(_mm256_shuffle_epi8(a, fifteen), select);
        const __m256i aux_b = _mm256_and_si256(_mm256_shuffle_epi8(b, fifteen), select);
        const __m256i bits_a = _mm256_andnot_si256(_mm256_cmpeq_epi8(aux_a, zero), one);
        const __m256i bits_b = _mm256_andnot_si256(_mm256_cmpeq_epi8(aux_b, zero), one);
        const __m256i done_a = _mm256_or_si256(a, bits_a);
        const __m256i done_b = _mm256_or_si256(b, bits_b);
        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(done_a));
        _mm_storeu_si128((__m128i *)(out + 15), _mm256_extracti128_si256(done_a, 1));
        _mm_storeu_si128((__m128i *)(out + 30), _mm256_castsi256_si128(done_b));
        _mm_storeu_si128((__m128i *)(out + 45), _mm256_extracti128_si256(done_b, 1));
    }
    return i + gather_sse42(out, in, frames - i);
}

const uint8_t tl_frame_squeeze[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22,
    23, 24, 25, 26, 27, 28, 29, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45,
    46, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 63, 63, 63};

TL_TARGET(TL_AVX512_TARGET)
static size_t gather_avx512(uint8_t *out, const uint8_t *in, size_t frames)
{
    const __m512i select = _mm512_broadcast_i32x4(_mm_setr_epi8(TL_BIT_OF_BYTE));
    const __m512i fifteen = _mm512_set1_epi8(15);
    const __m512i one = _mm512_set1_epi8(1);
    const __m512i order = _mm512_loadu_si512(tl_frame_squeeze);
    size_t i = 0;
    for (; frames - i >= 4; i += 4, in += 64, out += 60) {
        const __m512i four = _mm512_loadu_si512(in);
        if (_mm512_test_epi16_mask(four, _mm512_set1_epi16(1)))
            break;
        const __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(four, fifteen), select);
        const __m512i done = _mm512_mask_add_epi8(four, set, four, one);
        _mm512_storeu_si512(out, _mm512_permutexvar_epi8(order, done));
    }
    return i + gather_sse42(out, in, frames - i);
}

tl_gather *tl_gather_variant(enum tl_cpu level)
{
    static tl_gather *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = gather_scalar, [TL_CPU_NEON] = gather_scalar,
        [TL_CPU_SSE42] = gather_sse42,   [TL_CPU_AVX2] = gather_avx2,
        [TL_CPU_AVX512] = gather_avx512,
    };
    return variants[level];
}

#elif defined(__aarch64__)
#include <arm_neon.h>

static inline uint8x16_t patch_neon(uint8x16_t frame)
{
    static const uint8_t bit_of_byte[16] = {TL_BIT_OF_BYTE};
    const uint8x16_t set = vtstq_u8(vdupq_laneq_u8(frame, 15), vld1q_u8(bit_of_byte));
    return vorrq_u8(frame, vandq_u8(set, vdupq_n_u8(1)));
}

/* Four frames at a time; the last store of each goes one byte too far and is overwritten. */
static size_t gather_neon(uint8_t *out, const uint8_t *in, size_t frames)
{
    const uint8x16_t id_bits = vreinterpretq_u8_u16(vdupq_n_u16(1));
    size_t i = 0;
    for (; frames - i >= 4; i += 4, in += 64, out += 60) {
        const uint8x16_t a = vld1q_u8(in), b = vld1q_u8(in + 16);
        const uint8x16_t c = vld1q_u8(in + 32), d = vld1q_u8(in + 48);
        const uint8x16_t any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
        if (vmaxvq_u8(vandq_u8(any, id_bits)))
            break;
        vst1q_u8(out, patch_neon(a));
        vst1q_u8(out + 15, patch_neon(b));
        vst1q_u8(out + 30, patch_neon(c));
        vst1q_u8(out + 45, patch_neon(d));
    }
    return i + gather_scalar(out, in, frames - i);
}

tl_gather *tl_gather_variant(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR ? gather_scalar : gather_neon;
}

#else

tl_gather *tl_gather_variant(enum tl_cpu level)
{
    return gather_scalar;
}

#endif
