/* SPDX-License-Identifier: MIT */
/*
 * Trace state of the AVX2 kernels: thirteen addresses at once, behind the three before them, by
 * the way of unrolled_avx512_state.c in sixteen lanes: for each byte of an address, a table "where
 * my parent is", which four shuffles by itself lead to the packet that said the byte.
 *
 * Addresses are without their bit 0, of IS0. IS1 among them, and AArch32 behind addresses of 64
 * bits, are resolved in order.
 */
#include "etm4/unrolled_avx2.h"

#include "base/bytes.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN(TL_AVX2_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm_set1_epi8((char)(byte))

#define TOGETHER 13

/* Kinds of address packets: how many addresses back the parent is, and: */
enum {
    BACK = 0x03,
    UPPER = 0x08,  /* the upper half is the parent's */
    LONG64 = 0x10, /* the packet says it */
    OTHER = 0x20,  /* IS1 */
    SHORT = 0x40,
    EXACT = 0x80,
};

/* By bits 3:0 of the header: without a context, and with one. */
static const uint8_t kinds[2][16] = {
    {[0x0] = EXACT | UPPER | 1,
     [0x1] = EXACT | UPPER | 2,
     [0x2] = EXACT | UPPER | 3,
     [0x5] = SHORT | UPPER | 1,
     [0x6] = OTHER,
     [0xa] = UPPER | 1,
     [0xb] = OTHER,
     [0xd] = LONG64 | 1,
     [0xe] = OTHER},
    {[0x2] = UPPER | 1, [0x3] = OTHER, [0x5] = LONG64 | 1, [0x6] = OTHER},
};

/* The three addresses before, oldest first, without bit 0; and room for one more. */
struct past {
    uint32_t low[4], high[4];
};

static struct past past_of(const struct tl_etm4_registers *r)
{
    struct past past = {{0}, {0}};
    for (unsigned k = 0; k < 3; k++) {
        past.low[k] = (uint32_t)(r->address[2 - k] >> 1);
        past.high[k] = (uint32_t)(r->address[2 - k] >> 32);
    }
    return past;
}

static void past_keep(const struct past *past, struct tl_etm4_registers *r)
{
    for (unsigned k = 0; k < 3; k++) {
        r->address[2 - k] = (uint64_t)past->high[k] << 32 | past->low[k] << 1;
        r->is[k] = 0;
    }
}

static __attribute__((noinline)) void resolve_in_order(struct tl_etm4_packetizer *p)
{
    struct tl_etm4_columns *const c = &p->columns;
    struct tl_etm4_history h = tl_etm4_history_of(&p->regs);

    for (; c->n_addresses < c->n_found; c->n_addresses++) {
        const uint8_t *const packet = p->run.p + c->found_at[c->n_addresses];
        c->address[c->n_addresses] =
            tl_etm4_resolve(&h, packet[0], tl_le64(packet + 1), p->regs.sf);
    }
    tl_etm4_history_keep(&h, &p->regs);
}

static ALWAYS_INLINE __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

/* Kinds of the thirteen; of the lanes of those before, none. */
static ALWAYS_INLINE __m128i kinds_of(__m128i header)
{
    const char no = (char)0x80;
    const __m128i old = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, no, no, no);
    const __m128i index = _mm_or_si128(_mm_and_si128(header, BYTES(15)), old);
    return _mm_blendv_epi8(_mm_shuffle_epi8(load(kinds[1]), index),
                           _mm_shuffle_epi8(load(kinds[0]), index), _mm_slli_epi16(header, 3));
}

/* Byte k of the three addresses before into the lanes behind the new ones. */
static ALWAYS_INLINE __m128i with_past(__m128i plane, __m128i past, unsigned k)
{
    const char i = (char)k, no = (char)0x80;
    const __m128i index = _mm_setr_epi8(no, no, no, no, no, no, no, no, no, no, no, no, no, i,
                                        (char)(i + 4), (char)(i + 8));
    const __m128i is_old = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1);
    return _mm_blendv_epi8(plane, _mm_shuffle_epi8(past, index), is_old);
}

