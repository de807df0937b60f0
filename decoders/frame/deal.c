/* SPDX-License-Identifier: MIT */
/*
 * Everywhere: split() finds the IDs, and what lies between two of them is copied. With AVX-512
 * there is no loop over IDs: how many have come into force up to each byte is counted for 64 bytes
 * at once, by which the owner of each byte is looked up, and a share is one comparison and one
 * compression.
 */
#include "frame/deal.h"

#include "frame/tpiu_parts.h"
#include "frame/vectors.h"

#include <string.h>

#define GROUP     (4 * FRAME)
#define AUX_BYTES 0x8000800080008000u

/* A share for one more source, from group `g` on; NULL: it gets none. */
static struct tl_share *add_share(struct tl_deal *d, unsigned id, size_t g)
{
    if (!(d->wanted[id / 64] >> id % 64 & 1) || d->n_shares == TL_DEAL_SHARES)
        return NULL;
    struct tl_share *const share = &d->share[d->n_shares++];
    share->n = 0;
    share->id = (uint8_t)id;
    memset(share->mask, 0, (g + 1) * sizeof *share->mask);
    return share;
}

/* Take back what was dealt of group `g`. */
static void take_back(struct tl_deal *d, size_t g)
{
    for (size_t k = 0; k < d->n_shares; k++)
        d->share[k].n -= (size_t)__builtin_popcountll(d->share[k].mask[g]);
}

/* ---- by split() --------------------------------------------------------------------------- */

#define FOURS 8 /* groups at once */

struct dealer {
    struct tl_deal *deal;
    struct tl_share *by_id[128]; /* NULL: not yet known */
};

/* The share of an ID that comes in force in group `g`; NULL: the group is not to be dealt. */
static struct tl_share *find_share(struct dealer *dealer, unsigned id, size_t g)
{
    struct tl_share *const nobody = &dealer->deal->share[TL_DEAL_SHARES];
    dealer->by_id[id] = is_source(id) ? add_share(dealer->deal, id, g) : nobody;
    return dealer->by_id[id];
}

/* Data bytes in front of byte `i` of a group. */
static inline unsigned data_before(unsigned i)
{
    return i - i / FRAME;
}

/* Many at once, some of them too many. */
static inline void copy(uint8_t *out, const uint8_t *p, const uint8_t *end)
{
    do {
        memcpy(out, p, 32);
        p += 32, out += 32;
    } while (p < end);
}

static bool deal_group(struct dealer *dealer, size_t g, const uint8_t *in, const uint8_t *data,
                       struct tl_split_marks marks)
{
    struct tl_deal *const d = dealer->deal;
    unsigned from = 0, id = d->id;
    struct tl_share *share = dealer->by_id[id];
    d->share[TL_DEAL_SHARES].n = 0;
    for (size_t k = 0; k < d->n_shares; k++)
        d->share[k].mask[g] = 0;
    if (!share && !(share = find_share(dealer, id, g)))
        return false;
    for (uint64_t ids = marks.ids; ids; ids &= ids - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(ids);
        const uint64_t late = marks.late >> i & 1;
        const uint64_t bits = (((uint64_t)1 << i) - ((uint64_t)1 << from)) & ~AUX_BYTES;
        const unsigned to = data_before(i);
        uint8_t *const out = share->bytes + share->n;
        const size_t n = to - data_before(from);
        copy(out, data + to - n, data + to);
        out[n] = data[to + 1];
        share->n += n + late;
        share->mask[g] |= bits | late << (i + 1);
        from = i + 1 + (unsigned)(late | (i % FRAME == AUX - 1));
        id = in[i] >> 1;
        share = dealer->by_id[id];
        if (!share && !(share = find_share(dealer, id, g))) {
            take_back(d, g);
            return false;
        }
    }
    if (from < GROUP) {
        copy(share->bytes + share->n, data + data_before(from), data + 60);
        share->n += 60 - data_before(from);
        share->mask[g] |= -((uint64_t)1 << from) & ~AUX_BYTES;
    }
    d->id = (uint8_t)id;
    return true;
}

