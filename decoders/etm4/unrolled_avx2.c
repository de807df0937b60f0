/* SPDX-License-Identifier: MIT */
/* Kernels of the unrolled packetizer for AVX2 with BMI2. */
#include "etm4/unrolled_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt")

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm256_set1_epi8((char)(byte))

static ALWAYS_INLINE void add_addresses_together(struct tl_etm4_packetizer *p, const uint8_t *b,
                                                 uint64_t heads, uint64_t whole);
#define add_addresses add_addresses_together

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

/* ---- addresses ----------------------------------------------------------------------------- */

/*
 * Thirteen addresses at once, behind the three before them: for each byte of an address, a table
 * of sixteen lanes "where my parent is", which four shuffles by itself lead to the packet that
 * said the byte. Addresses are without their bit 0, of IS0, and of one upper half; any others are
 * resolved in order.
 */
#define TOGETHER 13
#define FEW      8 /* addresses of a block that are resolved in order */

enum { BACK = 0x03, SHORT = 0x40, EXACT = 0x80, OTHER = 0x20 };

/* By bits 3:0 of the header: how many addresses back the parent is, and kinds. */
#define KINDS                                                                                      \
    _mm_setr_epi8((char)(EXACT | 1), (char)(EXACT | 2), (char)(EXACT | 3), OTHER, OTHER,           \
                  SHORT | 1, OTHER, OTHER, OTHER, OTHER, 1, OTHER, OTHER, OTHER, OTHER, OTHER)

/* Bytes 0 to 4 of sixteen packets, by byte. */
struct planes {
    __m128i header, b1, b2, b3, b4;
};

static ALWAYS_INLINE struct planes planes_of(const uint64_t *packets)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    __m256i two[4];
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        two[k] =
            _mm256_shuffle_epi8(_mm256_loadu2_m128i((const __m128i *)(packets + 8 + (size_t)2 * k),
                                                    (const __m128i *)(packets + (size_t)2 * k)),
                                pairs);
    const __m256i low01 = _mm256_unpacklo_epi16(two[0], two[1]);
    const __m256i low23 = _mm256_unpacklo_epi16(two[2], two[3]);
    const __m256i high01 = _mm256_unpackhi_epi16(two[0], two[1]);
    const __m256i high23 = _mm256_unpackhi_epi16(two[2], two[3]);
    const __m256i p01 = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(low01, low23), 0xd8);
    const __m256i p23 = _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(low01, low23), 0xd8);
    const __m256i p4 = _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(high01, high23), 0xd8);
    return (struct planes){_mm256_castsi256_si128(p01), _mm256_extracti128_si256(p01, 1),
                           _mm256_castsi256_si128(p23), _mm256_extracti128_si256(p23, 1),
                           _mm256_castsi256_si128(p4)};
}

/* Byte k of the three last addresses into the lanes behind the new ones. */
static ALWAYS_INLINE __m128i with_past(__m128i plane, __m128i past, unsigned k)
{
    const char i = (char)k, no = (char)0x80;
    const __m128i index = _mm_setr_epi8(no, no, no, no, no, no, no, no, no, no, no, no, no, i,
                                        (char)(i + 4), (char)(i + 8));
    const __m128i is_old = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1);
    return _mm_blendv_epi8(plane, _mm_shuffle_epi8(past, index), is_old);
}

/*
 * The low halves, without bit 0, of thirteen addresses behind the three in `low`. Returns which of
 * them are of other kinds, and so all nothing.
 */
