/* SPDX-License-Identifier: MIT */
/*
 * One ETMv4 stream decoded by several threads: cut in front of A-Syncs, the parts decoded at the
 * same time, their items delivered in order by the thread that pushes.
 *
 * The pushing thread decodes where the stream stands. Parts further on begin without knowing
 * anything; when their turn comes, the decode of what was in front goes on into them until both
 * agree (etm4/seam.h), usually a few packets far, and what was decoded ahead is delivered from
 * there on. Where they never agree, or a part turned out too big to be kept, it goes on to the
 * part's end: that costs time, and nothing else. When the stream gets to a part that is still
 * being decoded ahead, the rest of that part is left to the pushing thread.
 *
 * The same items as by one thread, whatever the threads do; only how blocks are grouped in PATH
 * items may differ.
 */
#ifndef TL_ETM4_SPLIT_H
#define TL_ETM4_SPLIT_H

#include "decode/ops.h"

/* As create_threads of struct tl_stream_ops, with `threads` > 1, the calling one included. */
TL_MUST_USE int tl_etm4_split_new(struct tl_stream_decoder **out, const struct tl_source *source,
                                  const struct tl_image *image, const struct tl_stream_sink *sink,
                                  unsigned threads, struct tl_item_room **rooms,
                                  struct tl_fail *fail);

#endif
