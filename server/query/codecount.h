/* SPDX-License-Identifier: MIT */
/* Execution counts of code in ranges: for compiler profiles and coverage. */
#ifndef TL_QUERY_CODECOUNT_H
#define TL_QUERY_CODECOUNT_H

#include "lake/cut.h"
#include "shard/codecount.h"

/*
 * Add the code executed at positions [from, to) of a cut, using all idle processors. Stored shards
 * have mostly been counted already (query/kept.h).
 */
TL_MUST_USE int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from,
                                 uint64_t to, struct tl_fail *fail);

#endif
