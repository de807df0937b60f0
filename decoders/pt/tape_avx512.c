/* SPDX-License-Identifier: MIT */
/*
 * Tapes by AVX-512.
 *
 * Of each block of 64 bytes is looked up, as if a packet began at every byte of it, where the next
 * one begins; of that table by itself, where the one 2, 4, 8, 16, 32 and 64 packets on begins. The
 * last one tells, for every entry into the block, the entry into the next one; the others, the
 * places of all packets for the entry there is. Then all is done for 64 packets at once, or for
 * eight where it takes 64 bits: outcomes are joined pair by pair, last IPs are a sum over the IPs
 * before, where the sum of two is "these bits of the second, the others of the first".
 *
 * Packets that begin with 02, and all that is rare or bad, are left to the parser.
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
#define STEPS  6u /* 2^6 packets are a block at most */

/*
 * Where a packet leads to: a byte of the block; from OUTSIDE on, one of the next; ODD: nowhere, it
 * is left to the parser.
 */
#define OUTSIDE 0x40
#define ODD     0x7f

struct block {
    __m512i lead[STEPS]; /* by 1, 2, 4, 8, 16, 32 packets */
    uint8_t exit[BLOCK]; /* by 64 */
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

/* A table that leads places outside to themselves. */
static ALWAYS_INLINE __m512i outside(void)
{
    return _mm512_or_si512(lanes(), BYTES(OUTSIDE));
}

/* ---- where packets lead to ------------------------------------------------------------------ */

/* The length of the packet that may begin at each byte; bit 7: it is for the parser. */
static ALWAYS_INLINE __m512i length(const uint8_t *p)
{
    const __m512i b = load(p), next = load(p + 1), next2 = load(p + 2);
    const __m512i low = _mm512_and_si512(b, BYTES(0x0f));
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(b, 4), BYTES(0x0f));
    const char odd = (char)0x80; /* bit 7 */
    const __m512i ip =
        _mm512_shuffle_epi8(TABLE(1, 1, 3, 3, 5, 5, 7, 7, 7, 7, odd, odd, 9, 9, odd, odd), high);
    const __m512i nine = _mm512_shuffle_epi8(
        TABLE(odd, 8, odd, odd, odd, 2, odd, odd, odd, odd, odd, odd, odd, odd, odd, odd), high);
    /* By the lower half: TNT_8 and PAD, CYC, which may be longer; for the parser. */
    __m512i n = _mm512_shuffle_epi8(TABLE(1, 0, 1, 1, 1, odd, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2), low);
    const __mmask64 is_ip = _mm512_cmpeq_epi8_mask(_mm512_and_si512(b, BYTES(3)), BYTES(1));
    const __mmask64 is_five = _mm512_cmpeq_epi8_mask(low, BYTES(5));
    const __mmask64 is_nine = _mm512_cmpeq_epi8_mask(low, BYTES(9));
    const __mmask64 more = _mm512_cmpeq_epi8_mask(_mm512_and_si512(b, BYTES(7)), BYTES(7));
    const __mmask64 more2 = _mm512_mask_test_epi8_mask(more, next, BYTES(1));
    const __mmask64 more3 = _mm512_mask_test_epi8_mask(more2, next2, BYTES(1));
    n = _mm512_mask_mov_epi8(n, is_ip, ip);
    n = _mm512_mask_mov_epi8(n, is_five, BYTES(0x80));
    n = _mm512_mask_mov_epi8(n, is_nine, nine);
    n = _mm512_mask_add_epi8(n, more2, n, BYTES(1));
    const __mmask64 extended = _mm512_cmpeq_epi8_mask(b, BYTES(2));
    return _mm512_mask_mov_epi8(n, _kor_mask64(more3, extended), BYTES(0x80));
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

/* The places of the packets of a block, in order, if the first one is at byte `entry`. */
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

/* ---- entries -------------------------------------------------------------------------------- */

/* All packets of a block: by their number, */
struct packets {
    __m512i bytes, behind; /* of the block and of the next one */
    __m512i header, outcomes, n_outcomes;
};

/* … those of them that end entries: by the entry's number. */
struct ends {
    __m512i at, header; /* its byte in the block; its first byte */
    __m512i ipc;        /* IPBytes of an IP; NO_IP: it is none */
    __m512i first, n;   /* the packets in front of it that are outcomes: which, and how many */
};

#define NO_IP 0xff

static ALWAYS_INLINE void find_outcomes(struct packets *p)
{
    const __m512i low = _mm512_and_si512(p->header, BYTES(0x0f));
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(p->header, 4), BYTES(0x0f));
    p->n_outcomes = _mm512_max_epu8(
        _mm512_shuffle_epi8(TABLE(0, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6), high),
        _mm512_shuffle_epi8(TABLE(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2), low));
    const __m512i said = _mm512_shuffle_epi8(
        TABLE(0, 1, 3, 7, 15, 31, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0), p->n_outcomes);
    p->outcomes = _mm512_and_si512(_mm512_srli_epi16(p->header, 1), said);
}

