/* SPDX-License-Identifier: MIT */
/* Test interface of ranges (lake.h). */
#ifndef TL_RANGE_RANGE_H
#define TL_RANGE_RANGE_H

#include "lake_ranges.h"

/* Write the range's STF entirely from its items, without copying, for comparison. Call before the
 * first tl_range_next(). */
void tl_range_write_anew(struct tl_range *range);

#endif
