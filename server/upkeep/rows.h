/* SPDX-License-Identifier: MIT */
/* Rows of the catalog whose checksums do not fit: found and written anew, for verification. */
#ifndef TL_UPKEEP_ROWS_H
#define TL_UPKEEP_ROWS_H

#include "lake/lakeint.h"

/*
 * Check the rows of trace `id` ("": all rows, also of images and rules), and with `repair` write
 * them anew from the store's objects. Appends a line to `report` for each finding. Returns the
 * number of findings.
 */
TL_MUST_USE int tl_rows_verify(struct tl_lake *lake, const char *id, bool repair,
                               struct tl_buf *report, struct tl_fail *fail);

#endif
