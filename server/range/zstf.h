/* SPDX-License-Identifier: MIT */
/* A range of a cut as a .zstf. Not thread-safe. */
#ifndef TL_RANGE_ZSTF_H
#define TL_RANGE_ZSTF_H

#include "lake_ranges.h"
#include "range/copied.h"
#include "range/rewritten.h"

#define TL_RANGE_PIECE  (128u << 10) /* bytes of a range returned at a time */
#define TL_RANGE_STORED (512u << 10) /* the same of stored bytes that are not read */

struct tl_range_zstf;

/* Reads `copy` or, if that is NULL, `flow`; both are borrowed. TL_NOMEM. */
TL_MUST_USE int tl_range_zstf_new(struct tl_range_zstf **out, struct tl_range_copy *copy,
                                  struct tl_range_flow *flow, struct tl_lake *lake);
/* Append the next TL_RANGE_PIECE bytes of the file, or slightly less. TL_EOF after the last. */
TL_MUST_USE int tl_range_zstf_next(struct tl_range_zstf *zstf, struct tl_buf *out,
                                   struct tl_fail *fail);
/* As tl_range_next_stored(). */
TL_MUST_USE int tl_range_zstf_stored(struct tl_range_zstf *zstf, struct tl_range_stored *out,
                                     struct tl_fail *fail);
void tl_range_zstf_free(struct tl_range_zstf *zstf); /* accepts NULL */

#endif
