/* SPDX-License-Identifier: MIT */
/*
 * How often code was run: runs of instructions one behind another, each of which ends at an
 * instruction that can change the flow, taken or not, or where a shard does; and taken branches
 * between them. For profiles that compilers read, and coverage. Not thread-safe.
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
    uint64_t insns;
    bool truncated; /* there were more */
};

void tl_codecount_fini(struct tl_codecount *c);
/* `n` more of a run, and of a branch, between two addresses. TL_NOMEM. */
TL_MUST_USE int tl_codecount_run(struct tl_codecount *c, uint64_t first, uint64_t last, uint64_t n);
TL_MUST_USE int tl_codecount_branch(struct tl_codecount *c, uint64_t from, uint64_t to, uint64_t n);

/*
 * Add what a cut executed at positions [from, to), looked through by all idle processors. What a
 * stored shard executed is counted once, and kept beside it (kept.h): whoever asks again gets that.
 */
TL_MUST_USE int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from,
                                 uint64_t to, struct tl_fail *fail);

#endif
