/* SPDX-License-Identifier: MIT */
#include "frame/lineup.h"

#include "base/bytes.h"
#include "frame/tpiu_parts.h"
#include "frame/vectors.h"
#include "simd/target.h"

#include <stdbool.h>
#include <string.h>

static inline bool wants_more(const struct tl_lined *lined, size_t groups, size_t quiet)
{
    return lined->groups < groups && lined->quiet < quiet;
}

static inline uint8_t *end_of(struct tl_lined *lined)
{
    return lined->bytes + lined->groups * TL_LINEUP_BYTES;
}

/* A group has been lined up; its IDs are `ids`, a bit for each byte. */
static inline void add_group(struct tl_lined *lined, uint64_t ids)
{
    const size_t first = lined->groups++ * TL_LINEUP_BYTES;
    lined->quiet = ids ? 0 : lined->quiet + 1;
    for (; ids; ids &= ids - 1)
        lined->at[lined->n_ids++] = (uint16_t)(first + (unsigned)__builtin_ctzll(ids));
}

/* Half a frame, its lowest bits, and which of its IDs are late. */
static inline uint64_t line_up_half(uint64_t half, uint64_t bits, uint64_t late)
{
    const uint64_t pairs = late * 0xffff;
    const uint64_t turned = (half | bits) << 8 & 0xff00ff00ff00ff00u;
    return ((half | bits) & ~pairs) | ((turned | (half >> 8 & 0x00ff00ff00ff00ffu)) & pairs);
}

static void lineup_scalar(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    while (wants_more(lined, groups, quiet)) {
        const uint8_t *frame = in + lined->groups * 4 * FRAME;
        uint8_t *out = end_of(lined);
        uint64_t ids = 0;
        for (unsigned k = 0; k < 4; k++, frame += FRAME, out += AUX) {
            const uint64_t low = tl_le64(frame), high = tl_le64(frame + 8);
            const uint64_t first = tl_gather_bits(frame[AUX], 0);
            const uint64_t last = tl_gather_bits(frame[AUX], 1);
            if (has_ff(low, high))
                return;
            /* That of byte 14 cannot be late. */
            const uint64_t late_low = low & first, late_high = high & last & 0x0000000100010001u;
            const unsigned said = pack_even(low) | pack_even(high) << 8;
            const unsigned late = pack_even(late_low) | pack_even(late_high) << 8;
            ids |= (uint64_t)(said + late) << AUX * k;
            tl_put_le64(out, line_up_half(low, first, late_low));
            tl_put_le64(out + 8, line_up_half(high, last, late_high));
        }
        add_group(lined, ids);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Where the bytes of a frame go that change places by twos. */
#define TURNED 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
/* Of each byte pair's ID and its flag, both, if it is late; that of byte 14 cannot be. */
#define LATE_IS 1, 1, 1, 1, 1, 1, 1, 2

TL_TARGET(TL_SSE42_TARGET)
static void lineup_sse42(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    const __m128i select = _mm_setr_epi8(TL_BIT_OF_BYTE), one = _mm_set1_epi16(1);
    const __m128i turn = _mm_setr_epi8(TURNED), late_is = _mm_setr_epi16(LATE_IS);
    while (wants_more(lined, groups, quiet)) {
        const uint8_t *from = in + lined->groups * 4 * FRAME;
        uint8_t *out = end_of(lined);
        uint64_t ids = 0;
        for (unsigned k = 0; k < 4; k++, from += FRAME, out += AUX) {
            const __m128i frame = _mm_loadu_si128((const __m128i *)from);
            const __m128i aux = _mm_shuffle_epi8(frame, _mm_set1_epi8(AUX));
            const __m128i set = _mm_cmpeq_epi16(_mm_and_si128(aux, select), select);
            const __m128i bit = _mm_and_si128(set, one), done = _mm_or_si128(frame, bit);
            const __m128i late = _mm_cmpeq_epi16(_mm_and_si128(frame, bit), late_is);
            const __m128i turned = _mm_shuffle_epi8(done, turn);
            if (_mm_movemask_epi8(_mm_cmpeq_epi8(frame, _mm_set1_epi8(-1))) & 0x5555)
                return;
            ids |= (uint64_t)((_mm_movemask_epi8(_mm_slli_epi16(frame, 7)) & 0x5555) +
                              (_mm_movemask_epi8(late) & 0x5555))
                   << AUX * k;
            _mm_storeu_si128((__m128i *)out, _mm_blendv_epi8(done, turned, late));
        }
        add_group(lined, ids);
    }
}

#define AVX2 TL_TARGET(TL_AVX2_TARGET)

/* Two frames lined up, and of each even byte: whether it is an ID, and where that goes. */
struct two {
    __m256i bytes, is_id, place;
};

AVX2 static inline struct two line_up_two(__m256i two, __m256i place)
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
                        _mm256_srai_epi16(_mm256_slli_epi16(two, 15), 15),
                        _mm256_sub_epi16(place, late)};
}

AVX2 static inline void store_two(uint8_t *out, __m256i bytes)
{
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(bytes));
    _mm_storeu_si128((__m128i *)(out + AUX), _mm256_extracti128_si256(bytes, 1));
}

