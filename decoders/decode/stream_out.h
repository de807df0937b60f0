/* SPDX-License-Identifier: MIT */
/*
 * A container's stream: makes its decoder, and passes on what that delivers to the container's
 * sink, with the stream's name on it. Not thread-safe.
 */
#ifndef TL_DECODE_STREAM_OUT_H
#define TL_DECODE_STREAM_OUT_H

#include "decode/ops.h"

/* Zeroed, but for the owner's members. */
struct tl_stream_out {
    struct tl_decode_stream stream;    /* the owner's */
    const struct tl_decode_sink *sink; /* the container's; borrowed */
    /* The owner's: told of each loss in front of the sink. May be NULL. */
    void (*lose)(struct tl_stream_out *out, uint64_t offset, uint64_t bytes);
    /* The owner's: delivers the same items elsewhere, behind the sink. NULL: it does not; else
     * there are no digests. */
    int (*also)(struct tl_stream_out *out, const struct tl_item *items, size_t n);
    bool heard; /* something was delivered since the owner set it to false */
};

/*
 * A decoder of out->stream.source, which is not NULL, as `decode` is set up: by several threads
 * where that can be. `image` is borrowed for its life. TL_UNSUPPORTED: it cannot be decoded,
 * `fail` says why; TL_NOMEM.
 */
TL_MUST_USE int tl_stream_out_decoder(struct tl_stream_out *out, struct tl_decode *decode,
                                      const struct tl_image *image,
                                      struct tl_stream_decoder **decoder, struct tl_fail *fail);

/* What the owner delivers itself, as that decoder would. */
TL_MUST_USE int tl_stream_out_items(struct tl_stream_out *out, const struct tl_item *items,
                                    size_t n);
TL_MUST_USE int tl_stream_out_loss(struct tl_stream_out *out, const char *reason, uint64_t offset,
                                   uint64_t bytes);

#endif
