/* SPDX-License-Identifier: MIT */
/*
 * Headers are scored by how well they match what the stream has shown so far. Where the score
 * leaves a doubt, the packets that follow decide, as a wrong header rarely leads to another one.
 */
#include "frame/di_headers.h"

bool tl_di_flags_defined(uint16_t flags)
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
    const uint16_t flags = tl_di_word(d, p + 6);
    return flags && !(flags & 0x3ff) && tl_di_known(d->dests, tl_di_word(d, p + 4));
}

/* Is this a known module's answer to a register access? FLAGS determine its length. */
static bool is_answer(const struct tl_di *d, const uint8_t *p)
{
    const uint16_t flags = tl_di_word(d, p + 6);
    if ((flags & 0x3ff) || TL_DI_TYPE(flags) != TL_DI_TYPE_REG ||
        !tl_di_known(d->srcs, tl_di_word(d, p + 4)))
        return false;
    switch (TL_DI_TYPE_SUB(flags)) {
    case 8:
    case 9:
    case 10:
    case 11: /* 16 to 128 bits were read */
        return tl_di_word(d, p) == TL_DI_HEADER + (1u << (TL_DI_TYPE_SUB(flags) & 3));
    case 12:
    case 14:
    case 15: /* an error, or a write */
        return tl_di_word(d, p) == TL_DI_HEADER;
    default:
        return false;
    }
}

unsigned tl_di_evidence(const struct tl_di *d, const uint8_t *p)
{
    const unsigned words = tl_di_word(d, p);
    if (words < TL_DI_HEADER || words > d->limit)
        return 0;
    const uint16_t dest = tl_di_word(d, p + 2), flags = tl_di_word(d, p + 6);
    const uint16_t src = tl_di_word(d, p + 4);
    return (TL_DI_KNOWN_DEST - !dest) * tl_di_known(d->dests, dest) +
           (TL_DI_KNOWN_SRC - !src) * tl_di_known(d->srcs, src) +
           (TL_DI_FROM_HOST + TL_DI_FROM_HOST * tl_di_known(d->srcs, dest)) * is_from_host(d, p) +
           TL_DI_RESERVED_ZERO * ((flags & 0x3ff) == 0) +
           TL_DI_FLAGS_DEFINED * tl_di_flags_defined(flags);
}

/* A register request without a register's address: no one sends it. */
static bool is_empty_request(const struct tl_di *d, const uint8_t *p)
{
    const uint16_t flags = tl_di_word(d, p + 6);
    return tl_di_word(d, p) == TL_DI_HEADER && TL_DI_TYPE(flags) == TL_DI_TYPE_REG &&
           TL_DI_TYPE_SUB(flags) < 8;
}

bool tl_di_swallows_others(const struct tl_di *d, const uint8_t *p)
{
    if (tl_di_is_usual(d, tl_di_header_at(p)))
        return false;
    const size_t bytes = tl_di_packet_bytes(d, p);
    for (size_t i = 2; i + TL_DI_HEADER_BYTES <= bytes; i += 2) {
        size_t at = i;
        unsigned row = 0;
        for (; row < 3 && at + TL_DI_HEADER_BYTES <= bytes; row++) {
            if (tl_di_evidence(d, p + at) < (row ? TL_DI_ENOUGH : TL_DI_GOOD) ||
                is_empty_request(d, p + at))
                break;
            at += tl_di_packet_bytes(d, p + at);
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
static bool is_end(const struct tl_di *d, const struct tl_di_view *v, size_t before, size_t i)
{
    const size_t left = v->n - i;
    if (left == 0)
        return true;
    if (left <= 2) /* a single length word may as well be a surplus word of the previous packet */
        return false;
    if (!tl_di_is_usual(d, tl_di_header_at(v->p + before)))
        return false;
    if ((left >= 4 && !tl_di_known(d->dests, tl_di_word(d, v->p + i + 2))) ||
        (left >= 6 && !tl_di_known(d->srcs, tl_di_word(d, v->p + i + 4))))
        return false;
    for (unsigned slot = 0; slot < 256; slot++) {
        uint8_t header[8];
        tl_put_le64(header, d->headers[slot]);
        if (d->headers[slot] && tl_di_word(d, header) == tl_di_word(d, v->p + i))
            return true;
    }
    return false;
}

enum tl_di_answer tl_di_is_chain(const struct tl_di *d, const struct tl_di_view *v, size_t i,
                                 unsigned count, unsigned first, unsigned rest)
{
    size_t before = i;
    for (unsigned k = 0; k < count; k++) {
        if (v->n - i < TL_DI_HEADER_BYTES) {
            if (v->cut)
                return k > 0 && is_end(d, v, before, i) ? TL_DI_YES : TL_DI_NO;
            return TL_DI_MORE;
        }
        if (tl_di_evidence(d, v->p + i) < (k ? rest : first))
            return TL_DI_NO;
        if (k + 1 == count)
            return TL_DI_YES; /* regardless of how many of its bytes are available, for independence
                           of chunking */
        const size_t bytes = tl_di_packet_bytes(d, v->p + i);
        if (bytes > v->n - i)
            return v->cut ? TL_DI_NO : TL_DI_MORE;
        if (tl_di_swallows_others(d, v->p + i))
            return TL_DI_NO;
        before = i;
        i += bytes;
    }
    return TL_DI_YES;
}

enum tl_di_answer tl_di_is_next(const struct tl_di *d, const struct tl_di_view *v, size_t before,
                                size_t i)
{
    if (v->n - i < TL_DI_HEADER_BYTES) {
        if (!v->cut)
            return TL_DI_MORE;
        return is_end(d, v, before, i) ? TL_DI_YES : TL_DI_NO;
    }
    const unsigned weight = tl_di_evidence(d, v->p + i);
    if (weight >= TL_DI_ENOUGH)
        return TL_DI_YES;
    if (weight < TL_DI_FRESH)
        return TL_DI_NO;
    /* Both addresses are new, or only the flags are unusual: decide by the next packet. */
    const size_t bytes = tl_di_packet_bytes(d, v->p + i);
    if (v->n - i < bytes + TL_DI_HEADER_BYTES)
        return !v->cut                                       ? TL_DI_MORE
               : v->n - i == bytes && is_answer(d, v->p + i) ? TL_DI_YES
                                                             : TL_DI_NO;
    const uint8_t *const after = v->p + i + bytes;
    const unsigned further = tl_di_evidence(d, after);
    if (further >= TL_DI_FRESH && is_answer(d, v->p + i)) /* to a new host */
        return TL_DI_YES;
    const bool hosts =
        further >= TL_DI_FRESH && is_from_host(d, v->p + i) && is_from_host(d, after);
    return (further >= TL_DI_GOOD || hosts) && !tl_di_swallows_others(d, v->p + i) ? TL_DI_YES
                                                                                   : TL_DI_NO;
}

enum tl_di_answer tl_di_is_resync(const struct tl_di *d, const struct tl_di_view *v, size_t i,
                                  bool odd)
{
    const enum tl_di_answer answer = tl_di_is_chain(d, v, i, odd ? 4 : 2, TL_DI_BEST, TL_DI_GOOD);
    return answer != TL_DI_NO ? answer : tl_di_is_chain(d, v, i, 4, TL_DI_GOOD, TL_DI_GOOD);
}
