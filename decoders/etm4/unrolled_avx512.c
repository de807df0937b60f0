/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the unrolled packetizer for AVX-512 with VBMI and VBMI2.
 *
 * Stream state. For each byte of a block, as if a packet began there, the place of the next one
 * is looked up; of that table, "two packets on", "four packets on" … are permutations by itself.
 * They give the places of all packets of a block, wherever the first one begins: what a block has
 * to wait for is a single look-up in "64 packets on" of the block before.
 *
 * Trace state. Each address is what its packet says, and some bits of an earlier address, its
 * parent: the one before, or an older one for an exact match. "Bits kept and bits said" of a
 * packet and of its parent compose to the same of a grandparent, and so four rounds of pointer
 * jumping lead sixteen addresses to those before them. Their upper halves are nearly always the
 * same; where they are not, they take the same way.
 */
#include "etm4/unrolled_parts.h"

#include "etm4/headers.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))
#define DWORDS(dword) _mm512_set1_epi32((int)(dword))

static const uint8_t counting[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
static const uint32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- trace state --------------------------------------------------------------------------- */

/*
 * Sixteen halves of addresses: bits `keep` of the parent's, and bits `said`. `parent` is a lane,
 * with bit 31 set where it is one of these; else the lane of `before`.
 */
static ALWAYS_INLINE __m512i jump(__m512i keep, __m512i said, __m512i parent, __m512i before)
{
#pragma GCC unroll 4
    for (unsigned round = 0; round < 4; round++) {
        const __mmask16 inside = _mm512_movepi32_mask(parent);
        const __m512i parents_keep = _mm512_permutexvar_epi32(parent, keep);
        const __m512i parents_said = _mm512_permutexvar_epi32(parent, said);
        said = _mm512_mask_ternarylogic_epi32(said, inside, parents_said, keep, 0xf8);
        keep = _mm512_mask_and_epi32(keep, inside, keep, parents_keep);
        parent = _mm512_mask_permutexvar_epi32(parent, inside, parent, parent);
    }
    return _mm512_ternarylogic_epi32(said, _mm512_permutexvar_epi32(parent, before), keep, 0xf8);
}

/* The address bits that payloads say, with bit 0 for IS1. */
static ALWAYS_INLINE __m512i said_by(__m512i payload, __m512i index, __mmask16 is1)
{
    const __m512i t = _mm512_and_si512(
        payload, _mm512_permutexvar_epi32(index, _mm512_loadu_si512(tl_etm4_said)));
    const __m512i first =
        _mm512_add_epi32(_mm512_and_si512(t, DWORDS(0x7f)), _mm512_and_si512(t, DWORDS(0x7f)));
    __m512i low = _mm512_ternarylogic_epi32(first, t, DWORDS(0xff00), 0xf8);
    low = _mm512_mask_add_epi32(low, (__mmask16)~is1, low, low);
    low = _mm512_mask_or_epi32(low, is1, low, DWORDS(1));
    return _mm512_ternarylogic_epi32(low, t, DWORDS(0xffff0000), 0xf8);
}

/* All registers, and what a 32-bit address makes of them, have the same upper half. */
static ALWAYS_INLINE bool one_upper_half(const struct tl_etm4_registers *regs)
{
    const uint64_t *const a = regs->address;
    return (((a[0] ^ a[1]) | (a[0] ^ a[2]) | (regs->sf ? 0 : a[0])) >> 32) == 0;
}

/* The last three addresses in lanes 13, 14, 15, the newest last. */
struct past {
    __m512i low;
    __m512i high; /* with one_half, the same in all lanes */
    bool one_half;
};

static ALWAYS_INLINE __m512i push_past(__m512i past, __m512i done, unsigned n)
{
    return _mm512_permutex2var_epi32(past, _mm512_add_epi32(_mm512_loadu_si512(lanes), DWORDS(n)),
                                     done);
}

static ALWAYS_INLINE __m512i last_three(uint64_t a, uint64_t b, uint64_t c)
{
    return _mm512_set_epi32((int)a, (int)b, (int)c, (int)a, (int)a, (int)a, (int)a, (int)a, (int)a,
                            (int)a, (int)a, (int)a, (int)a, (int)a, (int)a, (int)a);
}

static void read_past(struct past *past, const struct tl_etm4_registers *regs)
{
    const struct tl_etm4_history h = tl_etm4_history_of(regs);
    past->low = last_three(h.a, h.b, h.c);
    past->high = last_three(h.a >> 32, h.b >> 32, h.c >> 32);
    past->one_half = one_upper_half(regs);
}

static ALWAYS_INLINE void keep_past(const struct past *past, struct tl_etm4_registers *regs)
{
    uint32_t low[16], high[16];
    _mm512_storeu_si512(low, past->low);
    _mm512_storeu_si512(high, past->high);
    const struct tl_etm4_history h = {low[15] | (uint64_t)high[15] << 32,
                                      low[14] | (uint64_t)high[14] << 32,
                                      low[13] | (uint64_t)high[13] << 32};
    tl_etm4_history_keep(&h, regs);
}

/* Sixteen address packets. */
struct found {
    __mmask16 valid;
    __m512i at, kind;
    __m512i parent; /* as jump() takes it */
};

static ALWAYS_INLINE struct found find16(const struct tl_etm4_columns *c, unsigned n)
{
    struct found f = {.valid = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff)};
    f.at =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(c->found_at + c->n_addresses)));
    f.kind =
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(c->found_kind + c->n_addresses)));
    const __m512i back = _mm512_and_si512(_mm512_srli_epi32(f.kind, 4), DWORDS(3));
    f.parent =
        _mm512_sub_epi32(_mm512_add_epi32(_mm512_loadu_si512(lanes), DWORDS(0x7fffffff)), back);
    return f;
}

