/* SPDX-License-Identifier: MIT */
/* Statistical profiles: of samples of the program counter instead of instructions. */
#ifndef TL_QUERY_SAMPLES_H
#define TL_QUERY_SAMPLES_H

#include "lake/cut.h"
#include "shard/calltree.h"
#include "shard/codecount.h"

/*
 * Add the samples at positions [from, to) of a stream without flow: each counts for the function
 * that it is in, below the handlers that are active as far as the stream tells. `*asleep` is
 * increased by those for which the processor slept. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_samples_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from,
                               uint64_t to, uint64_t *asleep, struct tl_fail *fail);

/*
 * Add what samples of operations tell of code: taken branches, and runs that ended at the sample,
 * from the target of the branch before. Each counts once. Errors as above.
 */
TL_MUST_USE int tl_samples_code(struct tl_codecount *counts, const struct tl_cut *cut,
                                uint64_t from, uint64_t to, struct tl_fail *fail);

#endif
