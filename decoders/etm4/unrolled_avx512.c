/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the unrolled packetizer for AVX-512 with VBMI and VBMI2.
 *
 * Where atoms are not joined, the trace state is resolved for eight addresses at once. Each
 * address is what its packet says, and some bits of an earlier address, its parent: the one
 * before, or an older one for an exact match. "Bits kept and bits said" of a packet and of its
 * parent compose to the same of a grandparent, and so three rounds of pointer jumping lead all
 * eight to the addresses before them.
 */
#include "etm4/unrolled_parts.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

TL_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt,popcnt")

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))

/* Masks over 64 bytes, bit k is byte k. */
struct block {
    __m512i bytes;
    uint64_t atom;   /* headers of atoms */
    uint64_t single; /* headers of packets of one byte */
    uint64_t match;  /* exact matches, of these */
    uint64_t brief;  /* short addresses */
    uint64_t long32; /* long addresses of 32 bits */
    uint64_t pair;   /* cycle counts of two bytes */
    uint64_t cycles; /* cycle counts of format 3 */
    uint64_t next;   /* bit 7 of the byte behind each */
};

static const uint8_t counting[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static ALWAYS_INLINE struct block block_of(const uint8_t *b, uint64_t short_f1)
{
    const __m512i v = _mm512_loadu_si512(b);
    const __m512i upper = _mm512_and_si512(v, BYTES(0xf0));
    struct block block = {.bytes = v};

    block.atom = _mm512_cmpge_epu8_mask(v, BYTES(0xc0));
    block.match = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, BYTES(0x90)), BYTES(2));
    block.cycles = _mm512_cmpeq_epi8_mask(upper, BYTES(0x10));
    block.single = block.atom | block.cycles | block.match;
    block.brief = _mm512_cmpeq_epi8_mask(v, BYTES(0x95));
    block.long32 = _mm512_cmpeq_epi8_mask(v, BYTES(0x9a));
    block.next = _mm512_movepi8_mask(_mm512_loadu_si512(b + 1));
    block.pair = _mm512_cmpeq_epi8_mask(_mm512_and_si512(v, BYTES(0xfe)), BYTES(0x0c)) |
                 (_mm512_cmpeq_epi8_mask(v, BYTES(0x0e)) & short_f1 & ~block.next);
    return block;
}

/* The action code of every byte, as if a packet began there. */
static ALWAYS_INLINE __m512i actions_of(const struct block *block)
{
    const __m512i low = _mm512_and_si512(block->bytes, BYTES(15));
    __m512i actions = _mm512_or_si512(low, BYTES(TL_ACTION_ADDRESS));

    actions = _mm512_mask_add_epi8(actions, block->cycles, actions,
                                   BYTES(TL_ACTION_CYCLES - TL_ACTION_ADDRESS));
    actions =
        _mm512_mask_blend_epi8(block->atom, actions, _mm512_and_si512(block->bytes, BYTES(63)));
    return _mm512_mask_add_epi8(actions, block->brief & block->next, actions, BYTES(1));
}

static ALWAYS_INLINE void compress(uint8_t out[64], uint64_t which, __m512i bytes)
{
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(which, bytes));
}

#include "etm4/unrolled_order_body.h"

static ALWAYS_INLINE void list_of(const uint8_t *b, const struct block *block,
                                  const uint8_t places[64], uint64_t heads, struct list *list)
{
    (void)b;
    compress(list->action, heads, actions_of(block));
    compress(list->at, heads, _mm512_loadu_si512(counting));
    compress(list->place, heads, _mm512_loadu_si512(places));
}

static ALWAYS_INLINE void write_packet(struct tl_etm4_packet *out, const uint64_t action[4],
                                       uint64_t offset)
{
    const __m256i fixed = _mm256_loadu_si256((const __m256i *)action);
    _mm256_storeu_si256((__m256i *)out, _mm256_mask_set1_epi64(fixed, 2, (int64_t)offset));
}

/* ---- eight addresses at once --------------------------------------------------------------- */

