/* SPDX-License-Identifier: MIT */
/*
 * Tapes with AVX2 and BMI2.
 *
 * For every byte of a 64-byte block, determine what a packet beginning there would be: a one-byte
 * packet with only branch outcomes (TNT_8, PAD), or if not, where it would end. Then follow the
 * packets, jumping over runs of outcomes: one count of zeros and one load per packet. All fields of
 * a packet are extracted from its bytes by masks selected by its first byte, so no branch depends
 * on the packet type. Packets that begin with 02, and rare or invalid ones, are left to the parser.
 *
 * End to end: 4 to 16 % less processor time than with the parser alone (`decode --out`).
 */
#include "pt/tape_parts.h"

#if defined(__x86_64__)

#include "base/target.h"

#include <immintrin.h>

TL_TARGET_BEGIN(TL_AVX2_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm256_set1_epi8((char)(byte))
#define TABLE(...)    _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

#define BLOCK 64u
#define REACH 16u  /* maximum bytes read after a block's last one */
#define MAX   5u   /* TNT_8 packets of one entry */
#define ODD   0xff /* end of a packet that is left to the parser */

/* ---- headers -------------------------------------------------------------------------------- */

/* How to extract a packet's fields, selected by its first byte. */
struct form {
    uint64_t said, kept; /* last IP: bits from the payload, and bits kept */
    uint64_t payload;    /* bits after the header that are the value, if it is neither IP nor CYC */
    uint64_t cyc;        /* bits of the packet that are the value, if it is CYC */
    uint64_t ip;         /* all ones if it is an IP */
    uint8_t sign;        /* shift that moves the payload's top bit to bit 63 */
    uint8_t kind;
};

#define CYC_BITS UINT64_C(0xfefef8)

enum { F_NONE, F_CYC, F_MTC, F_TSC, F_ADDRESSES };

#define ADDRESS_FORMS(KIND)                                                                        \
    {.kept = ~UINT64_C(0), .ip = ~UINT64_C(0), .kind = (KIND) | TL_PT_TAPE_SUPPRESSED},            \
        {.said = 0xffff, .kept = ~UINT64_C(0xffff), .ip = ~UINT64_C(0), .kind = (KIND)},           \
        {.said = 0xffffffff, .kept = ~UINT64_C(0xffffffff), .ip = ~UINT64_C(0), .kind = (KIND)},   \
        {.said = ~UINT64_C(0), .sign = 16, .ip = ~UINT64_C(0), .kind = (KIND)},                    \
        {.said = 0xffffffffffff,                                                                   \
         .kept = ~UINT64_C(0xffffffffffff),                                                        \
         .ip = ~UINT64_C(0),                                                                       \
         .kind = (KIND)},                                                                          \
    {                                                                                              \
        .said = ~UINT64_C(0), .ip = ~UINT64_C(0), .kind = (KIND)                                   \
    }

static const struct form forms[] = {
    [F_CYC] = {.kept = ~UINT64_C(0), .cyc = CYC_BITS, .kind = TL_PT_CYC},
    [F_MTC] = {.kept = ~UINT64_C(0), .payload = 0xff, .kind = TL_PT_MTC},
    [F_TSC] = {.kept = ~UINT64_C(0), .payload = 0xffffffffffffff, .kind = TL_PT_TSC},
    [F_ADDRESSES] = ADDRESS_FORMS(TL_PT_TIP_PGD),
    ADDRESS_FORMS(TL_PT_TIP),
    ADDRESS_FORMS(TL_PT_TIP_PGE),
    ADDRESS_FORMS(TL_PT_FUP),
};

/* For IPBytes 0, 1, 2, 3, 4, 6. */
#define ADDRESS_ROW(low, first)                                                                    \
    [low] = (first), [0x20 | (low)] = (first) + 1, [0x40 | (low)] = (first) + 2,                   \
    [0x60 | (low)] = (first) + 3, [0x80 | (low)] = (first) + 4, [0xc0 | (low)] = (first) + 5

#define CYC_ROW(row)                                                                               \
    [(row) + 0x3] = F_CYC, [(row) + 0x7] = F_CYC, [(row) + 0xb] = F_CYC, [(row) + 0xf] = F_CYC

static const uint8_t form_of[256] = {CYC_ROW(0x00),
                                     CYC_ROW(0x10),
                                     CYC_ROW(0x20),
                                     CYC_ROW(0x30),
                                     CYC_ROW(0x40),
                                     CYC_ROW(0x50),
                                     CYC_ROW(0x60),
                                     CYC_ROW(0x70),
                                     CYC_ROW(0x80),
                                     CYC_ROW(0x90),
                                     CYC_ROW(0xa0),
                                     CYC_ROW(0xb0),
                                     CYC_ROW(0xc0),
                                     CYC_ROW(0xd0),
                                     CYC_ROW(0xe0),
                                     CYC_ROW(0xf0),
                                     [0x59] = F_MTC,
                                     [0x19] = F_TSC,
                                     ADDRESS_ROW(0x01, F_ADDRESSES),
                                     ADDRESS_ROW(0x0d, F_ADDRESSES + 6),
                                     ADDRESS_ROW(0x11, F_ADDRESSES + 12),
                                     ADDRESS_ROW(0x1d, F_ADDRESSES + 18)};

/* ---- blocks --------------------------------------------------------------------------------- */

struct block {
    uint64_t longer;             /* bytes that are not TNT_8 or PAD */
    uint8_t end[BLOCK];          /* for these: end of a packet beginning at the byte, or ODD */
    uint8_t outcomes[BLOCK + 8]; /* bits that are branch outcomes if the byte is a TNT_8 */
};

static ALWAYS_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Expand bit `bit` of each byte of `v` to a byte mask. */
static ALWAYS_INLINE __m256i spread(__m256i v, unsigned bit)
{
    return _mm256_cmpeq_epi8(_mm256_and_si256(v, BYTES(1u << bit)), BYTES(1u << bit));
}

/* Classify half a block, from `first` on. Returns that half of `longer`. */
static ALWAYS_INLINE uint32_t classify(struct block *block, const uint8_t *p, unsigned first)
{
    const __m256i b = load(p + first), next = load(p + first + 1), next2 = load(p + first + 2);
    const __m256i low = _mm256_and_si256(b, BYTES(0x0f));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(b, 4), BYTES(0x0f));
    const __m256i lane = _mm256_add_epi8(_mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                                          13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                                          23, 24, 25, 26, 27, 28, 29, 30, 31),
                                         BYTES(first));
    /* Lengths: of IPs (x1, xd) by IPBytes, of TSC and MTC (x9); 0: left to the parser. */
    const __m256i ip =
        _mm256_shuffle_epi8(TABLE(1, 1, 3, 3, 5, 5, 7, 7, 7, 7, 0, 0, 9, 9, 0, 0), high);
    const __m256i nine =
        _mm256_shuffle_epi8(TABLE(0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), high);
    const __m256i is_ip =
        _mm256_shuffle_epi8(TABLE(0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0), low);
    const __m256i is_nine = _mm256_cmpeq_epi8(low, BYTES(9));
    const __m256i is_cyc = _mm256_cmpeq_epi8(_mm256_and_si256(b, BYTES(3)), BYTES(3));
    const __m256i more = spread(b, 2);
    const __m256i more2 = _mm256_and_si256(more, spread(next, 0));
    const __m256i more3 = _mm256_and_si256(more2, spread(next2, 0));
    const __m256i cyc =
        _mm256_andnot_si256(more3, _mm256_sub_epi8(_mm256_sub_epi8(BYTES(1), more), more2));
    const __m256i length = _mm256_or_si256(
        _mm256_or_si256(_mm256_and_si256(is_ip, ip), _mm256_and_si256(is_nine, nine)),
        _mm256_and_si256(is_cyc, cyc));
    const __m256i odd = _mm256_cmpeq_epi8(length, _mm256_setzero_si256());
    _mm256_storeu_si256((__m256i *)(block->end + first),
                        _mm256_or_si256(_mm256_add_epi8(lane, length), odd));
    /* Below the stop bit, and above bit 0. */
    const __m256i outcomes = _mm256_or_si256(
        _mm256_shuffle_epi8(TABLE(0, 0x0e, 0x1e, 0x1e, 0x3e, 0x3e, 0x3e, 0x3e, 0x7e, 0x7e, 0x7e,
                                  0x7e, 0x7e, 0x7e, 0x7e, 0x7e),
                            high),
        _mm256_shuffle_epi8(TABLE(0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 6, 6, 6, 6), low));
    _mm256_storeu_si256((__m256i *)(block->outcomes + first), outcomes);
    const __m256i one = _mm256_or_si256(_mm256_slli_epi16(b, 7), _mm256_cmpeq_epi8(b, BYTES(2)));
    return (uint32_t)_mm256_movemask_epi8(one);
}

