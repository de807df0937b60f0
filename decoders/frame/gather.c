/* SPDX-License-Identifier: MIT */
#include "frame/gather.h"

#include "frame/group.h"

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

SSE42 static size_t gather_sse42(uint8_t *out, const uint8_t *in, size_t frames)
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

AVX2 static size_t gather_avx2(uint8_t *out, const uint8_t *in, size_t frames)
{
    size_t i = 0;
    for (; frames - i >= 4 && plain_avx2(out, in); i += 4, in += GROUP, out += LINED)
        ;
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

static size_t gather_neon(uint8_t *out, const uint8_t *in, size_t frames)
{
    size_t i = 0;
    for (; frames - i >= 4 && plain_neon(out, in); i += 4, in += GROUP, out += LINED)
        ;
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
