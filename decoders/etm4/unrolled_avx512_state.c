/* SPDX-License-Identifier: MIT */
/*
 * Trace state of the AVX-512 kernels: 61 addresses at once, plus the three before them.
 *
 * Each byte of an address comes from the address packet itself, or from an earlier address, its
 * parent: the previous one, or an older one for an exact match. Which bytes come from the parent
 * depends only on the packet's length. So for each byte there is a table of parent positions, and
 * six permutations of it by itself resolve the packet that contains the byte, for 64 addresses in
 * one register. One more permutation fetches the bytes.
 *
 * Packet bytes and address bytes are aligned differently: for IS0 two bits precede the first byte,
 * so addresses are built without bit 0. Upper halves are nearly always equal; if not, they are
 * resolved the same way. A mixture of IS0 and IS1, and contexts that switch between AArch32 and
 * AArch64, are resolved one by one.
 */
#include "etm4/unrolled_avx512.h"

#include "base/bytes.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN(TL_AVX512_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))

/* Kinds of address packets: the distance to the parent address, and flags: */
enum {
    BACK = 0x03,
    LONG64 = 0x04,
    LONG32 = 0x08,
    IS1 = 0x10,
    IS0 = 0x20,
    SHORT = 0x40,
    EXACT = 0x80,
};

/* Indexed by bits 5:0 of the header. */
static alignas(64) const uint8_t kinds[64] = {
    [0x10] = EXACT | 1,        [0x11] = EXACT | 2,        [0x12] = EXACT | 3,
    [0x15] = SHORT | IS0 | 1,  [0x16] = SHORT | IS1 | 1,  [0x1a] = LONG32 | IS0 | 1,
    [0x1b] = LONG32 | IS1 | 1, [0x1d] = LONG64 | IS0 | 1, [0x1e] = LONG64 | IS1 | 1,
    [0x02] = LONG32 | IS0 | 1, /* with context */
    [0x03] = LONG32 | IS1 | 1, [0x05] = LONG64 | IS0 | 1, [0x06] = LONG64 | IS1 | 1,
};

/* The order that three rounds of pairwise unpacking turn into memory order. */
static alignas(64) const uint8_t unpacked[64] = {
    0,  1,  8,  9,  16, 17, 24, 25, 32, 33, 40, 41, 48, 49, 56, 57, 2,  3,  10, 11, 18, 19,
    26, 27, 34, 35, 42, 43, 50, 51, 58, 59, 4,  5,  12, 13, 20, 21, 28, 29, 36, 37, 44, 45,
    52, 53, 60, 61, 6,  7,  14, 15, 22, 23, 30, 31, 38, 39, 46, 47, 54, 55, 62, 63};

#define OLD_LANES (7ull << TL_AVX512_ADDRESSES)

void tl_etm4_past_read(struct tl_etm4_past *past, const struct tl_etm4_packetizer *p)
{
    const struct tl_etm4_history h = tl_etm4_history_of(&p->regs);
    past->last[0] = h.c;
    past->last[1] = h.b;
    past->last[2] = h.a;
    past->last[3] = 0;
    past->checked = p->columns.n;
}

static void past_keep(const struct tl_etm4_past *past, struct tl_etm4_registers *regs)
{
    const struct tl_etm4_history h = {past->last[2], past->last[1], past->last[0]};
    tl_etm4_history_keep(&h, regs);
}

/* Record the `n` addresses at `out` as the most recent ones. */
static ALWAYS_INLINE void past_push(struct tl_etm4_past *past, const uint64_t *out, unsigned n)
{
    if (__builtin_expect(n >= 3, 1)) {
        memcpy(past->last, out + n - 3, sizeof past->last); /* a fourth is in the slack */
        return;
    }
    for (unsigned k = 0; k < n; k++) {
        past->last[0] = past->last[1];
        past->last[1] = past->last[2];
        past->last[2] = out[k];
    }
}

/*
 * ---- one by one -------------------------------------------------------------------------------
 */

/* Apply contexts of packets from `past->checked` on that begin before byte `before`. */
static void follow_contexts(struct tl_etm4_packetizer *p, struct tl_etm4_past *past, size_t before)
{
    const struct tl_etm4_columns *const c = &p->columns;

    for (; past->checked < c->n; past->checked++) {
        const uint8_t header = c->header[past->checked];
        const unsigned info = tl_etm4_context_at(header);
        if (header == TL_TAPE_OTHER)
            continue;
        if (c->at[past->checked] >= before)
            return;
        if (info != 0)
            p->regs.sf = p->run.p[c->at[past->checked] + info] >> 4 & 1;
    }
}

