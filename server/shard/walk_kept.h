/* SPDX-License-Identifier: MIT */
/*
 * Blocks that a walk keeps from chunk to chunk. Programs repeat themselves: where the bytes of the
 * records from an address on are those of a kept block, but for the last instruction's destination,
 * the block is the same, and nothing of it needs to be read again. For walk.c alone.
 */
#ifndef TL_SHARD_WALK_KEPT_H
#define TL_SHARD_WALK_KEPT_H

#include "shard/walk.h"

/* A chunk begins: what was kept stays, unless there is too much of it. TL_NOMEM. */
TL_MUST_USE int tl_walk_kept_begin(struct tl_walk *walk);
void tl_walk_kept_free(struct tl_walk_kept *kept);

/* An item that may change what is visible at an address; `now` is behind it. */
void tl_walk_kept_pass(struct tl_walk *walk, const struct tl_item *item,
                       const struct tl_flow_now *now);
/* The function at an address; TL_NO_FUNCTION without an image. */
uint32_t tl_walk_kept_function(struct tl_walk *walk, const struct tl_flow_now *now, uint64_t pc);

/* The block that the walk is at, if it is kept and has at most `n` instructions: the walk is then
 * behind it, and its branch was taken. Else NULL. */
const struct tl_block *tl_walk_kept_take(struct tl_walk *walk, const struct tl_flow_now *now,
                                         uint64_t n);
/* Keep a block, of which the walk has just read the last instruction, whose group has `last` bytes.
 * It is not kept where its records do not begin and end as those of most blocks do, or if there is
 * no memory. */
void tl_walk_keep(struct tl_walk *walk, const struct tl_flow_now *now, const struct tl_block *block,
                  size_t last);

#endif
