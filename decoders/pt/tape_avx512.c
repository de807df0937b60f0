/* SPDX-License-Identifier: MIT */
/*
 * Tapes with AVX-512.
 *
 * For every byte of a 64-byte block, look up where the next packet would begin if one began there.
 * Composing that table with itself gives where the packet 2, 4, 8, 16, 32 and 64 packets later
 * would begin. The last table maps every entry into the block to the entry into the next one; the
 * others give the positions of all packets for the actual entry. The first three bytes of the
 * packets are gathered side by side in a queue; from these the tape entries are built, 64 packets
 * at a time, while those of the next blocks are found.
 *
 * Three bytes are sufficient for most packets, including an IP that changes the low 16 bits of the
 * last one. If any of eight entries needs more, the last IPs are computed as a prefix sum over the
 * IPs, where the sum of two is "these bits of the second, the other bits of the first".
 *
 * MODE and packets that begin with 02 become entries like others, whose kind and value the parser
 * determines afterwards. PSB, OVF and TMA, unusual and invalid packets are left to the parser,
 * which takes them after everything before them.
 */
#include "pt/tape_parts.h"

#if defined(__x86_64__)

#include "base/target.h"

#include <immintrin.h>

TL_TARGET_BEGIN(TL_AVX512_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))
#define QUADS(quad)   _mm512_set1_epi64((long long)(quad))
#define TABLE(...)    _mm512_broadcast_i32x4(_mm_setr_epi8(__VA_ARGS__))

#define BLOCK 64u
#define STEPS 6u   /* 2^6: maximum number of packets in a block */
#define LAG   128u /* packets in the queue that are left alone, since they were stored just now */

/*
 * Position of a following packet: a byte of the block; from OUTSIDE on, of the next block; ODD:
 * unknown, since a packet is left to the parser.
 */
#define OUTSIDE 0x40
#define ODD     0x7f

struct block {
    __m512i lead[STEPS]; /* position 1, 2, 4, 8, 16, 32 packets later */
    __m512i exit;        /* position 64 packets later */
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
    TWO_ROWS(0x80, 1, 7, PARSER, 2),      TWO_ROWS(0xa0, 1, PARSER, PARSER, PARSER),
    TWO_ROWS(0xc0, 1, 9, PARSER, PARSER), TWO_ROWS(0xe0, 1, PARSER, PARSER, PARSER)};

/* The same by the second byte, of packets that begin with 02; with bit 7 inverted. */
#define LENGTH2(n) (PARSER | (n))
static const uint8_t lengths2[256] __attribute__((aligned(64))) = {
    [0x03] = LENGTH2(4), [0x12] = LENGTH2(6),  [0x13] = LENGTH2(4),  [0x22] = LENGTH2(4),
    [0x23] = LENGTH2(2), [0x32] = LENGTH2(10), [0x43] = LENGTH2(8),  [0x53] = LENGTH2(11),
    [0x62] = LENGTH2(2), [0x83] = LENGTH2(2),  [0x92] = LENGTH2(6),  [0xa2] = LENGTH2(7),
    [0xa3] = LENGTH2(8), [0xb2] = LENGTH2(10), [0xc2] = LENGTH2(10), [0xc3] = LENGTH2(11),
    [0xc8] = LENGTH2(7), [0xe2] = LENGTH2(2)};

/* Look up all bytes of `v`, the table's low half at `table`. */
static ALWAYS_INLINE __m512i look_up(const uint8_t *table, __m512i v)
{
    const __m512i lower = _mm512_permutex2var_epi8(load(table), v, load(table + 64));
    const __m512i upper = _mm512_permutex2var_epi8(load(table + 128), v, load(table + 192));
    return _mm512_mask_mov_epi8(lower, _mm512_movepi8_mask(v), upper);
}

/* Length of the packet beginning at each byte; bit 7: left to the parser. */
static ALWAYS_INLINE __m512i length(const uint8_t *p)
{
    const __m512i b = load(p), second = load(p + 1);
    const __mmask64 two = _mm512_cmpeq_epi8_mask(b, BYTES(2));
    const __mmask64 more = _mm512_cmpeq_epi8_mask(_mm512_and_si512(b, BYTES(7)), BYTES(7));
    const __mmask64 more2 = _mm512_mask_test_epi8_mask(more, second, BYTES(1));
    const __mmask64 more3 = _mm512_mask_test_epi8_mask(more2, load(p + 2), BYTES(1));
    const __m512i n2 = _mm512_xor_si512(look_up(lengths2, second), BYTES(PARSER));
    __m512i n = look_up(lengths, b);
    n = _mm512_mask_add_epi8(n, more2, n, BYTES(1));
    n = _mm512_mask_mov_epi8(n, two, n2);
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
    block->exit = lead;
}

