/* SPDX-License-Identifier: MIT */
/*
 * Packets are delivered one behind the other as long as headers follow, else the next one is
 * searched for. In sync, a low score of a header suffices, so that a new module is accepted; out of
 * sync, everything must match, twice in a row.
 */
#include "frame/di_headers.h"

#include <stdlib.h>
#include <string.h>

#define GULP 4096 /* bytes added to `pending` at a time */

/* TL_LOSS_NOT_SYNC of decode/ops.h, which is not a fault. */
static const char NOT_YET[] = "not synchronised";
static const char OUT_OF_STEP[] = "no DI packet header";
static const char NO_MORE[] = "no DI packets up to the end";

/* Search from the very next byte on, without any knowledge of the system. */
static void forget(struct tl_di *d)
{
    d->informed = false;
    d->searching = true;
    d->suspect = false;
    d->scanned = SIZE_MAX;
    memset(d->dests, 0, sizeof d->dests);
    memset(d->srcs, 0, sizeof d->srcs);
    memset(d->headers, 0, sizeof d->headers);
}

void tl_di_init(struct tl_di *d, uint64_t offset, unsigned max_words, const struct tl_di_sink *sink)
{
    *d = (struct tl_di){.sink = *sink, .limit = TL_DI_MAX_WORDS};
    d->offset = d->lost_at = offset;
    forget(d);
    tl_di_set_max_words(d, max_words);
}

void tl_di_fini(struct tl_di *d)
{
    tl_buf_fini(&d->pending);
    free(d->words);
    d->words = NULL;
}

void tl_di_set_max_words(struct tl_di *d, unsigned max_words)
{
    if (max_words > d->limit && max_words <= UINT16_MAX)
        d->limit = max_words;
}

static int report(struct tl_di *d, const char *reason, uint64_t from, uint64_t to)
{
    if (to <= from || !d->sink.loss)
        return TL_OK;
    return d->sink.loss(d->sink.context, reason, from, to - from);
}

/*
 * Copy the words of a packet in host order. If available, at least the number of words that nearly
 * all packets fit in is copied, without a branch.
 */
static inline void copy_words(uint16_t *out, const uint8_t *p, size_t n, const uint8_t *end,
                              bool little_endian)
{
    size_t i = 0;
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && end - p >= 2 * TL_DI_USUAL_WORDS) {
        for (; i < TL_DI_USUAL_WORDS; i += 4) {
            const uint64_t four = tl_di_words4(p + 2 * i, little_endian);
            memcpy(out + i, &four, sizeof four);
        }
    }
    for (; i < n; i++)
        out[i] = little_endian ? tl_le16(p + 2 * i) : tl_be16(p + 2 * i);
}

static inline int deliver_words(struct tl_di *d, const struct tl_di_view *v, size_t i, unsigned n)
{
    if (n + TL_DI_USUAL_WORDS > d->cap_words) {
        const int rc = tl_grow(&d->words, &d->cap_words, n + TL_DI_USUAL_WORDS, sizeof *d->words);
        if (rc < 0)
            return rc;
    }
    copy_words(d->words, v->p + i + 2, n, v->p + v->n, d->little_endian);
    d->started = true;
    const struct tl_di_packet packet = {d->offset + i, d->words, n};
    return d->sink.packet(d->sink.context, &packet);
}

static int deliver(struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    const uint8_t *const p = v->p + i;
    const uint16_t dest = tl_di_word(d, p + 2), src = tl_di_word(d, p + 4);
    d->dests[dest / 64] |= (uint64_t)1 << dest % 64;
    d->srcs[src / 64] |= (uint64_t)1 << src % 64;
    const uint64_t header = tl_di_header_at(p);
    d->headers[tl_di_slot_of(header)] = header;
    return deliver_words(d, v, i, tl_di_word(d, p));
}

/*
 * Fast path: consecutive packets with usual headers. The decisions are the same as those of step().
 * Returns the bytes processed.
 */
