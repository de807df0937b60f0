/* SPDX-License-Identifier: MIT */
#include "frame/run.h"

#include "frame/deal.h"
#include "frame/tpiu_parts.h"
#include "simd/target.h"

#define GROUP (4 * FRAME)

/* Each returns the end of what it has put to `out`. */

/* Of frames that are adjacent, the first of which is at `base`. */
static uint16_t *place_adjacent(uint16_t *out, uint64_t mask, unsigned base)
{
    for (; mask; mask &= mask - 1)
        *out++ = (uint16_t)(base + (unsigned)__builtin_ctzll(mask));
    return out;
}

static uint16_t *place_apart(uint16_t *out, uint64_t mask, const struct tl_run_frame *frames)
{
    for (uint64_t left = mask; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        const struct tl_run_frame *const frame = &frames[i / FRAME];
        const unsigned footer = i % FRAME < frame->cut ? 0 : TL_RUN_FOOTER;
        *out++ = (uint16_t)(frame->at + i % FRAME + footer);
    }
    return out;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* As the loop in tl_run_place() with place_adjacent(). */
TL_TARGET(TL_AVX512_TARGET)
static uint16_t *place_groups_avx512(const struct tl_run_map *map, unsigned *groups)
{
    const uint64_t *const mask = map->share->mask;
    const __m512i ascending = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint16_t *out = map->place;
    unsigned g = 0;
    for (const uint16_t *const end = out + map->n; out < end; g++) {
        const __m512i base = _mm512_set1_epi16((short)(GROUP * g));
        const __m512i in_group = _mm512_maskz_compress_epi8(mask[g], ascending);
        const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(in_group));
        const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(in_group, 1));
        _mm512_storeu_si512(out, _mm512_add_epi16(low, base));
        _mm512_storeu_si512(out + 32, _mm512_add_epi16(high, base));
        out += __builtin_popcountll(mask[g]);
    }
    *groups = g;
    return out;
}

/* The same with BMI2: the numbers of the bits of a mask, eight at once. */
TL_TARGET(TL_AVX2_TARGET)
static uint16_t *place_groups_avx2(const struct tl_run_map *map, unsigned *groups)
{
    const uint64_t ones = 0x0101010101010101u, ascending = 0x0706050403020100u;
    const uint64_t *const mask = map->share->mask;
    uint16_t *out = map->place;
    unsigned g = 0;
    for (const uint16_t *const end = out + map->n; out < end; g++)
        for (unsigned i = 0; i < GROUP; i += 8) {
            const uint64_t bits = mask[g] >> i & 0xff;
            const uint64_t set = _pext_u64(ascending, _pdep_u64(bits, ones) * 0xff);
            const __m128i place = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)set));
            _mm_storeu_si128((__m128i *)out,
                             _mm_add_epi16(place, _mm_set1_epi16((short)(GROUP * g + i))));
            out += __builtin_popcountll(bits);
        }
    *groups = g;
    return out;
}

static uint16_t *place_groups(const struct tl_run_map *map, unsigned *groups)
{
    const enum tl_cpu level = tl_cpu_level();
    if (level == TL_CPU_AVX512)
        return place_groups_avx512(map, groups);
    return level >= TL_CPU_AVX2 ? place_groups_avx2(map, groups) : map->place;
}

#else

static uint16_t *place_groups(const struct tl_run_map *map, unsigned *groups)
{
    return map->place;
}

#endif

void tl_run_place(struct tl_run_map *map)
{
    const uint64_t *const mask = map->share->mask;
    uint16_t *out = map->place;
    const uint16_t *const end = out + map->n;
    unsigned g = 0;
    tl_deal_masks(map->deal);
    if (!map->frame)
        out = place_groups(map, &g);
    for (; out < end; g++)
        out = map->frame ? place_apart(out, mask[g], map->frame + 4 * (size_t)g)
                         : place_adjacent(out, mask[g], GROUP * g);
    /* Behind the last data byte of a frame in one piece is the next frame. */
    const unsigned last = GROUP - 1 - (unsigned)__builtin_clzll(mask[g - 1]);
    const bool cut = map->frame && map->frame[4 * (g - 1) + last / FRAME].cut < FRAME;
    *out = (uint16_t)(out[-1] + (last % FRAME == AUX - 1 && !cut ? 2 : 1));
    map->placed = true;
}
