/* SPDX-License-Identifier: MIT */
#include "store/search.h"

#include "simd/target.h"
#include "stf/record.h"

#include <stdbool.h>

#define LEAST TL_SEARCH_LEAST
#define LONG  32 /* minimum bytes between matches to be scanned */

#define INLINE inline __attribute__((always_inline))

/* Length of the match between `a` and `b` (after it), up to `end`. It is unpredictable, so variants
 * avoid branches. */
typedef size_t same_bytes(const uint8_t *a, const uint8_t *b, const uint8_t *end);

static INLINE size_t same_to(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *const begin = b;
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

static INLINE size_t same_words(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *const begin = b;
    for (; end - b >= 32; a += 32, b += 32) {
        const uint64_t differ[4] = {tl_le64(a) ^ tl_le64(b), tl_le64(a + 8) ^ tl_le64(b + 8),
                                    tl_le64(a + 16) ^ tl_le64(b + 16),
                                    tl_le64(a + 24) ^ tl_le64(b + 24)};
        if (differ[0] | differ[1] | differ[2] | differ[3]) {
            uint64_t first = differ[3];
            size_t at = 24;
            for (unsigned k = 3; k-- > 0;) {
                at = differ[k] ? 8 * k : at;
                first = differ[k] ? differ[k] : first;
            }
            return (size_t)(b - begin) + at + (unsigned)__builtin_ctzll(first) / 8;
        }
    }
    return (size_t)(b - begin) + same_to(a, b, end);
}

/* Begin of the block whose change of flow is at `at`: after a target and a closing record. */
static INLINE uint32_t entry_of(struct tl_bytes stf, uint32_t at)
{
    if (stf.p[at] == TL_STF_INST_PC_TARGET)
        at += TL_STF_TARGET_BYTES;
    return at < stf.n && stf.p[at] == TL_STF_INST_16 ? at + TL_STF_CLOSING_16_BYTES
                                                     : at + TL_STF_CLOSING_BYTES;
}

static INLINE uint32_t slot(uint32_t key)
{
    return key >> (32 - TL_SEARCH_BITS);
}

/* Result so far: matches, the end of the last one, and how far was scanned. */
struct found {
    ZSTD_Sequence *out;
    uint32_t done, seen;
};

/* Distance to the next record, for the most frequent ones; others are scanned byte by byte. */
static const uint8_t steps[256] = {
    [TL_STF_INST_32] = 5,         [TL_STF_INST_16] = 3,  [TL_STF_INST_PC_TARGET] = 9,
    [TL_STF_EVENT_PC_TARGET] = 9, [TL_STF_FORCE_PC] = 9,
};

/* Scan what lies between the last match and `to`. */
typedef struct found go_over_run(struct tl_search *s, struct tl_bytes stf, uint32_t to,
                                 struct found f);

/*
 * Scan record by record. Elsewhere the step grows while nothing is found, so that data without
 * repeats costs little.
 */
static INLINE struct found go_over(struct tl_search *s, struct tl_bytes stf, uint32_t to,
                                   struct found f, same_bytes *same)
{
    const uint8_t *const end = stf.p + stf.n;
    uint32_t at = f.done > f.seen ? f.done : f.seen;
    while (at < to && stf.n - at >= LEAST) {
        const uint64_t word = tl_le64(stf.p + at);
        uint32_t *const last = &s->words[word * 0x9e3779b97f4a7c15u >> (64 - TL_SEARCH_BITS)];
        const uint32_t known = *last;
        *last = at + 1;
        if (known == 0 || tl_le64(stf.p + known - 1) != word) {
            const uint32_t step = steps[stf.p[at]];
            at += step ? step : 1 + (at - f.done) / 64;
            continue;
        }
        const uint32_t back = at + 1 - known;
        uint32_t begin = at;
        while (begin > f.done && begin > back && stf.p[begin - 1] == stf.p[begin - 1 - back])
            begin--;
        at += LEAST;
        at += (uint32_t)same(stf.p + at - back, stf.p + at, end);
        *f.out++ =
            (ZSTD_Sequence){.offset = back, .litLength = begin - f.done, .matchLength = at - begin};
        f.done = at;
    }
    f.seen = at;
    return f;
}

/*
 * Most marks lie within the preceding match, and only the place of their change of flow is
 * recorded. Where a match ends, and so which mark is the next one outside, is unpredictable; so
 * matching begins at the mark, not at the end of the match, and does not depend on the match's
 * result.
 */
static INLINE size_t search(struct tl_search *s, struct tl_bytes stf,
                            const struct tl_stf_mark *marks, size_t n, ZSTD_Sequence *out,
                            same_bytes *same, go_over_run *over)
{
    const uint8_t *const end = stf.p + stf.n;
    ZSTD_Sequence *const first = out;
    uint32_t done = 0, seen = 0; /* see `found` */
    uint32_t last = 0;           /* turn of the previous mark */
    memset(s, 0, sizeof *s);
    for (const struct tl_stf_mark *m = marks; m < marks + n; m++) {
        uint32_t *const turn = &s->turns[slot(m->turn)];
        uint32_t *const pair = &s->pairs[slot(m->turn + last * 0x9e3779b1u)];
        const uint32_t at = m->at, before = *pair ? *pair : *turn;
        last = m->turn;
        *turn = *pair = at + 1;
        /* Its records end at the same place whatever the target was. */
        if (done >= at + TL_STF_TARGET_BYTES || at >= stf.n)
            continue;
        if (__builtin_expect(at >= done + LONG, false)) {
            const struct found f = over(s, stf, at, (struct found){out, done, seen});
            out = f.out;
            done = f.done;
            seen = f.seen;
            if (done >= at + TL_STF_TARGET_BYTES)
                continue;
        }
        uint32_t begin = done > at ? done : at, back = at + 1 - before, stop = 0;
        if (before && before <= at) {
            stop = at + (uint32_t)same(stf.p + at - back, stf.p + at, end);
            /* It may differ before the end of the last match, and be equal after it. */
            if (__builtin_expect(stop < done, false))
                stop = begin + (uint32_t)same(stf.p + begin - back, stf.p + begin, end);
        }
        const uint32_t entry = entry_of(stf, at);
        uint32_t *const known = &s->entries[slot(m->entry)];
        const uint32_t known_at = *known;
        *known = entry + 1;
        if (stop < begin + LEAST) {
            if (!known_at || known_at > entry || entry < done || entry >= stf.n)
                continue;
            begin = entry;
            back = entry + 1 - known_at;
            stop = begin + (uint32_t)same(stf.p + begin - back, stf.p + begin, end);
            if (stop < begin + LEAST)
                continue;
        }
        *out++ =
            (ZSTD_Sequence){.offset = back, .litLength = begin - done, .matchLength = stop - begin};
        done = stop;
    }
    if (stf.n >= (size_t)done + LONG)
        out = over(s, stf, (uint32_t)stf.n, (struct found){out, done, seen}).out;
    return (size_t)(out - first);
}

static __attribute__((noinline)) struct found over_words(struct tl_search *s, struct tl_bytes stf,
                                                         uint32_t to, struct found f)
{
    return go_over(s, stf, to, f, same_words);
}

static size_t search_words(struct tl_search *s, struct tl_bytes stf,
                           const struct tl_stf_mark *marks, size_t n, ZSTD_Sequence *out)
{
    return search(s, stf, marks, n, out, same_words, over_words);
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_AVX2_TARGET)
static INLINE uint32_t equal_32(const uint8_t *a, const uint8_t *b)
{
    const __m256i x = _mm256_loadu_si256((const __m256i *)a);
    const __m256i y = _mm256_loadu_si256((const __m256i *)b);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, y));
}

