/* SPDX-License-Identifier: MIT */
/*
 * The beginning of a DI stream, where byte order, hosts and modules are unknown. If it begins with
 * consecutive headers that share a host, they are learnt from those. Otherwise its beginning is
 * damaged or in the middle of a packet; then they are learnt from the longest chain in a large
 * window, and the search for the first packet uses that.
 */
#include "frame/di_headers.h"

#define WINDOW_MAX (64u << 10) /* examined to find the first packet */

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
size_t tl_di_window(const struct tl_di *d)
{
    const size_t bytes = 2 * ROW_MIN * 2 * (1 + (size_t)d->limit);
    return bytes < WINDOW_MAX ? bytes : WINDOW_MAX;
}

/* The chain of at most `most` headers at byte `at` that share a host as sender or receiver. */
static struct row row_at(struct tl_di *d, const struct tl_di_view *v, size_t at, bool little_endian,
                         unsigned most)
{
    struct row row = {.at = at, .little_endian = little_endian};
    uint16_t dest = 0, src = 0;
    d->little_endian = little_endian;
    for (; row.n < most; row.n++) {
        if (at > v->n || v->n - at < TL_DI_HEADER_BYTES) {
            row.cut = !v->cut || at == v->n;
            break;
        }
        const uint8_t *const p = v->p + at;
        const uint16_t to = tl_di_word(d, p + 2), from = tl_di_word(d, p + 4);
        if (tl_di_evidence(d, p) < TL_DI_FRESH)
            break;
        if (row.n == 0) {
            dest = to;
            src = from;
        } else if (to != dest && (to != src || from != dest)) {
            break;
        }
        row.weight += tl_di_word(d, p + 6) ? 4 : 1;
        at += tl_di_packet_bytes(d, p);
    }
    return row;
}

/* Learn the system from the headers of a chain. */
static void learn_row(struct tl_di *d, const struct tl_di_view *v, const struct row *row)
{
    d->little_endian = row->little_endian;
    for (size_t at = row->at, n = 0; n < row->n; n++) {
        const uint16_t dest = tl_di_word(d, v->p + at + 2), src = tl_di_word(d, v->p + at + 4);
        d->dests[dest / 64] |= (uint64_t)1 << dest % 64;
        d->srcs[src / 64] |= (uint64_t)1 << src % 64;
        at += tl_di_packet_bytes(d, v->p + at);
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

static struct row longest_row(struct tl_di *d, const struct tl_di_view *window, size_t from)
{
    struct row best = {0};
    for (size_t parity = 0; parity < 2; parity++) {
        for (size_t at = from + parity; at + TL_DI_HEADER_BYTES <= window->n; at += 2) {
            for (unsigned little = 0; little < 2; little++) {
                const struct row row = row_at(d, window, at, little, ROW_MAX);
                if (is_better(&row, &best))
                    best = row;
            }
        }
    }
    return best;
}

/* Learn the system from the bytes from `i` on. TL_DI_NO: no such chain. */
enum tl_di_answer tl_di_learn(struct tl_di *d, const struct tl_di_view *v, size_t i)
{
    for (unsigned little = 0; little < 2; little++) {
        const struct row row = row_at(d, v, i, little, ROW);
        if (row.n == ROW && row.weight > 2 * ROW) {
            learn_row(d, v, &row);
            return TL_DI_YES;
        }
        if (row.cut && !v->cut)
            return TL_DI_MORE;
    }
    const size_t bytes = tl_di_window(d);
    if (v->n - i < bytes && !v->cut)
        return TL_DI_MORE;
    const bool rest = v->n - i <= bytes;
    const struct tl_di_view window = {v->p, rest ? v->n : i + bytes, rest ? v->cut : NULL};
    const struct row best = longest_row(d, &window, i);
    if (best.n == 0)
        return TL_DI_NO;
    learn_row(d, &window, &best);
    return TL_DI_YES;
}
