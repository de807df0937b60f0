/* SPDX-License-Identifier: MIT */
/*
 * Finds repeats between the writer's marks, with variants for different processors. All variants
 * give the same sequences, since the bytes of a shard must not depend on the machine.
 */
#include "shard/search.h"

#include "base/target.h"
#include "stf/record.h"

#include <stdbool.h>

#define MIN  TL_SEARCH_MIN
#define LONG 32 /* minimum bytes between matches to be scanned */

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

/* Scan what lies between the last match and `to`, where a mark begins, or everything ends.
 * `complete`: matches may extend beyond, and over marks. */
typedef struct found go_over_run(struct tl_search *s, struct tl_bytes stf, uint32_t to,
                                 bool complete, struct found f);

/*
 * Scan record by record. Elsewhere the step grows while nothing is found, so that data without
 * repeats costs little.
 */
static INLINE struct found go_over(struct tl_search *s, struct tl_bytes stf, uint32_t to,
                                   bool complete, struct found f, same_bytes *same)
{
    const struct tl_search_span here = complete ? (struct tl_search_span){0, (uint32_t)stf.n}
                                                : (struct tl_search_span){f.done, to};
    uint32_t at = f.done > f.seen ? f.done : f.seen;
    while (at < to && at + MIN <= here.end) {
        const uint64_t word = tl_le64(stf.p + at);
        const uint64_t slot = word * 0x9e3779b97f4a7c15u >> (64 - TL_SEARCH_BITS);
        const uint32_t known = s->words[slot];
        const struct tl_search_span there = complete ? here : s->spans[slot];
        s->words[slot] = at + 1;
        if (!complete)
            s->spans[slot] = here;
        if (known == 0 || tl_le64(stf.p + known - 1) != word) {
            const uint32_t step = steps[stf.p[at]];
            at += step ? step : 1 + (at - f.done) / 64;
            continue;
        }
        const uint32_t back = at + 1 - known, room = there.end + back;
        const uint8_t *const end = stf.p + (room < here.end ? room : here.end);
        uint32_t begin = at;
        while (begin > f.done && begin > there.begin + back &&
               stf.p[begin - 1] == stf.p[begin - 1 - back])
            begin--;
        at += MIN;
        at += (uint32_t)same(stf.p + at - back, stf.p + at, end);
        *f.out++ =
            (ZSTD_Sequence){.offset = back, .litLength = begin - f.done, .matchLength = at - begin};
        f.done = at;
    }
    f.seen = at;
    return f;
}

static INLINE size_t search(struct tl_search *s, struct tl_bytes stf,
                            const struct tl_stf_mark *marks, size_t n, bool complete,
                            ZSTD_Sequence *out, go_over_run *over)
{
    struct found f = {.out = out};
    memset(s->words, 0, sizeof s->words);
    for (const struct tl_stf_mark *m = marks; m < marks + n; m++) {
        if (__builtin_expect(m->at >= f.done + LONG, false))
            f = over(s, stf, m->at, complete, f);
        const uint32_t begin = f.done > m->at ? f.done : m->at, end = m->at + m->n;
        if (end < begin + (complete ? MIN : 1))
            continue;
        *f.out++ = (ZSTD_Sequence){
            .offset = m->back, .litLength = begin - f.done, .matchLength = end - begin};
        f.done = end;
    }
    if (stf.n >= (size_t)f.done + LONG)
        f = over(s, stf, (uint32_t)stf.n, complete, f);
    return (size_t)(f.out - out);
}

static __attribute__((noinline)) struct found over_words(struct tl_search *s, struct tl_bytes stf,
                                                         uint32_t to, bool complete, struct found f)
{
    return go_over(s, stf, to, complete, f, same_words);
}

static size_t search_words(struct tl_search *s, struct tl_bytes stf,
                           const struct tl_stf_mark *marks, size_t n, bool complete,
                           ZSTD_Sequence *out)
{
    return search(s, stf, marks, n, complete, out, over_words);
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
                                                        uint32_t to, bool complete, struct found f)
{
    return go_over(s, stf, to, complete, f, same_avx2);
}

TL_TARGET(TL_AVX2_TARGET)
static size_t search_avx2(struct tl_search *s, struct tl_bytes stf, const struct tl_stf_mark *marks,
                          size_t n, bool complete, ZSTD_Sequence *out)
{
    return search(s, stf, marks, n, complete, out, over_avx2);
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
