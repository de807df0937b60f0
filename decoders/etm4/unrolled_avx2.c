/* SPDX-License-Identifier: MIT */
/* Kernels of the unrolled packetizer for AVX2 with BMI2. */
#include "etm4/unrolled_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt")

#define ALWAYS_INLINE  inline __attribute__((always_inline))
#define EQUAL(v, byte) _mm256_cmpeq_epi8(v, _mm256_set1_epi8((char)(byte)))

/* Masks over 64 bytes, bit k is byte k. */
struct block {
    uint64_t single; /* headers of packets of one byte */
    uint64_t match;  /* exact matches, of these */
    uint64_t brief;  /* short addresses */
    uint64_t long32; /* long addresses of 32 bits */
    uint64_t pair;   /* cycle counts of two bytes */
    uint64_t next;   /* bit 7 of the byte behind each */
};

static ALWAYS_INLINE uint64_t mask_of(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

static ALWAYS_INLINE __m256i at_least(__m256i v, uint8_t byte)
{
    return _mm256_cmpeq_epi8(_mm256_max_epu8(v, _mm256_set1_epi8((char)byte)), v);
}

static ALWAYS_INLINE __m256i is_match(__m256i v)
{
    return _mm256_andnot_si256(at_least(v, 0x93), at_least(v, 0x90));
}

static ALWAYS_INLINE __m256i is_cycles(__m256i v)
{
    return EQUAL(_mm256_and_si256(v, _mm256_set1_epi8((char)0xf0)), 0x10);
}

static ALWAYS_INLINE __m256i is_format2(__m256i v)
{
    return EQUAL(_mm256_and_si256(v, _mm256_set1_epi8((char)0xfe)), 0x0c);
}

static ALWAYS_INLINE struct block block_of(const uint8_t *b, uint64_t short_f1)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)b);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(b + 32));
    struct block block;

    block.match = mask_of(is_match(low), is_match(high));
    block.single = mask_of(at_least(low, 0xc0), at_least(high, 0xc0)) |
                   mask_of(is_cycles(low), is_cycles(high)) | block.match;
    block.brief = mask_of(EQUAL(low, 0x95), EQUAL(high, 0x95));
    block.long32 = mask_of(EQUAL(low, 0x9a), EQUAL(high, 0x9a));
    block.next = mask_of(_mm256_loadu_si256((const __m256i *)(b + 1)),
                         _mm256_loadu_si256((const __m256i *)(b + 33)));
    block.pair = mask_of(is_format2(low), is_format2(high)) |
                 (mask_of(EQUAL(low, 0x0e), EQUAL(high, 0x0e)) & short_f1 & ~block.next);
    return block;
}

#include "etm4/unrolled_order_body.h"

static ALWAYS_INLINE void list_of(const uint8_t *b, const struct block *block,
                                  const uint8_t places[64], uint64_t heads, struct list *list)
{
    const uint64_t two = block->brief & block->next;
    for (unsigned k = 0; heads != 0; k++) {
        const unsigned at = (unsigned)_tzcnt_u64(heads);
        const uint8_t header = b[at];
        const unsigned action = header >= 0xc0            ? header & 63u
                                : (header & 0xf0) == 0x10 ? TL_ACTION_CYCLES | (header & 15u)
                                                          : TL_ACTION_ADDRESS | (header & 15u);
        heads &= heads - 1;
        list->action[k] = (uint8_t)(action + (two >> at & 1));
        list->at[k] = (uint8_t)at;
        list->place[k] = places[at];
    }
}

static ALWAYS_INLINE void write_packet(struct tl_etm4_packet *out, const uint64_t action[4],
                                       uint64_t offset)
{
    const __m128i second = _mm_slli_si128(_mm_cvtsi64_si128((int64_t)offset), 8);
    const __m256i fixed = _mm256_loadu_si256((const __m256i *)action);
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(fixed, _mm256_zextsi128_si256(second)));
}

static ALWAYS_INLINE void emit(struct tl_etm4_packetizer *p, const uint8_t *b,
                               const struct block *block, const uint8_t places[64], uint64_t heads,
                               uint64_t offset)
{
    emit_in_order(p, b, block, places, heads, offset);
}

#include "etm4/unrolled_loop_body.h"

KERNELS(avx2)

TL_TARGET_END

#endif