/*
 * The low halves of the next thirteen addresses, behind those in `past`, in order. Returns which of
 * the sixteen lanes says the high half of each.
 */
static ALWAYS_INLINE __m128i low_halves(__m128i out[4], const struct tl_etm4_columns *c,
                                        __m128i kind, __m128i past)
{
    const size_t k = c->n_addresses;
    const __m128i b1 = load(c->payload[0] + k), b2 = load(c->payload[1] + k);
    const __m128i b3 = load(c->payload[2] + k), b4 = load(c->payload[3] + k);
    const __m128i lane = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i back = _mm_and_si128(kind, BYTES(BACK));
    const __m128i parent = _mm_and_si128(_mm_sub_epi8(lane, back), BYTES(15));
    const __m128i brief = _mm_add_epi8(kind, kind), kept23 = _mm_or_si128(kind, brief);
    const __m128i kept1 = _mm_or_si128(kind, _mm_andnot_si128(b1, brief)); /* these in bit 7 */
    const __m128i low7 = BYTES(0x7f);
    __m256i bytes01 =
        _mm256_set_m128i(_mm_blendv_epi8(lane, parent, kept1), _mm_blendv_epi8(lane, parent, kind));
    __m256i bytes2u = _mm256_set_m128i(_mm_blendv_epi8(lane, parent, _mm_slli_epi16(kind, 4)),
                                       _mm_blendv_epi8(lane, parent, kept23));

#pragma GCC unroll 4
    for (unsigned round = 0; round < 4; round++) {
        bytes01 = _mm256_shuffle_epi8(bytes01, bytes01);
        bytes2u = _mm256_shuffle_epi8(bytes2u, bytes2u);
    }
    const __m128i joined =
        _mm_or_si128(_mm_and_si128(b2, low7), _mm_andnot_si128(low7, _mm_slli_epi16(b3, 7)));
    const __m128i plane1 = with_past(_mm_blendv_epi8(joined, b2, kept23), past, 1);
    const __m128i plane2 = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(b3, 1), low7),
                                        _mm_andnot_si128(low7, _mm_slli_epi16(b4, 7)));
    const __m128i plane3 = _mm_and_si128(_mm_srli_epi16(b4, 1), low7);
    const __m256i b01 = _mm256_shuffle_epi8(
        _mm256_set_m128i(plane1, with_past(_mm_add_epi8(b1, b1), past, 0)), bytes01);
    const __m128i bytes23 = _mm256_castsi256_si128(bytes2u);
    const __m128i r0 = _mm256_castsi256_si128(b01), r1 = _mm256_extracti128_si256(b01, 1);
    const __m128i r2 = _mm_shuffle_epi8(with_past(plane2, past, 2), bytes23);
    const __m128i r3 = _mm_shuffle_epi8(with_past(plane3, past, 3), bytes23);
    const __m128i low01 = _mm_unpacklo_epi8(r0, r1), high01 = _mm_unpackhi_epi8(r0, r1);
    const __m128i low23 = _mm_unpacklo_epi8(r2, r3), high23 = _mm_unpackhi_epi8(r2, r3);
    out[0] = _mm_unpacklo_epi16(low01, low23);
    out[1] = _mm_unpackhi_epi16(low01, low23);
    out[2] = _mm_unpacklo_epi16(high01, high23);
    out[3] = _mm_unpackhi_epi16(high01, high23);
    return _mm256_extracti128_si256(bytes2u, 1);
}

/* Write whole addresses, all with the same high half. */
static ALWAYS_INLINE void widen(uint64_t out[16], const __m128i low[4], uint32_t high)
{
    const __m256i upper = _mm256_set1_epi64x((long long)((uint64_t)high << 32));
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        const __m256i some = _mm256_cvtepu32_epi64(low[k]);
        _mm256_storeu_si256((__m256i *)(out + (size_t)4 * k),
                            _mm256_or_si256(_mm256_add_epi64(some, some), upper));
    }
}

