/* SPDX-License-Identifier: MIT */
/* Counts a shard again by reading it as it was written. Not thread-safe. */
#ifndef TL_STORE_RECOUNT_H
#define TL_STORE_RECOUNT_H

#include "setup/setup.h"
#include "store/walk.h"

/*
 * `view` is in memory, the caller's alone, and has all frames and item logs. Known of its index
 * are the row's number, first and n; each chunk's first, n, marker, stf and at; each frame's
 * marker. All else that is told of chunks, pages, tiles and the row is made anew, and where
 * `pcs`, frames' pcs too. `image` names functions; may be NULL. TL_BAD: frames and logs
 * contradict that or each other. TL_NOMEM.
 */
TL_MUST_USE int tl_view_recount(struct tl_view *view, enum tl_protocol protocol,
                                const struct tl_image *image, bool pcs, struct tl_fail *fail);

/*
 * What of a range lies in a shard, as the index of a shard of nothing else would tell it; by the
 * shard's own index where it is all of it. `image` as above. `*out` is the caller's, also after an
 * error. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_view_stats(struct tl_view *view, const struct tl_walk_range *range,
                              const struct tl_image *image, struct tl_shard_stats *out,
                              struct tl_fail *fail);

#endif
