/* SPDX-License-Identifier: MIT */
/* The kernel of x86-64: blocks of 64 bytes, the largest ones, take the fewest instructions. */
#include "etm4/unrolled_avx2_body.h"

#if defined(__x86_64__)

TL_TARGET_BEGIN(TL_AVX2_TARGET)

TL_KERNEL(tl_etm4_avx2, 64)

TL_TARGET_END

#endif
