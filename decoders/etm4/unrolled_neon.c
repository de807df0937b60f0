/* SPDX-License-Identifier: MIT */
/* The kernel of AArch64: blocks of 64 bytes, one bit each of a general register. Its steps are in
 * unrolled_neon_body.h. */
#include "etm4/unrolled_neon_body.h"

#if defined(__aarch64__) && !defined(__AARCH64EB__)

TL_KERNEL(tl_etm4_neon, 64)

#endif
