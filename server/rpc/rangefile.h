/* SPDX-License-Identifier: MIT */
/*
 * A range of a stream as a file: either as written by the lake, or as JSON made from its lines. One
 * thread at a time.
 */
#ifndef TL_RPC_RANGEFILE_H
#define TL_RPC_RANGEFILE_H

#include "lake_filter.h"
#include "lake_ranges.h"

struct tl_rangefile;

/* Open. TL_FORMAT_LINES gives JSON. The request's strings are borrowed until it is closed. `filter`
 * NULL, or nothing in it: the whole range. Errors as tl_range_open() and tl_range_filter(). */
TL_MUST_USE int tl_rangefile_open(struct tl_lake *lake, const struct tl_range_request *request,
                                  const struct tl_range_filter *filter, struct tl_rangefile **out,
                                  struct tl_fail *fail);
/* First instruction and count, as resolved at open. */
void tl_rangefile_extent(const struct tl_rangefile *file, uint64_t *first, uint64_t *count);
/* Instructions that passed the filter so far. */
uint64_t tl_rangefile_kept(const struct tl_rangefile *file);
/* About the memory that an open range takes, with the pieces that wait to be sent. */
#define TL_RANGE_HOLDS (4u << 20)

/* Append the next piece to `out`; the concatenated pieces are the file. TL_EOF after the last. */
TL_MUST_USE int tl_rangefile_next(struct tl_rangefile *file, struct tl_buf *out,
                                  struct tl_fail *fail);
/* As tl_range_next_stored(). */
TL_MUST_USE int tl_rangefile_next_stored(struct tl_rangefile *file, struct tl_range_stored *out,
                                         struct tl_fail *fail);
void tl_rangefile_close(struct tl_rangefile *file); /* accepts NULL */

#endif