static size_t deal_by(tl_split *split, struct tl_deal *d, const uint8_t *in, size_t groups)
{
    uint8_t data[FOURS * 60 + TL_SPLIT_SLACK];
    struct tl_split_marks marks[FOURS];
    struct dealer dealer = {d, {NULL}};
    size_t g = 0, quiet = 0;
    d->n_shares = 0;
    while (g < groups && quiet < d->quiet) {
        const size_t want = groups - g < FOURS ? groups - g : FOURS;
        const size_t got = split(data, marks, in, want);
        for (size_t i = 0; i < got && quiet < d->quiet; i++, g++, in += GROUP) {
            if (!deal_group(&dealer, g, in, data + 60 * i, marks[i]))
                return g;
            quiet = marks[i].ids ? 0 : quiet + 1;
        }
        if (got < want)
            break;
    }
    return g;
}

static size_t deal_scalar(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(tl_split_variant(TL_CPU_SCALAR), d, in, groups);
}

#if defined(__x86_64__)
#include <immintrin.h>

static size_t deal_sse42(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(tl_split_variant(TL_CPU_SSE42), d, in, groups);
}

static size_t deal_avx2(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(tl_split_variant(TL_CPU_AVX2), d, in, groups);
}

/* ---- AVX-512 with VBMI2 and BITALG ---------------------------------------------------------- */

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,"             \
                          "avx512bitalg,bmi,bmi2,popcnt")))

/* For each byte, those of its eight that are not behind it. */
#define UP_TO_BYTE 1, 3, 7, 15, 31, 63, 127, (char)255

/*
 * One less than the number of bits of `begins` up to each byte: by eights, with what comes before
 * each eight added.
 */
TARGET static inline __m512i rank(uint64_t begins)
{
    const __m128i up_to = _mm_setr_epi8(UP_TO_BYTE, UP_TO_BYTE);
    const __m512i eighth = _mm512_set_epi64(
        0x0707070707070707, 0x0606060606060606, 0x0505050505050505, 0x0404040404040404,
        0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m512i bits = _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)begins), eighth);
    const __m512i within =
        _mm512_popcnt_epi8(_mm512_and_si512(bits, _mm512_broadcast_i32x4(up_to)));
    const uint64_t in_eights =
        (uint64_t)_mm_cvtsi128_si64(_mm_popcnt_epi8(_mm_cvtsi64_si128((int64_t)begins)));
    const __m512i before =
        _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)(in_eights * 0x0101010101010100u)), eighth);
    return _mm512_add_epi8(_mm512_add_epi8(within, before), _mm512_set1_epi8(-1));
}

/* The bytes of a group, the ID in force at each, as it stands in a frame, and bit masks of them. */
struct owners {
    __m512i byte;
    __m512i id;
    uint64_t owned; /* bytes whose ID is one of a source, … */
    uint64_t data;  /* … and that are its data */
    uint64_t ids;
};

/* `before`: the ID in force in front of the group, in each byte. */
TARGET static inline struct owners owners_of(__m512i four, __m512i before)
{
    const __m512i select = _mm512_broadcast_i32x4(_mm_setr_epi8(TL_BIT_OF_BYTE));
    const __m512i one = _mm512_set1_epi8(1);
    const uint64_t ids = _mm512_test_epi8_mask(four, _mm512_set1_epi16(1));
    const uint64_t set =
        _mm512_test_epi8_mask(_mm512_shuffle_epi8(four, _mm512_set1_epi8(AUX)), select);
    const uint64_t late = ids & set & ~BYTE_14;
    /* Where no ID goes, at the end, is the one that rank -1 looks up: the one before. */
    const __m512i said = _mm512_mask_compress_epi8(before, ids, four);
    const __m512i id = _mm512_permutexvar_epi8(rank((ids ^ late) << 1 | late << 2), said);
    const uint64_t owned =
        _mm512_cmplt_epu8_mask(_mm512_sub_epi8(id, _mm512_set1_epi8(2)),
                               _mm512_set1_epi8((char)(2 * TL_TPIU_FIRST_RESERVED - 2)));
    return (struct owners){_mm512_mask_add_epi8(four, set, four, one), id, owned,
                           owned & ~(ids | AUX_BYTES), ids};
}