static int64_t deliver_usual(struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    const size_t begin = i;
    if (v->n - i < TL_DI_HEADER_BYTES || !tl_di_is_usual(d, tl_di_header_at(v->p + i)))
        return 0;
    for (;;) {
        const size_t bytes = tl_di_packet_bytes(d, v->p + i);
        if (v->n - i < bytes + TL_DI_HEADER_BYTES ||
            !tl_di_is_usual(d, tl_di_header_at(v->p + i + bytes)))
            break;
        const int rc = deliver_words(d, v, i, (unsigned)(bytes / 2 - 1));
        if (rc < 0)
            return rc;
        i += bytes;
    }
    return (int64_t)(i - begin);
}

/* The same, for sinks that accept packets in input form. */
static int64_t deliver_batches(struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    const size_t begin = i;
    const bool little_endian = d->little_endian;
    if (v->n - i < TL_DI_HEADER_BYTES || !tl_di_is_usual(d, tl_di_header_at(v->p + i)))
        return 0;
    for (bool more = true; more;) {
        struct tl_di_raw packets[TL_DI_BATCH];
        size_t n = 0;
        while (n < TL_DI_BATCH) {
            const uint8_t *const p = v->p + i;
            const unsigned words = little_endian ? tl_le16(p) : tl_be16(p);
            const size_t bytes = 2 * (1 + (size_t)words);
            more = v->n - i >= bytes + TL_DI_HEADER_BYTES &&
                   tl_di_is_usual(d, tl_di_header_at(p + bytes));
            if (!more)
                break;
            packets[n++] = (struct tl_di_raw){d->offset + i, p, words};
            i += bytes;
        }
        d->started |= n > 0;
        const int rc = n ? d->batch(d->sink.context, packets, n) : TL_OK;
        if (rc < 0)
            return rc;
    }
    return (int64_t)(i - begin);
}

void tl_di_set_batch(struct tl_di *d,
                     int (*batch)(void *context, const struct tl_di_raw *packets, size_t n))
{
    d->batch = batch;
}

struct tl_di_packet tl_di_read_raw(const struct tl_di_raw *raw, bool little_endian, uint16_t *words)
{
    copy_words(words, raw->p + 2, raw->n, raw->p + 2 * (1 + (size_t)raw->n) + 8, little_endian);
    return (struct tl_di_packet){raw->offset, words, raw->n};
}

/*
 * The packet at `i` is not followed by a header, but there is one at `found`. Was only the next
 * packet's header damaged? Then that packet is in between, and part of its header is recognisable.
 * A smaller distance means that the packet itself has a surplus word.
 */
static bool is_intact(const struct tl_di *d, const struct tl_di_view *v, size_t i, size_t found)
{
    const size_t end = i + tl_di_packet_bytes(d, v->p + i);
    if (found < end + 2 * TL_DI_HEADER)
        return false;
    const uint8_t *p = v->p + end;
    const uint16_t w[4] = {tl_di_word(d, p), tl_di_word(d, p + 2), tl_di_word(d, p + 4),
                           found - end >= TL_DI_HEADER_BYTES ? tl_di_word(d, p + 6) : 1};
    for (unsigned k = 0; k < 2; k++) { /* 1: a word of the header is missing */
        const uint16_t dest = w[1 - k], src = w[2 - k], flags = w[3 - k];
        const bool good_flags = flags && !(flags & 0x3ff) && tl_di_flags_defined(flags);
        const bool good_dest = dest && tl_di_known(d->dests, dest);
        const bool good_src = tl_di_known(d->srcs, src);
        if ((good_dest && (good_src || good_flags)) || (src && good_src && good_flags))
            return true;
    }
    /* DEST or SRC is missing */
    const bool good_flags = w[2] && !(w[2] & 0x3ff) && tl_di_flags_defined(w[2]);
    return good_flags &&
           ((w[1] && tl_di_known(d->dests, w[1])) || (w[1] && tl_di_known(d->srcs, w[1])));
}

static void start_search(struct tl_di *d, size_t i, bool suspect)
{
    d->searching = true;
    d->suspect = suspect;
    d->scanned = 0;
    d->lost_at = d->offset + i;
}

/* End the search that began at `i`, at `found`. */
static int end_search(struct tl_di *d, const struct tl_di_view *v, size_t i, size_t found,
                      const char *reason)
{
    uint64_t from = d->lost_at;
    d->searching = false;
    if (d->suspect && is_intact(d, v, i, found)) {
        const int rc = deliver(d, v, i);
        if (rc < 0)
            return rc;
        from = d->offset + i + tl_di_packet_bytes(d, v->p + i);
    }
    return report(d, reason, from, d->offset + found);
}

