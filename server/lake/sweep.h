/* SPDX-License-Identifier: MIT */
/*
 * Work that falls into pieces of some milliseconds, done by the calling thread and by those of the
 * lake's crew that are idle. Pieces are begun in their order.
 */
#ifndef TL_LAKE_SWEEP_H
#define TL_LAKE_SWEEP_H

#include "lake/lakeint.h"

/*
 * Does piece `i`. `worker` tells apart the threads that are at it at the same time: below
 * tl_sweep_workers(). A result < 0 ends the sweep.
 */
typedef int tl_sweep_piece(void *context, unsigned worker, size_t i, struct tl_fail *fail);

/* How many threads may be at it, at least 1. */
unsigned tl_sweep_workers(const struct tl_lake *lake);

/* Do pieces 0 to n - 1. Returns the first error met, or TL_CANCELLED where nobody wants the result
 * of the calling thread's work any more. */
TL_MUST_USE int tl_sweep(struct tl_lake *lake, size_t n, tl_sweep_piece *piece, void *context,
                         struct tl_fail *fail);

#endif
