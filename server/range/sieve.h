/* SPDX-License-Identifier: MIT */
/*
 * Filters the items of a walk by mode, process and thread. Chunks that begin in a state that is not
 * wanted, and whose index says that it does not change there, are not read. Not thread-safe.
 *
 * A stretch that is kept begins, after others were left out, with G off, O and the state there: M,
 * C, A switch and T, as far as they are known. So the text from a position on does not depend on
 * where the range began.
 */
#ifndef TL_RANGE_SIEVE_H
#define TL_RANGE_SIEVE_H

#include "lake/cut.h"
#include "lake_filter.h"

struct tl_sieve;

/* Create a sieve for a walk that has just begun, at `walk->range.from`. TL_USAGE: no such mode;
 * errors as tl_cut_walk_next(). */
TL_MUST_USE int tl_sieve_new(struct tl_sieve **out, const struct tl_range_filter *filter,
                             const struct tl_cut_walk *walk, struct tl_fail *fail);
void tl_sieve_free(struct tl_sieve *sieve); /* accepts NULL */
/* As tl_cut_walk_next(), with only the items that are kept, perhaps none, in walk->walk. */
TL_MUST_USE int tl_sieve_next(struct tl_sieve *sieve, struct tl_cut_walk *walk,
                              struct tl_fail *fail);
/* Instructions kept so far. */
uint64_t tl_sieve_kept(const struct tl_sieve *sieve);

#endif
