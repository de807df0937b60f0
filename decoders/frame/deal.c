/* SPDX-License-Identifier: MIT */
/*
 * Everywhere: frames are lined up (frame/lineup.h), and what lies between two IDs is copied; where
 * IDs are few, groups are stored straight to the shares. With AVX-512 there is no loop over IDs: how many have come into force up to each byte is counted for
 * 64 bytes at once, by which the owner of each byte is looked up, and a share is one comparison and
 * one compression.
 */
#include "frame/deal.h"

#include "frame/group.h"
#include "frame/lineup.h"

#include <assert.h>
#include <string.h>

/* A share for one more source; NULL: it gets none. */
static struct tl_share *add_share(struct tl_deal *d, unsigned id)
{
    if (!(d->wanted[id / 64] >> id % 64 & 1) || d->n_shares == TL_DEAL_SHARES)
        return NULL;
    struct tl_share *const share = &d->share[d->n_shares++];
    share->n = 0;
    share->id = (uint8_t)id;
    return share;
}

/* ---- lined up ----------------------------------------------------------------------------- */

#define FIRST 4  /* groups to try with */
#define CHUNK 32 /* groups at once: what is written stays in the first-level cache */

#define STRETCH 64 /* bytes stored at once: as long as nearly all pieces are */
#define SHORT   32 /* … where they are many */

static_assert(TL_LINEUP_SLACK >= STRETCH, "room for what is too many");
static_assert(TL_DEAL_SLACK >= STRETCH, "room for what is too many");

/* Places are of bytes in struct tl_deal. A piece is what lies between two IDs. */
struct dealer {
    struct tl_deal *deal;
    uint32_t end[256];           /* of the share of an ID; 0: there is none yet */
    uint32_t to[CHUNK * 32 + 1]; /* of each piece of a chunk */
};

KERNEL uint32_t place_of(const struct tl_deal *d, const uint8_t *p)
{
    return (uint32_t)(p - (const uint8_t *)d);
}

/* The ID in force behind `n` IDs, as it stands in a frame. */
KERNEL uint8_t said_by(const struct tl_deal *d, size_t n)
{
    return n ? d->lined.bytes[d->lined.at[n - 1]] : d->said_first;
}

/* Where the piece behind `n` IDs begins. */
KERNEL unsigned begin_of(const struct tl_deal *d, size_t n)
{
    return n ? d->lined.at[n - 1] + 1u : 0;
}

/* The only byte of a piece may be one that has changed places with the ID behind it. */
static unsigned first_place(unsigned from, unsigned to)
{
    const unsigned g = from / LINED, i = from % LINED;
    return g * GROUP + i + i / AUX + (to - from == 1 && to % AUX % 2);
}

/* A share for piece `n`, the first one of its ID. Returns its place; 0: it gets none. */
__attribute__((noinline)) static uint32_t find_share(struct dealer *dealer, size_t n)
{
    struct tl_deal *const d = dealer->deal;
    const unsigned said = said_by(d, n);
    struct tl_share *const share =
        is_source(said >> 1) ? add_share(d, said >> 1) : &d->share[TL_DEAL_SHARES];
    if (!share)
        return 0;
    share->first = (uint16_t)n;
    return dealer->end[said] = place_of(d, share->bytes);
}

/*
 * Find places for pieces `n` … `end`, the first of which goes on at `from`. How long a piece is and
 * whose cannot be foretold, so that nothing depends on it but places. Returns the end of those for
 * which there is one.
 */
KERNEL size_t find_places(struct dealer *restrict dealer, size_t n, size_t end, unsigned from)
{
    const struct tl_lined *const lined = &dealer->deal->lined;
    uint32_t *restrict out = dealer->to;
    size_t said = said_by(dealer->deal, n);
#pragma GCC unroll 2
    for (; n < end; n++) {
        uint32_t place = dealer->end[said];
        const unsigned to = lined->at[n];
        if (!place && !(place = find_share(dealer, n)))
            break;
        *out++ = place;
        dealer->end[said] = place + to - from;
        said = lined->bytes[to];
        from = to + 1;
    }
    return n;
}

typedef uint8_t wide __attribute__((vector_size(32), aligned(1), may_alias));

