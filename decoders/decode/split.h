/* SPDX-License-Identifier: MIT */
/*
 * Decode one stream with several threads, for any format that can find its synchronisation points:
 * the input is cut before such points, the parts are decoded concurrently, and their items are
 * delivered in order by the pushing thread.
 *
 * The pushing thread decodes at the stream's current position. Later parts are decoded ahead, each
 * as if the stream began there. Once the decoder has read what the trace repeats at that point (the
 * resync point), its state is recorded, in the form the format saves for a checkpoint. When the
 * stream reaches the part, the bytes up to the resync point are decoded from the true state; if the
 * two states there are identical, both decoders would produce the same output from there on: the
 * items decoded ahead are delivered, and the stream continues where the part ended. If the states
 * differ, or the part's items grew too large to keep, the part is decoded again, which only costs
 * time. If the stream reaches a part that is still being decoded ahead, the pushing thread decodes
 * the rest of that part.
 *
 * The items are the same as with one thread, independent of scheduling.
 *
 * Only finding synchronisation points, decoding up to each resync point, and the sink are serial.
 * Everything else runs on the crew's threads.
 */
#ifndef TL_DECODE_SPLIT_H
#define TL_DECODE_SPLIT_H

#include "decode/ops.h"

/* A push (of one stream) smaller than this many bytes is decoded by the pushing thread alone. */
#define TL_SPLIT_MIN ((size_t)64 << 10)

/*
 * As `create` of `ops`, whose `split` must be set. `share` is borrowed. While share->crew is NULL,
 * pushes use the pushing thread only, and the next flush frees the memory of the other threads.
 */
TL_MUST_USE int tl_split_new(struct tl_stream_decoder **out, const struct tl_stream_ops *ops,
                             const struct tl_source *source, const struct tl_image *image,
                             const struct tl_stream_sink *sink, struct tl_share *share,
                             struct tl_fail *fail);

/* For tests: number of parts whose items decoded ahead were used. */
uint64_t tl_split_met(const struct tl_stream_decoder *decoder);
/* For tests, from within the sink: have the crew's threads done all that they can before the
 * pushing thread goes on? */
bool tl_split_is_ahead(struct tl_stream_decoder *decoder);

#endif
