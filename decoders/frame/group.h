/* SPDX-License-Identifier: MIT */
/*
 * What the de-framer's kernels do with a group, which is four frames, at each level of the
 * processor. Not for users.
 */
#ifndef TL_FRAME_GROUP_H
#define TL_FRAME_GROUP_H

#include "base/bytes.h"
#include "frame/tpiu_parts.h"
#include "frame/vectors.h"
#include "simd/target.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

/* Made for a level of the processor where it is called. */
#define KERNEL __attribute__((always_inline)) static inline

#define GROUP (4 * FRAME)
#define LINED (4 * AUX)

/* Write the 60 bytes of a group, and up to 4 more, which are of no meaning. false: it has IDs. */
typedef bool plain_group(uint8_t *out, const uint8_t *in);
typedef uint8_t frame16 __attribute__((vector_size(FRAME)));

/* Lined up, but byte 15 of each frame is still there. */
struct group {
    frame16 frame[4];
};

/*
 * Line up a group (frame/lineup.h). `ids`: which of its 60 bytes are IDs. false: an even byte is
 * ff.
 */
typedef bool lineup_group(struct group *out, const uint8_t *in, uint64_t *ids);

KERNEL void store_group(uint8_t *out, const struct group *group)
{
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        memcpy(out + AUX * k, &group->frame[k], FRAME);
}

KERNEL bool plain_scalar(uint8_t *out, const uint8_t *in)
{
    uint64_t ids = 0;
    for (unsigned k = 0; k < 4; k++, in += FRAME, out += AUX) {
        const uint64_t low = tl_le64(in), high = tl_le64(in + 8);
        ids |= low | high;
        tl_put_le64(out, low | tl_gather_bits(in[AUX], 0));
        tl_put_le64(out + 8, high | tl_gather_bits(in[AUX], 1));
    }
    return !(ids & TL_GATHER_ID_BITS);
}

/* Half a frame, its lowest bits, and which of its IDs are late. */
KERNEL uint64_t line_up_half(uint64_t half, uint64_t bits, uint64_t late)
{
    const uint64_t pairs = late * 0xffff;
    const uint64_t turned = (half | bits) << 8 & 0xff00ff00ff00ff00u;
    return ((half | bits) & ~pairs) | ((turned | (half >> 8 & 0x00ff00ff00ff00ffu)) & pairs);
}

