/* SPDX-License-Identifier: MIT */
/*
 * A stream of a container: creates its decoder and forwards the decoder's output to the container's
 * sink, labelled with the stream. Not thread-safe.
 */
#ifndef TL_DECODE_STREAM_OUT_H
#define TL_DECODE_STREAM_OUT_H

#include "decode/doubts.h"
#include "decode/ops.h"

/* All zero except the members marked as set by the owner. */
struct tl_stream_out {
    struct tl_decode_stream stream;    /* set by the owner */
    const struct tl_decode_sink *sink; /* the container's sink; borrowed; set by the owner */
    /* Set by the owner: called for each loss before the sink. May be NULL. */
    void (*lose)(struct tl_stream_out *out, uint64_t offset, uint64_t bytes);
    /* Set by the owner: receives the same items after the sink. NULL: unused. If set, digests are
     * not used. */
    int (*also)(struct tl_stream_out *out, const struct tl_item *items, size_t n);
    bool heard;                   /* something was delivered since the owner cleared it */
    const struct tl_image *image; /* of the decoder; borrowed; NULL: none */
    struct tl_doubts doubts;
    struct tl_doubts_way way; /* of the items, in order */
};

/*
 * Create a decoder for out->stream.source (not NULL) as configured in `decode`; multi-threaded if
 * the format supports it. `image` is borrowed for its life. Returns TL_UNSUPPORTED with the reason
 * in `fail`, or TL_NOMEM.
 */
TL_MUST_USE int tl_stream_out_decoder(struct tl_stream_out *out, struct tl_decode *decode,
                                      const struct tl_image *image,
                                      struct tl_stream_decoder **decoder, struct tl_fail *fail);

/* The sink of a decoder whose output `out` forwards, with the options of `decode`. */
struct tl_stream_sink tl_stream_out_sink(struct tl_stream_out *out, const struct tl_decode *decode);

/* Deliver the owner's own items or losses as if they came from the decoder. */
TL_MUST_USE int tl_stream_out_items(struct tl_stream_out *out, const struct tl_item *items,
                                    size_t n);
TL_MUST_USE int tl_stream_out_loss(struct tl_stream_out *out, const char *reason, uint64_t offset,
                                   uint64_t bytes);

/* At the end: tell the sink, as a loss, which ELF files are not what ran. Returns what the sink
 * returned. */
TL_MUST_USE int tl_stream_out_doubt(struct tl_stream_out *out);

#endif