/* Begin without knowing the system. Returns the bytes processed; *wait: more bytes are needed. */
static int64_t begin(struct tl_di *d, const struct tl_di_view *v, size_t i, bool *wait)
{
    const enum tl_di_answer answer = tl_di_learn(d, v, i);
    *wait = answer == TL_DI_MORE;
    if (answer != TL_DI_NO)
        return 0;
    const size_t half = tl_di_window(d) / 2, left = v->n - i;
    return (int64_t)(left < half ? left : half);
}

/* ---- in sync and out of sync -------------------------------------------------------------- */

/* The search that began at `i` found nothing up to the end of the input. Does that have the begin
 * of a packet only: this one's, or part of the header of the one behind it? */
static bool is_unfinished(const struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    const size_t rest = v->n - i;
    return rest < TL_DI_HEADER_BYTES || tl_di_packet_bytes(d, v->p + i) + TL_DI_HEADER_BYTES > rest;
}

static const char *why_lost(const struct tl_di *d, const struct tl_di_view *v, size_t i, bool found)
{
    if (found)
        return d->started ? OUT_OF_STEP : NOT_YET;
    return is_unfinished(d, v, i) ? v->cut : NO_MORE;
}

/*
 * Continue searching after the damage at `i`. Returns the bytes processed: up to the position
 * found, or where to continue (not past `i` as long as the packet there may turn out to be intact).
 */
static int64_t search(struct tl_di *d, const struct tl_di_view *v, size_t i, bool *wait)
{
    const size_t far = 4 * 2 * (1 + (size_t)d->limit);
    size_t at = i + d->scanned;
    enum tl_di_answer answer = TL_DI_NO;
    while (answer == TL_DI_NO && ++at < v->n) {
        if (at - i > far) {
            forget(d);
            return (int64_t)(at - i);
        }
        answer = at == i ? tl_di_is_chain(d, v, at, 2, TL_DI_GOOD, TL_DI_GOOD)
                         : tl_di_is_resync(d, v, at, (d->offset + at - d->lost_at) % 2);
    }
    if (answer == TL_DI_YES || v->cut) {
        const int rc = end_search(d, v, i, at, why_lost(d, v, i, answer == TL_DI_YES));
        return rc < 0 ? rc : (int64_t)(at - i);
    }
    d->scanned = at - 1 - i;
    *wait = true;
    return 0;
}

/* Deliver the packet at `i` if it is confirmed. Returns the bytes processed. */
static int64_t step(struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    const size_t bytes = tl_di_packet_bytes(d, v->p + i);
    if (bytes > v->n - i) {
        if (v->cut)
            start_search(d, i, false);
        return 0;
    }
    switch (tl_di_is_next(d, v, i, i + bytes)) {
    case TL_DI_YES:
        break;
    case TL_DI_NO:
        start_search(d, i, true);
        return 0;
    case TL_DI_MORE:
        return 0;
    }
    if (tl_di_swallows_others(d, v->p + i)) {
        start_search(d, i, true);
        return 0;
    }
    const int rc = deliver(d, v, i);
    return rc < 0 ? rc : (int64_t)bytes;
}

/* Returns the number of bytes of the view that were processed, or < 0. */
static int64_t inspect(struct tl_di *d, const struct tl_di_view *v)
{
    size_t i = 0;
    while (i < v->n) {
        int64_t done;
        if (d->searching) {
            bool wait = false;
            done = d->informed ? search(d, v, i, &wait) : begin(d, v, i, &wait);
            if (done < 0)
                return done;
            i += (size_t)done;
            if (wait)
                break;
            continue;
        }
        done = d->batch ? deliver_batches(d, v, i) : deliver_usual(d, v, i);
        if (done < 0)
            return done;
        i += (size_t)done;
        if (v->n - i < TL_DI_HEADER_BYTES)
            break;
        done = step(d, v, i);
        if (done < 0)
            return done;
        if (done == 0 && !d->searching)
            break;
        i += (size_t)done;
    }
    return (int64_t)i;
}

