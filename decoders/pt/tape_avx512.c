/* SPDX-License-Identifier: MIT */
/*
 * Tapes with AVX-512.
 *
 * For every byte of a 64-byte block, look up where the next packet would begin if one began there.
 * Composing that table with itself gives where the packet 2, 4, 8, 16, 32 and 64 packets later
 * would begin. The last table maps every entry into the block to the entry into the next one; the
 * others give the positions of all packets for the actual entry. The first three bytes of the
 * packets of four blocks are gathered side by side; from these the tape entries are built, 64
 * packets at a time.
 *
 * Three bytes are sufficient for most packets, including an IP that changes the low 16 bits of the
 * last one. If any of eight entries needs more, the last IPs are computed as a prefix sum over the
 * IPs, where the sum of two is "these bits of the second, the other bits of the first".
 *
 * Packets that begin with 02, and rare or invalid ones, are left to the parser.
 */
#include "pt/tape_parts.h"

#if defined(__x86_64__)

#include "simd/target.h"

#include <immintrin.h>

TL_TARGET_BEGIN(TL_AVX512_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))
#define QUADS(quad)   _mm512_set1_epi64((long long)(quad))
#define TABLE(...)    _mm512_broadcast_i32x4(_mm_setr_epi8(__VA_ARGS__))

#define BLOCK  64u
#define BLOCKS 4u /* classified at once */
#define STEPS  6u /* 2^6: maximum number of packets in a block */

/*
 * Position of a following packet: a byte of the block; from OUTSIDE on, of the next block; ODD:
 * unknown, since a packet is left to the parser.
 */
#define OUTSIDE 0x40
#define ODD     0x7f

struct block {
    __m512i lead[STEPS]; /* position 1, 2, 4, 8, 16, 32 packets later */
    uint8_t exit[BLOCK]; /* position 64 packets later */
};

static ALWAYS_INLINE __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

static ALWAYS_INLINE __m512i lanes(void)
{
    const __m128i first = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(_mm512_broadcast_i32x4(first),
                           _mm512_setr_epi64(0, 0, 0x1010101010101010, 0x1010101010101010,
                                             0x2020202020202020, 0x2020202020202020,
                                             0x3030303030303030, 0x3030303030303030));
}

static ALWAYS_INLINE __mmask64 inside(__m512i places)
{
    return _mm512_testn_epi8_mask(places, BYTES(OUTSIDE));
}

/* A table that maps positions outside the block to themselves. */
static ALWAYS_INLINE __m512i outside(void)
{
    return _mm512_or_si512(lanes(), BYTES(OUTSIDE));
}

/*
 * ---- positions of packets -----------------------------------------------------------------------
 */

/* Packet length by first byte, not counting the third and further bytes of a CYC; PARSER: left to
 * the parser. */
#define PARSER 0x80

#define EVEN_LENGTHS(row, two)                                                                     \
    [(row)] = 1, [(row) + 2] = (two), [(row) + 4] = 1, [(row) + 6] = 1, [(row) + 8] = 1,           \
    [(row) + 10] = 1, [(row) + 12] = 1, [(row) + 14] = 1
#define ODD_LENGTHS(row, ip, nine)                                                                 \
    [(row) + 1] = (ip), [(row) + 3] = 1, [(row) + 5] = PARSER, [(row) + 7] = 2,                    \
             [(row) + 9] = (nine), [(row) + 11] = 1, [(row) + 13] = (ip), [(row) + 15] = 2
#define TWO_ROWS(row, two, ip, nine, nine_above)                                                   \
    EVEN_LENGTHS(row, two), EVEN_LENGTHS((row) + 16, 1), ODD_LENGTHS(row, ip, nine),               \
        ODD_LENGTHS((row) + 16, ip, nine_above)

static const uint8_t lengths[256] __attribute__((aligned(64))) = {
    TWO_ROWS(0x00, PARSER, 1, PARSER, 8), TWO_ROWS(0x20, 1, 3, PARSER, PARSER),
    TWO_ROWS(0x40, 1, 5, PARSER, 2),      TWO_ROWS(0x60, 1, 7, PARSER, PARSER),
    TWO_ROWS(0x80, 1, 7, PARSER, PARSER), TWO_ROWS(0xa0, 1, PARSER, PARSER, PARSER),
    TWO_ROWS(0xc0, 1, 9, PARSER, PARSER), TWO_ROWS(0xe0, 1, PARSER, PARSER, PARSER)};

