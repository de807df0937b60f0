/* SPDX-License-Identifier: MIT */
/*
 * Builds the next virtual shard of a range on the crew while the reader works on the current one.
 * The reader does not wait for the crew to begin: if it has not, the reader builds the shard
 * itself. Owned and called by one thread.
 */
#ifndef TL_RANGE_AHEAD_H
#define TL_RANGE_AHEAD_H

#include "lake/lakeint.h"

struct tl_ahead;

/* NULL: there is no crew or no memory; then nothing is built ahead. */
struct tl_ahead *tl_ahead_new(struct tl_crew *crew);
/* Abandons a shard being built. NULL is fine. */
void tl_ahead_free(struct tl_ahead *ahead);

/* Request frames [0, to) of a virtual shard, uncompressed; keeps a reference to the view. Replaces
 * an earlier request. */
void tl_ahead_want(struct tl_ahead *ahead, struct tl_view *view, size_t to);
/* The result of the request for this shard, if the crew has begun it: waits for it, and returns it
 * like tl_view_part(), with a reference. NULL: it has not begun, or failed. */
struct tl_view *tl_ahead_take(struct tl_ahead *ahead, const struct tl_view *view);

#endif