/*
 * High halves of the `n` next addresses, which have that of the last one: those that packets in
 * `is64` say, and those of the addresses before.
 */
static ALWAYS_INLINE void put_uppers(const struct tl_etm4_packetizer *p, uint64_t *out,
                                     struct past *past, __m128i uppers, unsigned is64, unsigned n)
{
    const uint16_t *const at = p->columns.found_at + p->columns.n_addresses;
    uint32_t differ = (past->high[0] ^ past->high[1]) | (past->high[0] ^ past->high[2]);
    uint32_t said[16] = {0};
    uint8_t by[16];

    for (; is64 != 0; is64 &= is64 - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(is64);
        said[lane] = tl_le32(p->run.p + at[lane] + 5);
        differ |= said[lane] ^ past->high[2];
    }
    if (differ == 0)
        return;
    _mm_storeu_si128((__m128i *)by, uppers);
    memcpy(said + TOGETHER, past->high, 3 * sizeof said[0]);
    for (unsigned k = 0; k < n; k++) {
        const uint32_t high = said[by[k]];
        memcpy((uint8_t *)(out + k) + 4, &high, sizeof high);
        past->high[0] = past->high[1];
        past->high[1] = past->high[2];
        past->high[2] = high;
    }
}

/* The last three of `last` and the first `n` of `low`. */
static ALWAYS_INLINE __m128i last_of(__m128i last, const __m128i low[4], unsigned n)
{
    uint32_t all[3 + 16];
    _mm_storeu_si128((__m128i *)all, last);
    for (unsigned k = 0; k < 4; k++)
        _mm_storeu_si128((__m128i *)(all + 3 + 4 * k), low[k]);
    return load(all + n);
}

static ALWAYS_INLINE bool in_halves(const struct tl_etm4_registers *r)
{
    const uint64_t high = r->address[0] | r->address[1] | r->address[2];
    return (r->is[0] | r->is[1] | r->is[2]) == 0 && (r->sf || high >> 32 == 0);
}

__attribute__((noinline)) void tl_etm4_avx2_resolve(struct tl_etm4_packetizer *p)
{
    struct tl_etm4_columns *const c = &p->columns;

    if (c->n_found == c->n_addresses)
        return;
    if (!in_halves(&p->regs)) {
        resolve_in_order(p);
        return;
    }
    struct past past = past_of(&p->regs);
    __m128i last = load(past.low);
    while (c->n_addresses < c->n_found) {
        const size_t left = c->n_found - c->n_addresses;
        const unsigned n = left < TOGETHER ? (unsigned)left : TOGETHER, valid = (1u << n) - 1;
        const __m128i kind = kinds_of(load(c->found + c->n_addresses));
        const unsigned is64 = (unsigned)_mm_movemask_epi8(_mm_slli_epi16(kind, 3)) & valid;
        const unsigned other = (unsigned)_mm_movemask_epi8(_mm_slli_epi16(kind, 2)) & valid;
        __m128i low[4];
        if (__builtin_expect(other || (is64 && !p->regs.sf), 0))
            break;
        const __m128i uppers = low_halves(low, c, kind, last);
        widen(c->address + c->n_addresses, low, past.high[2]);
        if (__builtin_expect(is64 | (past.high[0] ^ past.high[1]) | (past.high[0] ^ past.high[2]),
                             0))
            put_uppers(p, c->address + c->n_addresses, &past, uppers, is64, n);
        c->n_addresses += n;
        last = n == TOGETHER ? _mm_alignr_epi8(low[3], low[2], 8) : last_of(last, low, n);
    }
    _mm_storeu_si128((__m128i *)past.low, last);
    past_keep(&past, &p->regs);
    if (c->n_addresses < c->n_found)
        resolve_in_order(p);
}

TL_TARGET_END

#endif
