/* SPDX-License-Identifier: MIT */
/*
 * Bytes are collected in a buffer that holds a whole window, and a frame is delivered only from a
 * place at which all of the window fits. A single frame proves nothing: almost any byte is the
 * header of one.
 */
#include "riscv/etrace_deframe.h"

#include "decode/ops.h"

enum { PATIENCE = 1024 /* bytes in which payloads as usual are looked for */ };

static const char NO_FRAME[] = "bytes are no E-Trace packets";
static const char MISSING[] = "packets are missing";

void tl_etrace_deframe_init(struct tl_etrace_deframe *d, const struct tl_etrace_envelope *envelope,
                            const struct tl_etrace_deframe_sink *sink)
{
    *d = (struct tl_etrace_deframe){
        .envelope = *envelope, .sink = *sink, .searching = true, .fresh = true};
}

/* Offset in the capture of byte `at` of the buffer. */
static uint64_t place_of(const struct tl_etrace_deframe *d, size_t at)
{
    return d->sink.place ? d->sink.place(d->sink.context, d->at + at) : d->at + at;
}

/* The frame at byte `at`, if it ends before byte `end`. */
static int read_at(const struct tl_etrace_deframe *d, size_t at, size_t end,
                   struct tl_etrace_frame *out)
{
    const struct tl_bytes in = {d->buffer + at, end - at};
    const int rc = tl_etrace_frame_read(out, &d->envelope, in);
    out->offset = place_of(d, at);
    return rc;
}

static enum tl_etrace_sense judge(const struct tl_etrace_deframe *d,
                                  const struct tl_etrace_frame *frame, bool strict)
{
    if (frame->is_bad)
        return TL_ETRACE_NONSENSE;
    return frame->payload.n ? d->sink.judge(d->sink.context, frame, strict) : TL_ETRACE_SENSE;
}

/* Do all frames in `window` bytes from byte `at` on make sense? One new source may be there.
 * Records of one size may begin at any byte by their length alone, but elsewhere their times go
 * back. */
static bool fits(const struct tl_etrace_deframe *d, size_t at, size_t window, bool strict)
{
    const size_t end = d->n - at < window ? d->n : at + window;
    struct tl_etrace_frame frame;
    bool any = false, stranger = false, indexed = false;
    uint16_t index = 0, src = 0;
    uint64_t time = 0;
    while (at < end) {
        const int size = read_at(d, at, end, &frame);
        if (size < 0)
            return any;
        const enum tl_etrace_sense sense = judge(d, &frame, strict);
        if (sense == TL_ETRACE_NONSENSE ||
            (sense == TL_ETRACE_STRANGER && stranger && src != frame.src))
            return false;
        if (sense == TL_ETRACE_STRANGER) {
            stranger = true;
            src = frame.src;
        }
        if (d->envelope.wrapping == TL_ETRACE_INDEXED && frame.payload.n) {
            if (indexed && frame.index != index)
                return false;
            indexed = true;
            index = (uint16_t)(frame.index + 1);
        }
        if (d->envelope.wrapping == TL_ETRACE_RECORDS && frame.payload.n) {
            if (frame.time < time)
                return false;
            time = frame.time;
        }
        any = true;
        at += (size_t)size;
    }
    return any;
}

static int report(struct tl_etrace_deframe *d, const char *reason)
{
    const uint64_t lost = d->lost;
    d->lost = 0;
    d->has_index = false;
    return lost ? d->sink.loss(d->sink.context, reason, d->lost_at, lost) : TL_OK;
}

/* Look for a place to go on. Returns the bytes to skip, `*found` if it is behind them; TL_AGAIN. */
static int search(struct tl_etrace_deframe *d, size_t at, bool last, bool *found)
{
    const size_t rest = d->n - at;
    const size_t window = d->fresh ? TL_ETRACE_FIRST : TL_ETRACE_WINDOW + d->first;
    if (rest == 0 || (!last && rest < window))
        return TL_AGAIN;
    if (d->fresh) {
        d->fresh = false;
        *found = fits(d, at, TL_ETRACE_FIRST, false);
        return 0;
    }
    if (d->first) {
        const uint8_t first = d->first;
        d->first = 0;
        *found = first <= rest && fits(d, at + first, TL_ETRACE_WINDOW, true);
        return *found ? first : 1;
    }
    *found = fits(d, at, TL_ETRACE_WINDOW, d->good == TL_ETRACE_GOOD || d->lost < PATIENCE);
    return *found ? 0 : 1;
}