TL_TARGET(TL_AVX2_TARGET)
static INLINE size_t same_avx2(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *const begin = b;
    for (; end - b >= 64; a += 64, b += 64) {
        const uint64_t differ = ~(equal_32(a, b) | (uint64_t)equal_32(a + 32, b + 32) << 32);
        if (differ)
            return (size_t)(b - begin) + (unsigned)__builtin_ctzll(differ);
    }
    return (size_t)(b - begin) + same_to(a, b, end);
}

TL_TARGET(TL_AVX2_TARGET)
static __attribute__((noinline)) struct found over_avx2(struct tl_search *s, struct tl_bytes stf,
                                                        uint32_t to, struct found f)
{
    return go_over(s, stf, to, f, same_avx2);
}

TL_TARGET(TL_AVX2_TARGET)
static size_t search_avx2(struct tl_search *s, struct tl_bytes stf, const struct tl_stf_mark *marks,
                          size_t n, ZSTD_Sequence *out)
{
    return search(s, stf, marks, n, out, same_avx2, over_avx2);
}

tl_search_run *tl_search_variant(enum tl_cpu level)
{
    return level >= TL_CPU_AVX2 ? search_avx2 : search_words;
}

#else

tl_search_run *tl_search_variant(enum tl_cpu level)
{
    return search_words;
}

#endif