static ALWAYS_INLINE __m512i low_halves(const struct found *f, const uint8_t *b, __m512i past)
{
    const __m512i payload =
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), f->valid, f->at, b + 1, 1);
    const __m512i index = _mm512_ternarylogic_epi32(f->kind, _mm512_srli_epi32(payload, 7),
                                                    DWORDS(1), 0xf8); /* its bits 3:0 */
    const __mmask16 is1 = _mm512_test_epi32_mask(f->kind, DWORDS(TL_KIND_IS1));
    const __m512i keep = _mm512_permutexvar_epi32(index, _mm512_loadu_si512(tl_etm4_kept));
    return jump(keep, said_by(payload, index, is1), f->parent, past);
}

static ALWAYS_INLINE __m512i high_halves(const struct found *f, const uint8_t *b, unsigned sf,
                                         __m512i past)
{
    const __m512i length = _mm512_and_si512(f->kind, DWORDS(6));
    const __mmask16 is64 = _mm512_cmpeq_epi32_mask(length, DWORDS(TL_KIND_LONG64));
    const __mmask16 is32 = _mm512_cmpeq_epi32_mask(length, DWORDS(TL_KIND_LONG32));
    const __m512i keep = _mm512_maskz_set1_epi32((__mmask16) ~(is64 | (sf ? 0 : is32)), -1);
    const __m512i said =
        _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), is64 & f->valid, f->at, b + 5, 1);
    return jump(keep, said, f->parent, past);
}

static ALWAYS_INLINE void write16(uint64_t *out, __m512i low, __m512i high)
{
    const __m512i even = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i first = _mm512_permutex2var_epi32(low, even, high);
    const __m512i second = _mm512_permutex2var_epi32(low, _mm512_or_si512(even, DWORDS(8)), high);
    _mm512_storeu_si512(out, first);
    _mm512_storeu_si512(out + 8, second);
}

/* The next `n` addresses, at most sixteen, whatever their upper halves. */
static __attribute__((noinline)) void resolve_whole(struct tl_etm4_packetizer *p, struct past *past,
                                                    unsigned n)
{
    struct tl_etm4_columns *const c = &p->columns;
    const struct found f = find16(c, n);
    const __m512i low = low_halves(&f, p->run.p, past->low);
    const __m512i high = high_halves(&f, p->run.p, p->regs.sf, past->high);

    write16(c->address + c->n_addresses, low, high);
    past->low = push_past(past->low, low, n);
    past->high = push_past(past->high, high, n);
    const __m512i newest = _mm512_permutexvar_epi32(DWORDS(15), past->high);
    const unsigned same = _mm512_cmpeq_epi32_mask(past->high, newest) >> 13;
    const unsigned none = _mm512_testn_epi32_mask(newest, newest);
    past->one_half = same == 7 && (p->regs.sf || none != 0);
    if (past->one_half)
        past->high = newest;
}

static ALWAYS_INLINE void resolve16(struct tl_etm4_packetizer *p, struct past *past, unsigned n)
{
    struct tl_etm4_columns *const c = &p->columns;
    const __m128i kind = _mm_loadu_si128((const __m128i *)(c->found_kind + c->n_addresses));
    const __m128i six = _mm_set1_epi8(6);
    const unsigned is64 =
        (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(kind, six), six));

    if (__builtin_expect(!past->one_half || is64 != 0, 0)) {
        resolve_whole(p, past, n);
    } else {
        const struct found f = find16(c, n);
        const __m512i low = low_halves(&f, p->run.p, past->low);
        write16(c->address + c->n_addresses, low, past->high);
        past->low = push_past(past->low, low, n);
    }
    c->n_addresses += n;
}