KERNEL void copy_stretch(uint8_t *out, const uint8_t *p, size_t size)
{
    const wide low = *(const wide *)p, high = *(const wide *)(p + size - 32);
    *(wide *)out = low;
    *(wide *)(out + size - 32) = high;
}

/* Copy pieces `n` … `end`, `size` bytes at once, some of them too many. */
KERNEL void copy_pieces(struct dealer *restrict dealer, size_t n, size_t end, unsigned from,
                        size_t size)
{
    const struct tl_lined *const lined = &dealer->deal->lined;
    const uint32_t *restrict out = dealer->to;
#pragma GCC unroll 2
    for (; n < end; n++, out++) {
        const unsigned to = lined->at[n];
        const uint8_t *const p = lined->bytes + from;
        uint8_t *const q = (uint8_t *)dealer->deal + *out;
        copy_stretch(q, p, size);
        for (size_t done = size; done < to - from; done += size)
            copy_stretch(q + done, p + done, size);
        from = to + 1;
    }
}

/* The ID of piece `n` gets nothing: take back the group in which it has been said. */
static size_t take_back(struct dealer *dealer, size_t n)
{
    const struct tl_deal *const d = dealer->deal;
    const unsigned g = n ? d->lined.at[n - 1] / LINED : 0;
    for (; n > 0 && d->lined.at[n - 1] >= g * LINED; n--) {
        const unsigned begin = begin_of(d, n - 1), end = d->lined.at[n - 1];
        const unsigned from = begin > g * LINED ? begin : g * LINED;
        dealer->end[said_by(d, n - 1)] -= from < end ? end - from : 0;
    }
    dealer->deal->lined.n_ids = n;
    return g;
}

/* The pieces up to the end of what is lined up; returns their end. */
KERNEL size_t end_pieces(struct tl_lined *lined)
{
    lined->at[lined->n_ids] = (uint16_t)(lined->groups * LINED);
    return lined->n_ids + 1;
}

/* Deal more groups where IDs are many, up to group `want`. As deal_long(). */
KERNEL size_t deal_short(tl_lineup *lineup, struct dealer *dealer, const uint8_t *in, size_t want)
{
    struct tl_deal *const d = dealer->deal;
    const size_t n = d->lined.n_ids;
    const unsigned from = (unsigned)(d->lined.groups * LINED);
    lineup(&d->lined, in, want, d->quiet);
    const size_t found = find_places(dealer, n, end_pieces(&d->lined), from);
    if ((found - n) * 16 > LINED * CHUNK)
        copy_pieces(dealer, n, found, from, SHORT);
    else
        copy_pieces(dealer, n, found, from, STRETCH);
    return found;
}

/*
 * Store a group from its byte `from` on. There is no telling where in its frame that is, so that
 * the bytes in front of it are stored, too, and what they overwrite is put back.
 */
KERNEL void store_from(uint8_t *out, const struct group *group, unsigned from)
{
    const wide low = *(const wide *)(out - 64), high = *(const wide *)(out - 32);
    store_group(out - from, group);
    *(wide *)(out - 64) = low;
    *(wide *)(out - 32) = high;
}

static_assert(offsetof(struct tl_share, bytes) >= 64, "room for what is put back");

/*
 * Deal more groups where IDs are few, up to group `want`: bytes go straight to the shares, and a
 * branch on whether there is an ID is guessed wrong less often than it saves work. Returns the end
 * of the pieces for which there were shares.
 */