/* The even bytes of two frames, the first of which begins at `from`. */
#define EVEN_FROM(from)                                                                            \
    from, from + 2, from + 4, from + 6, from + 8, from + 10, from + 12, from + 14, from + 15,      \
        from + 17, from + 19, from + 21, from + 23, from + 25, from + 27, from + 29

/*
 * List the IDs of four frames, which are lined up from `first` on. Each frame's are made one row
 * without the places between that are none, eight are stored, and those that are too many
 * overwritten: what is behind the last one is of no meaning. Returns the end.
 */
AVX2 static inline uint16_t *list_ids(uint16_t *at, struct two a, struct two b, uint32_t first)
{
    static const uint8_t order[4] = {0, 2, 1, 3}; /* packing goes by halves of vectors */
    const __m128i base = _mm_set1_epi16((short)first);
    uint64_t is_id[4], place[4];
    _mm256_storeu_si256((__m256i *)is_id, _mm256_packs_epi16(a.is_id, b.is_id));
    _mm256_storeu_si256((__m256i *)place, _mm256_packus_epi16(a.place, b.place));
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        const uint64_t ids = is_id[order[k]];
        const __m128i row = _mm_cvtsi64_si128((int64_t)_pext_u64(place[order[k]], ids));
        _mm_storeu_si128((__m128i *)at, _mm_add_epi16(_mm_cvtepu8_epi16(row), base));
        at += (unsigned)__builtin_popcountll(ids) / 8;
    }
    return at;
}

AVX2 static void lineup_avx2(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t most)
{
    const __m256i all = _mm256_set1_epi8(-1), even = _mm256_set1_epi16(0xff);
    const __m256i low_place = _mm256_setr_epi16(EVEN_FROM(0));
    const __m256i high_place = _mm256_setr_epi16(EVEN_FROM(2 * AUX));
    size_t g = lined->groups, quiet = lined->quiet;
    uint8_t *out = end_of(lined);
    uint16_t *at = lined->at + lined->n_ids;
    uint32_t first = (uint32_t)(g * TL_LINEUP_BYTES);
    for (in += g * 4 * FRAME; g < groups && quiet < most; g++, in += 4 * FRAME) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)in);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(in + 2 * FRAME));
        const __m256i ff = _mm256_cmpeq_epi8(_mm256_max_epu8(low, high), all);
        if (!_mm256_testz_si256(ff, even))
            break;
        const struct two a = line_up_two(low, low_place), b = line_up_two(high, high_place);
        store_two(out, a.bytes);
        store_two(out + 2 * AUX, b.bytes);
        uint16_t *const end = list_ids(at, a, b, first);
        quiet = end > at ? 0 : quiet + 1;
        at = end;
        out += TL_LINEUP_BYTES;
        first += TL_LINEUP_BYTES;
    }
    lined->groups = g;
    lined->quiet = quiet;
    lined->n_ids = (size_t)(at - lined->at);
}

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    static tl_lineup *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = lineup_scalar, [TL_CPU_NEON] = lineup_scalar,
        [TL_CPU_SSE42] = lineup_sse42,   [TL_CPU_AVX2] = lineup_avx2,
        [TL_CPU_AVX512] = lineup_avx2,
    };
    return variants[level];
}

#elif defined(__aarch64__)

/* A bit for each byte of four frames to one for each but the bytes 15. */
static inline uint64_t without_aux(uint64_t bits)
{
    const uint64_t fifteen = 0x7fff;
    return (bits & fifteen) | (bits >> 1 & fifteen << 15) | (bits >> 2 & fifteen << 30) |
           (bits >> 3 & fifteen << 45);
}

static void lineup_neon(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    static const uint8_t bit_of_byte[16] = {TL_BIT_OF_BYTE};
    const uint8x16_t select = vld1q_u8(bit_of_byte), one = vdupq_n_u8(1);
    const uint8x16_t even = vreinterpretq_u8_u16(vdupq_n_u16(0xff));
    const uint8x16_t id_bits = vandq_u8(even, one);
    while (wants_more(lined, groups, quiet)) {
        const uint8_t *const from = in + lined->groups * 4 * FRAME;
        uint8_t *const out = end_of(lined);
        uint8x16_t is_id[4], is_late[4], done[4], ff = vdupq_n_u8(0);
        for (unsigned k = 0; k < 4; k++) {
            const uint8x16_t frame = vld1q_u8(from + FRAME * k);
            const uint8x16_t is_set = vtstq_u8(vdupq_laneq_u8(frame, AUX), select);
            is_id[k] = vtstq_u8(frame, id_bits);
            is_late[k] = vsetq_lane_u8(0, vandq_u8(is_id[k], is_set), AUX - 1);
            done[k] = vorrq_u8(frame, vandq_u8(is_set, one));
            ff = vorrq_u8(ff, vceqq_u8(frame, vdupq_n_u8(0xff)));
        }
        if (vmaxvq_u8(vandq_u8(ff, even)))
            return;
        for (unsigned k = 0; k < 4; k++) {
            const uint8x16_t pairs = vorrq_u8(is_late[k], vrev16q_u8(is_late[k]));
            vst1q_u8(out + AUX * k, vbslq_u8(pairs, vrev16q_u8(done[k]), done[k]));
        }
        add_group(lined, without_aux(bits_neon(is_id) + bits_neon(is_late)));
    }
}

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR ? lineup_scalar : lineup_neon;
}

#else

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    return lineup_scalar;
}

#endif