KERNEL bool line_up_scalar(struct group *out, const uint8_t *in, uint64_t *ids)
{
    *ids = 0;
    for (unsigned k = 0; k < 4; k++, in += FRAME) {
        const uint64_t low = tl_le64(in), high = tl_le64(in + 8);
        const uint64_t first = tl_gather_bits(in[AUX], 0), last = tl_gather_bits(in[AUX], 1);
        if (has_ff(low, high))
            return false;
        /* That of byte 14 cannot be late. */
        const uint64_t late_low = low & first, late_high = high & last & 0x0000000100010001u;
        const unsigned said = pack_even(low) | pack_even(high) << 8;
        const unsigned late = pack_even(late_low) | pack_even(late_high) << 8;
        *ids |= (uint64_t)(said + late) << AUX * k;
        const uint64_t half[2] = {htole64(line_up_half(low, first, late_low)),
                                  htole64(line_up_half(high, last, late_high))};
        memcpy(&out->frame[k], half, FRAME);
    }
    return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Where the bytes of a frame go that change places by twos. */
#define TURNED 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
/* Of each byte pair's ID and its flag, both, if it is late; that of byte 14 cannot be. */
#define LATE_IS 1, 1, 1, 1, 1, 1, 1, 2

#define SSE42 TL_TARGET(TL_SSE42_TARGET)
#define AVX2  TL_TARGET(TL_AVX2_TARGET)

/* A frame with its lowest bits in place. */
SSE42 KERNEL __m128i patch_sse42(__m128i frame)
{
    const __m128i select = _mm_setr_epi8(TL_BIT_OF_BYTE);
    const __m128i aux = _mm_shuffle_epi8(frame, _mm_set1_epi8(AUX));
    const __m128i none = _mm_cmpeq_epi8(_mm_and_si128(aux, select), _mm_setzero_si128());
    return _mm_or_si128(frame, _mm_andnot_si128(none, _mm_set1_epi8(1)));
}

SSE42 KERNEL bool plain_sse42(uint8_t *out, const uint8_t *in)
{
    const __m128i a = _mm_loadu_si128((const __m128i *)in);
    const __m128i b = _mm_loadu_si128((const __m128i *)(in + FRAME));
    const __m128i c = _mm_loadu_si128((const __m128i *)(in + 2 * FRAME));
    const __m128i d = _mm_loadu_si128((const __m128i *)(in + 3 * FRAME));
    const __m128i any = _mm_or_si128(_mm_or_si128(a, b), _mm_or_si128(c, d));
    if (!_mm_testz_si128(any, _mm_set1_epi16(1)))
        return false;
    _mm_storeu_si128((__m128i *)out, patch_sse42(a));
    _mm_storeu_si128((__m128i *)(out + AUX), patch_sse42(b));
    _mm_storeu_si128((__m128i *)(out + 2 * AUX), patch_sse42(c));
    _mm_storeu_si128((__m128i *)(out + 3 * AUX), patch_sse42(d));
    return true;
}

SSE42 KERNEL bool line_up_sse42(struct group *out, const uint8_t *in, uint64_t *ids)
{
    const __m128i select = _mm_setr_epi8(TL_BIT_OF_BYTE), one = _mm_set1_epi16(1);
    const __m128i turn = _mm_setr_epi8(TURNED), late_is = _mm_setr_epi16(LATE_IS);
    *ids = 0;
    for (unsigned k = 0; k < 4; k++, in += FRAME) {
        const __m128i frame = _mm_loadu_si128((const __m128i *)in);
        const __m128i aux = _mm_shuffle_epi8(frame, _mm_set1_epi8(AUX));
        const __m128i set = _mm_cmpeq_epi16(_mm_and_si128(aux, select), select);
        const __m128i bit = _mm_and_si128(set, one), done = _mm_or_si128(frame, bit);
        const __m128i late = _mm_cmpeq_epi16(_mm_and_si128(frame, bit), late_is);
        const __m128i turned = _mm_shuffle_epi8(done, turn);
        if (_mm_movemask_epi8(_mm_cmpeq_epi8(frame, _mm_set1_epi8(-1))) & 0x5555)
            return false;
        *ids |= (uint64_t)((_mm_movemask_epi8(_mm_slli_epi16(frame, 7)) & 0x5555) +
                           (_mm_movemask_epi8(late) & 0x5555))
                << AUX * k;
        out->frame[k] = (frame16)_mm_blendv_epi8(done, turned, late);
    }
    return true;
}

AVX2 KERNEL void store_two(uint8_t *out, __m256i bytes)
{
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(bytes));
    _mm_storeu_si128((__m128i *)(out + AUX), _mm256_extracti128_si256(bytes, 1));
}

/* As patch_sse42(). */
AVX2 KERNEL __m256i patch_avx2(__m256i two)
{
    const __m256i select = _mm256_setr_epi8(TL_BIT_OF_BYTE, TL_BIT_OF_BYTE);
    const __m256i aux = _mm256_shuffle_epi8(two, _mm256_set1_epi8(AUX));
    const __m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(aux, select), _mm256_setzero_si256());
    return _mm256_or_si256(two, _mm256_andnot_si256(none, _mm256_set1_epi8(1)));
}

AVX2 KERNEL bool plain_avx2(uint8_t *out, const uint8_t *in)
{
    const __m256i a = _mm256_loadu_si256((const __m256i *)in);
    const __m256i b = _mm256_loadu_si256((const __m256i *)(in + 2 * FRAME));
    if (!_mm256_testz_si256(_mm256_or_si256(a, b), _mm256_set1_epi16(1)))
        return false;
    store_two(out, patch_avx2(a));
    store_two(out + 2 * AUX, patch_avx2(b));
    return true;
}

/* Two frames lined up, and of each byte pair, all ones: is there an ID, is it late? */
struct two {
    __m256i bytes, is_id, late;
};

AVX2 KERNEL struct two line_up_two(__m256i two)
{
    const __m256i select = _mm256_setr_epi8(TL_BIT_OF_BYTE, TL_BIT_OF_BYTE);
    const __m256i turn = _mm256_setr_epi8(TURNED, TURNED);
    const __m256i late_is = _mm256_setr_epi16(LATE_IS, LATE_IS);
    const __m256i aux = _mm256_shuffle_epi8(two, _mm256_set1_epi8(AUX));
    const __m256i set = _mm256_cmpeq_epi16(_mm256_and_si256(aux, select), select);
    const __m256i bit = _mm256_and_si256(set, _mm256_set1_epi16(1));
    const __m256i done = _mm256_or_si256(two, bit);
    const __m256i late = _mm256_cmpeq_epi16(_mm256_and_si256(two, bit), late_is);
    return (struct two){_mm256_blendv_epi8(done, _mm256_shuffle_epi8(done, turn), late),
                        _mm256_srai_epi16(_mm256_slli_epi16(two, 15), 15), late};
}