KERNEL size_t deal_long(plain_group *plain, lineup_group *line_up, struct dealer *dealer,
                        const uint8_t *in, size_t want)
{
    struct tl_deal *const d = dealer->deal;
    struct tl_lined *const lined = &d->lined;
    const size_t most = d->quiet;
    size_t g = lined->groups, n = lined->n_ids, quiet = lined->quiet;
    unsigned said = said_by(d, n);
    uint8_t *out = (uint8_t *)d + dealer->end[said];
    for (in += g * GROUP; g < want && quiet < most; g++, in += GROUP) {
        if (plain(out, in)) {
            out += LINED;
            quiet++;
            continue;
        }
        struct group group;
        uint64_t ids;
        if (!line_up(&group, in, &ids))
            break;
        store_group(out, &group);
        quiet = 0;
        unsigned from = 0;
        for (; ids; ids &= ids - 1) {
            const unsigned to = (unsigned)__builtin_ctzll(ids);
            const unsigned at = (unsigned)g * LINED + to;
            dealer->end[said] = place_of(d, out) + to - from;
            said = in[(to + to / AUX) & ~1u];
            lined->at[n++] = (uint16_t)at;
            lined->bytes[at] = (uint8_t)said;
            uint32_t place = dealer->end[said];
            if (!place) {
                lined->n_ids = n;
                if (!(place = find_share(dealer, n))) {
                    lined->groups = g + 1;
                    return n;
                }
            }
            out = (uint8_t *)d + place;
            from = to + 1;
            store_from(out, &group, from);
        }
        out += LINED - from;
    }
    dealer->end[said] = place_of(d, out);
    lined->groups = g;
    lined->quiet = quiet;
    lined->n_ids = n;
    return n + 1;
}

/* Of a share that has bytes: `first` is its first piece, find its first byte. */
static uint16_t first_byte(const struct tl_deal *d, const struct tl_share *share)
{
    size_t n = share->first;
    while (said_by(d, n) >> 1 != share->id || begin_of(d, n) == d->lined.at[n])
        n++;
    return (uint16_t)first_place(begin_of(d, n), d->lined.at[n]);
}

KERNEL size_t deal_by(plain_group *plain, lineup_group *line_up, tl_lineup *lineup,
                      struct tl_deal *d, const uint8_t *in, size_t groups)
{
    struct dealer dealer;
    struct tl_lined *const lined = &d->lined;
    dealer.deal = d;
    memset(dealer.end, 0, sizeof dealer.end);
    d->said_first = (uint8_t)(d->id << 1 | 1);
    d->n_shares = 0;
    d->masked = false;
    bool few = lined->n_ids <= lined->groups; /* as it was the last time */
    lined->groups = lined->quiet = lined->n_ids = 0;
    if (!find_share(&dealer, 0))
        return 0;
    for (size_t want = FIRST; lined->groups < groups; want += CHUNK) {
        const size_t before = lined->groups, n = lined->n_ids;
        want = want < groups ? want : groups;
        const size_t found = few ? deal_long(plain, line_up, &dealer, in, want)
                                 : deal_short(lineup, &dealer, in, want);
        if (found <= lined->n_ids)
            lined->groups = take_back(&dealer, found);
        if (lined->groups < want || lined->quiet == d->quiet)
            break;
        few = lined->n_ids - n < want - before;
    }
    end_pieces(lined);
    for (size_t i = 0; i < d->n_shares; i++) {
        struct tl_share *const share = &d->share[i];
        share->n = dealer.end[share->id << 1 | 1] - place_of(d, share->bytes);
        share->first = share->n ? first_byte(d, share) : 0;
    }
    d->id = said_by(d, lined->n_ids) >> 1;
    return lined->groups;
}

/* A bit for each byte lined up to one for each byte of the frames. */
static uint64_t spread(uint64_t bits)
{
    const uint64_t fifteen = 0x7fff;
    return (bits & fifteen) | (bits & fifteen << 15) << 1 | (bits & fifteen << 30) << 2 |
           (bits & fifteen << 45) << 3;
}

void tl_deal_masks(struct tl_deal *d)
{
    const struct tl_lined *const lined = &d->lined;
    uint64_t mask[TL_DEAL_SHARES + 1] = {0}; /* the last one is nobody's */
    uint8_t share_of[256];
    size_t n = 0;
    if (d->masked)
        return;
    memset(share_of, TL_DEAL_SHARES, sizeof share_of);
    for (unsigned k = 0; k < d->n_shares; k++)
        share_of[d->share[k].id << 1 | 1] = (uint8_t)k;
    unsigned share = share_of[d->said_first];
    for (size_t g = 0; g < lined->groups; g++) {
        uint64_t rest = ((uint64_t)1 << LINED) - 1, moved = 0;
        for (; n < lined->n_ids && lined->at[n] < (g + 1) * LINED; n++) {
            const unsigned i = lined->at[n] % LINED;
            mask[share] |= rest & ~(UINT64_MAX << i);
            rest &= UINT64_MAX << i << 1;
            moved |= (uint64_t)(i % AUX % 2) << i >> 1;
            share = share_of[lined->bytes[lined->at[n]]];
        }
        mask[share] |= rest;
        for (size_t k = 0; k < d->n_shares; k++) {
            d->share[k].mask[g] = spread(mask[k] + (mask[k] & moved));
            mask[k] = 0;
        }
    }
    d->masked = true;
}

