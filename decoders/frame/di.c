/* SPDX-License-Identifier: MIT */
/*
 * Headers are scored by how well they match what the stream has shown so far. In sync, a low score
 * suffices, so that a new module is accepted; out of sync, everything must match, twice in a row.
 */
#include "frame/di.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES (2 * (1 + TL_DI_HEADER))
#define GULP         4096        /* bytes added to `pending` at a time */
#define WINDOW_MAX   (64u << 10) /* examined to find the first packet */

/*
 * Evidence for a header. There are few destinations (hosts), so a known one is the strongest
 * evidence; but 0 is a common payload word.
 */
enum {
    FLAGS_DEFINED = 1,
    RESERVED_ZERO = 1,
    FROM_HOST = 1, /* and again if to a known module */
    KNOWN_SRC = 2, /* both are one less for address 0 */
    KNOWN_DEST = 3,
    FRESH = FLAGS_DEFINED + RESERVED_ZERO, /* the maximum before anything is known */
    ENOUGH = FRESH + KNOWN_SRC,            /* in sync */
    GOOD = FRESH + KNOWN_DEST,
    BEST = FRESH + KNOWN_DEST - 1 + KNOWN_SRC
};

enum answer {
    NO,
    YES,
    MORE /* more bytes are needed */
};

/* Bytes under inspection: those not delivered yet. */
struct view {
    const uint8_t *p;
    size_t n;
    const char *cut; /* why a packet may not be complete: nothing follows. NULL: more may */
};

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

static inline uint16_t word(const struct tl_di *d, const uint8_t *p)
{
    return d->little_endian ? tl_le16(p) : tl_be16(p);
}

static inline bool known(const uint64_t *set, uint16_t address)
{
    return set[address / 64] >> address % 64 & 1;
}

/* REG: all sub-types but one; EVENT: last, continued, overflow. The other types are reserved. */
static inline bool flags_defined(uint16_t flags)
{
    const unsigned sub = 1u << TL_DI_TYPE_SUB(flags);
    if (TL_DI_TYPE(flags) == TL_DI_TYPE_REG)
        return sub != 1u << 13;
    return TL_DI_TYPE(flags) == TL_DI_TYPE_EVENT && (sub & 0x23);
}

/*
 * Is this the header of a packet from a host, a known destination? A packet to the host, read a
 * word too early, would match as well, except for FLAGS.
 */
static inline bool is_from_host(const struct tl_di *d, const uint8_t *p)
{
    const uint16_t flags = word(d, p + 6);
    return flags && !(flags & 0x3ff) && known(d->dests, word(d, p + 4));
}

/* Is this a known module's answer to a register access? FLAGS determine its length. */
static bool is_answer(const struct tl_di *d, const uint8_t *p)
{
    const uint16_t flags = word(d, p + 6);
    if ((flags & 0x3ff) || TL_DI_TYPE(flags) != TL_DI_TYPE_REG || !known(d->srcs, word(d, p + 4)))
        return false;
    switch (TL_DI_TYPE_SUB(flags)) {
    case 8:
    case 9:
    case 10:
    case 11: /* 16 to 128 bits were read */
        return word(d, p) == TL_DI_HEADER + (1u << (TL_DI_TYPE_SUB(flags) & 3));
    case 12:
    case 14:
    case 15: /* an error, or a write */
        return word(d, p) == TL_DI_HEADER;
    default:
        return false;
    }
}

/* Score a header at `p` (HEADER_BYTES are available). 0: invalid. */
static inline unsigned evidence(const struct tl_di *d, const uint8_t *p)
{
    const unsigned words = word(d, p);
    if (words < TL_DI_HEADER || words > d->limit)
        return 0;
    const uint16_t dest = word(d, p + 2), flags = word(d, p + 6);
    const uint16_t src = word(d, p + 4);
    return (KNOWN_DEST - !dest) * known(d->dests, dest) + (KNOWN_SRC - !src) * known(d->srcs, src) +
           (FROM_HOST + FROM_HOST * known(d->srcs, dest)) * is_from_host(d, p) +
           RESERVED_ZERO * ((flags & 0x3ff) == 0) + FLAGS_DEFINED * flags_defined(flags);
}

static size_t packet_bytes(const struct tl_di *d, const uint8_t *p)
{
    return 2 * (1 + (size_t)word(d, p));
}

static inline uint64_t header_at(const uint8_t *p)
{
    return tl_le64(p);
}

