/* SPDX-License-Identifier: MIT */
/* How often code was run, of ranges: for profiles that compilers read, and coverage. */
#ifndef TL_LAKE_CODECOUNT_H
#define TL_LAKE_CODECOUNT_H

#include "lake/lakeint.h"
#include "store/codecount.h"

/*
 * Add what a cut executed at positions [from, to), looked through by all idle processors. What
 * stored shards executed is mostly counted already (kept.h).
 */
TL_MUST_USE int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from,
                                 uint64_t to, struct tl_fail *fail);

#endif
