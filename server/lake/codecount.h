/* SPDX-License-Identifier: MIT */
/*
 * How often code was run: runs of instructions one behind another, and taken branches between them.
 * For profiles that compilers read, and coverage. Not thread-safe.
 */
#ifndef TL_LAKE_CODECOUNT_H
#define TL_LAKE_CODECOUNT_H

#include "base/numbers.h"
#include "lake/lakeint.h"

#define TL_CODECOUNT_MOST (UINT32_C(1) << 22) /* different runs, and different branches */

struct tl_codecount {
    struct tl_numbers addresses; /* numbers of all that is named below */
    struct tl_numbers runs;      /* number of the first address << 32 | of the last */
    struct tl_numbers branches;  /* number of the source << 32 | of the destination */
    uint64_t *run_counts, *branch_counts;
    size_t cap_runs, cap_branches;
    struct tl_numbers
        blocks;             /* number of the first address << 32 | instructions: those looked at */
    struct tl_numbers ends; /* instructions in them that can change the flow, by address … */
    uint8_t *end_sizes;     /* … and their sizes */
    size_t cap_ends;
    uint64_t insns;
    bool truncated; /* there were more */
};

void tl_codecount_fini(struct tl_codecount *c);
/* Add what a cut executed at positions [from, to), looked through by all idle processors. */
TL_MUST_USE int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from,
                                 uint64_t to, struct tl_fail *fail);

/* Let runs end at each instruction that can change the flow, taken or not. TL_NOMEM. */
TL_MUST_USE int tl_codecount_split(struct tl_codecount *c);

#endif