AVX2 KERNEL bool has_ff_avx2(__m256i a, __m256i b)
{
    const __m256i ff = _mm256_cmpeq_epi8(_mm256_max_epu8(a, b), _mm256_set1_epi8(-1));
    return !_mm256_testz_si256(ff, _mm256_set1_epi16(0xff));
}

AVX2 KERNEL uint64_t bits_avx2(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

AVX2 KERNEL bool line_up_avx2(struct group *out, const uint8_t *in, uint64_t *ids)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)in);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(in + 2 * FRAME));
    if (has_ff_avx2(low, high))
        return false;
    const struct two a = line_up_two(low), b = line_up_two(high);
    *out = (struct group){
        {(frame16)_mm256_castsi256_si128(a.bytes), (frame16)_mm256_extracti128_si256(a.bytes, 1),
         (frame16)_mm256_castsi256_si128(b.bytes), (frame16)_mm256_extracti128_si256(b.bytes, 1)}};
    const uint64_t said = (bits_avx2(a.is_id, b.is_id) & EVEN) + (bits_avx2(a.late, b.late) & EVEN);
    *ids = _pext_u64(said, ~AUX_BYTES);
    return true;
}

#elif defined(__aarch64__)

KERNEL uint8x16_t patch_neon(uint8x16_t frame)
{
    static const uint8_t bit_of_byte[16] = {TL_BIT_OF_BYTE};
    const uint8x16_t set = vtstq_u8(vdupq_laneq_u8(frame, AUX), vld1q_u8(bit_of_byte));
    return vorrq_u8(frame, vandq_u8(set, vdupq_n_u8(1)));
}

KERNEL bool plain_neon(uint8_t *out, const uint8_t *in)
{
    const uint8x16_t id_bits = vreinterpretq_u8_u16(vdupq_n_u16(1));
    const uint8x16_t a = vld1q_u8(in), b = vld1q_u8(in + FRAME);
    const uint8x16_t c = vld1q_u8(in + 2 * FRAME), d = vld1q_u8(in + 3 * FRAME);
    const uint8x16_t any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
    if (vmaxvq_u8(vandq_u8(any, id_bits)))
        return false;
    vst1q_u8(out, patch_neon(a));
    vst1q_u8(out + AUX, patch_neon(b));
    vst1q_u8(out + 2 * AUX, patch_neon(c));
    vst1q_u8(out + 3 * AUX, patch_neon(d));
    return true;
}

/* A bit for each byte of four frames to one for each but the bytes 15. */
KERNEL uint64_t without_aux(uint64_t bits)
{
    const uint64_t fifteen = 0x7fff;
    return (bits & fifteen) | (bits >> 1 & fifteen << 15) | (bits >> 2 & fifteen << 30) |
           (bits >> 3 & fifteen << 45);
}

KERNEL bool line_up_neon(struct group *out, const uint8_t *in, uint64_t *ids)
{
    static const uint8_t bit_of_byte[16] = {TL_BIT_OF_BYTE};
    const uint8x16_t select = vld1q_u8(bit_of_byte), one = vdupq_n_u8(1);
    const uint8x16_t even = vreinterpretq_u8_u16(vdupq_n_u16(0xff));
    const uint8x16_t id_bits = vandq_u8(even, one);
    uint8x16_t is_id[4], is_late[4], done[4], ff = vdupq_n_u8(0);
    for (unsigned k = 0; k < 4; k++) {
        const uint8x16_t frame = vld1q_u8(in + FRAME * k);
        const uint8x16_t is_set = vtstq_u8(vdupq_laneq_u8(frame, AUX), select);
        is_id[k] = vtstq_u8(frame, id_bits);
        is_late[k] = vsetq_lane_u8(0, vandq_u8(is_id[k], is_set), AUX - 1);
        done[k] = vorrq_u8(frame, vandq_u8(is_set, one));
        ff = vorrq_u8(ff, vceqq_u8(frame, vdupq_n_u8(0xff)));
    }
    if (vmaxvq_u8(vandq_u8(ff, even)))
        return false;
    for (unsigned k = 0; k < 4; k++) {
        const uint8x16_t pairs = vorrq_u8(is_late[k], vrev16q_u8(is_late[k]));
        out->frame[k] = (frame16)vbslq_u8(pairs, vrev16q_u8(done[k]), done[k]);
    }
    *ids = without_aux(bits_neon(is_id) + bits_neon(is_late));
    return true;
}

#endif

#endif