/* Length of the packet beginning at each byte; bit 7: left to the parser. */
static ALWAYS_INLINE __m512i length(const uint8_t *p)
{
    const __m512i b = load(p);
    const __m512i lower = _mm512_permutex2var_epi8(load(lengths), b, load(lengths + 64));
    const __m512i upper = _mm512_permutex2var_epi8(load(lengths + 128), b, load(lengths + 192));
    const __mmask64 more = _mm512_cmpeq_epi8_mask(_mm512_and_si512(b, BYTES(7)), BYTES(7));
    const __mmask64 more2 = _mm512_mask_test_epi8_mask(more, load(p + 1), BYTES(1));
    const __mmask64 more3 = _mm512_mask_test_epi8_mask(more2, load(p + 2), BYTES(1));
    __m512i n = _mm512_mask_mov_epi8(lower, _mm512_movepi8_mask(b), upper);
    n = _mm512_mask_add_epi8(n, more2, n, BYTES(1));
    return _mm512_mask_mov_epi8(n, more3, BYTES(PARSER));
}

static ALWAYS_INLINE void find_leads(struct block *block, const uint8_t *p)
{
    const __m512i n = length(p);
    const __mmask64 odd = _mm512_movepi8_mask(n);
    __m512i lead = _mm512_mask_mov_epi8(_mm512_add_epi8(lanes(), n), odd, BYTES(ODD));
#pragma GCC unroll 6
    for (unsigned k = 0; k < STEPS; k++) {
        block->lead[k] = lead;
        lead = _mm512_permutex2var_epi8(lead, lead, outside());
    }
    _mm512_storeu_si512(block->exit, lead);
}

/* Positions of the packets of a block, in order, if the first one is at byte `entry`. */
static ALWAYS_INLINE __m512i places_from(const struct block *block, unsigned entry)
{
    static const uint64_t further[STEPS] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc,
                                            0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00,
                                            0xffff0000ffff0000, 0xffffffff00000000};
    __m512i places = BYTES(entry);
#pragma GCC unroll 6
    for (unsigned k = 0; k < STEPS; k++)
        places = _mm512_mask2_permutex2var_epi8(block->lead[k], places, further[k], outside());
    return places;
}

/* ---- packets -------------------------------------------------------------------------------- */

/* The packets of several blocks, in order: positions and first three bytes. */
struct row {
    unsigned n;
    size_t base; /* of the first block, in the input */
    uint8_t at[BLOCKS * BLOCK + BLOCK], header[BLOCKS * BLOCK + BLOCK];
    uint8_t second[BLOCKS * BLOCK + BLOCK], third[BLOCKS * BLOCK + BLOCK];
};

/* Append the first `n` packets of a block that is `from` bytes after the first one, which is at
 * `p`. */
static ALWAYS_INLINE void append(struct row *row, __m512i places, unsigned n, const uint8_t *p,
                                 unsigned from)
{
    _mm512_storeu_si512(row->at + row->n, _mm512_add_epi8(places, BYTES(from)));
    _mm512_storeu_si512(row->header + row->n, _mm512_permutexvar_epi8(places, load(p + from)));
    _mm512_storeu_si512(row->second + row->n, _mm512_permutexvar_epi8(places, load(p + from + 1)));
    _mm512_storeu_si512(row->third + row->n, _mm512_permutexvar_epi8(places, load(p + from + 2)));
    row->n += n;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Up to 64 packets; each is either outcomes (TNT_8 or PAD) or ends an entry. */
struct packets {
    __m512i tnt, stop; /* of outcomes: bits including the stop bit; the stop bit alone */
};

/* The packets that end entries, by entry. */
struct ends {
    __m512i at, header, second, third; /* as in the row */
    __m512i first, n;                  /* outcome packets before it: the first one, and how many */
    uint64_t ips;                      /* which ones are IPs */
};

static ALWAYS_INLINE void find_outcomes(struct packets *p, __m512i header)
{
    const __m512i tnt = _mm512_and_si512(_mm512_srli_epi16(header, 1), BYTES(0x7f));
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(tnt, 4), BYTES(0x07));
    p->tnt = _mm512_max_epu8(tnt, BYTES(1));
    p->stop = _mm512_max_epu8(
        _mm512_shuffle_epi8(TABLE(0, 16, 32, 32, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0), high),
        _mm512_shuffle_epi8(TABLE(1, 1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8), tnt));
}

