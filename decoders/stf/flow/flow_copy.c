/* SPDX-License-Identifier: MIT */
/*
 * One function per instruction set and vector level, from the same inline code: the loop then has
 * no branches on either and keeps its state in registers.
 */
#include "stf/flow/flow_copy.h"

#include "base/target.h"

/* Separate functions, since the loop needs all registers. */
static TL_COPY_INLINE const uintptr_t *copy_steps(struct tl_stf_cursor *at, const uintptr_t *step,
                                                  const uintptr_t *end, uint8_t isa, bool odds,
                                                  tl_stf_copy_piece *piece)
{
    struct tl_stf_cursor here = *at;
    for (; step < end && tl_stf_copy_leads(&here, tl_path_block(*step), isa); step++)
        tl_stf_copy_step(&here, tl_path_block(*step), tl_path_taken(*step), odds, piece);
    *at = here;
    return step;
}

static TL_COPY_INLINE const uintptr_t *copy_path(struct tl_stf_cursor *at, const uintptr_t *step,
                                                 const uintptr_t *end, uint8_t isa,
                                                 tl_stf_copy_piece *piece)
{
    return tl_isa_is_x86((enum tl_isa)isa) ? copy_steps(at, step, end, isa, true, piece)
                                           : copy_steps(at, step, end, isa, false, piece);
}

static const uintptr_t *path_portable(struct tl_stf_cursor *at, const uintptr_t *step,
                                      const uintptr_t *end, uint8_t isa)
{
    return copy_path(at, step, end, isa, tl_stf_copy_portable);
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_AVX2_TARGET) static TL_COPY_INLINE void copy_avx2(uint8_t *out, const uint8_t *in)
{
    const __m256i first = _mm256_loadu_si256((const __m256i *)in);
    const __m256i second = _mm256_loadu_si256((const __m256i *)(in + 32));
    _mm256_storeu_si256((__m256i *)out, first);
    _mm256_storeu_si256((__m256i *)(out + 32), second);
}

TL_TARGET(TL_AVX2_TARGET)
static const uintptr_t *path_avx2(struct tl_stf_cursor *at, const uintptr_t *step,
                                  const uintptr_t *end, uint8_t isa)
{
    return copy_path(at, step, end, isa, copy_avx2);
}

tl_stf_copy_path *tl_stf_copy_variant(enum tl_cpu level)
{
    return level >= TL_CPU_AVX2 ? path_avx2 : path_portable;
}

#else

tl_stf_copy_path *tl_stf_copy_variant(enum tl_cpu level)
{
    return path_portable;
}

#endif
