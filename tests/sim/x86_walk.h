/* SPDX-License-Identifier: MIT */
/*
 * A walk at random through much 64-bit code, as Intel PT traces it: functions of a few hundred
 * bytes, of instructions as compilers make them, with a conditional branch after every few of them,
 * and an indirect jump to any function at the end. Same seed, same walk.
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

/* `visits` functions are gone through, of `functions`. Without memory the program ends. */
void tl_sim_x86_walk_init(struct tl_sim_x86_walk *walk, uint64_t seed, unsigned functions,
                          unsigned visits);
void tl_sim_x86_walk_fini(struct tl_sim_x86_walk *walk);

#endif
