/* SPDX-License-Identifier: MIT */
/*
 * Parallel work in pieces of some milliseconds, done by the calling thread and idle threads of the
 * lake's crew. Pieces are started in order.
 */
#ifndef TL_QUERY_SWEEP_H
#define TL_QUERY_SWEEP_H

#include "lake/lakeint.h"

/*
 * Process piece `i`. `worker` distinguishes concurrent threads: less than tl_sweep_workers(). A
 * result < 0 ends the sweep.
 */
typedef int tl_sweep_piece(void *context, unsigned worker, size_t i, struct tl_fail *fail);

/* Maximum number of concurrent threads, at least 1. */
unsigned tl_sweep_workers(const struct tl_lake *lake);

/* Process pieces 0 to n - 1. Returns the first error, or TL_CANCELLED if the calling thread's work
 * was cancelled. */
TL_MUST_USE int tl_sweep(struct tl_lake *lake, size_t n, tl_sweep_piece *piece, void *context,
                         struct tl_fail *fail);

#endif
