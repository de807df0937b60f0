/* SPDX-License-Identifier: MIT */
/*
 * Shared by the decoders of software trace: packet listing, loss of synchronisation, and item
 * output. Header only; not thread-safe.
 */
#ifndef TL_DECODE_SOFT_H
#define TL_DECODE_SOFT_H

#include "decode/ops.h"
#include "flow/batch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Embed as the decoder's first member. */
struct tl_soft {
    struct tl_stream_decoder base;
    struct tl_stream_sink sink;
    char id[8];           /* trace ID, for listings */
    int rc;               /* first failure of the packet or loss callback */
    const char *lost_why; /* why synchronisation was lost */
    uint64_t lost_at;     /* offset of the first lost byte */
    uint64_t stamp;       /* last time of the source's clock; 0: none */
    struct tl_item_batch out;
};

/*
 * Allocate a decoder of `size` bytes whose first member is a struct tl_soft. NULL: out of memory.
 */
static inline void *tl_soft_new(size_t size, const struct tl_stream_ops *ops,
                                const struct tl_source *source, const struct tl_stream_sink *sink)
{
    struct tl_soft *const s = calloc(1, size);
    if (!s)
        return NULL;
    s->base.ops = ops;
    s->sink = *sink;
    tl_item_batch_init(&s->out, sink->items, sink->context);
    s->lost_why = TL_LOSS_NOT_SYNC;
    snprintf(s->id, sizeof s->id, "%02x", source->id & 0x7f);
    return s;
}

static inline void tl_soft_destroy(struct tl_stream_decoder *decoder)
{
    free(decoder);
}

/* List a packet, if listing is enabled. `fields` may be empty. */
static inline void tl_soft_list(struct tl_soft *s, uint64_t offset, const char *name,
                                const char *fields)
{
    if (!s->sink.packet || s->rc < 0)
        return;
    char line[160];
    snprintf(line, sizeof line, "%" PRIu64 " %s %s%s%s", offset, s->id, name, *fields ? " " : "",
             fields);
    s->rc = s->sink.packet(s->sink.context, line);
}

/*
 * Report the `bytes` lost since lost_at. Call when synchronisation is regained or the stream ends.
 */
static inline void tl_soft_report_loss(struct tl_soft *s, const char *packet, uint64_t bytes)
{
    if (!bytes)
        return;
    char fields[48];
    snprintf(fields, sizeof fields, "bytes=%" PRIu64, bytes);
    tl_soft_list(s, s->lost_at, packet, fields);
    if (s->rc >= 0)
        s->rc = s->sink.loss(s->sink.context, s->lost_why, s->lost_at, bytes);
    struct tl_item *const gap = tl_item_batch_add(&s->out, TL_ITEM_GAP, s->lost_at);
    const bool missing = strcmp(s->lost_why, TL_LOSS_NO_END) == 0;
    gap->sub = tl_loss_is_fault(s->lost_why) && !missing ? TL_GAP_BAD_PACKET : TL_GAP_SYNC;
}

/* At the stream's end: of the last packet only these bytes are there, lost for the reason `cut`. */
static inline void tl_soft_cut(struct tl_soft *s, const char *cut, uint64_t offset, uint64_t bytes)
{
    if (bytes > 0 && s->rc >= 0)
        s->rc = s->sink.loss(s->sink.context, cut, offset, bytes);
}

/* Append a NOTE: `time` begins a new time segment. */
static inline void tl_soft_restart(struct tl_soft *s, uint64_t time, uint64_t offset)
{
    tl_item_batch_restart(&s->out, s->stamp, time, offset);
    s->stamp = 0;
    if (s->rc >= 0)
        s->rc = s->sink.loss(s->sink.context, TL_LOSS_TIME_RESTART, offset, 0);
}

/* Append a TIME item of a clock, after a NOTE if that has begun again; `inexact`: flags
 * TL_ITEM_INEXACT. */
static inline void tl_soft_time(struct tl_soft *s, enum tl_time clock, uint64_t time,
                                unsigned inexact, uint64_t offset)
{
    if (tl_time_restarts(s->stamp, time))
        tl_soft_restart(s, time, offset);
    s->stamp = time;
    struct tl_item *const item = tl_item_batch_add(&s->out, TL_ITEM_TIME, offset);
    item->sub = (uint16_t)clock;
    item->value = time;
    item->flags = (uint8_t)(TL_ITEM_HAS_VALUE | inexact);
}

/* Append a NOTE of at most 47 characters. */
TL_PRINTF(3, 4)
static inline void tl_soft_note(struct tl_soft *s, uint64_t offset, const char *format, ...)
{
    enum { SIZE = 48 };
    char *const text = tl_item_batch_store(&s->out, SIZE);
    struct tl_item *const item = tl_item_batch_add(&s->out, TL_ITEM_NOTE, offset);
    va_list args;
    va_start(args, format);
    vsnprintf(text, SIZE, format, args);
    va_end(args);
    item->text = text;
}

/* Save or restore the synchronisation state. `reasons` lists all possible values of lost_why. */
static inline void tl_soft_state(struct tl_soft *s, struct tl_state *state,
                                 const char *const *reasons, uint8_t n)
{
    tl_state_text(state, &s->lost_why, reasons, n);
    tl_state_check(state, s->lost_why != NULL);
    tl_state_u64(state, &s->lost_at);
    tl_state_u64(state, &s->stamp);
}

/* Deliver items at the end of a push. Returns the first failure. */
static inline int tl_soft_flush(struct tl_soft *s)
{
    const int rc = tl_item_batch_flush(&s->out);
    return rc < 0 ? rc : s->rc;
}

#endif