static size_t deal_scalar(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(plain_scalar, line_up_scalar, tl_lineup_variant(TL_CPU_SCALAR), d, in, groups);
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_SSE42_TARGET)
static size_t deal_sse42(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(plain_sse42, line_up_sse42, tl_lineup_variant(TL_CPU_SSE42), d, in, groups);
}

TL_TARGET(TL_AVX2_TARGET ",tune=haswell")
static size_t deal_avx2(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(plain_avx2, line_up_avx2, tl_lineup_variant(TL_CPU_AVX2), d, in, groups);
}

/* ---- AVX-512 -------------------------------------------------------------------------------- */

/* For each byte, those of its eight that are not behind it. */
#define UP_TO_BYTE 1, 3, 7, 15, 31, 63, 127, (char)255

/*
 * One less than the number of bits of `begins` up to each byte: by eights, with what comes before
 * each eight added.
 */
TL_TARGET(TL_AVX512_TARGET) static inline __m512i rank(uint64_t begins)
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
TL_TARGET(TL_AVX512_TARGET) static inline struct owners owners_of(__m512i four, __m512i before)
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
TL_TARGET(TL_AVX512_TARGET) static unsigned id_among(__m512i id, uint64_t which)
{
    uint8_t ids[GROUP];
    _mm512_storeu_si512(ids, id);
    return ids[__builtin_ctzll(which)] >> 1;
}

/*
 * Deal to the shares there are. What a group gives to a share is written behind the share's end
 * before it is known whether the group can be dealt: then it is of no meaning.
 */
TL_TARGET(TL_AVX512_TARGET)
static size_t deal_to(struct hands *h, const uint8_t *in, size_t g, size_t groups,
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

/* The first bit, of which there is one. */
static uint16_t first_of(const uint64_t *mask)
{
    unsigned g = 0;
    while (!mask[g])
        g++;
    return (uint16_t)(g * GROUP + (unsigned)__builtin_ctzll(mask[g]));
}

TL_TARGET(TL_AVX512_TARGET)
static size_t deal_avx512(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    struct hands h;
    size_t g = 0;
    h.before = _mm512_set1_epi8((char)(d->id << 1 | 1));
    h.quiet = 0;
    h.more = is_source(d->id) ? d->id : 0;
    d->n_shares = h.n = 0;
    do {
        struct tl_share *const share = h.more ? add_share(d, h.more) : NULL;
        if (h.more && !share)
            break;
        if (share) {
            memset(share->mask, 0, (g + 1) * sizeof *share->mask);
            h.id[h.n] = _mm512_set1_epi8((char)(h.more << 1 | 1));
            h.mask[h.n] = share->mask;
            h.end[h.n++] = share->bytes;
        }
        g = deal_to(&h, in, g, groups, d->quiet);
    } while (h.more);
    for (size_t k = 0; k < h.n; k++) {
        struct tl_share *const share = &d->share[k];
        share->n = (size_t)(h.end[k] - share->bytes);
        share->first = share->n ? first_of(share->mask) : 0;
    }
    d->masked = true;
    d->id = (uint8_t)id_among(h.before, 1);
    return g;
}

tl_deal *tl_deal_variant(enum tl_cpu level)
{
    static tl_deal *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = deal_scalar, [TL_CPU_NEON] = deal_scalar,   [TL_CPU_SSE42] = deal_sse42,
        [TL_CPU_AVX2] = deal_avx2,     [TL_CPU_AVX512] = deal_avx512,
    };
    return variants[level];
}

#elif defined(__aarch64__)

static size_t deal_neon(struct tl_deal *d, const uint8_t *in, size_t groups)
{
    return deal_by(plain_neon, line_up_neon, tl_lineup_variant(TL_CPU_NEON), d, in, groups);
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