/* What the loop over groups works on. */
struct hands {
    __m512i id[TL_DEAL_SHARES]; /* as it stands in a frame, in each byte */
    uint8_t *end[TL_DEAL_SHARES];
    uint64_t *mask[TL_DEAL_SHARES];
    __m512i before; /* the ID in force in front of the next group */
    size_t n;
    size_t quiet;
    unsigned more; /* the ID of a source without a share, which has stopped the loop; 0: none */
};

/* The ID of the lowest byte in `which`. */
TARGET static unsigned id_among(__m512i id, uint64_t which)
{
    uint8_t ids[GROUP];
    _mm512_storeu_si512(ids, id);
    return ids[__builtin_ctzll(which)] >> 1;
}

/*
 * Deal to the shares there are. What a group gives to a share is written behind the share's end
 * before it is known whether the group can be dealt: then it is of no meaning.
 */
TARGET static size_t deal_to(struct hands *h, const uint8_t *in, size_t g, size_t groups,
                             size_t most_quiet)
{
    const size_t n = h->n;
    __m512i before = h->before;
    size_t quiet = h->quiet;
    h->more = 0;
    for (; g < groups && quiet < most_quiet; g++) {
        const __m512i four = _mm512_loadu_si512(in + g * GROUP);
        if (_mm512_cmpeq_epi8_mask(four, _mm512_set1_epi8(-1)) & EVEN)
            break;
        const struct owners o = owners_of(four, before);
        __mmask64 seen = 0;
        for (size_t k = 0; k < n; k++) {
            const __mmask64 all = _mm512_cmpeq_epi8_mask(o.id, h->id[k]);
            const __mmask64 mask = _kand_mask64(all, o.data);
            const uint64_t bits = _cvtmask64_u64(mask);
            seen = _kor_mask64(seen, all);
            _mm512_storeu_si512(h->end[k], _mm512_maskz_compress_epi8(mask, o.byte));
            h->mask[k][g] = bits;
            h->end[k] += __builtin_popcountll(bits);
        }
        if (o.owned & ~seen) {
            for (size_t k = 0; k < n; k++)
                h->end[k] -= __builtin_popcountll(h->mask[k][g]);
            h->more = id_among(o.id, o.owned & ~seen);
            break;
        }
        before = _mm512_permutexvar_epi8(_mm512_set1_epi8(GROUP - 1), o.id);
        quiet = o.ids ? 0 : quiet + 1;
    }
    h->before = before;
    h->quiet = quiet;
    return g;
}

TARGET static size_t deal_avx512(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    struct hands h;
    size_t g = 0;
    h.before = _mm512_set1_epi8((char)(d->id << 1 | 1));
    h.quiet = 0;
    h.more = is_source(d->id) ? d->id : 0;
    d->n_shares = h.n = 0;
    do {
        struct tl_share *const share = h.more ? add_share(d, h.more, g) : NULL;
        if (h.more && !share)
            break;
        if (share) {
            h.id[h.n] = _mm512_set1_epi8((char)(h.more << 1 | 1));
            h.mask[h.n] = share->mask;
            h.end[h.n++] = share->bytes;
        }
        g = deal_to(&h, in, g, groups, d->quiet);
    } while (h.more);
    for (size_t k = 0; k < h.n; k++)
        d->share[k].n = (size_t)(h.end[k] - d->share[k].bytes);
    d->id = (uint8_t)id_among(h.before, 1);
    return g;
}

static bool has_vbmi2(void)
{
    return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg");
}

tl_deal *tl_deal_variant(enum tl_cpu level)
{
    static tl_deal *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = deal_scalar, [TL_CPU_NEON] = deal_scalar, [TL_CPU_SSE42] = deal_sse42,
        [TL_CPU_AVX2] = deal_avx2,     [TL_CPU_AVX512] = deal_avx2,
    };
    return level == TL_CPU_AVX512 && has_vbmi2() ? deal_avx512 : variants[level];
}

#elif defined(__aarch64__)

static size_t deal_neon(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(tl_split_variant(TL_CPU_NEON), d, in, groups);
}

tl_deal *tl_deal_variant(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR ? deal_scalar : deal_neon;
}

#else

tl_deal *tl_deal_variant(enum tl_cpu level)
{
    return deal_scalar;
}

#endif
