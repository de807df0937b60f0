/* SPDX-License-Identifier: MIT */
/* Timestamps of RISC-V trace. Header only; pure functions. */
#ifndef TL_RISCV_TIMESTAMP_H
#define TL_RISCV_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>

#define TL_RISCV_WIDE_TIME 32 /* bits */

/*
 * The time whose low `width` bits (1 to 64) are `ticks`, the first one that is not before `last`:
 * the counter wrapped once at most. `last` is 0 if it is not known. A wide counter that goes back
 * by less than half of its range has begun again, rather than run for the rest of it: the time is
 * before `last`.
 */
static inline uint64_t tl_riscv_unwrap(uint64_t last, uint64_t ticks, unsigned width)
{
    if (width >= 64)
        return ticks;
    const uint64_t wrap = UINT64_C(1) << width;
    const uint64_t time = (last & ~(wrap - 1)) | (ticks & (wrap - 1));
    const bool wrapped = width < TL_RISCV_WIDE_TIME || last - time >= wrap / 2;
    return time < last && wrapped ? time + wrap : time;
}

#endif