/*
 * End an entry at the fifth of consecutive outcome packets, which would be too many for one entry.
 */
static ALWAYS_INLINE uint64_t ends_of_rows(uint64_t tnt)
{
    uint64_t ends = 0;
    for (;;) {
        const uint64_t two = tnt & tnt << 1, five = two & two << 2 & tnt << 4;
        if (__builtin_expect(five == 0, 1))
            return ends;
        ends |= five & -five;
        tnt &= ~(five & -five);
    }
}

static ALWAYS_INLINE void find_ends(struct ends *e, const struct row *row, unsigned k,
                                    unsigned packets, __m512i header, uint64_t ends)
{
    const __m512i numbers = _mm512_mask_compress_epi8(BYTES(packets), ends, lanes());
    e->at = _mm512_maskz_compress_epi8(ends, load(row->at + k));
    e->header = _mm512_maskz_compress_epi8(ends, header);
    e->second = _mm512_maskz_compress_epi8(ends, load(row->second + k));
    e->third = _mm512_maskz_compress_epi8(ends, load(row->third + k));
    e->first = _mm512_maskz_permutexvar_epi8(~UINT64_C(1), _mm512_sub_epi8(lanes(), BYTES(1)),
                                             _mm512_add_epi8(numbers, BYTES(1)));
    e->n = _mm512_sub_epi8(numbers, e->first);
    e->ips = _mm512_movepi8_mask(
        _mm512_shuffle_epi8(TABLE(0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0),
                            _mm512_and_si512(e->header, BYTES(0x0f))));
}

#define EVEN(row)                                                                                  \
    [(row)] = TL_PT_TNT_8, [(row) + 2] = TL_PT_TNT_8, [(row) + 4] = TL_PT_TNT_8,                   \
    [(row) + 6] = TL_PT_TNT_8, [(row) + 8] = TL_PT_TNT_8, [(row) + 10] = TL_PT_TNT_8,              \
    [(row) + 12] = TL_PT_TNT_8, [(row) + 14] = TL_PT_TNT_8
#define CYCLES(row)                                                                                \
    [(row) + 3] = TL_PT_CYC, [(row) + 7] = TL_PT_CYC, [(row) + 11] = TL_PT_CYC,                    \
             [(row) + 15] = TL_PT_CYC

static ALWAYS_INLINE __m512i kinds_of(const struct ends *e)
{
    /* Indexed by bits 5:0 of the header. */
    static const uint8_t kinds[64] __attribute__((aligned(64))) = {EVEN(0x00),
                                                                   EVEN(0x10),
                                                                   EVEN(0x20),
                                                                   EVEN(0x30),
                                                                   CYCLES(0x00),
                                                                   CYCLES(0x10),
                                                                   CYCLES(0x20),
                                                                   CYCLES(0x30),
                                                                   [0x01] = TL_PT_TIP_PGD,
                                                                   [0x21] = TL_PT_TIP_PGD,
                                                                   [0x0d] = TL_PT_TIP,
                                                                   [0x2d] = TL_PT_TIP,
                                                                   [0x11] = TL_PT_TIP_PGE,
                                                                   [0x31] = TL_PT_TIP_PGE,
                                                                   [0x1d] = TL_PT_FUP,
                                                                   [0x3d] = TL_PT_FUP,
                                                                   [0x19] = TL_PT_TSC};
    const __mmask64 pad = _mm512_testn_epi8_mask(e->header, e->header);
    const __mmask64 mtc = _mm512_cmpeq_epi8_mask(e->header, BYTES(0x59));
    const __mmask64 suppressed = _mm512_mask_testn_epi8_mask(e->ips, e->header, BYTES(0xe0));
    __m512i k = _mm512_permutexvar_epi8(e->header, _mm512_load_si512(kinds));
    k = _mm512_mask_mov_epi8(k, pad, BYTES(TL_PT_PAD));
    k = _mm512_mask_mov_epi8(k, mtc, BYTES(TL_PT_MTC));
    return _mm512_mask_add_epi8(k, suppressed, k, BYTES(TL_PT_TAPE_SUPPRESSED));
}