/* All addresses found. */
static __attribute__((noinline)) void resolve_all(struct tl_etm4_packetizer *p, struct past *past)
{
    struct tl_etm4_columns *const c = &p->columns;
    while (c->n_found > c->n_addresses)
        resolve16(p, past,
                  c->n_found - c->n_addresses < 16 ? (unsigned)(c->n_found - c->n_addresses) : 16);
    keep_past(past, &p->regs);
}

/*
 * Addresses are resolved so many at a time, for one branch that is foreseen in place of many that
 * are not. The last ones wait, until what was written of them can be read again at once.
 */
#define TOGETHER 128
#define LAG      32

/* ---- stream state -------------------------------------------------------------------------- */

/* Bit 7 of the bytes at b. */
static ALWAYS_INLINE uint64_t bit7(const uint8_t *b)
{
    return _mm512_movepi8_mask(_mm512_loadu_si512(b));
}

/* … and bit 6. */
static ALWAYS_INLINE uint64_t bit6(const uint8_t *b)
{
    return _mm512_test_epi8_mask(_mm512_loadu_si512(b), BYTES(0x40));
}

/* Shapes of the bytes, as if each were a header. */
static ALWAYS_INLINE __m512i shapes_of(const struct tl_etm4_forms *forms, __m512i bytes)
{
    const uint8_t *const shape = forms->shape;
    const uint64_t upper = _mm512_movepi8_mask(bytes);
    const uint64_t odd = _mm512_test_epi8_mask(bytes, BYTES(0x40));
    __m512i shapes = _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(shape));

    shapes = _mm512_mask_permutexvar_epi8(shapes, odd, bytes, _mm512_loadu_si512(shape + 64));
    shapes = _mm512_mask_permutexvar_epi8(shapes, upper, bytes, _mm512_loadu_si512(shape + 128));
    return _mm512_mask_mov_epi8(shapes, upper & odd, BYTES(1)); /* atoms */
}

/* Bytes that are a VMID or a context ID, for each byte as a header. */
static ALWAYS_INLINE __m512i longer_by_ids(const struct tl_etm4_forms *forms, const uint8_t *b,
                                           __m512i shapes, __m512i length)
{
    const uint64_t ids = _mm512_test_epi8_mask(shapes, BYTES(TL_SHAPE_IDS));
    const uint64_t at1 = ids & _mm512_cmpeq_epi8_mask(length, BYTES(2));
    const uint64_t at5 = ids & _mm512_cmpeq_epi8_mask(length, BYTES(6));
    const uint64_t at9 = ids & _mm512_cmpeq_epi8_mask(length, BYTES(10));
    const uint64_t vmid = (at1 & bit6(b + 1)) | (at5 & bit6(b + 5)) | (at9 & bit6(b + 9));
    const uint64_t context = (at1 & bit7(b + 1)) | (at5 & bit7(b + 5)) | (at9 & bit7(b + 9));

    length = _mm512_mask_add_epi8(length, vmid, length, BYTES(forms->ids[1]));
    return _mm512_mask_add_epi8(length, context, length, BYTES(forms->ids[2]));
}

/* Lengths of the packets that may begin at each byte, 0 where no plain one does. */
static ALWAYS_INLINE __m512i lengths_of(const struct tl_etm4_forms *forms, const uint8_t *b)
{
    const __m512i shapes = shapes_of(forms, _mm512_loadu_si512(b));
    const __m512i next = _mm512_loadu_si512(b + 1);
    const uint64_t longer = _mm512_movepi8_mask(_mm512_and_si512(shapes, next));
    __m512i length = _mm512_and_si512(shapes, BYTES(TL_SHAPE_LENGTH));

    if (forms->shapes & TL_SHAPE_IDS)
        length = longer_by_ids(forms, b, shapes, length);
    length = _mm512_mask_add_epi8(length, longer, length, BYTES(1));
    if (forms->shapes & (TL_SHAPE_FIELD | TL_SHAPE_BOTH)) {
        const uint64_t field = _mm512_test_epi8_mask(shapes, BYTES(TL_SHAPE_FIELD));
        const uint64_t both = _mm512_test_epi8_mask(shapes, BYTES(TL_SHAPE_BOTH));
        const uint64_t next2 = bit7(b + 2);
        const uint64_t odd = (field & longer & next2) | (both & (bit7(b + 1) | next2));
        length = _mm512_maskz_mov_epi8(~odd, length);
    }
    return length;
}

