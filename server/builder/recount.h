/* SPDX-License-Identifier: MIT */
/* Rebuilds the counts of a shard by reading it back. Not thread-safe. */
#ifndef TL_BUILDER_RECOUNT_H
#define TL_BUILDER_RECOUNT_H

#include "setup/setup.h"
#include "shard/walk.h"

/*
 * Rebuild the index of `view`, which is in memory, exclusively the caller's, and has all frames and
 * item logs. Required in its index: the row's number, first and n; each chunk's first, n, marker,
 * stf and at; each frame's marker. Everything else about chunks, pages, tiles and the row is
 * recomputed, with `pcs` also the frames' pcs. `image` names functions; may be NULL. TL_BAD: frames
 * and logs contradict these values or each other. TL_NOMEM.
 */
TL_MUST_USE int tl_view_recount(struct tl_view *view, enum tl_protocol protocol,
                                const struct tl_image *image, bool pcs, struct tl_fail *fail);

/*
 * Statistics of the part of a shard inside a range, as the index of a shard with just that part
 * would have them; taken from the shard's own index if the range covers it, unless that is to be
 * counted, too: `counted`. `image` as above. The caller frees `*out`, also after an error. TL_BAD,
 * TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_view_stats(struct tl_view *view, const struct tl_walk_range *range,
                              const struct tl_image *image, bool counted,
                              struct tl_shard_stats *out, struct tl_fail *fail);

#endif