static inline unsigned slot_of(uint64_t header)
{
    return (unsigned)(header * 0x9e3779b97f4a7c15u >> 56);
}

/*
 * Was there recently a packet with exactly this header? 0 marks an unused slot and is not a header.
 */
static inline bool is_usual(const struct tl_di *d, uint64_t header)
{
    return header && d->headers[slot_of(header)] == header;
}

/* A register request without a register's address: no one sends it. */
static bool is_empty_request(const struct tl_di *d, const uint8_t *p)
{
    const uint16_t flags = word(d, p + 6);
    return word(d, p) == TL_DI_HEADER && TL_DI_TYPE(flags) == TL_DI_TYPE_REG &&
           TL_DI_TYPE_SUB(flags) < 8;
}

/*
 * Does the packet contain others? A damaged length may coincide with the end of another packet.
 * Then the packets it includes form a chain of headers that ends at the same position.
 */
static bool swallows_others(const struct tl_di *d, const uint8_t *p)
{
    if (is_usual(d, header_at(p)))
        return false;
    const size_t bytes = packet_bytes(d, p);
    for (size_t i = 2; i + HEADER_BYTES <= bytes; i += 2) {
        size_t at = i;
        unsigned row = 0;
        for (; row < 3 && at + HEADER_BYTES <= bytes; row++) {
            if (evidence(d, p + at) < (row ? ENOUGH : GOOD) || is_empty_request(d, p + at))
                break;
            at += packet_bytes(d, p + at);
        }
        if (at == bytes || row == 3)
            return true;
    }
    return false;
}

/*
 * The capture ends at byte `i`, or within a header there: is that plausible after the packet at
 * `before`? If words are left over, either they or that packet's length are wrong, unless both are
 * usual.
 */
static bool is_end(const struct tl_di *d, const struct view *v, size_t before, size_t i)
{
    const size_t left = v->n - i;
    if (left == 0)
        return true;
    if (left <= 2) /* a single length word may as well be a surplus word of the previous packet */
        return false;
    if (!is_usual(d, header_at(v->p + before)))
        return false;
    if ((left >= 4 && !known(d->dests, word(d, v->p + i + 2))) ||
        (left >= 6 && !known(d->srcs, word(d, v->p + i + 4))))
        return false;
    for (unsigned slot = 0; slot < 256; slot++) {
        uint8_t header[8];
        tl_put_le64(header, d->headers[slot]);
        if (d->headers[slot] && word(d, header) == word(d, v->p + i))
            return true;
    }
    return false;
}

/*
 * Are there `count` consecutive headers, the first one with score `first`, the others with `rest`?
 */
static enum answer is_chain(const struct tl_di *d, const struct view *v, size_t i, unsigned count,
                            unsigned first, unsigned rest)
{
    size_t before = i;
    for (unsigned k = 0; k < count; k++) {
        if (v->n - i < HEADER_BYTES) {
            if (v->cut)
                return k > 0 && is_end(d, v, before, i) ? YES : NO;
            return MORE;
        }
        if (evidence(d, v->p + i) < (k ? rest : first))
            return NO;
        if (k + 1 == count)
            return YES; /* regardless of how many of its bytes are available, for independence of
                           chunking */
        const size_t bytes = packet_bytes(d, v->p + i);
        if (bytes > v->n - i)
            return v->cut ? NO : MORE;
        if (swallows_others(d, v->p + i))
            return NO;
        before = i;
        i += bytes;
    }
    return YES;
}

/* Is byte `i` plausible as the start of the packet after the one at `before`? */
static inline enum answer is_next(const struct tl_di *d, const struct view *v, size_t before,
                                  size_t i)
{
    if (v->n - i < HEADER_BYTES) {
        if (!v->cut)
            return MORE;
        return is_end(d, v, before, i) ? YES : NO;
    }
    const unsigned weight = evidence(d, v->p + i);
    if (weight >= ENOUGH)
        return YES;
    if (weight < FRESH)
        return NO;
    /* Both addresses are new, or only the flags are unusual: decide by the next packet. */
    const size_t bytes = packet_bytes(d, v->p + i);
    if (v->n - i < bytes + HEADER_BYTES)
        return !v->cut ? MORE : v->n - i == bytes && is_answer(d, v->p + i) ? YES : NO;
    const uint8_t *const after = v->p + i + bytes;
    const unsigned further = evidence(d, after);
    if (further >= FRESH && is_answer(d, v->p + i)) /* to a new host */
        return YES;
    const bool hosts = further >= FRESH && is_from_host(d, v->p + i) && is_from_host(d, after);
    return (further >= GOOD || hosts) && !swallows_others(d, v->p + i) ? YES : NO;
}

