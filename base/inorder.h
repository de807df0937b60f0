/* SPDX-License-Identifier: MIT */
/*
 * Pieces of work in order: the crew makes the next ones while the caller uses the present one.
 * What the crew has not begun is made by the caller, so that a busy crew delays nothing. Called by
 * one thread.
 */
#ifndef TL_BASE_INORDER_H
#define TL_BASE_INORDER_H

#include "base/err.h"

#include <stddef.h>

struct tl_crew;

/*
 * Make piece `i` into `*out`, on any thread and beside others. A result < 0 of the crew's is not
 * told: the piece is made again by the caller. `*out` is NULL before, and after an error.
 */
typedef int tl_inorder_make(void *context, size_t i, void **out, struct tl_fail *fail);

struct tl_inorder;

#define TL_INORDER_MOST 8 /* pieces ahead of the caller */

/*
 * Begin with pieces 0 to n - 1, of which the crew makes at most `most` (1 to TL_INORDER_MOST)
 * ahead. `crew` NULL: nobody helps. `drop` frees a piece; it accepts NULL. NULL: no memory.
 */
struct tl_inorder *tl_inorder_new(struct tl_crew *crew, size_t n, size_t most,
                                  tl_inorder_make *make, void (*drop)(void *piece), void *context);
/* Gives up what is being made. Accepts NULL. */
void tl_inorder_free(struct tl_inorder *order);

/* Take the next piece, which the caller then owns. TL_EOF behind the last; else errors of `make`.
 */
TL_MUST_USE int tl_inorder_take(struct tl_inorder *order, void **out, struct tl_fail *fail);

#endif