/* Positions of the packets of a block, in order, if the first one is at byte `entry`, which all
 * lanes hold. */
static ALWAYS_INLINE __m512i places_from(const struct block *block, __m512i entry)
{
    static const uint64_t further[STEPS] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc,
                                            0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00,
                                            0xffff0000ffff0000, 0xffffffff00000000};
    __m512i places = entry;
#pragma GCC unroll 6
    for (unsigned k = 0; k < STEPS; k++)
        places = _mm512_mask2_permutex2var_epi8(block->lead[k], places, further[k], outside());
    return places;
}

/* ---- packets -------------------------------------------------------------------------------- */

#define QUEUE 1024u /* packets */

/* Packets that are no entries yet, in order: positions from the tape's begin on, and first three
 * bytes. */
struct queue {
    unsigned first, end;
    uint16_t at[QUEUE + BLOCK];
    uint8_t header[QUEUE + BLOCK], second[QUEUE + BLOCK], third[QUEUE + BLOCK];
};

static ALWAYS_INLINE __m512i low_words(__m512i bytes)
{
    return _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bytes));
}

static ALWAYS_INLINE __m512i high_words(__m512i bytes)
{
    return _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
}

/* Append the first `n` packets of the block at byte `from`, at `p`. */
static ALWAYS_INLINE void append(struct queue *q, __m512i places, unsigned n, const uint8_t *p,
                                 size_t from)
{
    const __m512i base = _mm512_set1_epi16((short)from);
    uint16_t *const at = q->at + q->end;
    _mm512_storeu_si512(at, _mm512_add_epi16(low_words(places), base));
    _mm512_storeu_si512(at + 32, _mm512_add_epi16(high_words(places), base));
    _mm512_storeu_si512(q->header + q->end, _mm512_permutexvar_epi8(places, load(p)));
    _mm512_storeu_si512(q->second + q->end, _mm512_permutexvar_epi8(places, load(p + 1)));
    _mm512_storeu_si512(q->third + q->end, _mm512_permutexvar_epi8(places, load(p + 2)));
    q->end += n;
}