/* Write the input positions of 16 packets. */
static ALWAYS_INLINE void write_places(uint32_t *to, __m128i places, size_t base)
{
    _mm512_storeu_si512(
        to, _mm512_add_epi32(_mm512_cvtepu8_epi32(places), _mm512_set1_epi32((int)base)));
}

/* The same for up to 64. */
static ALWAYS_INLINE void write_all_places(uint32_t *to, __m512i places, size_t base,
                                           unsigned entries)
{
    write_places(to, _mm512_castsi512_si128(places), base);
    if (entries >= 16)
        write_places(to + 16, _mm512_extracti32x4_epi32(places, 1), base);
    if (entries >= 32) {
        write_places(to + 32, _mm512_extracti32x4_epi32(places, 2), base);
        write_places(to + 48, _mm512_extracti32x4_epi32(places, 3), base);
    }
}

/*
 * Write the outcomes of 16 entries from `first` on, up to four TNT_8 each. Two are joined by
 * multiplying the older one by the newer one's stop bit; only the oldest one keeps its own stop
 * bit.
 */
static ALWAYS_INLINE void add_outcomes(uint64_t *to, const struct packets *p, const struct ends *e,
                                       unsigned first)
{
    const __mmask64 not_oldest = 0xeeeeeeeeeeeeeeee;
    const __m512i nth = _mm512_set1_epi32(0x03020100);
    const __m512i spread =
        _mm512_add_epi8(_mm512_srli_epi16(_mm512_and_si512(lanes(), BYTES(0xfc)), 2), BYTES(first));
    const __m512i number = _mm512_add_epi8(_mm512_permutexvar_epi8(spread, e->first), nth);
    const __mmask64 has = _mm512_cmplt_epu8_mask(nth, _mm512_permutexvar_epi8(spread, e->n));
    const __m512i tnt = _mm512_mask_permutexvar_epi8(BYTES(1), has, number, p->tnt);
    const __m512i stop = _mm512_mask_permutexvar_epi8(BYTES(1), has, number, p->stop);
    const __m512i ones = _mm512_mask_sub_epi8(tnt, not_oldest, tnt, stop);
    const __m512i newer = _mm512_srli_epi16(stop, 8);
    const __m512i twos =
        _mm512_maddubs_epi16(ones, _mm512_or_si512(newer, _mm512_set1_epi16(0x0100)));
    const __m512i stops = _mm512_srli_epi32(_mm512_maddubs_epi16(stop, newer), 16);
    const __m512i fours =
        _mm512_madd_epi16(twos, _mm512_or_si512(stops, _mm512_set1_epi32(0x10000)));
    _mm512_storeu_si512(to, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(fours)));
    _mm512_storeu_si512(to + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(fours, 1)));
}

/* ---- values --------------------------------------------------------------------------------- */

struct values {
    __m512i low, high; /* the value's low two bytes; of an IP, the payload's */
    uint64_t wide;     /* entries for which two bytes are not sufficient */
};

