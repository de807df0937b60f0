/* SPDX-License-Identifier: MIT */
/*
 * A capture's packets, with what came of them below each, all streams in the order of the bytes:
 *
 *     1650 10 I_ASYNC
 *     1666 10 I_ADDR_L_64IS0 addr=0xffffffc000096a00 raw=9d80124b09c0ffffff
 *       cs.10 I ffffffc000096a00 b942c021
 *
 * An element stands below the packet that said so, or below a later one where it was told before an
 * element in front of it. What waits lies in unnamed temporary files. Not thread-safe.
 */
#ifndef TL_CLI_INTERLEAVE_H
#define TL_CLI_INTERLEAVE_H

#include "decode/decode.h"

struct tl_interleave;

#define TL_INTERLEAVE_RAW 32 /* bytes of a packet that are shown at most */

TL_MUST_USE int tl_interleave_new(struct tl_interleave **out);
void tl_interleave_free(struct tl_interleave *interleave); /* NULL is fine */

/* As the sink's, with the same streams; NULL: the container's own. TL_NOMEM; TL_IO: no temporary
 * file can be made or written. */
TL_MUST_USE int tl_interleave_packet(struct tl_interleave *interleave,
                                     const struct tl_decode_stream *stream, const char *line);
TL_MUST_USE int tl_interleave_items(struct tl_interleave *interleave,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_item *items, size_t n);
TL_MUST_USE int tl_interleave_bytes(struct tl_interleave *interleave,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_run *run);
/* Print all to standard output. TL_IO. */
TL_MUST_USE int tl_interleave_print(struct tl_interleave *interleave);

#endif
