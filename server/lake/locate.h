/* SPDX-License-Identifier: MIT */
/* Positions of a snapshot's lane in all units. Thread-safe as the snapshot (lake/cut.h). */
#ifndef TL_LAKE_LOCATE_H
#define TL_LAKE_LOCATE_H

#include "lake/cut.h"

/* Convert a position to all units. */
TL_MUST_USE int tl_cut_locate(const struct tl_cut *cut, uint64_t position, struct tl_position *out,
                              struct tl_fail *fail);
/* For questions by time. TL_USAGE: the stream has instructions, and no timestamps. */
TL_MUST_USE int tl_cut_need_time(const struct tl_cut *cut, struct tl_fail *fail);
/* Replace TL_UNIT_NS by the same unit as the stream shows it. TL_USAGE: its clock rate is unknown.
 */
TL_MUST_USE int tl_cut_unit(const struct tl_cut *cut, enum tl_range_unit *unit,
                            struct tl_fail *fail);
/* Convert a range of any unit to positions. TL_USAGE: the stream has no time. */
TL_MUST_USE int tl_cut_resolve(const struct tl_cut *cut, enum tl_range_unit unit, uint64_t from,
                               uint64_t to, uint64_t *first, uint64_t *end, struct tl_fail *fail);

#endif
