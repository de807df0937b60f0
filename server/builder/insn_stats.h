/* SPDX-License-Identifier: MIT */
/*
 * Statistics counted instruction by instruction, for streams whose blocks do not know their
 * instructions (imported STF, branch-only streams, software trace). They are counted from shards
 * (_view()), or while shards are built (_begin(), _pause(), _block(), _item()), with the same
 * result, which _report() returns. Not thread-safe.
 *
 * Instructions count for the function in which their piece of code begins. One begins where the
 * address does not follow the one before, after a taken branch, after an instruction other than
 * TL_MIX_PLAIN, after an item, and at the begin of a chunk.
 */
#ifndef TL_BUILDER_INSN_STATS_H
#define TL_BUILDER_INSN_STATS_H

#include "shard/walk.h"

/* Does a stream of this protocol need these statistics? */
bool tl_insn_stats_wanted(enum tl_protocol protocol);

struct tl_insn_stats;

/* `image` is borrowed, and may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_insn_stats_new(struct tl_insn_stats **out, const struct tl_image *image,
                                  enum tl_protocol protocol);
void tl_insn_stats_free(struct tl_insn_stats *insn_stats); /* accepts NULL */

/* Count a range of a shard. TL_BAD: the shard is damaged; TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_insn_stats_view(struct tl_insn_stats *insn_stats, struct tl_view *view,
                                   const struct tl_walk_range *range, struct tl_fail *fail);

/* Return the counts since the last call, and reset them. `reported` is false if memory ran out. The
 * caller frees the result: tl_shard_stats_fini(). */
void tl_insn_stats_report(struct tl_insn_stats *insn_stats, struct tl_shard_stats *out);

/* ---- while a shard is built --------------------------------------------------------------- */

/* Begin a shard. */
void tl_insn_stats_begin(struct tl_insn_stats *insn_stats, const struct tl_flow_now *now);
/* Begin a chunk, or a log entry before the instructions that follow. */
void tl_insn_stats_pause(struct tl_insn_stats *insn_stats);
/*
 * Count `n` instructions of a block item, beginning with number `first` at byte `at` of the block.
 */
void tl_insn_stats_block(struct tl_insn_stats *insn_stats, const struct tl_item *item,
                         uint32_t first, uint32_t at, uint32_t n);
/* Count an item that is not a block. */
void tl_insn_stats_item(struct tl_insn_stats *insn_stats, const struct tl_item *item);

/* Save the state between two pushes, or load it into a new object for the same image and
 * protocol. */
void tl_insn_stats_state(struct tl_insn_stats *insn_stats, struct tl_state *state);

#endif
