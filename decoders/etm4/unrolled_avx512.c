/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the unrolled packetizer for AVX-512 with VBMI and VBMI2: stream state.
 *
 * For every byte of a block, look up where the next packet would begin if one began there.
 * Permuting that table by itself gives "two packets later", "four packets later" and so on. These
 * give the positions of all packets of a block, wherever the first one begins. The only dependency
 * between blocks is a single lookup in "64 packets later" of the previous block.
 */
#include "etm4/unrolled_avx512.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN(TL_AVX512_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))

#define TIMES8(...)                                                                                \
    __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__,     \
        __VA_ARGS__
#define X 0xff

/* Lanes with bit 0, 1, … 5 set in their index. */
static alignas(64) const uint8_t with_bit[6][64] = {
    {TIMES8(0, X, 0, X, 0, X, 0, X)},
    {TIMES8(0, 0, X, X, 0, 0, X, X)},
    {TIMES8(0, 0, 0, 0, X, X, X, X)},
    {[8] = X,  X, X, X, X, X, X, X, [24] = X, X, X, X, X, X, X, X,
     [40] = X, X, X, X, X, X, X, X, [56] = X, X, X, X, X, X, X, X},
    {[16] = X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
     [48] = X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X},
    {[32] = X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
     X,        X, X, X, X, X, X, X, X, X, X, X, X, X, X, X},
};

/* Constants for all blocks, held in registers; otherwise GCC rebuilds them for each use. */
struct held {
    __m512i shape0, shape1, shape2; /* shapes of headers below 0x40, 0x80, 0xc0 */
    __m512i one, ones, low4;
    __m512i with5, with9;  /* shapes of addresses with context */
    __m512i vmid, context; /* number of bytes of these */
    __m512i first, span;   /* address headers: the first one, and how many there are */
    __m512i with_bit[6];
    __m512i next; /* lane - 63 */
    __m512i stay; /* lane, with ODD */
};

static ALWAYS_INLINE __m512i hold(__m512i v)
{
    __asm__("" : "+" TL_VECTOR_REGISTER(v));
    return v;
}

/* Flag in a position: the header is not plain. */
#define ODD    0x40
#define INSIDE 0xc0

#define HOLD_BIT(k) hold(_mm512_load_si512(with_bit[k]))

static ALWAYS_INLINE struct held hold_all(const struct tl_etm4_forms *forms)
{
    const __m512i lane = _mm512_load_si512(tl_avx512_lanes);
    return (struct held){
        .shape0 = hold(_mm512_loadu_si512(forms->shape)),
        .shape1 = hold(_mm512_loadu_si512(forms->shape + 64)),
        .shape2 = hold(_mm512_loadu_si512(forms->shape + 128)),
        .one = hold(BYTES(1)),
        .ones = hold(BYTES(0xff)),
        .low4 = hold(BYTES(TL_SHAPE_LENGTH)),
        .with5 = hold(BYTES(TL_SHAPE_IDS | 6)),
        .with9 = hold(BYTES(TL_SHAPE_IDS | 10)),
        .vmid = hold(BYTES(forms->ids[1])),
        .context = hold(BYTES(forms->ids[2])),
        .first = hold(BYTES(0x82)),
        .span = hold(BYTES(0x9f - 0x82)),
        .with_bit = {HOLD_BIT(0), HOLD_BIT(1), HOLD_BIT(2), HOLD_BIT(3), HOLD_BIT(4), HOLD_BIT(5)},
        .next = hold(_mm512_sub_epi8(lane, BYTES(63))),
        .stay = hold(_mm512_or_si512(lane, BYTES(ODD))),
    };
}

/* Shapes of the bytes, as if each were a header. */
static ALWAYS_INLINE __m512i shapes_of(const struct held *h, __m512i bytes)
{
    const __mmask64 upper = _mm512_movepi8_mask(bytes);
    const __mmask64 odd = _mm512_movepi8_mask(_mm512_add_epi8(bytes, bytes));
    __m512i shapes = _mm512_permutexvar_epi8(bytes, h->shape0);

    shapes = _mm512_mask_permutexvar_epi8(shapes, odd, bytes, h->shape1);
    shapes = _mm512_mask_permutexvar_epi8(shapes, upper, bytes, h->shape2);
    return _mm512_mask_mov_epi8(shapes, _kand_mask64(upper, odd), h->one); /* atoms */
}