/* Outcomes that are too many for one entry: the fifth packet of a row of them is an end. */
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

static ALWAYS_INLINE void find_ends(struct ends *e, const struct packets *p, __m512i places,
                                    uint64_t ends, unsigned packets)
{
    const __m512i numbers = _mm512_mask_compress_epi8(BYTES(packets), ends, lanes());
    e->at = _mm512_maskz_compress_epi8(ends, places);
    e->header = _mm512_maskz_compress_epi8(ends, p->header);
    e->first = _mm512_maskz_permutexvar_epi8(~UINT64_C(1), _mm512_sub_epi8(lanes(), BYTES(1)),
                                             _mm512_add_epi8(numbers, BYTES(1)));
    e->n = _mm512_sub_epi8(numbers, e->first);
    const __m512i no_ip =
        _mm512_shuffle_epi8(TABLE(-1, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, -1, -1),
                            _mm512_and_si512(e->header, BYTES(0x0f)));
    e->ipc = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(e->header, 5), BYTES(7)), no_ip);
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
    /* By bits 5:0 of the header. */
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
    const __mmask64 suppressed = _mm512_testn_epi8_mask(e->ipc, e->ipc);
    __m512i k = _mm512_permutexvar_epi8(e->header, _mm512_load_si512(kinds));
    k = _mm512_mask_mov_epi8(k, pad, BYTES(TL_PT_PAD));
    k = _mm512_mask_mov_epi8(k, mtc, BYTES(TL_PT_MTC));
    return _mm512_mask_add_epi8(k, suppressed, k, BYTES(TL_PT_TAPE_SUPPRESSED));
}

/* Places in the bytes given, of 16 bytes of the block. */
static ALWAYS_INLINE void write_places(uint32_t *to, __m128i places, size_t base)
{
    _mm512_storeu_si512(
        to, _mm512_add_epi32(_mm512_cvtepu8_epi32(places), _mm512_set1_epi32((int)base)));
}

/* Of pairs of halves of `bits` bits, the older one lower: outcomes joined, and how many. */
#define JOIN(bits, values, counts)                                                                 \
    do {                                                                                           \
        const __m512i half = _mm512_set1_epi##bits((1ll << (bits / 2)) - 1);                       \
        const __m512i newer = _mm512_srli_epi##bits(counts, bits / 2);                             \
        values = _mm512_or_si512(_mm512_sllv_epi##bits(_mm512_and_si512(values, half), newer),     \
                                 _mm512_srli_epi##bits(values, bits / 2));                         \
        counts = _mm512_add_epi##bits(_mm512_and_si512(counts, half), newer);                      \
    } while (0)

/* Of 16 entries from `first` on. */
static ALWAYS_INLINE void add_outcomes(uint64_t *to, const struct packets *p, const struct ends *e,
                                       unsigned first)
{
    const __m512i nth = _mm512_set1_epi32(0x03020100);
    const __m512i spread =
        _mm512_add_epi8(_mm512_srli_epi16(_mm512_and_si512(lanes(), BYTES(0xfc)), 2), BYTES(first));
    const __m512i number = _mm512_add_epi8(_mm512_permutexvar_epi8(spread, e->first), nth);
    const __mmask64 has = _mm512_cmplt_epu8_mask(nth, _mm512_permutexvar_epi8(spread, e->n));
    __m512i values = _mm512_maskz_permutexvar_epi8(has, number, p->outcomes);
    __m512i counts = _mm512_maskz_permutexvar_epi8(has, number, p->n_outcomes);
    JOIN(16, values, counts);
    JOIN(32, values, counts);
    values = _mm512_or_si512(values, _mm512_sllv_epi32(_mm512_set1_epi32(1), counts));
    _mm512_storeu_si512(to, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(values)));
    _mm512_storeu_si512(to + 8, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(values, 1)));
}

