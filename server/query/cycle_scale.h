/* SPDX-License-Identifier: MIT */
/*
 * A scale of cycles: positions against the cycles that the trace has counted, as tl_scale is for
 * time. Each count is a point; between two of them cycles are spread by instructions. What a count
 * says of a place where trace is missing is a break.
 */
#ifndef TL_QUERY_CYCLE_SCALE_H
#define TL_QUERY_CYCLE_SCALE_H

#include "lake/scale.h"

/*
 * Create a scale that is right for positions [from, to]. Its values count from some place before
 * them: only differences say anything. Without points: there are no counts. Close with
 * tl_scale_close(), also after an error. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_cycle_scale_open(struct tl_scale *out, const struct tl_cut *cut, uint64_t from,
                                    uint64_t to, struct tl_fail *fail);

#endif