/* Make room at the end. */
static ALWAYS_INLINE void move_down(struct queue *q)
{
    const unsigned n = q->end - q->first;
    for (unsigned i = 0; i < n; i += 64) {
        const unsigned from = q->first + i;
        const __m512i at = _mm512_loadu_si512(q->at + from),
                      at32 = _mm512_loadu_si512(q->at + from + 32);
        _mm512_storeu_si512(q->at + i, at);
        _mm512_storeu_si512(q->at + i + 32, at32);
        _mm512_storeu_si512(q->header + i, load(q->header + from));
        _mm512_storeu_si512(q->second + i, load(q->second + from));
        _mm512_storeu_si512(q->third + i, load(q->third + from));
    }
    q->first = 0;
    q->end = n;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Up to 64 packets; each is either outcomes (TNT_8 or PAD) or ends an entry, which counts as no
 * outcome. */
struct packets {
    __m512i tnt, stop; /* of outcomes: bits including the stop bit; the stop bit alone */
};

/* The packets that end entries, by entry. */
struct ends {
    __m512i header, second, third; /* as in the queue */
    __m512i first, number;         /* of packets: the first outcomes before it, and itself */
    uint64_t ips;                  /* which ones are IPs */
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
 * End an entry at every fifth of consecutive outcome packets, which would be too many for one
 * entry.
 */
static ALWAYS_INLINE uint64_t ends_of_rows(uint64_t tnt)
{
    uint64_t ends = 0;
    for (;;) {
        const uint64_t two = tnt & tnt << 1, five = two & two << 2 & tnt << 4;
        const uint64_t fifth = five & ~(five << 1);
        if (__builtin_expect(five == 0, 1))
            return ends;
        ends |= fifth;
        tnt &= ~fifth;
    }
}

static ALWAYS_INLINE void find_ends(struct ends *e, const struct queue *q, unsigned packets,
                                    __m512i header, uint64_t ends)
{
    const __m512i numbers = _mm512_mask_compress_epi8(BYTES(packets), ends, lanes());
    e->header = _mm512_maskz_compress_epi8(ends, header);
    e->second = _mm512_maskz_compress_epi8(ends, load(q->second + q->first));
    e->third = _mm512_maskz_compress_epi8(ends, load(q->third + q->first));
    e->first = _mm512_maskz_permutexvar_epi8(~UINT64_C(1), _mm512_sub_epi8(lanes(), BYTES(1)),
                                             _mm512_add_epi8(numbers, BYTES(1)));
    e->number = numbers;
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

/* Write the positions of the packets that end entries. */
static ALWAYS_INLINE void add_places(uint16_t *to, const struct queue *q, uint64_t ends)
{
    const uint16_t *const at = q->at + q->first;
    const __m512i low = _mm512_loadu_si512(at), high = _mm512_loadu_si512(at + 32);
    const unsigned n = (unsigned)__builtin_popcount((uint32_t)ends);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi16((__mmask32)ends, low));
    _mm512_storeu_si512(to + n, _mm512_maskz_compress_epi16((__mmask32)(ends >> 32), high));
}

/*
 * Write the outcomes of 16 entries from `first` on, up to four TNT_8 each. Two are joined by
 * multiplying the older one by the newer one's stop bit; only the oldest one keeps its own stop
 * bit.
 */
static ALWAYS_INLINE void add_outcomes(uint32_t *to, const struct packets *p, const struct ends *e,
                                       unsigned first)
{
    const __mmask64 not_oldest = 0xeeeeeeeeeeeeeeee;
    const __m512i nth = _mm512_set1_epi32(0x03020100);
    const __m512i spread =
        _mm512_add_epi8(_mm512_srli_epi16(_mm512_and_si512(lanes(), BYTES(0xfc)), 2), BYTES(first));
    const __m512i number =
        _mm512_min_epu8(_mm512_add_epi8(_mm512_permutexvar_epi8(spread, e->first), nth),
                        _mm512_permutexvar_epi8(spread, e->number));
    const __m512i tnt = _mm512_permutexvar_epi8(number, p->tnt);
    const __m512i stop = _mm512_permutexvar_epi8(number, p->stop);
    const __m512i ones = _mm512_mask_sub_epi8(tnt, not_oldest, tnt, stop);
    const __m512i newer = _mm512_srli_epi16(stop, 8);
    const __m512i twos =
        _mm512_maddubs_epi16(ones, _mm512_or_si512(newer, _mm512_set1_epi16(0x0100)));
    const __m512i stops = _mm512_srli_epi32(_mm512_maddubs_epi16(stop, newer), 16);
    const __m512i fours =
        _mm512_madd_epi16(twos, _mm512_or_si512(stops, _mm512_set1_epi32(0x10000)));
    _mm512_storeu_si512(to, fours);
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
 * `lane`; `at` are the packets' positions from `p` on. */
static ALWAYS_INLINE __m512i wide_values(__m512i *ip, const struct ends *e, __m512i lane,
                                         uint8_t ips, const uint8_t *p, const uint16_t *at)
{
    const __mmask64 lowest = 0x0101010101010101;
    const __m512i places =
        _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)at));
    const __m512i header = _mm512_maskz_permutexvar_epi8(lowest, lane, e->header);
    const __m512i payload = _mm512_i64gather_epi64(places, p + 1, 1);
    /* 7: no payload. */
    const __m512i ipc = _mm512_mask_mov_epi64(QUADS(7), ips, _mm512_srli_epi64(header, 5));
    const __m512i value = resolve(ip, ipc, payload);
    return ips == 0xff ? value : value_of_others(value, header, payload);
}

/* Write the values of eight entries that two bytes are sufficient for; `above`: an IP's others. */
static ALWAYS_INLINE void add_narrow(uint64_t *to, const struct values *v, __m512i lane,
                                     uint8_t ips, __m512i above)
{
    const __m512i value = _mm512_maskz_permutex2var_epi8(0x0303030303030303, v->low, lane, v->high);
    _mm512_storeu_si512(to, _mm512_mask_or_epi64(value, ips, value, above));
}

/* Write the values of the entries; those that the parser determines are anything. Returns the last
 * IP. */