/*
 * May the search end at byte `i`? An odd distance is less likely, so the requirements are higher.
 */
static enum answer is_resync(const struct tl_di *d, const struct view *v, size_t i, bool odd)
{
    const enum answer answer = is_chain(d, v, i, odd ? 4 : 2, BEST, GOOD);
    return answer != NO ? answer : is_chain(d, v, i, 4, GOOD, GOOD);
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

static inline int deliver_words(struct tl_di *d, const struct view *v, size_t i, unsigned n)
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

static int deliver(struct tl_di *d, const struct view *v, size_t i)
{
    const uint8_t *const p = v->p + i;
    const uint16_t dest = word(d, p + 2), src = word(d, p + 4);
    d->dests[dest / 64] |= (uint64_t)1 << dest % 64;
    d->srcs[src / 64] |= (uint64_t)1 << src % 64;
    const uint64_t header = header_at(p);
    d->headers[slot_of(header)] = header;
    return deliver_words(d, v, i, word(d, p));
}

/*
 * Fast path: consecutive packets with usual headers. The decisions are the same as those of step().
 * Returns the bytes processed.
 */
static int64_t deliver_usual(struct tl_di *d, const struct view *v, size_t i)
{
    const size_t begin = i;
    if (v->n - i < HEADER_BYTES || !is_usual(d, header_at(v->p + i)))
        return 0;
    for (;;) {
        const size_t bytes = packet_bytes(d, v->p + i);
        if (v->n - i < bytes + HEADER_BYTES || !is_usual(d, header_at(v->p + i + bytes)))
            break;
        const int rc = deliver_words(d, v, i, (unsigned)(bytes / 2 - 1));
        if (rc < 0)
            return rc;
        i += bytes;
    }
    return (int64_t)(i - begin);
}

/* The same, for sinks that accept packets in input form. */
static int64_t deliver_batches(struct tl_di *d, const struct view *v, size_t i)
{
    const size_t begin = i;
    const bool little_endian = d->little_endian;
    if (v->n - i < HEADER_BYTES || !is_usual(d, header_at(v->p + i)))
        return 0;
    for (bool more = true; more;) {
        struct tl_di_raw packets[TL_DI_BATCH];
        size_t n = 0;
        while (n < TL_DI_BATCH) {
            const uint8_t *const p = v->p + i;
            const unsigned words = little_endian ? tl_le16(p) : tl_be16(p);
            const size_t bytes = 2 * (1 + (size_t)words);
            more = v->n - i >= bytes + HEADER_BYTES && is_usual(d, header_at(p + bytes));
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
static bool is_intact(const struct tl_di *d, const struct view *v, size_t i, size_t found)
{
    const size_t end = i + packet_bytes(d, v->p + i);
    if (found < end + 2 * TL_DI_HEADER)
        return false;
    const uint8_t *p = v->p + end;
    const uint16_t w[4] = {word(d, p), word(d, p + 2), word(d, p + 4),
                           found - end >= HEADER_BYTES ? word(d, p + 6) : 1};
    for (unsigned k = 0; k < 2; k++) { /* 1: a word of the header is missing */
        const uint16_t dest = w[1 - k], src = w[2 - k], flags = w[3 - k];
        const bool good_flags = flags && !(flags & 0x3ff) && flags_defined(flags);
        const bool good_dest = dest && known(d->dests, dest);
        const bool good_src = known(d->srcs, src);
        if ((good_dest && (good_src || good_flags)) || (src && good_src && good_flags))
            return true;
    }
    /* DEST or SRC is missing */
    const bool good_flags = w[2] && !(w[2] & 0x3ff) && flags_defined(w[2]);
    return good_flags && ((w[1] && known(d->dests, w[1])) || (w[1] && known(d->srcs, w[1])));
}

static void start_search(struct tl_di *d, size_t i, bool suspect)
{
    d->searching = true;
    d->suspect = suspect;
    d->scanned = 0;
    d->lost_at = d->offset + i;
}

/* End the search that began at `i`, at `found`. */
static int end_search(struct tl_di *d, const struct view *v, size_t i, size_t found,
                      const char *reason)
{
    uint64_t from = d->lost_at;
    d->searching = false;
    if (d->suspect && is_intact(d, v, i, found)) {
        const int rc = deliver(d, v, i);
        if (rc < 0)
            return rc;
        from = d->offset + i + packet_bytes(d, v->p + i);
    }
    return report(d, reason, from, d->offset + found);
}

/* ---- the beginning ---------------------------------------------------------------------- */

/*
 * Initially the byte order, the host and the modules are unknown. If the stream begins with
 * consecutive headers that share a host, they are learnt from those. Otherwise its beginning is
 * damaged or in the middle of a packet; then they are learnt from the longest chain in a large
 * window, and the search for the first packet uses that.
 */
enum {
    ROW = 6,     /* headers required at the very beginning */
    ROW_MIN = 4, /* headers required elsewhere */
    ROW_MAX = 64
};

struct row {
    size_t at;
    unsigned n;      /* headers */
    unsigned weight; /* total score; headers with FLAGS 0 count little */
    bool little_endian;
    bool cut; /* may continue after the view */
};

/* A window holds two chains of the longest packets, or everything available. */
static size_t window_of(const struct tl_di *d)
{
    const size_t bytes = 2 * ROW_MIN * 2 * (1 + (size_t)d->limit);
    return bytes < WINDOW_MAX ? bytes : WINDOW_MAX;
}

/* The chain of at most `most` headers at byte `at` that share a host as sender or receiver. */
static struct row row_at(struct tl_di *d, const struct view *v, size_t at, bool little_endian,
                         unsigned most)
{
    struct row row = {.at = at, .little_endian = little_endian};
    uint16_t dest = 0, src = 0;
    d->little_endian = little_endian;
    for (; row.n < most; row.n++) {
        if (at > v->n || v->n - at < HEADER_BYTES) {
            row.cut = !v->cut || at == v->n;
            break;
        }
        const uint8_t *const p = v->p + at;
        const uint16_t to = word(d, p + 2), from = word(d, p + 4);
        if (evidence(d, p) < FRESH)
            break;
        if (row.n == 0) {
            dest = to;
            src = from;
        } else if (to != dest && (to != src || from != dest)) {
            break;
        }
        row.weight += word(d, p + 6) ? 4 : 1;
        at += packet_bytes(d, p);
    }
    return row;
}

/* Learn the system from the headers of a chain. */
static void learn_row(struct tl_di *d, const struct view *v, const struct row *row)
{
    d->little_endian = row->little_endian;
    for (size_t at = row->at, n = 0; n < row->n; n++) {
        const uint16_t dest = word(d, v->p + at + 2), src = word(d, v->p + at + 4);
        d->dests[dest / 64] |= (uint64_t)1 << dest % 64;
        d->srcs[src / 64] |= (uint64_t)1 << src % 64;
        at += packet_bytes(d, v->p + at);
    }
    d->informed = true;
}

/*
 * Is `a` better? A chain of little-endian packets also looks like a big-endian one a byte earlier:
 * its FLAGS then consist of the upper byte of SRC and the lower byte of the true FLAGS, both nearly
 * always 0.
 */
static bool is_better(const struct row *a, const struct row *b)
{
    return a->weight > b->weight && (a->n >= ROW_MIN || a->cut);
}

static struct row longest_row(struct tl_di *d, const struct view *window, size_t from)
{
    struct row best = {0};
    for (size_t parity = 0; parity < 2; parity++) {
        for (size_t at = from + parity; at + HEADER_BYTES <= window->n; at += 2) {
            for (unsigned little = 0; little < 2; little++) {
                const struct row row = row_at(d, window, at, little, ROW_MAX);
                if (is_better(&row, &best))
                    best = row;
            }
        }
    }
    return best;
}

/* Learn the system from the bytes from `i` on. NO: no such chain. */
static enum answer learn(struct tl_di *d, const struct view *v, size_t i)
{
    for (unsigned little = 0; little < 2; little++) {
        const struct row row = row_at(d, v, i, little, ROW);
        if (row.n == ROW && row.weight > 2 * ROW) {
            learn_row(d, v, &row);
            return YES;
        }
        if (row.cut && !v->cut)
            return MORE;
    }
    const size_t bytes = window_of(d);
    if (v->n - i < bytes && !v->cut)
        return MORE;
    const bool rest = v->n - i <= bytes;
    const struct view window = {v->p, rest ? v->n : i + bytes, rest ? v->cut : NULL};
    const struct row best = longest_row(d, &window, i);
    if (best.n == 0)
        return NO;
    learn_row(d, &window, &best);
    return YES;
}

/* Returns the bytes processed; *wait: more bytes are needed. */
static int64_t begin(struct tl_di *d, const struct view *v, size_t i, bool *wait)
{
    const enum answer answer = learn(d, v, i);
    *wait = answer == MORE;
    if (answer != NO)
        return 0;
    const size_t half = window_of(d) / 2, left = v->n - i;
    return (int64_t)(left < half ? left : half);
}

/* ---- in sync and out of sync -------------------------------------------------------------- */

/* The search that began at `i` found nothing up to the end of the input. Does that have the begin
 * of a packet only: this one's, or part of the header of the one behind it? */
static bool is_unfinished(const struct tl_di *d, const struct view *v, size_t i)
{
    const size_t rest = v->n - i;
    return rest < HEADER_BYTES || packet_bytes(d, v->p + i) + HEADER_BYTES > rest;
}

static const char *why_lost(const struct tl_di *d, const struct view *v, size_t i, bool found)
{
    if (found)
        return d->started ? OUT_OF_STEP : NOT_YET;
    return is_unfinished(d, v, i) ? v->cut : NO_MORE;
}

/*
 * Continue searching after the damage at `i`. Returns the bytes processed: up to the position
 * found, or where to continue (not past `i` as long as the packet there may turn out to be intact).
 */
static int64_t search(struct tl_di *d, const struct view *v, size_t i, bool *wait)
{
    const size_t far = 4 * 2 * (1 + (size_t)d->limit);
    size_t at = i + d->scanned;
    enum answer answer = NO;
    while (answer == NO && ++at < v->n) {
        if (at - i > far) {
            forget(d);
            return (int64_t)(at - i);
        }
        answer = at == i ? is_chain(d, v, at, 2, GOOD, GOOD)
                         : is_resync(d, v, at, (d->offset + at - d->lost_at) % 2);
    }
    if (answer == YES || v->cut) {
        const int rc = end_search(d, v, i, at, why_lost(d, v, i, answer == YES));
        return rc < 0 ? rc : (int64_t)(at - i);
    }
    d->scanned = at - 1 - i;
    *wait = true;
    return 0;
}

/* Deliver the packet at `i` if it is confirmed. Returns the bytes processed. */
static int64_t step(struct tl_di *d, const struct view *v, size_t i)
{
    const size_t bytes = packet_bytes(d, v->p + i);
    if (bytes > v->n - i) {
        if (v->cut)
            start_search(d, i, false);
        return 0;
    }
    switch (is_next(d, v, i, i + bytes)) {
    case YES:
        break;
    case NO:
        start_search(d, i, true);
        return 0;
    case MORE:
        return 0;
    }
    if (swallows_others(d, v->p + i)) {
        start_search(d, i, true);
        return 0;
    }
    const int rc = deliver(d, v, i);
    return rc < 0 ? rc : (int64_t)bytes;
}

/* Returns the number of bytes of the view that were processed, or < 0. */
static int64_t inspect(struct tl_di *d, const struct view *v)
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
        if (v->n - i < HEADER_BYTES)
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
        const struct view v = {d->pending.p, d->pending.n, NULL};
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
    const struct view v = {p, n, NULL};
    const int64_t done = inspect(d, &v);
    if (done < 0)
        return (int)done;
    d->offset += (uint64_t)done;
    return tl_buf_add(&d->pending, p + done, n - (size_t)done);
}

int tl_di_finish(struct tl_di *d, const char *cut)
{
    const struct view v = {d->pending.p, d->pending.n, cut};
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
    return word(d, p) >= TL_DI_HEADER && word(d, p) <= d->limit;
}

/* Check what the next push relies on. */
static bool is_sound(const struct tl_di *d)
{
    const size_t n = d->pending.n;
    for (unsigned slot = 0; slot < 256; slot++) {
        uint8_t header[8];
        tl_put_le64(header, d->headers[slot]);
        if (d->headers[slot] && (slot_of(d->headers[slot]) != slot || !is_length(d, header)))
            return false;
    }
    if (!d->searching)
        return n >= HEADER_BYTES && is_length(d, d->pending.p);
    if (d->suspect && (n < HEADER_BYTES || !is_length(d, d->pending.p)))
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
