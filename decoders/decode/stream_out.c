/* SPDX-License-Identifier: MIT */
/*
 * Every delivery ends in tl_give_way(), since few bytes of trace may stand for many items. The sink
 * of a decoder has only the functions that the container's sink has, so that decoders do no work
 * that nobody asked for.
 */
#include "decode/stream_out.h"

#include "base/cancel.h"
#include "decode/split.h"
#include "image/elfs.h"

#include <stdio.h>

int tl_stream_out_items(struct tl_stream_out *o, const struct tl_item *items, size_t n)
{
    o->heard = true;
    tl_doubts_look(&o->doubts, o->image, items, n, &o->way);
    int rc = o->sink->items ? o->sink->items(o->sink->context, &o->stream, items, n) : TL_OK;
    if (rc >= 0 && o->also)
        rc = o->also(o, items, n);
    return rc < 0 ? rc : tl_give_way();
}

int tl_stream_out_loss(struct tl_stream_out *o, const char *reason, uint64_t offset, uint64_t bytes)
{
    const struct tl_decode_loss loss = {
        &o->stream, reason, offset, bytes, tl_loss_is_fault(reason),
    };
    if (strcmp(reason, TL_LOSS_MISFIT) == 0)
        tl_doubts_misfit(&o->doubts);
    if (o->lose)
        o->lose(o, offset, bytes);
    return o->sink->loss ? o->sink->loss(o->sink->context, &loss) : TL_OK;
}

int tl_stream_out_doubt(struct tl_stream_out *o)
{
    int rc = TL_OK;
    for (int64_t i = 0; rc >= 0 && (i = tl_doubts_next(&o->doubts, o->image, (size_t)i)) >= 0;
         i++) {
        char reason[160];
        snprintf(reason, sizeof reason,
                 "%.80s is not the program that ran: the trace takes other ways than its code",
                 tl_image_elf_name(o->image, (size_t)i));
        rc = tl_stream_out_loss(o, reason, 0, 0);
    }
    return rc;
}

/* ---- as a decoder's sink ------------------------------------------------------------------- */

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    return tl_stream_out_items(context, items, n);
}

static int on_digest(void *context, struct tl_buf *out, const struct tl_item *items, size_t n)
{
    struct tl_stream_out *const o = context;
    struct tl_doubts_way way = {0};
    tl_doubts_look(&o->doubts, o->image, items, n, &way);
    return o->sink->digest(o->sink->context, &o->stream, out, items, n);
}

static int on_digested(void *context, struct tl_bytes digest)
{
    struct tl_stream_out *const o = context;
    o->heard = true;
    const int rc = o->sink->digested(o->sink->context, &o->stream, digest);
    return rc < 0 ? rc : tl_give_way();
}

static int on_packet(void *context, const char *line)
{
    const struct tl_stream_out *const o = context;
    return o->sink->packet(o->sink->context, &o->stream, line);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return tl_stream_out_loss(context, reason, offset, bytes);
}

struct tl_stream_sink tl_stream_out_sink(struct tl_stream_out *out, const struct tl_decode *decode)
{
    const bool digests = out->sink->digest && !out->also;
    return (struct tl_stream_sink){
        .context = out,
        .items = on_items,
        .packet = out->sink->packet ? on_packet : NULL,
        .loss = on_loss,
        .paths = decode->paths,
        .code = decode->code,
        .digest = digests ? on_digest : NULL,
        .digested = digests ? on_digested : NULL,
    };
}

int tl_stream_out_decoder(struct tl_stream_out *out, struct tl_decode *decode,
                          const struct tl_image *image, struct tl_stream_decoder **decoder,
                          struct tl_fail *fail)
{
    const struct tl_source *const source = out->stream.source;
    const struct tl_stream_ops *const ops = tl_format_of(source->protocol)->ops;
    const struct tl_stream_sink sink = tl_stream_out_sink(out, decode);
    *decoder = NULL;
    if (!ops)
        return tl_fail_set(fail, TL_UNSUPPORTED, "trace source %s%sof type '%s' is not supported",
                           source->device, source->device[0] ? " " : "",
                           source->type[0] ? source->type : "none");
    const int rc = ops->split && !sink.packet
                       ? tl_split_new(decoder, ops, source, image, &sink, &decode->share, fail)
                       : ops->create(decoder, source, image, &sink, fail);
    if (rc < 0)
        *decoder = NULL;
    return rc;
}
