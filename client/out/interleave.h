/* SPDX-License-Identifier: MIT */
/*
 * A capture's packets, each followed by the elements decoded from it, all streams in byte order:
 *
 *     1650 10 I_ASYNC
 *     1666 10 I_ADDR_L_64IS0 addr=0xffffffc000096a00 raw=9d80124b09c0ffffff
 *       cs.10 I ffffffc000096a00 b942c021
 *
 * An element is printed below the packet that it was decoded from, or below a later one if it was
 * reported before an element that precedes it. Pending data is kept in unnamed temporary files. Not
 * thread-safe.
 */
#ifndef TL_OUT_INTERLEAVE_H
#define TL_OUT_INTERLEAVE_H

#include "decode/decode.h"

struct tl_interleave;

#define TL_INTERLEAVE_RAW 32 /* maximum bytes shown of a packet */

TL_MUST_USE int tl_interleave_new(struct tl_interleave **out);
void tl_interleave_free(struct tl_interleave *interleave); /* accepts NULL */

/* As the members of the decoder's sink, with the same streams; NULL: the container itself.
 * TL_NOMEM; TL_IO: a temporary file cannot be created or written. */
TL_MUST_USE int tl_interleave_packet(struct tl_interleave *interleave,
                                     const struct tl_decode_stream *stream, const char *line);
TL_MUST_USE int tl_interleave_items(struct tl_interleave *interleave,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_item *items, size_t n);
TL_MUST_USE int tl_interleave_bytes(struct tl_interleave *interleave,
                                    const struct tl_decode_stream *stream,
                                    const struct tl_run *run);
/* Print everything to standard output. TL_IO. */
TL_MUST_USE int tl_interleave_print(struct tl_interleave *interleave);

#endif