static __attribute__((noinline)) void resolve_in_order(struct tl_etm4_packetizer *p,
                                                       struct tl_etm4_past *past)
{
    struct tl_etm4_columns *const c = &p->columns;

    past_keep(past, &p->regs);
    struct tl_etm4_history h = tl_etm4_history_of(&p->regs);
    for (; c->n_addresses < c->n_found; c->n_addresses++) {
        const size_t at = c->found_at[c->n_addresses];
        follow_contexts(p, past, at);
        const uint8_t *const packet = p->run.p + at;
        c->address[c->n_addresses] =
            tl_etm4_resolve(&h, packet[0], tl_le64(packet + 1), p->regs.sf);
    }
    follow_contexts(p, past, SIZE_MAX);
    tl_etm4_history_keep(&h, &p->regs);
    tl_etm4_past_read(past, p);
}

/* Do the contexts of the packets not examined yet leave SF unchanged? If so, they count as
 * examined. */
static ALWAYS_INLINE bool state_stays(const struct tl_etm4_packetizer *p, struct tl_etm4_past *past)
{
    const struct tl_etm4_columns *const c = &p->columns;

    for (size_t k = past->checked; k < c->n; k += 64) {
        const __m512i header = _mm512_loadu_si512(c->header + k);
        uint64_t contexts =
            _mm512_cmplt_epu8_mask(_mm512_sub_epi8(header, BYTES(0x81)), BYTES(0x86 - 0x80));
        if (c->n - k < 64)
            contexts &= (1ull << (c->n - k)) - 1;
        for (; contexts != 0; contexts &= contexts - 1) {
            const uint8_t *const packet = p->run.p + c->at[k + (unsigned)__builtin_ctzll(contexts)];
            const unsigned info = tl_etm4_context_at(packet[0]);
            if (info != 0 && (packet[info] >> 4 & 1) != p->regs.sf)
                return false;
        }
    }
    past->checked = c->n;
    return true;
}

/* ---- all at once --------------------------------------------------------------------------- */

/* For each byte of the low half, and for the upper half, the lane that contains it. */
struct said {
    __m512i byte0, byte1, bytes23, upper;
};

/* Resolve each lane to the root of its parents, for all four or three tables. */
static ALWAYS_INLINE void follow_parents(struct said *s, bool upper)
{
#pragma GCC unroll 6
    for (unsigned round = 0; round < 6; round++) {
        s->byte0 = _mm512_permutexvar_epi8(s->byte0, s->byte0);
        s->byte1 = _mm512_permutexvar_epi8(s->byte1, s->byte1);
        s->bytes23 = _mm512_permutexvar_epi8(s->bytes23, s->bytes23);
        if (upper)
            s->upper = _mm512_permutexvar_epi8(s->upper, s->upper);
    }
    const __m512i order = _mm512_load_si512(unpacked);
    s->byte0 = _mm512_permutexvar_epi8(order, s->byte0);
    s->byte1 = _mm512_permutexvar_epi8(order, s->byte1);
    s->bytes23 = _mm512_permutexvar_epi8(order, s->bytes23);
    if (upper)
        s->upper = _mm512_permutexvar_epi8(order, s->upper);
}

/* Put byte k of the last three addresses into the lanes after the new ones. */
static ALWAYS_INLINE __m512i with_past(__m512i plane, __m512i past, unsigned k)
{
    const __m512i index =
        _mm512_set_epi64((long long)(16 + k) << 56 | (long long)(8 + k) << 48 | (long long)k << 40,
                         0, 0, 0, 0, 0, 0, 0);
    return _mm512_mask_permutexvar_epi8(plane, OLD_LANES, index, past);
}

