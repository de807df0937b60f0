/* SPDX-License-Identifier: MIT */
/*
 * Finds more repeats, between those of the writer. The sequences depend on nothing but the bytes
 * and the repeats, since the bytes of a shard must not depend on the machine.
 */
#include "shard/search.h"

#include "stf/record.h"

#include <stdbool.h>

#define MIN  TL_SEARCH_MIN
#define LONG 32 /* minimum bytes between matches to be scanned */

#define INLINE inline __attribute__((always_inline))

static INLINE size_t same_to(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *const begin = b;
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

/* Length of the match between `a` and `b` (after it), up to `end`. It is unpredictable, hence few
 * branches. */
static INLINE size_t same_bytes(const uint8_t *a, const uint8_t *b, const uint8_t *end)
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

/*
 * Scan what lies between the last match and `to`, where a repeat begins, or everything ends.
 * `complete`: matches may extend beyond, and over repeats. Record by record; elsewhere the step
 * grows while nothing is found, so that data without repeats costs little.
 */
static __attribute__((noinline)) struct found go_over(struct tl_search *s, struct tl_bytes stf,
                                                      uint32_t to, bool complete, struct found f)
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
        at += (uint32_t)same_bytes(stf.p + at - back, stf.p + at, end);
        *f.out++ =
            (ZSTD_Sequence){.offset = back, .litLength = begin - f.done, .matchLength = at - begin};
        f.done = at;
    }
    f.seen = at;
    return f;
}

size_t tl_search_run(struct tl_search *s, struct tl_bytes stf, const struct tl_stf_repeat *repeats,
                     size_t n, bool complete, ZSTD_Sequence *out)
{
    struct found f = {.out = out};
    memset(s->words, 0, sizeof s->words);
    for (const struct tl_stf_repeat *m = repeats; m < repeats + n; m++) {
        if (__builtin_expect(m->at >= f.done + LONG, false))
            f = go_over(s, stf, m->at, complete, f);
        const uint32_t begin = f.done > m->at ? f.done : m->at, end = m->at + m->n;
        if (end < begin + (complete ? MIN : 1))
            continue;
        *f.out++ = (ZSTD_Sequence){
            .offset = m->back, .litLength = begin - f.done, .matchLength = end - begin};
        f.done = end;
    }
    if (stf.n >= (size_t)f.done + LONG)
        f = go_over(s, stf, (uint32_t)stf.n, complete, f);
    return (size_t)(f.out - out);
}