static ALWAYS_INLINE uint64_t add_values(uint64_t *to, const struct ends *e, unsigned entries,
                                         const uint8_t *p, const uint16_t *at, uint64_t ip)
{
    const struct values v = values_of(e);
    __m512i lane =
        _mm512_setr_epi64(0x4000, 0x4101, 0x4202, 0x4303, 0x4404, 0x4505, 0x4606, 0x4707);
    __m512i last = QUADS(ip);
    if (__builtin_expect(v.wide == 0, 1)) {
        const __m512i above = _mm512_and_si512(last, QUADS(~UINT64_C(0xffff)));
#pragma GCC unroll 8
        for (unsigned i = 0; i < 64; i += 8, lane = _mm512_add_epi8(lane, BYTES(8))) {
            if (i == 48 && __builtin_expect(entries <= 48, 1))
                break;
            add_narrow(to + i, &v, lane, (uint8_t)(e->ips >> i), above);
        }
        return e->ips ? to[63 - _lzcnt_u64(e->ips)] : ip;
    }
    for (unsigned i = 0; i < entries; i += 8, lane = _mm512_add_epi8(lane, BYTES(8))) {
        const uint8_t ips = (uint8_t)(e->ips >> i);
        if ((uint8_t)(v.wide >> i)) {
            _mm512_storeu_si512(to + i, wide_values(&last, e, lane, ips, p, at + i));
            continue;
        }
        add_narrow(to + i, &v, lane, ips, _mm512_and_si512(last, QUADS(~UINT64_C(0xffff))));
        if (ips)
            last = QUADS(to[i + 31 - _lzcnt_u32(ips)]);
    }
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(last));
}

/* ---- the run -------------------------------------------------------------------------------- */

struct run {
    struct tl_pt_tape *tape;
    const struct tl_pt_config *config;
    struct tl_bytes in;
    size_t at;         /* next packet, where a run ends */
    uint64_t first_ip; /* last IP before the tape */
    struct queue queue;
};

/* Last IP after the entries of the tape. */
static uint64_t last_ip(const struct run *r)
{
    for (size_t k = r->tape->n; k-- > 0;) {
        switch (r->tape->kind[k]) {
        case TL_PT_TIP:
        case TL_PT_TIP_PGE:
        case TL_PT_TIP_PGD:
        case TL_PT_FUP:
        case TL_PT_PSB:
        case TL_PT_OVF:
            return r->tape->value[k];
        default:
            break;
        }
    }
    return r->first_ip;
}

/* Let the parser determine those of the entries from `first` on that `which` selects. If it fails,
 * the tape ends before the entry. */
static __attribute__((noinline)) int parse_entries(struct run *r, size_t first, uint64_t which)
{
    struct tl_pt_tape *const tape = r->tape;
    for (; which; which &= which - 1) {
        const size_t k = first + _tzcnt_u64(which), at = tl_pt_tape_at(tape, k);
        struct tl_pt_packet packet = {.offset = at};
        int rc = tape->n_others == TL_PT_TAPE_OTHERS ? TL_LIMIT : TL_OK;
        if (rc == TL_OK)
            rc = tl_pt_parse(r->config, (struct tl_bytes){r->in.p + at, r->in.n - at}, &packet);
        if (rc < 0) {
            tape->n = k;
            tape->ip = last_ip(r);
            r->at = at;
            return rc;
        }
        tl_pt_tape_put(tape, k, &packet);
    }
    return TL_OK;
}

/*
 * Make entries of up to 64 packets of the queue. Outcomes after the last one stay in the queue; if
 * these are all packets that there are, fewer than 64, they are also those of the entry after the
 * last one. Returns an error of the parser, or 0.
 */
static ALWAYS_INLINE int add_entries(struct run *r, unsigned packets)
{
    struct tl_pt_tape *const tape = r->tape;
    struct queue *const q = &r->queue;
    const size_t n = tape->n;
    const uint64_t are = _bzhi_u64(~UINT64_C(0), packets);
    const __m512i header = load(q->header + q->first);
    const uint64_t two = _mm512_mask_cmpeq_epi8_mask(are, header, BYTES(2));
    const uint64_t mode = _mm512_mask_cmpeq_epi8_mask(are, header, BYTES(0x99));
    const uint64_t tnt = _mm512_mask_testn_epi8_mask(are, header, BYTES(1)) & ~two;
    const uint64_t ends = (are & ~tnt) | ends_of_rows(tnt);
    const unsigned entries = (unsigned)__builtin_popcountll(ends);
    struct packets p;
    struct ends e;
    find_outcomes(&p, _mm512_maskz_mov_epi8(tnt & ~ends, header));
    find_ends(&e, q, packets, header, ends);
    _mm512_storeu_si512(tape->kind + n, kinds_of(&e));
    add_places(tape->at + n, q, ends);
    tape->ip =
        add_values(tape->value + n, &e, entries, r->in.p + tape->begin, tape->at + n, tape->ip);
    add_outcomes(tape->tnt + n, &p, &e, 0);
    add_outcomes(tape->tnt + n + 16, &p, &e, 16);
    add_outcomes(tape->tnt + n + 32, &p, &e, 32);
    if (__builtin_expect(entries >= 48, 0))
        add_outcomes(tape->tnt + n + 48, &p, &e, 48);
    tape->n = n + entries;
    q->first += 64 - (unsigned)_lzcnt_u64(ends);
    if (__builtin_expect((two | mode) != 0, 0))
        return parse_entries(r, n, _pext_u64(two | mode, ends));
    return TL_OK;
}

