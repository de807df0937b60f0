/* SPDX-License-Identifier: MIT */
/* Search in what programs print, for TL_FIND_LINE. */
#ifndef TL_QUERY_SEEK_LINES_H
#define TL_QUERY_SEEK_LINES_H

#include "query/seek.h"

#define TL_LINE_PATTERN 256 /* bytes of a wanted text, at most */

/*
 * Report the lines that begin at a position from..to-1 (UINT64_MAX: or behind the last) and contain
 * the wanted text to the sink, in order. Returns its result < 0, TL_NOMEM, TL_IO, TL_BAD.
 */
TL_MUST_USE int tl_seek_lines(struct tl_seek *seek, uint64_t from, uint64_t to,
                              struct tl_fail *fail);

#endif
