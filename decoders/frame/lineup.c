/* SPDX-License-Identifier: MIT */
#include "frame/lineup.h"

#include "frame/group.h"

KERNEL uint8_t *end_of(struct tl_lined *lined)
{
    return lined->bytes + lined->groups * TL_LINEUP_BYTES;
}

/* A group has been lined up; its IDs are `ids`, a bit for each byte. */
KERNEL void add_group(struct tl_lined *lined, uint64_t ids)
{
    const size_t first = lined->groups++ * TL_LINEUP_BYTES;
    lined->quiet = ids ? 0 : lined->quiet + 1;
    for (; ids; ids &= ids - 1)
        lined->at[lined->n_ids++] = (uint16_t)(first + (unsigned)__builtin_ctzll(ids));
}

KERNEL void lineup_by(lineup_group *line_up, struct tl_lined *lined, const uint8_t *in,
                      size_t groups, size_t quiet)
{
    struct group group;
    uint64_t ids;
    while (lined->groups < groups && lined->quiet < quiet &&
           line_up(&group, in + lined->groups * GROUP, &ids)) {
        store_group(end_of(lined), &group);
        add_group(lined, ids);
    }
}

static void lineup_scalar(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    lineup_by(line_up_scalar, lined, in, groups, quiet);
}

#if defined(__x86_64__)

TL_TARGET(TL_SSE42_TARGET)
static void lineup_sse42(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    lineup_by(line_up_sse42, lined, in, groups, quiet);
}

/* The even bytes of two frames, the first of which begins at `from`. */
#define EVEN_FROM(from)                                                                            \
    from, from + 2, from + 4, from + 6, from + 8, from + 10, from + 12, from + 14, from + 15,      \
        from + 17, from + 19, from + 21, from + 23, from + 25, from + 27, from + 29

/*
 * List the IDs of four frames, which are lined up from `first` on. Each frame's are made one row
 * without the places between that are none, eight are stored, and those that are too many
 * overwritten: what is behind the last one is of no meaning. Returns the end.
 */
AVX2 KERNEL uint16_t *list_ids(uint16_t *at, struct two a, struct two b, uint32_t first)
{
    const __m256i low = _mm256_sub_epi16(_mm256_setr_epi16(EVEN_FROM(0)), a.late);
    const __m256i high = _mm256_sub_epi16(_mm256_setr_epi16(EVEN_FROM(2 * AUX)), b.late);
    static const uint8_t order[4] = {0, 2, 1, 3}; /* packing goes by halves of vectors */
    const __m128i base = _mm_set1_epi16((short)first);
    uint64_t is_id[4], place[4];
    _mm256_storeu_si256((__m256i *)is_id, _mm256_packs_epi16(a.is_id, b.is_id));
    _mm256_storeu_si256((__m256i *)place, _mm256_packus_epi16(low, high));
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        const uint64_t ids = is_id[order[k]];
        const __m128i row = _mm_cvtsi64_si128((int64_t)_pext_u64(place[order[k]], ids));
        _mm_storeu_si128((__m128i *)at, _mm_add_epi16(_mm_cvtepu8_epi16(row), base));
        at += (unsigned)__builtin_popcountll(ids) / 8;
    }
    return at;
}

AVX2 static void lineup_avx2(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t most)
{
    size_t g = lined->groups, quiet = lined->quiet;
    uint8_t *out = end_of(lined);
    uint16_t *at = lined->at + lined->n_ids;
    uint32_t first = (uint32_t)(g * TL_LINEUP_BYTES);
    for (in += g * GROUP; g < groups && quiet < most; g++, in += GROUP) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)in);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(in + 2 * FRAME));
        if (has_ff_avx2(low, high))
            break;
        const struct two a = line_up_two(low), b = line_up_two(high);
        store_two(out, a.bytes);
        store_two(out + 2 * AUX, b.bytes);
        uint16_t *const end = list_ids(at, a, b, first);
        quiet = end > at ? 0 : quiet + 1;
        at = end;
        out += TL_LINEUP_BYTES;
        first += TL_LINEUP_BYTES;
    }
    lined->groups = g;
    lined->quiet = quiet;
    lined->n_ids = (size_t)(at - lined->at);
}

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    static tl_lineup *const variants[TL_CPU_LEVELS] = {
        [TL_CPU_SCALAR] = lineup_scalar, [TL_CPU_NEON] = lineup_scalar,
        [TL_CPU_SSE42] = lineup_sse42,   [TL_CPU_AVX2] = lineup_avx2,
        [TL_CPU_AVX512] = lineup_avx2,
    };
    return variants[level];
}

#elif defined(__aarch64__)

static void lineup_neon(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet)
{
    lineup_by(line_up_neon, lined, in, groups, quiet);
}

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    return level == TL_CPU_SCALAR ? lineup_scalar : lineup_neon;
}

#else

tl_lineup *tl_lineup_variant(enum tl_cpu level)
{
    return lineup_scalar;
}

#endif
