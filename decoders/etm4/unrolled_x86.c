/* SPDX-License-Identifier: MIT */
/* Kernels of the unrolled packetizer for AVX2 and AVX-512. */
#include "etm4/headers.h"
#include "etm4/unrolled_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A header that blocks take. */
static ALWAYS_INLINE bool known_to_blocks(uint8_t header)
{
    return header >= 0xc0 || (header >= 0x90 && header <= 0x92) || header == 0x95 ||
           header == 0x9a || (header & 0xf0) == 0x10;
}

static ALWAYS_INLINE uint64_t load64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static ALWAYS_INLINE uint64_t low_bits(unsigned n)
{
    return n >= 64 ? ~0ull : (1ull << n) - 1;
}

struct block {
    uint64_t single; /* packets of one byte */
    uint64_t match;  /* exact matches, of these */
    uint64_t brief;  /* short addresses */
    uint64_t long32; /* long addresses */
    uint64_t next;   /* bit 7 of the byte behind each */
};

#define KERNELS(level)                                                                             \
    size_t tl_etm4_unrolled_##level##_8(struct tl_etm4_packetizer *p, const struct tl_run *run,    \
                                        size_t i)                                                  \
    {                                                                                              \
        return unrolled_##level(p, run, i, 8);                                                     \
    }                                                                                              \
    size_t tl_etm4_unrolled_##level##_16(struct tl_etm4_packetizer *p, const struct tl_run *run,   \
                                         size_t i)                                                 \
    {                                                                                              \
        return unrolled_##level(p, run, i, 16);                                                    \
    }                                                                                              \
    size_t tl_etm4_unrolled_##level##_32(struct tl_etm4_packetizer *p, const struct tl_run *run,   \
                                         size_t i)                                                 \
    {                                                                                              \
        return unrolled_##level(p, run, i, 32);                                                    \
    }                                                                                              \
    size_t tl_etm4_unrolled_##level##_64(struct tl_etm4_packetizer *p, const struct tl_run *run,   \
                                         size_t i)                                                 \
    {                                                                                              \
        return unrolled_##level(p, run, i, 64);                                                    \
    }

/* ---- AVX2 ---------------------------------------------------------------------------------- */

#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")

static ALWAYS_INLINE uint64_t mask_of(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

#define EQUAL(v, byte) _mm256_cmpeq_epi8(v, _mm256_set1_epi8((char)(byte)))

static ALWAYS_INLINE struct block block_of_avx2(const uint8_t *b)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)b);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(b + 32));
    const __m256i nibble = _mm256_set1_epi8((char)0xf0);
    const __m256i least_atom = _mm256_set1_epi8((char)0xc0);
    const __m256i match = _mm256_set1_epi8((char)0x90);
    const __m256i two = _mm256_set1_epi8(2);
    const uint64_t atom = mask_of(_mm256_cmpeq_epi8(_mm256_max_epu8(low, least_atom), low),
                                  _mm256_cmpeq_epi8(_mm256_max_epu8(high, least_atom), high));
    const uint64_t cycles = mask_of(EQUAL(_mm256_and_si256(low, nibble), 0x10),
                                    EQUAL(_mm256_and_si256(high, nibble), 0x10));
    const __m256i low_match = _mm256_sub_epi8(low, match);
    const __m256i high_match = _mm256_sub_epi8(high, match);
    struct block block;

    block.match = mask_of(_mm256_cmpeq_epi8(_mm256_min_epu8(low_match, two), low_match),
                          _mm256_cmpeq_epi8(_mm256_min_epu8(high_match, two), high_match));
    block.single = atom | cycles | block.match;
    block.brief = mask_of(EQUAL(low, 0x95), EQUAL(high, 0x95));
    block.long32 = mask_of(EQUAL(low, 0x9a), EQUAL(high, 0x9a));
    block.next = mask_of(_mm256_loadu_si256((const __m256i *)(b + 1)),
                         _mm256_loadu_si256((const __m256i *)(b + 33)));
    return block;
}

