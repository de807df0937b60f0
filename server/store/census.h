/* SPDX-License-Identifier: MIT */
/*
 * What a stream consists of, counted instruction by instruction: for streams whose blocks do not
 * know it (STF that others made, branches alone, software trace), and for ranges that are no whole
 * shards. Counted from shards, or while they are built, with the same result. Not thread-safe.
 *
 * What is counted by function counts where a piece of code begins: behind a gap in the addresses,
 * a branch that was taken, an instruction that is not plain, an item, or where a chunk begins.
 */
#ifndef TL_STORE_CENSUS_H
#define TL_STORE_CENSUS_H

#include "store/walk.h"

/* Has a stream of this protocol to be counted so? */
bool tl_census_wanted(enum tl_protocol protocol);

/* What a record of an instruction's group is counted as: a place in tl_tally.records, or < 0. */
int tl_census_record(uint8_t type);
/* The name of those at place `i`. Static storage. */
const char *tl_census_record_name(unsigned i);

struct tl_census;

/* `image` is borrowed, and may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_census_new(struct tl_census **out, const struct tl_image *image,
                              enum tl_protocol protocol);
void tl_census_free(struct tl_census *census); /* NULL is fine */

/* Count what lies in a range of a shard. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_census_view(struct tl_census *census, struct tl_view *view,
                               const struct tl_walk_range *range, struct tl_fail *fail);

/* What was counted, told and counted, or neither where memory did not do; begins anew. The tally is
 * the caller's. */
void tl_census_tell(struct tl_census *census, struct tl_tally *out);

/* ---- while a shard is built --------------------------------------------------------------- */

/* A shard begins. */
void tl_census_begin(struct tl_census *census, const struct tl_flow_now *now);
/* A chunk begins, or its log has something else in front of the instructions to come. */
void tl_census_mark(struct tl_census *census);
/* The next `n` instructions of a block item, from `first` on, which is the block's byte `at`. */
void tl_census_block(struct tl_census *census, const struct tl_item *item, uint32_t first,
                     uint32_t at, uint32_t n);
/* An item that is no block. */
void tl_census_item(struct tl_census *census, const struct tl_item *item);

/* What it counts between two pushes, into bytes or, of a new one of the same image and protocol,
 * from them. */
void tl_census_state(struct tl_census *census, struct tl_state *state);

#endif