/* Make entries of all packets of the queue; the outcomes after the last one are those of the next
 * entry. */
static __attribute__((noinline)) int add_all(struct run *r)
{
    struct queue *const q = &r->queue;
    for (unsigned packets = 64; packets == 64;) {
        packets = q->end - q->first < 64 ? q->end - q->first : 64;
        const int rc = add_entries(r, packets);
        if (rc < 0)
            return rc;
    }
    q->first = q->end = 0;
    return TL_OK;
}

static ALWAYS_INLINE unsigned first_of(__m512i v)
{
    return (uint8_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(v));
}

/*
 * Take the packets of the block at byte `base` from `*entry` on up to the last one that is left to
 * the parser, with it and what follows it in PSB+. Returns 0, or an error of the parser.
 */
static __attribute__((noinline)) int take_odd(struct run *r, const struct block *block, size_t base,
                                              __m512i *entry)
{
    unsigned at = first_of(*entry);
    while (at < BLOCK) {
        const __m512i start = BYTES(at);
        if (first_of(_mm512_permutexvar_epi8(start, block->exit)) != ODD)
            break;
        const __m512i places = places_from(block, start);
        const unsigned n = (unsigned)__builtin_popcountll(inside(places)) - 1;
        append(&r->queue, places, n, r->in.p + base, base - r->tape->begin);
        at = first_of(_mm512_permutexvar_epi8(BYTES(n), places));
        int rc = add_all(r);
        if (rc < 0)
            return rc;
        do {
            rc = tl_pt_tape_add(r->tape, r->config, r->in, base + at);
            r->at = base + at;
            if (rc < 0)
                return rc;
            at += (unsigned)rc;
        } while (at < BLOCK && r->in.p[base + at] == 2);
    }
    *entry = BYTES(at);
    return TL_OK;
}

/* Take whole blocks from byte `*base` on, `*entry` of the first one on, while they lie in the
 * input and the tape has room. */
static ALWAYS_INLINE int take_blocks(struct run *r, size_t *base, __m512i *entry)
{
    struct queue *const q = &r->queue;
    while (r->in.n - *base >= 2 * BLOCK &&
           r->tape->n + (q->end - q->first) + BLOCK <= TL_PT_TAPE_ENTRIES) {
        const uint8_t *const p = r->in.p + *base;
        struct block block;
        find_leads(&block, p);
        __m512i exit = _mm512_permutexvar_epi8(*entry, block.exit);
        if (__builtin_expect(first_of(exit) == ODD, 0)) {
            const int rc = take_odd(r, &block, *base, entry);
            if (rc < 0)
                return rc;
            exit = _mm512_permutexvar_epi8(*entry, block.exit);
            if (first_of(*entry) >= BLOCK) {
                *entry = _mm512_sub_epi8(*entry, BYTES(BLOCK));
                *base += BLOCK;
                continue;
            }
        }
        const __m512i places = places_from(&block, *entry);
        append(q, places, (unsigned)__builtin_popcountll(inside(places)), p,
               *base - r->tape->begin);
        *entry = _mm512_and_si512(exit, BYTES(0x3f));
        *base += BLOCK;
        if (q->end - q->first >= 64 + LAG) {
            const int rc = add_entries(r, 64);
            if (rc < 0)
                return rc;
            if (__builtin_expect(q->end > QUEUE - 128, 0))
                move_down(q);
        }
    }
    return TL_OK;
}

int tl_pt_tape_avx512(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                      struct tl_bytes in, size_t *at)
{
    struct run r;
    __m512i entry = BYTES(0); /* byte of the block where the next packet begins, in all lanes */
    r.tape = tape;
    r.config = config;
    r.in = in;
    r.first_ip = tape->ip;
    r.queue.first = r.queue.end = 0;
    int rc = TL_OK;
    for (size_t base = *at; rc == TL_OK && in.n - base >= 2 * BLOCK &&
                            tape->n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ENTRIES;) {
        tl_pt_tape_close(tape, *at); /* outcomes that were alone at the end of the queue */
        rc = take_blocks(&r, &base, &entry);
        r.at = rc == TL_OK ? base + first_of(entry) : r.at;
        if (rc == TL_OK)
            rc = add_all(&r);
        *at = r.at;
    }
    return rc;
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
