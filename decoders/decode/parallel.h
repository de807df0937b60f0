/* SPDX-License-Identifier: MIT */
/*
 * A decode that uses several threads: streams are split at their synchronisation points, and what
 * comes of the parts is stitched to exactly what one thread makes of the whole (docs/decoder.md).
 *
 * The object is used like any other decode, by one thread at a time: the sink is called only by
 * the thread that pushes, but for its `digest` and `help`, and all that a push completes is
 * delivered before it returns. So only long pushes gain: those below TL_PARALLEL_LEAST bytes are
 * decoded by the calling thread alone. The other threads sleep between two pushes, unless there is
 * to `help`, and end with tl_decode_free().
 */
#ifndef TL_DECODE_PARALLEL_H
#define TL_DECODE_PARALLEL_H

#include "decode/decode.h"

#define TL_PARALLEL_LEAST ((size_t)64 << 10)
#define TL_PARALLEL_PUSH  ((size_t)4 << 20) /* bytes of a push that gains what can be gained */
#define TL_PARALLEL_MAX   64u               /* threads */

/*
 * As tl_decode_new(), with up to `threads` threads, the calling one included. 0 or 1, and formats
 * that cannot be split: the calling thread alone.
 */
TL_MUST_USE int tl_decode_new_threads(struct tl_decode **out, const struct tl_setup *setup,
                                      const struct tl_image *image,
                                      const struct tl_decode_sink *sink, unsigned threads,
                                      struct tl_fail *fail);

#endif
