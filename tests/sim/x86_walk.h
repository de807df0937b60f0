/* SPDX-License-Identifier: MIT */
/*
 * A random walk through a large amount of 64-bit code, as Intel PT traces it: functions of a few
 * hundred bytes with instructions like those of compilers, a conditional branch after every few
 * instructions, and an indirect jump to a random function at the end. The same seed gives the same
 * walk.
 */
#ifndef TL_SIM_X86_WALK_H
#define TL_SIM_X86_WALK_H

#include "base/buf.h"

#define TL_SIM_WALK_BASE     0x400000u
#define TL_SIM_WALK_FUNCTION 512u /* bytes */

struct tl_sim_x86_walk {
    struct tl_buf code; /* at TL_SIM_WALK_BASE */
    struct tl_buf trace;
    uint64_t insns; /* executed */
};

/* The walk makes `visits` visits to `functions` functions. If memory runs out, the program ends. */
void tl_sim_x86_walk_init(struct tl_sim_x86_walk *walk, uint64_t seed, unsigned functions,
                          unsigned visits);
void tl_sim_x86_walk_fini(struct tl_sim_x86_walk *walk);

#endif