/*
 * Kinds of address packets: an index into tables of eight in the low bits, and how much older
 * than the last one the parent is from bit 6 on. By the low half of an action code.
 */
#define KIND_LONG32 3
#define KIND_SHORT1 5
#define KIND_SHORT2 6
static const uint8_t kinds[16] = {
    [0] = 0,
    [1] = 1 | 1 << 6,
    [2] = 2 | 2 << 6,
    [TL_ACTION_SHORT1 - TL_ACTION_ADDRESS] = KIND_SHORT1,
    [TL_ACTION_SHORT2 - TL_ACTION_ADDRESS] = KIND_SHORT2,
    [TL_ACTION_LONG32 - TL_ACTION_ADDRESS] = KIND_LONG32,
};

static ALWAYS_INLINE __m512i pick(const uint64_t table[static 8], __m512i index)
{
    return _mm512_permutexvar_epi64(index, _mm512_loadu_si512(table));
}

/* The packets' bytes from their headers on: `at` has where in the block the headers are. */
static ALWAYS_INLINE __m512i packet_bytes(__m512i block, const uint8_t *at)
{
    const __m512i replicate = _mm512_set_epi64(
        0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
        0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512i first = _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)load64(at)), replicate);
    return _mm512_permutexvar_epi8(_mm512_add_epi8(first, _mm512_set1_epi64(0x0706050403020100)),
                                   block);
}

/* The address bits that packets say: 7, 7 or 8, and 16 of them, behind two zero bits. */
static ALWAYS_INLINE __m512i said_by(__m512i bytes, __m512i kind, __m512i keep)
{
    static const uint64_t second[8] = {[KIND_LONG32] = 0xfe00, [KIND_SHORT2] = 0x1fe00};
    static const uint64_t rest[8] = {[KIND_LONG32] = 0xffff0000};
    const __m512i first = _mm512_and_si512(_mm512_srli_epi64(bytes, 6), _mm512_set1_epi64(0x1fc));
    __m512i said = _mm512_andnot_si512(keep, first);

    said = _mm512_or_si512(said, _mm512_and_si512(_mm512_srli_epi64(bytes, 7), pick(second, kind)));
    return _mm512_or_si512(said, _mm512_and_si512(_mm512_srli_epi64(bytes, 8), pick(rest, kind)));
}

/* Eight addresses; `history` has the three before them in lanes 5, 6, 7, the newest last. */
static ALWAYS_INLINE __m512i resolve8(__m512i bytes, __m512i kind, __m512i history,
                                      const uint64_t keeps[static 8])
{
    const __m512i before = _mm512_set_epi64(6, 5, 4, 3, 2, 1, 0, -1);
    const __m512i all = _mm512_set1_epi64(-1);
    __m512i parent = _mm512_sub_epi64(before, _mm512_srli_epi64(kind, 6));
    __m512i keep = pick(keeps, kind);
    __m512i said = said_by(bytes, kind, keep);

    for (unsigned round = 0; round < 3; round++) {
        const __mmask8 inside = (__mmask8)~_mm512_movepi64_mask(parent);
        const __m512i parents_keep = _mm512_mask_permutexvar_epi64(all, inside, parent, keep);
        const __m512i parents_said = _mm512_maskz_permutexvar_epi64(inside, parent, said);
        said = _mm512_or_si512(said, _mm512_and_si512(parents_said, keep));
        keep = _mm512_and_si512(keep, parents_keep);
        parent = _mm512_mask_permutexvar_epi64(parent, inside, parent, parent);
    }
    /* parents are -1, -2, -3 now: lanes 7, 6, 5 of the history */
    return _mm512_or_si512(said, _mm512_and_si512(_mm512_permutexvar_epi64(parent, history), keep));
}

