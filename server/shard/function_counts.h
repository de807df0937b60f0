/* SPDX-License-Identifier: MIT */
/*
 * How many positions each function of a shard has: every one of them, where buckets (bucket.h) keep
 * the most frequent ones, so that sums of any number of shards have the right winner.
 *
 * They are pyramids of struct tl_time_bucket whose unit is the position. A shard has two levels: of
 * TL_LEVEL_STORED those of its buckets which it has not as a whole, or which were counted in parts,
 * and all of the level above. Code without a symbol is left out. Not thread-safe.
 */
#ifndef TL_SHARD_FUNCTION_COUNTS_H
#define TL_SHARD_FUNCTION_COUNTS_H

#include "shard/bucket.h"
#include "shard/timebucket.h"

#define TL_COUNTS_LEVEL (TL_LEVEL_STORED + 1)

/* Begin a shard's. */
void tl_function_counts_begin(struct tl_time_pyramid *counts);
/* Read a shard's, written by tl_time_pyramid_encode(). TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_function_counts_read(struct tl_time_pyramid *out, struct tl_varint_reader *in);
/* Add functions of a bucket of TL_LEVEL_STORED or TL_COUNTS_LEVEL that is not before the last one.
 * `shares` are in any order, none twice, and are sorted. TL_NOMEM. */
TL_MUST_USE int tl_function_counts_add(struct tl_time_pyramid *counts, unsigned level,
                                       uint64_t number, struct tl_time_share *shares, size_t n);
/* Has a bucket of TL_LEVEL_STORED its own counts? */
bool tl_function_counts_has(const struct tl_time_pyramid *counts, uint64_t number);

#endif