/* ---- packets -------------------------------------------------------------------------------- */

struct cursor {
    uint64_t ip;
    size_t n;
};

/*
 * Collect the outcomes of `bytes` (at most MOST) TNT_8 and PAD packets at byte `at`, before a
 * packet.
 */
static ALWAYS_INLINE uint32_t add_outcomes(struct tl_pt_tape *tape, const struct cursor *c,
                                           const uint8_t *p, size_t at, const uint8_t *outcomes,
                                           unsigned bytes)
{
    const uint64_t mask = __builtin_bswap64(_bzhi_u64(tl_le64(outcomes), 8 * bytes));
    const uint64_t bits = _pext_u64(__builtin_bswap64(tl_le64(p + at)), mask);
    return tape->tnt[c->n] = 1u << __builtin_popcountll(mask) | (uint32_t)bits;
}

/* Close an entry that has only these outcomes, if any. */
static ALWAYS_INLINE void end_outcomes(struct tl_pt_tape *tape, struct cursor *c, uint32_t tnt,
                                       size_t at)
{
    tape->kind[c->n] = TL_PT_PAD;
    tape->at[c->n] = (uint16_t)(at - tape->begin);
    tape->value[c->n] = 0;
    c->n += tnt != 1;
}

/* Append a packet described by a form, after its outcomes. */
static ALWAYS_INLINE void add_packet(struct tl_pt_tape *tape, struct cursor *c, const uint8_t *p,
                                     size_t at, unsigned size)
{
    const struct form *const f = &forms[form_of[p[at]]];
    const uint64_t after = tl_le64(p + at + 1);
    const uint64_t ip = (uint64_t)((int64_t)(after << f->sign) >> f->sign);
    const uint64_t cyc = _pext_u64(_bzhi_u64(tl_le64(p + at), 8 * size), f->cyc);
    c->ip = (c->ip & f->kept) | (ip & f->said);
    tape->kind[c->n] = f->kind;
    tape->at[c->n] = (uint16_t)(at - tape->begin);
    tape->value[c->n] = cyc | (c->ip & f->ip) | (after & f->payload);
    c->n++;
}

