/* SPDX-License-Identifier: MIT */
/*
 * The next virtual shard of a range, made by the crew while its reader works on the one before.
 * Nobody waits for the crew to begin: where it has not, the reader makes the shard itself. Owned
 * and called by one thread.
 */
#ifndef TL_LAKE_AHEAD_H
#define TL_LAKE_AHEAD_H

#include "lake/lakeint.h"

struct tl_ahead;

/* NULL: there is no crew, or no memory: nothing is made ahead then. */
struct tl_ahead *tl_ahead_new(struct tl_crew *crew);
/* What is being made is given up. NULL is fine. */
void tl_ahead_free(struct tl_ahead *ahead);

/* Have frames [0, to) of a virtual shard made, plain, of which a reference is kept. What was wanted
 * before is not any more. */
void tl_ahead_want(struct tl_ahead *ahead, struct tl_view *view, size_t to);
/* What was wanted of this shard, if that has been begun: as of tl_view_part(), waited for, with a
 * reference. NULL: it has not, or failed. */
struct tl_view *tl_ahead_take(struct tl_ahead *ahead, const struct tl_view *view);

#endif