/* One of the ways of a sum over all lanes before. */
#define SUM_STEP(value, said, by)                                                                  \
    do {                                                                                           \
        const __m512i none = _mm512_setzero_si512();                                               \
        const __m512i before = _mm512_alignr_epi64(value, none, 8 - (by));                         \
        const __m512i said_before = _mm512_alignr_epi64(said, none, 8 - (by));                     \
        value = _mm512_ternarylogic_epi64(value, before, said, 0xf4); /* value | before & ~said */ \
        said = _mm512_or_si512(said, said_before);                                                 \
    } while (0)

/* Last IPs behind eight entries; *ip, all lanes alike, is that before and then that behind. */
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

/* Of eight entries: what those say that are no IPs. */
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

/* The outcomes that were there already go before those of entry `n`. */
static ALWAYS_INLINE void join_open(struct tl_pt_tape *tape, size_t n, uint64_t open, uint32_t from)
{
    const uint64_t tnt = tape->tnt[n];
    const unsigned count = (unsigned)_lzcnt_u64(tnt) ^ 63;
    tape->tnt[n] = open << count | (tnt ^ UINT64_C(1) << count);
    tape->from[n] = open == 1 ? tape->from[n] : from;
}

/* Entries of a block's packets at `places`, of which those in `are` are to be taken. */
static ALWAYS_INLINE size_t add_entries(struct tl_pt_tape *tape, size_t n, __m512i *ip,
                                        const uint8_t *bytes, size_t base, __m512i places,
                                        uint64_t are)
{
    struct packets p = {.bytes = load(bytes), .behind = load(bytes + BLOCK)};
    struct ends e;
    p.header = _mm512_maskz_permutexvar_epi8(are, places, p.bytes);
    find_outcomes(&p);
    const uint64_t tnt = _mm512_mask_testn_epi8_mask(are, p.header, BYTES(1));
    const uint64_t ends = (are & ~tnt) | ends_of_rows(tnt);
    const unsigned entries = (unsigned)__builtin_popcountll(ends);
    const uint64_t open = tape->tnt[n];
    const uint32_t open_from = tape->from[n];
    find_ends(&e, &p, places, ends, (unsigned)__builtin_popcountll(are));
    const __m512i from = _mm512_permutexvar_epi8(e.first, places);
    _mm512_storeu_si512(tape->kind + n, kinds_of(&e));
    write_places(tape->at + n, _mm512_castsi512_si128(e.at), base);
    write_places(tape->from + n, _mm512_castsi512_si128(from), base);
    if (entries >= 16) {
        write_places(tape->at + n + 16, _mm512_extracti32x4_epi32(e.at, 1), base);
        write_places(tape->from + n + 16, _mm512_extracti32x4_epi32(from, 1), base);
    }
    if (entries >= 32) {
        write_places(tape->at + n + 32, _mm512_extracti32x4_epi32(e.at, 2), base);
        write_places(tape->from + n + 32, _mm512_extracti32x4_epi32(from, 2), base);
        write_places(tape->at + n + 48, _mm512_extracti32x4_epi32(e.at, 3), base);
        write_places(tape->from + n + 48, _mm512_extracti32x4_epi32(from, 3), base);
    }
    const uint64_t others = _bzhi_u64(_mm512_movepi8_mask(e.ipc), entries);
    __m512i spread = _mm512_setr_epi64(0, 0x0101010101010101, 0x0202020202020202,
                                       0x0303030303030303, 0x0404040404040404, 0x0505050505050505,
                                       0x0606060606060606, 0x0707070707070707);
    for (unsigned i = 0; i < entries; i += 8, spread = _mm512_add_epi8(spread, BYTES(8))) {
        const __m512i behind =
            _mm512_add_epi8(_mm512_permutexvar_epi8(spread, e.at), QUADS(0x0807060504030201));
        const __m512i payload = _mm512_permutex2var_epi8(p.bytes, behind, p.behind);
        __m512i value = resolve(ip, _mm512_permutexvar_epi8(spread, e.ipc), payload);
        if ((uint8_t)(others >> i)) /* few where there is no CYC */
            value = value_of_others(value, _mm512_permutexvar_epi8(spread, e.header), payload);
        _mm512_storeu_si512(tape->value + n + i, value);
    }
    /* One more: outcomes behind the last end, for the entry that the next block begins with. */
    for (unsigned i = 0; i <= entries; i += 16)
        add_outcomes(tape->tnt + n + i, &p, &e, i);
    join_open(tape, n, open, open_from);
    return n + entries;
}

