/* SPDX-License-Identifier: MIT */
/* Duration of missing trace, by reason. */
#ifndef TL_QUERY_LOSSES_H
#define TL_QUERY_LOSSES_H

#include "lake/cut.h"
#include "lake_stats.h"

/*
 * Add the trace missing before positions [from, to] of a lane to lost[TL_GAP_KINDS], by enum
 * tl_gap. An interval extends from the last timestamp before a gap to the first one after it, an
 * upper bound of the loss. One with gaps for several reasons counts for each of them; gaps without
 * a timestamp on both sides have no length. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_cut_lost(const struct tl_cut *cut, uint64_t from, uint64_t to,
                            struct tl_stats_lost *lost, struct tl_fail *fail);

#endif