/* Interleave 64 times four bytes: sixteen dwords each, in unpacking order. */
static ALWAYS_INLINE void unpack(__m512i out[4], __m512i b0, __m512i b1, __m512i b2, __m512i b3)
{
    const __m512i low01 = _mm512_unpacklo_epi8(b0, b1), high01 = _mm512_unpackhi_epi8(b0, b1);
    const __m512i low23 = _mm512_unpacklo_epi8(b2, b3), high23 = _mm512_unpackhi_epi8(b2, b3);
    out[0] = _mm512_unpacklo_epi16(low01, low23);
    out[1] = _mm512_unpackhi_epi16(low01, low23);
    out[2] = _mm512_unpacklo_epi16(high01, high23);
    out[3] = _mm512_unpackhi_epi16(high01, high23);
}

/* Low halves of the addresses. `longs`: the packet contains all of it. */
static ALWAYS_INLINE void low_halves(__m512i out[4], const struct tl_etm4_columns *c,
                                     const struct said *s, uint64_t longs, __m512i past, bool is1)
{
    const size_t k = c->n_addresses;
    const __m512i b1 = _mm512_loadu_si512(c->payload[0] + k);
    const __m512i b2 = _mm512_loadu_si512(c->payload[1] + k);
    const __m512i b3 = _mm512_loadu_si512(c->payload[2] + k);
    const __m512i b4 = _mm512_loadu_si512(c->payload[3] + k);
    const __m512i first = _mm512_add_epi8(b1, b1);
    __m512i plane[4];

    if (is1) {
        plane[0] = _mm512_or_si512(first, BYTES(1));
        plane[1] = b2;
        plane[2] = b3;
        plane[3] = b4;
    } else {
        const __m512i low7 = BYTES(0x7f); /* select: 0xca */
        const __m512i joined = _mm512_ternarylogic_epi32(low7, b2, _mm512_slli_epi16(b3, 7), 0xca);
        past = _mm512_srli_epi32(past, 1);
        plane[0] = first;
        plane[1] = _mm512_mask_mov_epi8(b2, longs, joined);
        plane[2] = _mm512_ternarylogic_epi32(low7, _mm512_srli_epi16(b3, 1),
                                             _mm512_slli_epi16(b4, 7), 0xca);
        plane[3] = _mm512_and_si512(low7, _mm512_srli_epi16(b4, 1));
    }
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        plane[i] = with_past(plane[i], past, i);
    unpack(out, _mm512_permutexvar_epi8(s->byte0, plane[0]),
           _mm512_permutexvar_epi8(s->byte1, plane[1]),
           _mm512_permutexvar_epi8(s->bytes23, plane[2]),
           _mm512_permutexvar_epi8(s->bytes23, plane[3]));
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        out[i] = is1 ? out[i] : _mm512_add_epi32(out[i], out[i]);
}

/* Upper halves, some of them from packets, those in `is64`. */
static ALWAYS_INLINE void upper_halves(__m512i out[4], const struct tl_etm4_packetizer *p,
                                       const struct said *s, uint64_t is64, __m512i past)
{
    const struct tl_etm4_columns *const c = &p->columns;
    alignas(64) uint8_t plane[4][64];
    __m512i byte[4];

    memset(plane, 0, sizeof plane);
    for (; is64 != 0; is64 &= is64 - 1) {
        const unsigned lane = (unsigned)__builtin_ctzll(is64);
        const uint8_t *const upper = p->run.p + c->found_at[c->n_addresses + lane] + 5;
        for (unsigned i = 0; i < 4; i++)
            plane[i][lane] = upper[i];
    }
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++)
        byte[i] =
            _mm512_permutexvar_epi8(s->upper, with_past(_mm512_load_si512(plane[i]), past, 4 + i));
    unpack(out, byte[0], byte[1], byte[2], byte[3]);
}

static ALWAYS_INLINE void write_out(uint64_t *out, const __m512i low[4], const __m512i high[4])
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++) {
        _mm512_storeu_si512(out + (size_t)16 * i, _mm512_unpacklo_epi32(low[i], high[i]));
        _mm512_storeu_si512(out + (size_t)16 * i + 8, _mm512_unpackhi_epi32(low[i], high[i]));
    }
}

/*
 * Resolve the next `n` addresses, all IS0 or all IS1. `one`: all upper halves equal the last one.
 */