/* ---- the run -------------------------------------------------------------------------------- */

/* The next entry has no outcomes yet. */
static ALWAYS_INLINE void begin_entry(struct tl_pt_tape *tape, size_t at)
{
    tape->tnt[tape->n] = 1;
    tape->from[tape->n] = (uint32_t)at;
}

struct walk {
    struct tl_pt_tape *tape;
    const struct tl_pt_config *config;
    struct tl_bytes in;
    __m512i ip;     /* last IP, in all lanes */
    size_t base;    /* of the block */
    unsigned entry; /* byte of the block where the next packet begins */
};

static ALWAYS_INLINE uint64_t last_ip(const struct walk *w)
{
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(w->ip));
}

static ALWAYS_INLINE void take_packets(struct walk *w, __m512i places, uint64_t are)
{
    w->tape->n = add_entries(w->tape, w->tape->n, &w->ip, w->in.p + w->base, w->base, places, are);
}

/* A block with packets that are left to the parser. Returns TL_OK, or what tl_pt_tape_add() did not
 * take. */
static __attribute__((noinline)) int take_odd_block(struct walk *w, const struct block *block)
{
    while (w->entry < BLOCK) {
        const __m512i places = places_from(block, w->entry);
        uint64_t are = inside(places);
        if (block->exit[w->entry] != ODD) {
            take_packets(w, places, are);
            w->entry = block->exit[w->entry];
            break;
        }
        const unsigned odd = (unsigned)__builtin_popcountll(are) - 1;
        const __m512i last = _mm512_permutexvar_epi8(BYTES(odd), places);
        w->entry = (uint8_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(last));
        are >>= 1;
        if (are)
            take_packets(w, places, are);
        w->tape->ip = last_ip(w);
        const int size = tl_pt_tape_add(w->tape, w->config, w->in, w->base + w->entry);
        if (size < 0)
            return size;
        w->ip = QUADS(w->tape->ip);
        w->entry += (unsigned)size;
    }
    w->base += BLOCK;
    w->entry -= BLOCK;
    return TL_OK;
}

/* Blocks [k, end): those in front of the first one with an odd packet, which is returned. */
static ALWAYS_INLINE unsigned take_blocks(struct walk *w, const struct block *blocks, unsigned k)
{
    __m512i places[BLOCKS];
    unsigned end = k;
    /* The places of all of them first: they wait for nothing but the entries. */
    for (; end < BLOCKS && blocks[end].exit[w->entry] != ODD; end++) {
        places[end] = places_from(&blocks[end], w->entry);
        w->entry = blocks[end].exit[w->entry] - BLOCK;
    }
    for (; k < end; k++, w->base += BLOCK)
        take_packets(w, places[k], inside(places[k]));
    return end;
}

int tl_pt_tape_avx512(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                      struct tl_bytes in, size_t *at)
{
    struct block blocks[BLOCKS];
    struct walk w = {.tape = tape, .config = config, .in = in, .ip = QUADS(tape->ip), .base = *at};
    int rc = TL_OK;
    begin_entry(tape, *at);
    while (rc == TL_OK && in.n - w.base >= (BLOCKS + 1) * BLOCK &&
           tape->n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ROOM) {
        for (unsigned k = 0; k < BLOCKS; k++)
            find_leads(&blocks[k], in.p + w.base + BLOCK * k);
        for (unsigned k = 0; k < BLOCKS && rc == TL_OK; k++) {
            k = take_blocks(&w, blocks, k);
            if (k < BLOCKS)
                rc = take_odd_block(&w, &blocks[k]);
        }
    }
    tape->ip = last_ip(&w);
    *at = w.base + w.entry;
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
