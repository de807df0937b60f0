/* SPDX-License-Identifier: MIT */
/* Of ranges (lake.h), what tests need. */
#ifndef TL_LAKE_RANGE_H
#define TL_LAKE_RANGE_H

#include "lake.h"

/* Write the range's STF anew, from its items, as if nothing of it could be copied: to compare with.
 * Before the first tl_range_next(). */
void tl_range_write_anew(struct tl_range *range);

#endif
