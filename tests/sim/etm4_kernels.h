/* SPDX-License-Identifier: MIT */
/* The unrolled packetizer by unroll factor: all that the one body can be compiled with. */
#ifndef TL_SIM_ETM4_KERNELS_H
#define TL_SIM_ETM4_KERNELS_H

#include "etm4/unrolled.h"

/* All kernels of this build's processors, including those that this machine cannot run. The last
 * one is by factor the one that decoders use. */
const struct tl_etm4_kernel *tl_sim_etm4_kernels(size_t *n);

#endif