static ALWAYS_INLINE struct values values_of(const struct ends *e)
{
    const __m512i h = e->header, low3 = _mm512_and_si512(h, BYTES(7));
    const __mmask64 cyc = _mm512_cmpeq_epi8_mask(_mm512_and_si512(h, BYTES(3)), BYTES(3));
    const __mmask64 more = _mm512_cmpeq_epi8_mask(low3, BYTES(7));
    const __mmask64 more2 = _mm512_mask_test_epi8_mask(more, e->second, BYTES(1));
    const __mmask64 mtc = _mm512_cmpeq_epi8_mask(h, BYTES(0x59));
    const __mmask64 tsc = _mm512_cmpeq_epi8_mask(h, BYTES(0x19));
    const __mmask64 not_16 = e->ips & ~_mm512_cmpeq_epi8_mask(_mm512_and_si512(h, BYTES(0xe0)),
                                                              BYTES(TL_PT_IP_UPDATE_16 << 5));
    const __m512i cycles = _mm512_and_si512(_mm512_srli_epi16(h, 3), BYTES(0x1f));
    const __m512i cycles2 = _mm512_and_si512(_mm512_slli_epi16(e->second, 4), BYTES(0xe0));
    const __m512i above = _mm512_and_si512(_mm512_srli_epi16(e->second, 4), BYTES(0x0f));
    struct values v = {.wide = more2 | tsc | not_16};
    v.low = _mm512_and_si512(_mm512_srli_epi16(h, 1), BYTES(0x7f)); /* TNT_8, PAD */
    v.low = _mm512_mask_mov_epi8(v.low, cyc, cycles);
    v.low = _mm512_mask_add_epi8(v.low, more, cycles, cycles2);
    v.low = _mm512_mask_mov_epi8(v.low, e->ips | mtc, e->second);
    v.high = _mm512_maskz_mov_epi8(more, above);
    v.high = _mm512_mask_mov_epi8(v.high, e->ips, e->third);
    return v;
}

/* One step of a prefix sum over all lanes. */
#define SUM_STEP(value, said, by)                                                                  \
    do {                                                                                           \
        const __m512i none = _mm512_setzero_si512();                                               \
        const __m512i before = _mm512_alignr_epi64(value, none, 8 - (by));                         \
        const __m512i said_before = _mm512_alignr_epi64(said, none, 8 - (by));                     \
        value = _mm512_ternarylogic_epi64(value, before, said, 0xf4); /* value | before & ~said */ \
        said = _mm512_or_si512(said, said_before);                                                 \
    } while (0)

/* Last IPs after eight entries. *ip, in all lanes, is the last IP before and is updated to that
 * after. */
static ALWAYS_INLINE __m512i resolve(__m512i *ip, __m512i ipc, __m512i payload)
{
    const __m512i saids = _mm512_setr_epi64(0, 0xffff, 0xffffffff, -1, 0xffffffffffff, 0, -1, 0);
    const __m512i signs = _mm512_setr_epi64(0, 0, 0, 0x800000000000, 0, 0, 0, 0);
    const __m512i wides =
        _mm512_setr_epi64(0, 0xffff, 0xffffffff, 0xffffffffffff, 0xffffffffffff, 0, -1, 0);
    const __m512i sign = _mm512_permutexvar_epi64(ipc, signs);
    __m512i said = _mm512_permutexvar_epi64(ipc, saids);
    __m512i value = _mm512_and_si512(payload, _mm512_permutexvar_epi64(ipc, wides));
    value = _mm512_sub_epi64(_mm512_xor_si512(value, sign), sign);
    SUM_STEP(value, said, 1);
    SUM_STEP(value, said, 2);
    SUM_STEP(value, said, 4);
    value = _mm512_ternarylogic_epi64(value, *ip, said, 0xf4);
    *ip = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), value);
    return value;
}

static ALWAYS_INLINE __m512i cycles_of(__m512i header, __m512i payload)
{
    const __mmask8 more = _mm512_test_epi64_mask(header, QUADS(4));
    const __mmask8 more2 = _mm512_mask_test_epi64_mask(more, payload, QUADS(1));
    const __m512i second = _mm512_slli_epi64(_mm512_and_si512(payload, QUADS(0xfe)), 4);
    const __m512i third = _mm512_slli_epi64(_mm512_and_si512(payload, QUADS(0xfe00)), 3);
    __m512i c = _mm512_srli_epi64(_mm512_and_si512(header, QUADS(0xf8)), 3);
    c = _mm512_mask_or_epi64(c, more, c, second);
    return _mm512_mask_or_epi64(c, more2, c, third);
}