/* A header that is not plain was met: its bit in what a packet leads to. */
#define ODD 0x40

/*
 * Where packets lead to: with bit 7, to a lane of this block; without, to a byte of the next one,
 * or, with ODD, to nowhere from this lane.
 */
struct leads {
    __m512i by[7]; /* by 1, 2, 4 … 64 packets */
};

static ALWAYS_INLINE __m512i apply(__m512i places, __mmask64 which, __m512i lead)
{
    return _mm512_mask_permutexvar_epi8(places, which, places, lead);
}

static ALWAYS_INLINE void find_leads(struct leads *leads, __m512i length, unsigned rounds)
{
    const __m512i lane = _mm512_loadu_si512(counting);
    const __m512i onwards = _mm512_add_epi8(_mm512_sub_epi8(lane, BYTES(64)), length);
    const uint64_t odd = _mm512_testn_epi8_mask(length, length);
    __m512i lead = _mm512_mask_mov_epi8(onwards, odd, _mm512_or_si512(lane, BYTES(ODD)));

    leads->by[0] = lead;
#pragma GCC unroll 6
    for (unsigned k = 0; k < rounds; k++) {
        lead = apply(lead, _mm512_movepi8_mask(lead), lead);
        leads->by[k + 1] = lead;
    }
}

/* The places of all packets from lane `entry` on, in order. */
static ALWAYS_INLINE __m512i places_from(const struct leads *leads, unsigned entry, unsigned rounds)
{
    const __m512i lane = _mm512_loadu_si512(counting);
    __m512i places = BYTES(entry | 0x80);
#pragma GCC unroll 6
    for (unsigned k = 0; k < rounds; k++) {
        const __m512i bit = _mm512_slli_epi16(_mm512_and_si512(lane, BYTES(1u << k)), 7 - k);
        places = apply(places, _mm512_movepi8_mask(_mm512_and_si512(places, bit)), leads->by[k]);
    }
    return places;
}

/* Lanes of a block, which begins at `start`, as positions in the run: all, or the first 32. */
static ALWAYS_INLINE void write_positions(uint16_t *out, __m512i lane, bool all, __m512i start)
{
    const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(lane));
    _mm512_storeu_si512(out, _mm512_add_epi16(low, start));
    if (all) {
        const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(lane, 1));
        _mm512_storeu_si512(out + 32, _mm512_add_epi16(high, start));
    }
}

/* Does this class change address registers, or stand between cycle counts and their threshold? */
static bool needs_resolved(unsigned class)
{
    switch (class) {
    case TL_CLASS_TRACE_INFO:
    case TL_CLASS_EXCEPTION:
    case TL_CLASS_Q:
    case TL_CLASS_SOURCE_MATCH:
    case TL_CLASS_SOURCE_SHORT:
    case TL_CLASS_SOURCE_LONG32:
    case TL_CLASS_SOURCE_LONG64:
        return true;
    default:
        return false;
    }
}

/* A packet that is not plain. Returns its length, 0 if it is not for blocks. */
static __attribute__((noinline)) size_t take_odd(struct tl_etm4_packetizer *p, struct past *past,
                                                 const struct tl_run *run, size_t i)
{
    const bool full = p->columns.n_others == TL_TAPE_OTHERS || p->columns.n >= TL_TAPE_PACKETS;
    const bool resolved = full || needs_resolved(p->forms.class_of[run->p[i]]);

    if (resolved)
        resolve_all(p, past);
    const size_t length = tl_etm4_parse_one(p, run, i);
    if (resolved)
        read_past(past, &p->regs);
    return length;
}

/* Does one of the contexts among these headers switch between AArch32 and AArch64? */
static __attribute__((noinline)) bool switches_state(const struct tl_etm4_packetizer *p,
                                                     const uint8_t *b, const uint8_t *places,
                                                     uint64_t contexts)
{
    for (; contexts != 0; contexts &= contexts - 1) {
        const uint8_t *const packet = b + (places[__builtin_ctzll(contexts)] & 63);
        const unsigned info = tl_etm4_context_at(packet[0]);
        if (info != 0 && (packet[info] >> 4 & 1) != p->regs.sf)
            return true;
    }
    return false;
}

/* The packets of one block. */
struct packets {
    __m512i places, header, kind;
    uint64_t all, addresses, contexts; /* bit k: packet k */
};