static ALWAYS_INLINE void list_of_avx2(const uint8_t *b, const struct block *block,
                                       const uint8_t places[64], uint64_t heads,
                                       struct tl_etm4_list *list)
{
    const uint64_t two = block->brief & block->next;
    for (unsigned k = 0; heads != 0; k++) {
        const unsigned at = (unsigned)_tzcnt_u64(heads);
        const uint8_t header = b[at];
        const uint8_t known = (uint8_t)(header >= 0xc0   ? header & 63
                                        : header >= 0x90 ? TL_ACTION_ADDRESS | (header & 15)
                                                         : TL_ACTION_CYCLES | (header & 15));
        heads &= heads - 1;
        list->action[k] = (uint8_t)(known + (two >> at & 1));
        list->at[k] = (uint8_t)at;
        list->place[k] = places[at];
    }
}

static ALWAYS_INLINE void write_packet_avx2(struct tl_etm4_packet *out, const uint64_t action[4],
                                            uint64_t offset)
{
    const __m128i place = _mm_slli_si128(_mm_cvtsi64_si128((int64_t)offset), 8);
    const __m256i fixed = _mm256_loadu_si256((const __m256i *)action);
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(fixed, _mm256_zextsi128_si256(place)));
}

#define LEVEL(name) name##_avx2
#include "etm4/unrolled_body.h"
KERNELS(avx2)
#undef LEVEL

#pragma GCC pop_options

/* ---- AVX-512 ------------------------------------------------------------------------------- */

#pragma GCC push_options
#pragma GCC target(                                                                                \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")

static ALWAYS_INLINE struct block block_of_avx512(const uint8_t *b)
{
    const __m512i v = _mm512_loadu_si512(b);
    const __m512i upper = _mm512_and_si512(v, _mm512_set1_epi8((char)0xf0));
    struct block block;

    block.match = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8((char)0x90)),
                                         _mm512_set1_epi8(2));
    block.single = _mm512_cmpge_epu8_mask(v, _mm512_set1_epi8((char)0xc0)) |
                   _mm512_cmpeq_epi8_mask(upper, _mm512_set1_epi8(0x10)) | block.match;
    block.brief = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)0x95));
    block.long32 = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)0x9a));
    block.next = _mm512_movepi8_mask(_mm512_loadu_si512(b + 1));
    return block;
}

static ALWAYS_INLINE void list_of_avx512(const uint8_t *b, const struct block *block,
                                         const uint8_t places[64], uint64_t heads,
                                         struct tl_etm4_list *list)
{
    static const uint8_t counting[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i v = _mm512_loadu_si512(b);
    const __m512i low = _mm512_and_si512(v, _mm512_set1_epi8(15));
    const __mmask64 atoms = _mm512_cmpge_epu8_mask(v, _mm512_set1_epi8((char)0xc0));
    const __mmask64 addresses = _mm512_cmpge_epu8_mask(v, _mm512_set1_epi8((char)0x90));
    const __mmask64 two = block->brief & block->next;
    const __m512i one = _mm512_set1_epi8(1);
    __m512i action = _mm512_or_si512(low, _mm512_set1_epi8(TL_ACTION_CYCLES));

    action = _mm512_mask_mov_epi8(action, addresses,
                                  _mm512_or_si512(low, _mm512_set1_epi8(TL_ACTION_ADDRESS)));
    action = _mm512_mask_mov_epi8(action, atoms, _mm512_and_si512(v, _mm512_set1_epi8(63)));
    action = _mm512_mask_add_epi8(action, two, action, one);
    _mm512_storeu_si512(list->action, _mm512_maskz_compress_epi8(heads, action));
    _mm512_storeu_si512(list->at, _mm512_maskz_compress_epi8(heads, _mm512_loadu_si512(counting)));
    _mm512_storeu_si512(list->place, _mm512_maskz_compress_epi8(heads, _mm512_loadu_si512(places)));
}

static ALWAYS_INLINE void write_packet_avx512(struct tl_etm4_packet *out, const uint64_t action[4],
                                              uint64_t offset)
{
    const __m256i fixed = _mm256_loadu_si256((const __m256i *)action);
    _mm256_storeu_si256((__m256i *)out, _mm256_mask_set1_epi64(fixed, 2, (int64_t)offset));
}

#define LEVEL(name) name##_avx512
#include "etm4/unrolled_body.h"
KERNELS(avx512)
#undef LEVEL

#pragma GCC pop_options

#endif