/* Number of VMID and context ID bytes, for each byte taken as a header. */
static ALWAYS_INLINE __m512i longer_by_ids(const struct held *h, const uint8_t *b, __m512i shapes,
                                           __m512i next, __m512i length)
{
    const __mmask64 ids = _mm512_movepi8_mask(_mm512_slli_epi16(shapes, 3));
    const __mmask64 at5 = _mm512_cmpeq_epi8_mask(shapes, h->with5);
    const __mmask64 at9 = _mm512_cmpeq_epi8_mask(shapes, h->with9);
    __m512i info = _mm512_maskz_mov_epi8(ids, next);

    info = _mm512_mask_loadu_epi8(info, at5, b + 5);
    info = _mm512_mask_loadu_epi8(info, at9, b + 9);
    length = _mm512_mask_add_epi8(length, _mm512_movepi8_mask(info), length, h->context);
    return _mm512_mask_add_epi8(length, _mm512_movepi8_mask(_mm512_add_epi8(info, info)), length,
                                h->vmid);
}

/*
 * Positions of following packets: with bits 7 and 6, INSIDE, a lane of this block; without, a byte
 * of the next block, or, with ODD, unknown because this lane is not plain.
 */
struct leads {
    __m512i by[7]; /* position 1, 2, 4, … 64 packets later */
};

/* Position after the packet that may begin at each byte. */
static ALWAYS_INLINE __m512i first_leads(const struct held *h, const struct tl_etm4_forms *forms,
                                         const uint8_t *b)
{
    const __m512i shapes = shapes_of(h, _mm512_loadu_si512(b));
    const __m512i next = _mm512_loadu_si512(b + 1), next2 = _mm512_loadu_si512(b + 2);
    const __m512i longer = _mm512_and_si512(shapes, next); /* bit 7 is relevant */
    const __m512i both =
        _mm512_add_epi8(_mm512_add_epi8(shapes, shapes), _mm512_add_epi8(shapes, shapes));
    const __m512i field = _mm512_add_epi8(shapes, shapes);
    __m512i less1 = _mm512_add_epi8(_mm512_and_si512(shapes, h->low4), h->ones);

    /* Bit 7: a field is too long, or there is no length. */
    __m512i odd = _mm512_ternarylogic_epi32(field, longer, next2, 0x80);
    odd = _mm512_or_si512(odd, _mm512_ternarylogic_epi32(both, next, next2, 0xe0));
    odd = _mm512_or_si512(odd, less1);
    less1 = _mm512_mask_sub_epi8(less1, _mm512_movepi8_mask(longer), less1, h->ones);
    if (forms->ids[3] > 0)
        less1 = longer_by_ids(h, b, shapes, next, less1);
    return _mm512_mask_mov_epi8(_mm512_add_epi8(less1, h->next), _mm512_movepi8_mask(odd), h->stay);
}

static ALWAYS_INLINE __m512i twice(__m512i lead)
{
    return _mm512_mask_permutexvar_epi8(lead, _mm512_movepi8_mask(lead), lead, lead);
}

static ALWAYS_INLINE void find_leads(struct leads *leads, __m512i lead, unsigned rounds)
{
    leads->by[0] = lead;
#pragma GCC unroll 6
    for (unsigned k = 0; k < rounds; k++)
        leads->by[k + 1] = twice(leads->by[k]);
}

/* From the positions of 2^k packets, add those of as many packets after them. */
static ALWAYS_INLINE __m512i add_places(const struct held *h, __m512i places,
                                        const struct leads *leads, unsigned k)
{
    return _mm512_ternarylogic_epi32(h->with_bit[k], _mm512_permutexvar_epi8(places, leads->by[k]),
                                     places, 0xca); /* select */
}

/*
 * The positions of all packets from lane `entry` on, in order. The first one without bit 7 is after
 * the block; those after it are undefined.
 */
static ALWAYS_INLINE __m512i places_from(const struct held *h, const struct leads *leads,
                                         unsigned entry, unsigned rounds)
{
    __m512i places = BYTES(entry | INSIDE);
#pragma GCC unroll 6
    for (unsigned k = 0; k < rounds; k++)
        places = add_places(h, places, leads, k);
    return places;
}

