/* SPDX-License-Identifier: MIT */
/* Interface between the two halves of the AVX2 kernels: stream state calls trace state. */
#ifndef TL_ETM4_UNROLLED_AVX2_H
#define TL_ETM4_UNROLLED_AVX2_H

#include "etm4/unrolled_parts.h"

/* Resolve all addresses found so far. */
void tl_etm4_avx2_resolve(struct tl_etm4_packetizer *p);

#endif
