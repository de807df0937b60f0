/* SPDX-License-Identifier: MIT */
/*
 * Statistics that are counted instruction by instruction: of streams whose blocks do not know what
 * they consist of (STF that others made, branches alone, software trace). They are counted from
 * shards (_view()), or while shards are built (_begin(),
 * _block(), _item()), with the same result, which _tell() gives. Not thread-safe.
 *
 * What is counted by function counts where a piece of code begins: behind a gap in the addresses,
 * a branch that was taken, an instruction that is not plain, an item, or where a chunk begins.
 */
#ifndef TL_STORE_INSN_STATS_H
#define TL_STORE_INSN_STATS_H

#include "store/walk.h"

/* Has a stream of this protocol to be counted so? */
bool tl_insn_stats_wanted(enum tl_protocol protocol);

/* What a record of an instruction's group is counted as: a place in tl_shard_stats.records, or < 0.
 */
int tl_insn_stats_record(uint8_t type);
/* The name of those at place `i`. Static storage. */
const char *tl_insn_stats_record_name(unsigned i);

struct tl_insn_stats;

/* `image` is borrowed, and may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_insn_stats_new(struct tl_insn_stats **out, const struct tl_image *image,
                                  enum tl_protocol protocol);
void tl_insn_stats_free(struct tl_insn_stats *insn_stats); /* NULL is fine */

/* Count what lies in a range of a shard. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_insn_stats_view(struct tl_insn_stats *insn_stats, struct tl_view *view,
                                   const struct tl_walk_range *range, struct tl_fail *fail);

/* What was counted since the last call; begins anew. `told` is false where memory did not do. It is
 * the caller's: tl_shard_stats_fini(). */
void tl_insn_stats_tell(struct tl_insn_stats *insn_stats, struct tl_shard_stats *out);

/* ---- while a shard is built --------------------------------------------------------------- */

/* A shard begins. */
void tl_insn_stats_begin(struct tl_insn_stats *insn_stats, const struct tl_flow_now *now);
/* A chunk begins, or its log has something else in front of the instructions to come. */
void tl_insn_stats_mark(struct tl_insn_stats *insn_stats);
/* The next `n` instructions of a block item, from `first` on, which is the block's byte `at`. */
void tl_insn_stats_block(struct tl_insn_stats *insn_stats, const struct tl_item *item,
                         uint32_t first, uint32_t at, uint32_t n);
/* An item that is no block. */
void tl_insn_stats_item(struct tl_insn_stats *insn_stats, const struct tl_item *item);

/* What it counts between two pushes, into bytes or, of a new one of the same image and protocol,
 * from them. */
void tl_insn_stats_state(struct tl_insn_stats *insn_stats, struct tl_state *state);

#endif