/*
 * The same, and the positions for the next block: two independent dependency chains, which only
 * execute in parallel if interleaved in the code.
 */
static ALWAYS_INLINE __m512i places_and_next(const struct held *h, const struct leads *leads,
                                             unsigned entry, struct leads *next, __m512i lead,
                                             unsigned rounds)
{
    __m512i places = BYTES(entry | INSIDE);
    next->by[0] = lead;
#pragma GCC unroll 6
    for (unsigned k = 0; k < rounds; k++) {
        next->by[k + 1] = twice(next->by[k]);
        places = add_places(h, places, leads, k);
    }
    return places;
}

/* Write lanes of a block that begins at `start` as positions in the run: all 64, or 32. */
static ALWAYS_INLINE void write_positions(uint16_t *out, __m512i lane, bool all, size_t start)
{
    const __m512i from = _mm512_set1_epi16((short)(start - INSIDE));
    const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(lane));
    _mm512_storeu_si512(out, _mm512_add_epi16(low, from));
    if (all) {
        const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(lane, 1));
        _mm512_storeu_si512(out + 32, _mm512_add_epi16(high, from));
    }
}

/* Append the block's packets to the tape, and its addresses to those to be resolved. */
static ALWAYS_INLINE void add_packets(struct tl_etm4_columns *c, const struct held *h,
                                      const uint8_t *b, __m512i places, unsigned lane0,
                                      size_t start)
{
    const uint64_t inside = _mm512_movepi8_mask(places);
    const uint64_t all = inside & ~(inside + 1) & ~0ull >> lane0;
    const __m512i bytes = _mm512_loadu_si512(b);
    const __m512i header = _mm512_permutexvar_epi8(places, bytes);
    const uint64_t addresses = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(header, h->first), h->span);

    _mm512_storeu_si512(c->header + c->n, header);
    write_positions(c->at + c->n, places, true, start);
    c->n += (unsigned)__builtin_popcountll(all);
    if ((addresses & all) != 0) {
        const unsigned n = (unsigned)__builtin_popcountll(addresses & all);
        const size_t k = c->n_found;
        const __m512i at = _mm512_maskz_compress_epi8(addresses, places);
        _mm512_storeu_si512(c->found + k, _mm512_permutexvar_epi8(at, bytes));
#pragma GCC unroll 4
        for (unsigned i = 0; i < 4; i++)
            _mm512_storeu_si512(c->payload[i] + k,
                                _mm512_permutexvar_epi8(at, _mm512_loadu_si512(b + 1 + i)));
        write_positions(c->found_at + k, at, n > 32, start);
        c->n_found = k + n;
    }
}

/* Remove the last packet added, which is not plain. */
static ALWAYS_INLINE void take_back(struct tl_etm4_columns *c)
{
    c->n--;
    c->n_found -= tl_etm4_is_address(c->header[c->n]);
}

/* Process a packet that is not plain. Returns its length, 0 if blocks cannot handle it. */
static __attribute__((noinline)) size_t take_odd(struct tl_etm4_packetizer *p,
                                                 struct tl_etm4_past *past,
                                                 const struct tl_run *run, size_t i)
{
    const bool full = p->columns.n_others == TL_TAPE_OTHERS || p->columns.n >= TL_TAPE_PACKETS;
    const bool resolved = full || tl_etm4_needs_resolved(p->forms.class_of[run->p[i]]);

    if (resolved)
        tl_etm4_resolve_all(p, past);
    const size_t length = tl_etm4_parse_one(p, run, i);
    if (resolved)
        tl_etm4_past_read(past, p);
    return length;
}

/* Deliver the tape. */
static __attribute__((noinline)) void flush(struct tl_etm4_packetizer *p, struct tl_etm4_past *past)
{
    tl_etm4_resolve_all(p, past);
    tl_etm4_columns_flush(p);
    tl_etm4_past_read(past, p);
}

/* Addresses resolved late, so that their data can be loaded without store forwarding stalls. */
#define LAG 112

#define WINDOW (64 + 64 + 16)

/* The bytes of the block at byte `i`, in the upper lanes; lower lanes are ignored. */
static ALWAYS_INLINE const uint8_t *block_at(const struct tl_run *run, size_t i, unsigned unroll,
                                             uint8_t window[WINDOW])
{
    const unsigned lane0 = 64 - unroll;
    if (unroll == 64 || i >= lane0)
        return run->p + i - lane0;
    memset(window, 0, lane0);
    memcpy(window + lane0, run->p + i, unroll + 16);
    return window;
}