/* Append input to pending bytes until those are processed. Returns the input bytes used. */
static int64_t join(struct tl_di *d, const uint8_t *p, size_t n)
{
    size_t taken = 0;
    while (taken < n) {
        const size_t old = d->pending.n;
        const size_t part = n - taken < GULP ? n - taken : GULP;
        int rc = tl_buf_add(&d->pending, p + taken, part);
        if (rc < 0)
            return rc;
        const struct tl_di_view v = {d->pending.p, d->pending.n, NULL};
        const int64_t done = inspect(d, &v);
        if (done < 0)
            return done;
        d->offset += (uint64_t)done;
        if ((size_t)done >= old) {
            tl_buf_reset(&d->pending);
            return (int64_t)(taken + (size_t)done - old);
        }
        tl_buf_drop(&d->pending, (size_t)done);
        taken += part;
    }
    return (int64_t)taken;
}

int tl_di_push(struct tl_di *d, const uint8_t *p, size_t n)
{
    if (d->pending.n) {
        const int64_t taken = join(d, p, n);
        if (taken < 0)
            return (int)taken;
        p += taken;
        n -= (size_t)taken;
    }
    if (n == 0)
        return TL_OK;
    const struct tl_di_view v = {p, n, NULL};
    const int64_t done = inspect(d, &v);
    if (done < 0)
        return (int)done;
    d->offset += (uint64_t)done;
    return tl_buf_add(&d->pending, p + done, n - (size_t)done);
}

int tl_di_finish(struct tl_di *d, const char *cut)
{
    const struct tl_di_view v = {d->pending.p, d->pending.n, cut};
    const int64_t done = inspect(d, &v);
    if (done < 0)
        return (int)done;
    const uint64_t end = d->offset + v.n;
    const uint64_t from = d->searching ? d->lost_at : d->offset + (uint64_t)done;
    const int rc = report(d, d->searching && !d->started ? NOT_YET : cut, from, end);
    d->offset = d->lost_at = end;
    tl_buf_reset(&d->pending);
    return rc;
}

void tl_di_skip(struct tl_di *d, uint64_t n)
{
    d->offset += n;
    start_search(d, 0, false);
    d->scanned = SIZE_MAX; /* the very next byte may be the position */
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

/* Is this a valid length word? */
static bool is_length(const struct tl_di *d, const uint8_t *p)
{
    return tl_di_word(d, p) >= TL_DI_HEADER && tl_di_word(d, p) <= d->limit;
}

/* Check what the next push relies on. */
static bool is_sound(const struct tl_di *d)
{
    const size_t n = d->pending.n;
    for (unsigned slot = 0; slot < 256; slot++) {
        uint8_t header[8];
        tl_put_le64(header, d->headers[slot]);
        if (d->headers[slot] && (tl_di_slot_of(d->headers[slot]) != slot || !is_length(d, header)))
            return false;
    }
    if (!d->searching)
        return n >= TL_DI_HEADER_BYTES && is_length(d, d->pending.p);
    if (d->suspect && (n < TL_DI_HEADER_BYTES || !is_length(d, d->pending.p)))
        return false;
    return d->scanned == SIZE_MAX || d->scanned == 0 || d->scanned < n;
}

void tl_di_state(struct tl_di *d, struct tl_state *s)
{
    uint64_t scanned = d->scanned;
    uint32_t limit = d->limit;
    tl_state_u64(s, &d->offset);
    tl_state_buf(s, &d->pending, SIZE_MAX);
    tl_state_u64(s, &d->lost_at);
    tl_state_u64(s, &scanned);
    tl_state_u32(s, &limit);
    tl_state_check(s, limit >= TL_DI_MAX_WORDS && limit <= UINT16_MAX);
    d->scanned = (size_t)scanned;
    d->limit = limit;
    tl_state_bool(s, &d->little_endian);
    tl_state_bool(s, &d->informed);
    tl_state_bool(s, &d->started);
    tl_state_bool(s, &d->searching);
    tl_state_bool(s, &d->suspect);
    tl_state_bytes(s, d->dests, sizeof d->dests);
    tl_state_bytes(s, d->srcs, sizeof d->srcs);
    tl_state_bytes(s, d->headers, sizeof d->headers);
    tl_state_check(s, is_sound(d));
}
