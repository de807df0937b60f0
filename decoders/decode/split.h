/* SPDX-License-Identifier: MIT */
/*
 * One stream decoded by several threads, for any format that tells how to find a synchronisation
 * point: cut in front of such points, the parts decoded at the same time, their items delivered in
 * order by the thread that pushes.
 *
 * The pushing thread decodes where the stream stands. Parts further on begin as if the stream did.
 * Behind what the trace says again at that point, the seam, its decoder's state is kept (what the
 * format saves of it for a checkpoint). When the stream gets to the part, it is decoded from what
 * was in front up to the seam; if both states are the same bytes, both would say the same of
 * whatever comes: what was decoded ahead is delivered from there on, and the stream goes on where
 * the part ended. Where the states differ, or a part turned out too big to be kept, it is decoded
 * once more: that costs time, and nothing else. When the stream gets to a part that is still being
 * decoded ahead, the rest of that part is left to the pushing thread.
 *
 * The same items as by one thread, whatever the threads do.
 *
 * Serial is: finding synchronisation points, the way to the seam of each part, and the sink. All
 * else is shared by the crew's threads.
 */
#ifndef TL_DECODE_SPLIT_H
#define TL_DECODE_SPLIT_H

#include "decode/ops.h"

/* A push (of one stream) below so many bytes is decoded by the pushing thread alone. */
#define TL_SPLIT_LEAST ((size_t)64 << 10)

/*
 * As `create` of `ops`, which has `split`. `share` is borrowed: whose crew is NULL at the time of a
 * push has the pushing thread alone, and memory of the others is freed with the next flush.
 */
TL_MUST_USE int tl_split_new(struct tl_stream_decoder **out, const struct tl_stream_ops *ops,
                             const struct tl_source *source, const struct tl_image *image,
                             const struct tl_stream_sink *sink, struct tl_share *share,
                             struct tl_fail *fail);

/* For tests: how often a part that was decoded ahead was of use. */
uint64_t tl_split_met(const struct tl_stream_decoder *decoder);

#endif