/* Process packets of the block at byte `base`, from `entry` on. Sets `*entry` to the next packet;
 * returns < 0 on error. */
static ALWAYS_INLINE int take_block(struct tl_pt_tape *tape, struct cursor *c,
                                    const struct block *block, const struct tl_pt_config *config,
                                    struct tl_bytes in, size_t base, unsigned *entry)
{
    while (*entry < BLOCK) {
        const uint64_t rest = block->longer & ~UINT64_C(0) << *entry;
        const unsigned first = (unsigned)_tzcnt_u64(rest); /* BLOCK: none */
        uint32_t tnt;
        for (; first - *entry > MAX; *entry += MAX) {
            const size_t at = base + *entry;
            tnt = add_outcomes(tape, c, in.p, at, block->outcomes + *entry, MAX);
            end_outcomes(tape, c, tnt, at + MAX);
        }
        tnt = add_outcomes(tape, c, in.p, base + *entry, block->outcomes + *entry, first - *entry);
        *entry = first;
        if (first == BLOCK) {
            end_outcomes(tape, c, tnt, base + BLOCK);
            break;
        }
        const unsigned end = block->end[first];
        if (__builtin_expect(end != ODD, 1)) {
            add_packet(tape, c, in.p, base + first, end - first);
            *entry = end;
            continue;
        }
        tape->n = c->n;
        tape->ip = c->ip;
        const int size = tl_pt_tape_add(tape, config, in, base + first);
        *c = (struct cursor){tape->ip, tape->n};
        if (size < 0)
            return size;
        *entry += (unsigned)size;
    }
    return TL_OK;
}

int tl_pt_tape_avx2(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at)
{
    struct cursor c = {tape->ip, tape->n};
    struct block block;
    size_t base = *at;
    unsigned entry = 0; /* byte of the block where the next packet begins */
    int rc = TL_OK;
    while (in.n - base >= BLOCK + REACH && c.n + TL_PT_TAPE_BLOCK <= TL_PT_TAPE_ENTRIES) {
        block.longer = classify(&block, in.p + base, 0);
        block.longer |= (uint64_t)classify(&block, in.p + base, 32) << 32;
        rc = take_block(tape, &c, &block, config, in, base, &entry);
        if (rc < 0)
            break;
        base += BLOCK;
        entry -= BLOCK;
    }
    tape->ip = c.ip;
    tape->n = c.n;
    *at = base + entry;
    if (rc == TL_OK)
        tape->tnt[c.n] = 1;
    return rc;
}

TL_TARGET_END

#else

int tl_pt_tape_avx2(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at)
{
    (void)tape, (void)config, (void)in, (void)at;
    return TL_OK;
}

#endif
