/* SPDX-License-Identifier: MIT */
/* A range of a cut as a .zstf. Not thread-safe. */
#ifndef TL_LAKE_RANGEZSTF_H
#define TL_LAKE_RANGEZSTF_H

#include "lake/rangecopy.h"
#include "lake/rangeflow.h"

struct tl_range_zstf;

/* Either `copy` or, if that is NULL, `flow` is read; both are borrowed. TL_NOMEM. */
TL_MUST_USE int tl_range_zstf_new(struct tl_range_zstf **out, struct tl_range_copy *copy,
                                  struct tl_range_flow *flow, struct tl_backend *backend);
/* Append the next bytes of the file, about 128 KiB. TL_EOF behind the last. */
TL_MUST_USE int tl_range_zstf_next(struct tl_range_zstf *zstf, struct tl_buf *out,
                                   struct tl_fail *fail);
void tl_range_zstf_free(struct tl_range_zstf *zstf); /* NULL is fine */

#endif