/* Values of those of eight entries that are not IPs. */
static ALWAYS_INLINE __m512i value_of_others(__m512i value, __m512i header, __m512i payload)
{
    const __m512i first = _mm512_and_si512(header, QUADS(0xff));
    const __mmask8 tnt = _mm512_testn_epi64_mask(header, QUADS(1));
    const __mmask8 cyc = _mm512_cmpeq_epi64_mask(_mm512_and_si512(header, QUADS(3)), QUADS(3));
    const __mmask8 mtc = _mm512_cmpeq_epi64_mask(first, QUADS(0x59));
    const __mmask8 tsc = _mm512_cmpeq_epi64_mask(first, QUADS(0x19));
    value = _mm512_mask_mov_epi64(value, tnt, _mm512_srli_epi64(first, 1));
    value = _mm512_mask_and_epi64(value, mtc, payload, QUADS(0xff));
    value = _mm512_mask_and_epi64(value, tsc, payload, QUADS(0xffffffffffffff));
    return _mm512_mask_mov_epi64(value, cyc, cycles_of(header, payload));
}

/* Values of eight entries, `ips` of them IPs, starting at the entry selected by the bytes of
 * `lane`. */
static ALWAYS_INLINE __m512i wide_values(__m512i *ip, const struct ends *e, __m512i lane,
                                         uint8_t ips, const uint8_t *p)
{
    const __mmask64 lowest = 0x0101010101010101;
    const __m512i at = _mm512_maskz_permutexvar_epi8(lowest, lane, e->at);
    const __m512i header = _mm512_maskz_permutexvar_epi8(lowest, lane, e->header);
    const __m512i payload = _mm512_i64gather_epi64(at, p + 1, 1);
    /* 7: no payload. */
    const __m512i ipc = _mm512_mask_mov_epi64(QUADS(7), ips, _mm512_srli_epi64(header, 5));
    const __m512i value = resolve(ip, ipc, payload);
    return ips == 0xff ? value : value_of_others(value, header, payload);
}

/* Write the values of the entries; the row is at `p`. Returns the last IP. */
static ALWAYS_INLINE uint64_t add_values(uint64_t *to, const struct ends *e, unsigned entries,
                                         const uint8_t *p, uint64_t ip)
{
    const struct values v = values_of(e);
    const uint64_t ips = _bzhi_u64(e->ips, entries), wide = _bzhi_u64(v.wide, entries);
    __m512i lane =
        _mm512_setr_epi64(0x4000, 0x4101, 0x4202, 0x4303, 0x4404, 0x4505, 0x4606, 0x4707);
    __m512i last = QUADS(ip);
    for (unsigned i = 0; i < entries; i += 8, lane = _mm512_add_epi8(lane, BYTES(8))) {
        const uint8_t some = (uint8_t)(ips >> i);
        if ((uint8_t)(wide >> i)) {
            const uint64_t before = _bzhi_u64(ips, i);
            if (before)
                last = QUADS(to[63 - _lzcnt_u64(before)]);
            _mm512_storeu_si512(to + i, wide_values(&last, e, lane, some, p));
            continue;
        }
        const __m512i value =
            _mm512_maskz_permutex2var_epi8(0x0303030303030303, v.low, lane, v.high);
        const __m512i above = _mm512_and_si512(last, QUADS(~UINT64_C(0xffff)));
        _mm512_storeu_si512(to + i, _mm512_mask_or_epi64(value, some, value, above));
    }
    return ips ? to[63 - _lzcnt_u64(ips)] : ip;
}

/* Prepend the outcomes of the still open entry to those of entry `n`. */
static ALWAYS_INLINE void join_open(struct tl_pt_tape *tape, size_t n, uint64_t open, uint32_t from)
{
    const uint64_t tnt = tape->tnt[n];
    const unsigned count = (unsigned)_lzcnt_u64(tnt) ^ 63;
    tape->tnt[n] = open << count | (tnt ^ UINT64_C(1) << count);
    tape->from[n] = open == 1 ? tape->from[n] : from;
}