static ALWAYS_INLINE unsigned resolve_low(uint32_t low[3 + 16], const uint64_t *packets)
{
    const struct planes s = planes_of(packets);
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i new = _mm_cmpgt_epi8(_mm_set1_epi8(TOGETHER), lane);
    const __m128i kind =
        _mm_and_si128(new, _mm_shuffle_epi8(KINDS, _mm_and_si128(s.header, _mm_set1_epi8(15))));
    const __m128i back = _mm_and_si128(kind, _mm_set1_epi8(BACK));
    const __m128i parent = _mm_and_si128(_mm_sub_epi8(lane, back), _mm_set1_epi8(15));
    const __m128i brief = _mm_add_epi8(kind, kind), kept23 = _mm_or_si128(kind, brief);
    const __m128i kept1 = _mm_or_si128(kind, _mm_andnot_si128(s.b1, brief)); /* these in bit 7 */
    const __m128i past = _mm_loadu_si128((const __m128i *)low), low7 = _mm_set1_epi8(0x7f);
    __m256i bytes01 =
        _mm256_set_m128i(_mm_blendv_epi8(lane, parent, kept1), _mm_blendv_epi8(lane, parent, kind));
    __m128i bytes23 = _mm_blendv_epi8(lane, parent, kept23);

#pragma GCC unroll 4
    for (unsigned round = 0; round < 4; round++) {
        bytes01 = _mm256_shuffle_epi8(bytes01, bytes01);
        bytes23 = _mm_shuffle_epi8(bytes23, bytes23);
    }
    const __m128i joined =
        _mm_or_si128(_mm_and_si128(s.b2, low7), _mm_andnot_si128(low7, _mm_slli_epi16(s.b3, 7)));
    const __m128i plane2 = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(s.b3, 1), low7),
                                        _mm_andnot_si128(low7, _mm_slli_epi16(s.b4, 7)));
    const __m128i plane3 = _mm_and_si128(_mm_srli_epi16(s.b4, 1), low7);
    const __m256i planes01 =
        _mm256_set_m128i(with_past(_mm_blendv_epi8(joined, s.b2, kept23), past, 1),
                         with_past(_mm_add_epi8(s.b1, s.b1), past, 0));
    const __m256i b01 = _mm256_shuffle_epi8(planes01, bytes01);
    const __m128i b0 = _mm256_castsi256_si128(b01), b1 = _mm256_extracti128_si256(b01, 1);
    const __m128i b2 = _mm_shuffle_epi8(with_past(plane2, past, 2), bytes23);
    const __m128i b3 = _mm_shuffle_epi8(with_past(plane3, past, 3), bytes23);
    const __m128i low01 = _mm_unpacklo_epi8(b0, b1), high01 = _mm_unpackhi_epi8(b0, b1);
    const __m128i low23 = _mm_unpacklo_epi8(b2, b3), high23 = _mm_unpackhi_epi8(b2, b3);
    __m128i *const out = (__m128i *)(low + 3);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(low01, low23));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(low01, low23));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(high01, high23));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(high01, high23));
    return (unsigned)_mm_movemask_epi8(_mm_slli_epi16(kind, 2));
}

/* Whole addresses of halves without bit 0. */
static ALWAYS_INLINE void widen(uint64_t out[16], const uint32_t low[16], uint64_t upper)
{
    const __m256i high = _mm256_set1_epi64x((long long)upper);
#pragma GCC unroll 4
    for (unsigned k = 0; k < 16; k += 4) {
        const __m256i some = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(low + k)));
        _mm256_storeu_si256((__m256i *)(out + k),
                            _mm256_or_si256(_mm256_add_epi64(some, some), high));
    }
}

/* See unrolled_masks_body.h. */
static ALWAYS_INLINE void add_addresses_together(struct tl_etm4_packetizer *p, const uint8_t *b,
                                                 uint64_t heads, uint64_t whole)
{
    struct tl_etm4_columns *const c = &p->columns;
    struct tl_etm4_registers *const r = &p->regs;
    const unsigned n = (unsigned)__builtin_popcountll(heads);
    const uint64_t upper = r->address[0] & 0xffffffff00000000;
    uint64_t packets[64 + 16 + 4], left = heads;
    uint32_t low[3 + 16] = {(uint32_t)r->address[2] >> 1, (uint32_t)r->address[1] >> 1,
                            (uint32_t)r->address[0] >> 1};
    uint64_t *const out = c->address + c->n_addresses;
    uint64_t others = (r->address[0] ^ r->address[1]) | (r->address[0] ^ r->address[2]);

    others = (others | (r->sf ? 0 : upper)) >> 32 | whole | r->is[0] | r->is[1] | r->is[2];
    if (others != 0 || n < FEW) {
        add_addresses_in_order(p, b, heads, whole);
        return;
    }
    for (unsigned k = 0; k < n; k += 4) /* where none is left, what is behind the block */
        for (unsigned j = k; j < k + 4; j++, left &= left - 1)
            memcpy(&packets[j], b + _tzcnt_u64(left), sizeof packets[0]);
    memset(packets + (n + 3) / 4 * 4, 0, 16 * sizeof packets[0]);
    for (unsigned k = 0; k < n; k += TOGETHER) {
        const unsigned some = n - k < TOGETHER ? n - k : TOGETHER;
        others |= resolve_low(low, packets + k) & ((1u << some) - 1);
        widen(out + k, low + 3, upper);
        memmove(low, low + some, 3 * sizeof low[0]);
    }
    if (others != 0) {
        add_addresses_in_order(p, b, heads, whole);
        return;
    }
    c->n_addresses = c->n_found += n;
    for (unsigned k = 0; k < 3; k++)
        r->address[k] = upper | (uint64_t)low[2 - k] << 1;
}

TL_KERNEL_OF(avx2, 8)
TL_KERNEL_OF(avx2, 16)
TL_KERNEL_OF(avx2, 32)
TL_KERNEL_OF(avx2, 64)

TL_TARGET_END

#endif
