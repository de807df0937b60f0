/* SPDX-License-Identifier: MIT */
/* Kernels of the unrolled packetizer for AVX2 with BMI2. */
#include "etm4/unrolled_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt")

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm256_set1_epi8((char)(byte))

struct lengths;
static ALWAYS_INLINE struct lengths lengths_of(const struct tl_etm4_forms *forms, const uint8_t *b,
                                               uint64_t *addresses);

static ALWAYS_INLINE size_t compress8(struct tl_etm4_columns *c, size_t n, const uint8_t *bytes,
                                      uint64_t which, unsigned base)
{
    const __m128i bits = _mm_cvtsi64_si128((int64_t)tl_etm4_set_bits[which]);
    const __m128i header = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)bytes), bits);

    _mm_storel_epi64((__m128i *)(c->header + n), header);
    _mm_storeu_si128((__m128i *)(c->at + n),
                     _mm_add_epi16(_mm_cvtepu8_epi16(bits), _mm_set1_epi16((short)base)));
    return (size_t)__builtin_popcountll(which);
}

#include "etm4/unrolled_masks_body.h"

/* Entries of a table of sixteen for the bytes of which `first` is the first, 0 for others. */
static ALWAYS_INLINE __m256i look_up(__m256i v, uint8_t first, const uint8_t table[16])
{
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return _mm256_shuffle_epi8(t, _mm256_adds_epu8(_mm256_xor_si256(v, BYTES(first)), BYTES(0x70)));
}

/* Lengths of the packets that may begin at each byte; of those that blocks do not take, others. */
static ALWAYS_INLINE __m256i length_of(const struct tl_etm4_forms *forms, const uint8_t *b,
                                       __m256i v)
{
    const __m256i atoms = _mm256_cmpeq_epi8(_mm256_max_epu8(v, BYTES(0xc0)), v);
    __m256i shape = look_up(v, 0x90, forms->shape + 0x90);
    shape = _mm256_or_si256(shape, look_up(v, 0x00, forms->shape));
    shape = _mm256_or_si256(shape, look_up(v, 0x10, forms->shape + 0x10));
    const __m256i next = _mm256_loadu_si256((const __m256i *)(b + 1));
    const __m256i longer = _mm256_cmpgt_epi8(_mm256_setzero_si256(), _mm256_and_si256(shape, next));
    const __m256i length = _mm256_sub_epi8(_mm256_and_si256(shape, BYTES(0x7f)), longer);
    return _mm256_sub_epi8(length, atoms); /* true is -1 */
}

static ALWAYS_INLINE uint64_t equal(__m256i low, __m256i high, uint8_t byte)
{
    const unsigned l = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, BYTES(byte)));
    const unsigned h = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, BYTES(byte)));
    return l | (uint64_t)h << 32;
}

static ALWAYS_INLINE struct lengths lengths_of(const struct tl_etm4_forms *forms, const uint8_t *b,
                                               uint64_t *addresses)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)b);
    const __m256i w = _mm256_loadu_si256((const __m256i *)(b + 32));
    const __m256i low = length_of(forms, b, v);
    const __m256i high = length_of(forms, b + 32, w);

    *addresses = equal(_mm256_and_si256(v, BYTES(0xf0)), _mm256_and_si256(w, BYTES(0xf0)), 0x90);
    return (struct lengths){.one = equal(low, high, 1),
                            .two = equal(low, high, 2),
                            .three = equal(low, high, 3),
                            .five = equal(low, high, 5),
                            .nine = equal(low, high, 9)};
}

#define KERNEL(u)                                                                                  \
    TL_KERNEL(avx2_##u)                                                                            \
    {                                                                                              \
        return unrolled(p, run, i, u);                                                             \
    }

KERNEL(8)
KERNEL(16)
KERNEL(32)
KERNEL(64)

TL_TARGET_END

#endif