static ALWAYS_INLINE void resolve_batch(struct tl_etm4_packetizer *p, struct tl_etm4_past *past,
                                        __m512i kind, unsigned n, bool is1, bool one)
{
    struct tl_etm4_columns *const c = &p->columns;
    const __m512i lane = _mm512_load_si512(tl_avx512_lanes);
    const __m512i parent = _mm512_sub_epi8(lane, _mm512_and_si512(kind, BYTES(BACK)));
    const uint64_t longer = _mm512_movepi8_mask(_mm512_loadu_si512(c->payload[0] + c->n_addresses));
    const uint64_t exact = _mm512_movepi8_mask(kind);
    const uint64_t brief = _mm512_movepi8_mask(_mm512_add_epi8(kind, kind));
    const __m512i last = _mm512_castsi256_si512(_mm256_load_si256((const __m256i *)past->last));
    uint64_t *const out = c->address + c->n_addresses;
    __m512i low[4], high[4];
    struct said s = {.byte0 = _mm512_mask_mov_epi8(lane, exact, parent),
                     .byte1 = _mm512_mask_mov_epi8(lane, exact | (brief & ~longer), parent),
                     .bytes23 = _mm512_mask_mov_epi8(lane, exact | brief, parent)};
    uint64_t is64 = 0;

    if (!one) {
        const uint64_t sets =
            _mm512_test_epi8_mask(kind, BYTES(p->regs.sf ? LONG64 : LONG64 | LONG32));
        is64 = _mm512_test_epi8_mask(kind, BYTES(LONG64)) & ~0ull >> (64 - n);
        s.upper = _mm512_mask_mov_epi8(parent, sets, lane);
    }
    follow_parents(&s, !one);
    low_halves(low, c, &s, ~(exact | brief), last, is1);
    if (one)
        high[0] = high[1] = high[2] = high[3] = _mm512_set1_epi32((int)(past->last[2] >> 32));
    else
        upper_halves(high, p, &s, is64, last);
    write_out(out, low, high);
    c->n_addresses += n;
    past_push(past, out, n);
}

static __attribute__((noinline)) void
resolve_uppers(struct tl_etm4_packetizer *p, struct tl_etm4_past *past, __m512i kind, unsigned n)
{
    resolve_batch(p, past, kind, n, past->last[2] & 1, false);
}

static ALWAYS_INLINE void resolve_next(struct tl_etm4_packetizer *p, struct tl_etm4_past *past,
                                       unsigned n)
{
    const struct tl_etm4_columns *const c = &p->columns;
    const uint64_t *const last = past->last;
    const uint64_t differ = (last[0] ^ last[1]) | (last[0] ^ last[2]);
    const bool is1 = last[2] & 1;
    const __m512i header = _mm512_loadu_si512(c->found + c->n_addresses);
    const __m512i kind =
        _mm512_maskz_permutexvar_epi8(~OLD_LANES, header, _mm512_load_si512(kinds));
    const uint64_t other_is = _mm512_test_epi8_mask(kind, BYTES(is1 ? IS0 : IS1));
    const uint64_t is64 = _mm512_test_epi8_mask(kind, BYTES(LONG64));
    const uint64_t valid = ~0ull >> (64 - n);

    if (__builtin_expect((differ & 1) | (other_is & valid), 0))
        resolve_in_order(p, past);
    else if (((differ | (p->regs.sf ? 0 : last[2])) >> 32) | (is64 & valid))
        resolve_uppers(p, past, kind, n);
    else if (is1)
        resolve_batch(p, past, kind, n, true, true);
    else
        resolve_batch(p, past, kind, n, false, true);
}

__attribute__((noinline)) void tl_etm4_resolve_some(struct tl_etm4_packetizer *p,
                                                    struct tl_etm4_past *past)
{
    if (__builtin_expect(state_stays(p, past), 1))
        resolve_next(p, past, TL_AVX512_ADDRESSES);
    else
        resolve_in_order(p, past);
}

__attribute__((noinline)) void tl_etm4_resolve_all(struct tl_etm4_packetizer *p,
                                                   struct tl_etm4_past *past)
{
    const struct tl_etm4_columns *const c = &p->columns;

    if (!state_stays(p, past))
        resolve_in_order(p, past);
    while (c->n_found > c->n_addresses) {
        const size_t left = c->n_found - c->n_addresses;
        resolve_next(p, past, left < TL_AVX512_ADDRESSES ? (unsigned)left : TL_AVX512_ADDRESSES);
    }
    past_keep(past, &p->regs);
}

TL_TARGET_END

#endif