static int give(struct tl_etrace_deframe *d, const struct tl_etrace_frame *frame)
{
    int rc = TL_OK;
    if (d->envelope.wrapping == TL_ETRACE_INDEXED) {
        if (d->has_index && frame->index != d->index)
            rc = d->sink.loss(d->sink.context, MISSING, frame->offset, 0);
        d->has_index = true;
        d->index = (uint16_t)(frame->index + 1);
    }
    return rc < 0 ? rc : d->sink.frame(d->sink.context, frame);
}

/* Pass the frame on if it makes sense, which it returns, or an error. `found`: it may be of a
 * source that is new. */
static int judge_and_give(struct tl_etrace_deframe *d, const struct tl_etrace_frame *frame,
                          bool found)
{
    const enum tl_etrace_sense sense = judge(d, frame, false);
    if (sense == TL_ETRACE_NONSENSE || (sense == TL_ETRACE_STRANGER && !found))
        return sense;
    const int rc = frame->payload.n ? give(d, frame) : TL_OK;
    return rc < 0 ? rc : TL_ETRACE_SENSE;
}

/* The same, where frames are not numbered and it is of no new source. */
static inline int take(struct tl_etrace_deframe *d, const struct tl_etrace_frame *frame)
{
    if (frame->is_bad)
        return TL_ETRACE_NONSENSE;
    return frame->payload.n ? d->sink.take(d->sink.context, frame) : TL_ETRACE_SENSE;
}

/* Process what is in the buffer; `last`: nothing follows. */
static int process(struct tl_etrace_deframe *d, bool last)
{
    struct tl_etrace_frame frame;
    size_t at = 0;
    int rc = TL_OK;
    bool found = false; /* the frame at `at` has been examined */
    while (rc >= 0 && at < d->n) {
        if (d->searching) {
            const int skip = search(d, at, last, &found);
            if (skip < 0)
                break;
            if (d->lost == 0)
                d->lost_at = place_of(d, at);
            d->lost += (unsigned)skip;
            at += (size_t)skip;
            d->searching = !found;
            rc = found ? report(d, NO_FRAME) : TL_OK;
            continue;
        }
        const int size = read_at(d, at, d->n, &frame);
        if (size < 0)
            break;
        const int sense = found || d->envelope.wrapping == TL_ETRACE_INDEXED
                              ? judge_and_give(d, &frame, found)
                              : take(d, &frame);
        if (sense == TL_ETRACE_SENSE || sense < 0) {
            d->good += d->good < TL_ETRACE_GOOD;
            rc = sense;
            at += (size_t)size;
        } else {
            d->searching = true;
            d->first = sense == TL_ETRACE_NONSENSE ? (uint8_t)size : 0;
        }
        found = false;
    }
    if (rc >= 0 && last && at < d->n) {
        if (d->lost == 0)
            d->lost_at = place_of(d, at);
        d->lost += d->n - at;
        at = d->n;
    }
    memmove(d->buffer, d->buffer + at, d->n - at);
    d->at += at;
    d->n -= at;
    return rc < 0 ? rc : TL_OK;
}

int tl_etrace_deframe_push(struct tl_etrace_deframe *d, const uint8_t *p, size_t n)
{
    while (n > 0) {
        const size_t room = sizeof d->buffer - d->n;
        const size_t some = n < room ? n : room;
        memcpy(d->buffer + d->n, p, some);
        d->n += some;
        p += some;
        n -= some;
        const int rc = process(d, false);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_etrace_deframe_finish(struct tl_etrace_deframe *d, uint64_t next, const char *cut)
{
    int rc = process(d, true);
    if (rc >= 0)
        rc = report(d, d->searching ? NO_FRAME : cut);
    const struct tl_etrace_envelope envelope = d->envelope;
    const struct tl_etrace_deframe_sink sink = d->sink;
    tl_etrace_deframe_init(d, &envelope, &sink);
    d->fresh = false;
    d->at = next;
    return rc;
}

void tl_etrace_deframe_state(struct tl_etrace_deframe *d, struct tl_state *s)
{
    tl_state_u64(s, &d->at);
    tl_state_size(s, &d->n, sizeof d->buffer);
    tl_state_bytes(s, d->buffer, d->n);
    tl_state_bool(s, &d->searching);
    tl_state_bool(s, &d->fresh);
    tl_state_u8(s, &d->good, TL_ETRACE_GOOD);
    tl_state_u8(s, &d->first, UINT8_MAX);
    tl_state_u64(s, &d->lost);
    tl_state_u64(s, &d->lost_at);
    tl_state_bool(s, &d->has_index);
    tl_state_u16(s, &d->index);
}