/* Positions after one packet for the block at byte `i` if it can be read; otherwise undefined. */
static ALWAYS_INLINE __m512i leads_ahead(const struct held *h, const struct tl_etm4_packetizer *p,
                                         size_t i, unsigned unroll)
{
    const bool can = i < p->run.n && p->run.n - i >= TL_UNROLLED_REACH;
    alignas(64) uint8_t window[WINDOW];
    return first_leads(h, &p->forms, block_at(&p->run, can ? i : 0, unroll, window));
}

/*
 * Software pipeline of three stages, so that three blocks are in progress at a time: positions
 * after one packet, then the other positions, then the packets and what follows from them.
 */
struct ahead {
    struct leads leads; /* of the current block */
    __m512i next;       /* positions after one packet, for the next block */
};

static ALWAYS_INLINE void begin_at(struct ahead *ahead, const struct held *h,
                                   const struct tl_etm4_packetizer *p, size_t i, unsigned unroll,
                                   unsigned rounds)
{
    find_leads(&ahead->leads, leads_ahead(h, p, i, unroll), rounds);
    ahead->next = leads_ahead(h, p, i + unroll, unroll);
}

static ALWAYS_INLINE size_t unrolled(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                     size_t i, unsigned unroll)
{
    struct tl_etm4_columns *const c = &p->columns;
    const unsigned rounds = 32 - (unsigned)__builtin_clz(unroll * 2 - 1) - 1;
    const unsigned lane0 = 64 - unroll;
    const struct held held = hold_all(&p->forms);
    uint8_t window[WINDOW];
    alignas(64) uint8_t exits[64];
    size_t at = i; /* the next packet */
    struct tl_etm4_past past;
    struct ahead ahead;

    if (run->n - i < TL_UNROLLED_REACH)
        return i;
    tl_etm4_past_read(&past, p);
    begin_at(&ahead, &held, p, i, unroll, rounds);
    while (p->failed >= 0) {
        const uint8_t *const b = block_at(run, i, unroll, window);
        const __m512i next2 = leads_ahead(&held, p, i + 2 * unroll, unroll);
        unsigned lane = (unsigned)(at - i) + lane0;
        struct leads next;
        _mm512_store_si512(exits, ahead.leads.by[rounds]);
        unsigned exit = exits[lane];
        __m512i places = places_and_next(&held, &ahead.leads, lane, &next, ahead.next, rounds);
        for (;;) {
            if (__builtin_expect(c->n + 64 > TL_TAPE_PACKETS, 0)) {
                flush(p, &past);
                if (p->failed < 0)
                    return at;
            }
            add_packets(c, &held, b, places, lane0, i - lane0);
            at = i + unroll + exit;
            if (__builtin_expect((exit & ODD) == 0, 1))
                break;
            at = i + (exit & 63) - lane0;
            take_back(c);
            const size_t length = take_odd(p, &past, run, at);
            if (length == 0) {
                tl_etm4_resolve_all(p, &past);
                return at;
            }
            at += length;
            if (at >= i + unroll)
                break;
            lane = (unsigned)(at - i) + lane0;
            exit = exits[lane];
            places = places_from(&held, &ahead.leads, lane, rounds);
        }
        if (c->n_found - c->n_addresses >= LAG + TL_AVX512_ADDRESSES)
            tl_etm4_resolve_some(p, &past);
        i += unroll;
        if (__builtin_expect(run->n - i >= TL_UNROLLED_REACH && at < i + unroll, 1)) {
            ahead.leads = next;
            ahead.next = next2;
            continue;
        }
        i = at;
        if (run->n - i < TL_UNROLLED_REACH)
            break;
        begin_at(&ahead, &held, p, i, unroll, rounds);
    }
    tl_etm4_resolve_all(p, &past);
    return at;
}

TL_KERNEL_OF(avx512, 1)
TL_KERNEL_OF(avx512, 2)
TL_KERNEL_OF(avx512, 4)
TL_KERNEL_OF(avx512, 8)
TL_KERNEL_OF(avx512, 16)
TL_KERNEL_OF(avx512, 32)
TL_KERNEL_OF(avx512, 64)

TL_TARGET_END

#endif
