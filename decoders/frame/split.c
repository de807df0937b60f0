/* SPDX-License-Identifier: MIT */
#include "frame/split.h"

#include "base/bytes.h"
#include "frame/gather.h"
#include "frame/vectors.h"
#include "simd/target.h"

static size_t split_scalar(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in,
                           size_t fours)
{
    for (size_t i = 0; i < fours; i++) {
        uint64_t ids = 0, set = 0;
        for (unsigned k = 0; k < 4; k++, in += 16, out += 15) {
            const uint64_t low = tl_le64(in), high = tl_le64(in + 8);
            const uint64_t first = tl_gather_bits(in[15], 0), last = tl_gather_bits(in[15], 1);
            if (has_ff(low, high))
                return i;
            ids |= (uint64_t)(pack_even(low) | pack_even(high) << 8) << 16 * k;
            set |= (uint64_t)(pack_even(first) | pack_even(last) << 8) << 16 * k;
            tl_put_le64(out, low | first);
            tl_put_le64(out + 8, high | last);
        }
        marks[i] = (struct tl_split_marks){ids, ids & set & ~BYTE_14};
    }
    return fours;
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_SSE42_TARGET)
static size_t
    split_sse42(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in, size_t fours)
{
    const __m128i select = _mm_setr_epi8(TL_BIT_OF_BYTE);
    const __m128i all = _mm_set1_epi8(-1);
    for (size_t i = 0; i < fours; i++) {
        uint64_t ids = 0, set = 0;
        for (unsigned k = 0; k < 4; k++, in += 16, out += 15) {
            const __m128i frame = _mm_loadu_si128((const __m128i *)in);
            const __m128i aux = _mm_shuffle_epi8(frame, _mm_set1_epi8(15));
            const __m128i none = _mm_cmpeq_epi8(_mm_and_si128(aux, select), _mm_setzero_si128());
            if (_mm_movemask_epi8(_mm_cmpeq_epi8(frame, all)) & 0x5555)
                return i;
            ids |= (uint64_t)(_mm_movemask_epi8(_mm_slli_epi16(frame, 7)) & 0x5555) << 16 * k;
            set |= (uint64_t)(~_mm_movemask_epi8(none) & 0x5555) << 16 * k;
            _mm_storeu_si128((__m128i *)out,
                             _mm_or_si128(frame, _mm_andnot_si128(none, _mm_set1_epi8(1))));
        }
        marks[i] = (struct tl_split_marks){ids, ids & set & ~BYTE_14};
    }
    return fours;
}

TL_TARGET(TL_AVX2_TARGET)
static size_t
    split_avx2(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in, size_t fours)
{
    const __m256i select = _mm256_setr_epi8(TL_BIT_OF_BYTE, TL_BIT_OF_BYTE);
    const __m256i all = _mm256_set1_epi8(-1), one = _mm256_set1_epi8(1);
    const __m256i fifteen = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
    for (size_t i = 0; i < fours; i++) {
        uint64_t ids = 0, set = 0;
        for (unsigned k = 0; k < 2; k++, in += 32, out += 30) {
            const __m256i two = _mm256_loadu_si256((const __m256i *)in);
            const __m256i aux = _mm256_and_si256(_mm256_shuffle_epi8(two, fifteen), select);
            const __m256i none = _mm256_cmpeq_epi8(aux, zero);
            if ((uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(two, all)) & (uint32_t)EVEN)
                return i;
            ids |= (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(two, 7)) << 32 * k;
            set |= (uint64_t) ~(uint32_t)_mm256_movemask_epi8(none) << 32 * k;
            const __m256i done = _mm256_or_si256(two, _mm256_andnot_si256(none, one));
            _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(done));
            _mm_storeu_si128((__m128i *)(out + 15), _mm256_extracti128_si256(done, 1));
        }
        ids &= EVEN;
        marks[i] = (struct tl_split_marks){ids, ids & set & ~BYTE_14};
    }
    return fours;
}

TL_TARGET(TL_AVX512_TARGET)
static size_t
    split_avx512(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in, size_t fours)
{
    const __m512i select = _mm512_broadcast_i32x4(_mm_setr_epi8(TL_BIT_OF_BYTE));
    const __m512i fifteen = _mm512_set1_epi8(15), one = _mm512_set1_epi8(1);
    const __m512i order = _mm512_loadu_si512(tl_frame_squeeze);
    for (size_t i = 0; i < fours; i++, in += 64, out += 60) {
        const __m512i four = _mm512_loadu_si512(in);
        if (_mm512_cmpeq_epi8_mask(four, _mm512_set1_epi8(-1)) & EVEN)
            return i;
        const uint64_t ids = _mm512_test_epi8_mask(four, _mm512_set1_epi16(1));
        const uint64_t set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(four, fifteen), select);
        marks[i] = (struct tl_split_marks){ids, ids & set & ~BYTE_14};
        const __m512i done = _mm512_or_si512(four, _mm512_maskz_mov_epi8(set, one));
        _mm512_storeu_si512(out, _mm512_permutexvar_epi8(order, done));
    }
    return fours;
}

tl_split *tl_split_variant(enum tl_cpu level)
{
    static tl_split *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = split_scalar, [TL_CPU_NEON] = split_scalar,
        [TL_CPU_SSE42] = split_sse42,   [TL_CPU_AVX2] = split_avx2,
        [TL_CPU_AVX512] = split_avx512,
    };
    return variants[level];
}

#elif defined(__aarch64__)

static size_t split_neon(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in,
                         size_t fours)
{
    static const uint8_t bit_of_byte[16] = {TL_BIT_OF_BYTE};
    const uint8x16_t select = vld1q_u8(bit_of_byte), one = vdupq_n_u8(1);
    const uint8x16_t even = vreinterpretq_u8_u16(vdupq_n_u16(0xff));
    const uint8x16_t id_bits = vandq_u8(even, one);
    for (size_t i = 0; i < fours; i++, in += 64, out += 60) {
        uint8x16_t is_id[4], is_set[4], frame[4], ff = vdupq_n_u8(0);
        for (unsigned k = 0; k < 4; k++) {
            frame[k] = vld1q_u8(in + 16 * k);
            is_id[k] = vtstq_u8(frame[k], id_bits);
            is_set[k] = vtstq_u8(vdupq_laneq_u8(frame[k], 15), select);
            ff = vorrq_u8(ff, vceqq_u8(frame[k], vdupq_n_u8(0xff)));
        }
        if (vmaxvq_u8(vandq_u8(ff, even)))
            return i;
        for (unsigned k = 0; k < 4; k++)
            vst1q_u8(out + 15 * k, vorrq_u8(frame[k], vandq_u8(is_set[k], one)));
        const uint64_t ids = bits_neon(is_id);
        marks[i] = (struct tl_split_marks){ids, ids & bits_neon(is_set) & ~BYTE_14};
    }
    return fours;
}

tl_split *tl_split_variant(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR ? split_scalar : split_neon;
}

#else

tl_split *tl_split_variant(enum tl_cpu level)
{
    return split_scalar;
}

#endif