/* The addresses of the packets in `which`, in order, into `out`. */
static ALWAYS_INLINE void resolve_all(struct tl_etm4_packetizer *p, const struct block *block,
                                      __m512i actions, uint64_t which, uint64_t out[64])
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const uint64_t keeps[8] = {[0] = ~0ull,
                               [1] = ~0ull,
                               [2] = ~0ull,
                               [KIND_LONG32] = long32_keep(p),
                               [KIND_SHORT1] = ~0x1ffull,
                               [KIND_SHORT2] = ~0x1ffffull};
    const unsigned n = (unsigned)__builtin_popcountll(which);
    uint64_t *const regs = p->regs.address;
    uint8_t kind[64], at[64];
    __m512i history =
        _mm512_set_epi64((int64_t)regs[0], (int64_t)regs[1], (int64_t)regs[2], 0, 0, 0, 0, 0);

    compress(kind, which,
             _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)kinds)),
                                 actions));
    compress(at, which, _mm512_loadu_si512(counting));
    for (unsigned k = 0; k < n; k += 8) {
        const __m512i k8 = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(kind + k)));
        const __m512i done = resolve8(packet_bytes(block->bytes, at + k), k8, history, keeps);
        const int64_t shift = n - k < 8 ? n - k : 8;
        _mm512_storeu_si512(out + k, done);
        history = _mm512_permutex2var_epi64(
            history, _mm512_add_epi64(lanes, _mm512_set1_epi64(shift)), done);
    }
    uint64_t newest[8];
    _mm512_storeu_si512(newest, history);
    regs[0] = newest[7];
    regs[1] = newest[6];
    regs[2] = newest[5];
}

/* Write eight packets; pairs[k] has value and offset of packets 2k, pairs[4 + k] of 2k + 1. */
static ALWAYS_INLINE void write8(struct tl_etm4_packetizer *p, struct tl_etm4_packet out[8],
                                 const uint8_t action[8], const uint64_t pairs[8][2])
{
#define WRITE(k)                                                                                   \
    _mm256_storeu_si256(                                                                           \
        (__m256i *)&out[k],                                                                        \
        _mm256_or_si256(_mm256_loadu_si256((const __m256i *)p->actions[action[k]]),                \
                        _mm256_maskz_broadcast_i64x2(                                              \
                            6, _mm_loadu_si128((const __m128i *)pairs[(k) / 2 + (k) % 2 * 4]))))
    WRITE(0);
    WRITE(1);
    WRITE(2);
    WRITE(3);
    WRITE(4);
    WRITE(5);
    WRITE(6);
    WRITE(7);
#undef WRITE
}

static ALWAYS_INLINE void emit(struct tl_etm4_packetizer *p, const uint8_t *b,
                               const struct block *block, const uint8_t places[64], uint64_t heads,
                               uint64_t offset)
{
    if (p->merge_atoms) {
        emit_in_order(p, b, block, places, heads, offset);
        return;
    }
    const unsigned n = (unsigned)__builtin_popcountll(heads);
    const uint64_t addresses = (block->match | block->brief | block->long32) & heads;
    const __m512i actions = actions_of(block);
    uint8_t action[64], place[64];
    uint64_t values[64];
    const uint64_t *value = values;

    compress(action, heads, actions);
    compress(place, heads, _mm512_loadu_si512(places));
    if (addresses != 0)
        resolve_all(p, block, actions, addresses, values);
    uint64_t which = _pext_u64(addresses, heads); /* bit k: packet k has an address */
    for (unsigned k = 0; k < n; k += 8) {
        const __m512i offsets =
            _mm512_add_epi64(_mm512_set1_epi64((int64_t)offset),
                             _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(place + k))));
        const __m512i resolved = _mm512_maskz_expandloadu_epi64((__mmask8)which, value);
        uint64_t pairs[8][2];
        _mm512_storeu_si512(pairs[0], _mm512_unpacklo_epi64(resolved, offsets));
        _mm512_storeu_si512(pairs[4], _mm512_unpackhi_epi64(resolved, offsets));
        write8(p, p->batch + p->n + k, action + k, (const uint64_t(*)[2])pairs);
        value += __builtin_popcount(which & 0xff);
        which >>= 8;
    }
    fill_pairs(p, b, block->pair & heads, heads, p->batch + p->n, NULL);
    p->n += n;
}

#include "etm4/unrolled_loop_body.h"

KERNELS(avx512)

TL_TARGET_END

#endif