/* Append the entries of up to 64 packets of the row, from packet `k` on. */
static ALWAYS_INLINE void add_entries(struct tl_pt_tape *tape, const uint8_t *in,
                                      const struct row *row, unsigned k)
{
    const unsigned packets = row->n - k < 64 ? row->n - k : 64;
    const uint64_t are = _bzhi_u64(~UINT64_C(0), packets);
    const __m512i header = load(row->header + k);
    const size_t n = tape->n;
    const uint64_t open = tape->tnt[n];
    const uint32_t open_from = tape->from[n];
    const uint64_t tnt = _mm512_mask_testn_epi8_mask(are, header, BYTES(1));
    const uint64_t ends = (are & ~tnt) | ends_of_rows(tnt);
    const unsigned entries = (unsigned)__builtin_popcountll(ends);
    struct packets p;
    struct ends e;
    find_outcomes(&p, header);
    find_ends(&e, row, k, packets, header, ends);
    _mm512_storeu_si512(tape->kind + n, kinds_of(&e));
    write_all_places(tape->at + n, e.at, row->base, entries);
    const __m512i from = _mm512_permutexvar_epi8(e.first, load(row->at + k));
    write_all_places(tape->from + n, from, row->base, entries);
    tape->ip = add_values(tape->value + n, &e, entries, in + row->base, tape->ip);
    /* One more: outcomes after the last end, for the next entry. */
    for (unsigned i = 0; i <= entries; i += 16)
        add_outcomes(tape->tnt + n + i, &p, &e, i);
    join_open(tape, n, open, open_from);
    tape->n = n + entries;
}

/* Append all of the row; the following packets begin at byte `at` of the input. */
static ALWAYS_INLINE void add_row(struct tl_pt_tape *tape, const uint8_t *in, struct row *row,
                                  size_t at)
{
    for (unsigned k = 0; k < row->n; k += 64)
        add_entries(tape, in, row, k);
    row->n = 0;
    if (tape->tnt[tape->n] == 1)
        tape->from[tape->n] = (uint32_t)at;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* Start the next entry without outcomes. */
static ALWAYS_INLINE void begin_entry(struct tl_pt_tape *tape, size_t at)
{
    tape->tnt[tape->n] = 1;
    tape->from[tape->n] = (uint32_t)at;
}

/*
 * Process the first packet from `*entry` on that is left to the parser, and those before it. The
 * block is `from` bytes after the row's first one. Returns the packet's size, or the error of
 * tl_pt_tape_add().
 */
static __attribute__((noinline)) int take_odd(struct tl_pt_tape *tape,
                                              const struct tl_pt_config *config, struct tl_bytes in,
                                              struct row *row, const struct block *block,
                                              unsigned from, unsigned *entry)
{
    const __m512i places = places_from(block, *entry);
    const unsigned odd = (unsigned)__builtin_popcountll(inside(places)) - 1;
    const __m512i last = _mm512_permutexvar_epi8(BYTES(odd), places);
    append(row, places, odd, in.p + row->base, from);
    *entry = (uint8_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(last));
    const size_t at = row->base + from + *entry;
    add_row(tape, in.p, row, at);
    return tl_pt_tape_add(tape, config, in, at);
}

int tl_pt_tape_avx512(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                      struct tl_bytes in, size_t *at)
{
    struct block blocks[BLOCKS];
    struct row row = {.n = 0, .base = *at};
    unsigned entry = 0; /* byte of the block where the next packet begins */
    begin_entry(tape, *at);
    while (in.n - row.base >= (BLOCKS + 1) * BLOCK &&
           tape->n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ROOM) {
        const uint8_t *const p = in.p + row.base;
        for (unsigned k = 0; k < BLOCKS; k++)
            find_leads(&blocks[k], p + BLOCK * k);
        for (unsigned k = 0; k < BLOCKS; k++) {
            while (__builtin_expect(entry < BLOCK && blocks[k].exit[entry] == ODD, 0)) {
                const int rc = take_odd(tape, config, in, &row, &blocks[k], BLOCK * k, &entry);
                if (rc < 0) {
                    *at = row.base + BLOCK * k + entry;
                    return rc;
                }
                entry += (unsigned)rc;
            }
            if (entry < BLOCK) {
                const __m512i places = places_from(&blocks[k], entry);
                append(&row, places, (unsigned)__builtin_popcountll(inside(places)), p, BLOCK * k);
                entry = blocks[k].exit[entry];
            }
            entry -= BLOCK;
        }
        const size_t behind = row.base + BLOCKS * BLOCK;
        add_row(tape, in.p, &row, behind + entry);
        row.base = behind;
    }
    *at = row.base + entry;
    return TL_OK;
}

TL_TARGET_END

#else

int tl_pt_tape_avx512(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                      struct tl_bytes in, size_t *at)
{
    (void)tape, (void)config, (void)in, (void)at;
    return TL_OK;
}

#endif