static ALWAYS_INLINE struct packets packets_at(const uint8_t *b, __m512i places, unsigned lane0)
{
    struct packets s = {.places = places};
    s.header = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(b));
    s.all = _mm512_movepi8_mask(places) & ~0ull >> lane0;
    const __m512i from80 = _mm512_sub_epi8(s.header, BYTES(0x80));
    s.kind = _mm512_maskz_permutexvar_epi8(_mm512_cmplt_epu8_mask(from80, BYTES(0x1f)), s.header,
                                           _mm512_loadu_si512(tl_etm4_kinds));
    s.addresses = s.all & _mm512_movepi8_mask(s.kind);
    s.contexts = s.all & _mm512_cmplt_epu8_mask(from80, BYTES(7));
    return s;
}

static ALWAYS_INLINE void add_packets(struct tl_etm4_columns *c, const struct packets *s,
                                      __m512i start)
{
    const unsigned n = (unsigned)__builtin_popcountll(s->all);
    const unsigned found = (unsigned)__builtin_popcountll(s->addresses);
    const __m512i lane = _mm512_and_si512(s->places, BYTES(63));

    _mm512_storeu_si512(c->header + c->n, s->header);
    write_positions(c->at + c->n, lane, true, start);
    c->n += n;
    if (found > 0) {
        _mm512_storeu_si512(c->found_kind + c->n_found,
                            _mm512_maskz_compress_epi8(s->addresses, s->kind));
        write_positions(c->found_at + c->n_found, _mm512_maskz_compress_epi8(s->addresses, lane),
                        found > 32, start);
        c->n_found += found;
    }
}

static ALWAYS_INLINE size_t unrolled(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                     size_t i, unsigned unroll)
{
    struct tl_etm4_columns *const c = &p->columns;
    const unsigned rounds = 32 - (unsigned)__builtin_clz(unroll * 2 - 1) - 1;
    const unsigned lane0 = 64 - unroll; /* the block is in the upper lanes */
    const size_t n_run = run->n;
    size_t at = i; /* the next packet */
    struct past past;

    read_past(&past, &p->regs);
    while (n_run - i >= TL_UNROLLED_REACH && p->failed >= 0) {
        uint8_t window[64 + 64 + 16];
        const uint8_t *b = run->p + i - lane0; /* what is before the block does not count */
        if (unroll < 64 && i < lane0) {
            memset(window, 0, lane0);
            memcpy(window + lane0, run->p + i, unroll + 16);
            b = window;
        }
        struct leads leads;
        uint8_t exits[64];
        find_leads(&leads, lengths_of(&p->forms, b), rounds);
        _mm512_storeu_si512(exits, leads.by[rounds]);
        while (at < i + unroll) {
            const unsigned lane = (unsigned)(at - i) + lane0;
            const unsigned exit = exits[lane];
            const struct packets s = packets_at(b, places_from(&leads, lane, rounds), lane0);
            if (c->n + 64 > TL_TAPE_PACKETS) {
                resolve_all(p, &past);
                tl_etm4_columns_flush(p);
                if (p->failed < 0)
                    return at;
            }
            if (__builtin_expect(s.contexts != 0, 0)) {
                uint8_t places[64];
                _mm512_storeu_si512(places, s.places);
                if (switches_state(p, b, places, s.contexts)) {
                    resolve_all(p, &past);
                    at = tl_etm4_plain(p, run, at, i + unroll);
                    read_past(&past, &p->regs);
                    continue;
                }
            }
            add_packets(c, &s, _mm512_set1_epi16((short)(i - lane0)));
            at = i + unroll + exit;
            if (__builtin_expect((exit & ODD) != 0, 0)) {
                at = i + (exit & 63) - lane0;
                c->n--;
                const size_t length = take_odd(p, &past, run, at);
                if (length == 0) {
                    resolve_all(p, &past);
                    return at;
                }
                at += length;
            }
        }
        if (c->n_found - c->n_addresses >= LAG + TOGETHER)
            for (unsigned k = 0; k < TOGETHER; k += 16)
                resolve16(p, &past, 16);
        i += unroll;
        if (at >= i + unroll || n_run - i < TL_UNROLLED_REACH)
            i = at;
    }
    resolve_all(p, &past);
    return at;
}

#define KERNEL(u)                                                                                  \
    TL_KERNEL(avx512_##u)                                                                          \
    {                                                                                              \
        return unrolled(p, run, i, u);                                                             \
    }

KERNEL(1)
KERNEL(2)
KERNEL(4)
KERNEL(8)
KERNEL(16)
KERNEL(32)
KERNEL(64)

TL_TARGET_END

#endif
