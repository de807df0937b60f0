/* SPDX-License-Identifier: MIT */
/*
 * What a header of a DI packet looks like, judged by what the stream has shown so far: how much
 * speaks for one, and for several in a row. Pure functions of the bytes and of what is known.
 */
#ifndef TL_FRAME_DI_HEADERS_H
#define TL_FRAME_DI_HEADERS_H

#include "frame/di.h"

#define TL_DI_HEADER_BYTES (2 * (1 + TL_DI_HEADER))

/*
 * Evidence for a header. There are few destinations (hosts), so a known one is the strongest
 * evidence; but 0 is a common payload word.
 */
enum {
    TL_DI_FLAGS_DEFINED = 1,
    TL_DI_RESERVED_ZERO = 1,
    TL_DI_FROM_HOST = 1, /* and again if to a known module */
    TL_DI_KNOWN_SRC = 2, /* both are one less for address 0 */
    TL_DI_KNOWN_DEST = 3,
    TL_DI_FRESH =
        TL_DI_FLAGS_DEFINED + TL_DI_RESERVED_ZERO, /* the maximum before anything is known */
    TL_DI_ENOUGH = TL_DI_FRESH + TL_DI_KNOWN_SRC,  /* in sync */
    TL_DI_GOOD = TL_DI_FRESH + TL_DI_KNOWN_DEST,
    TL_DI_BEST = TL_DI_FRESH + TL_DI_KNOWN_DEST - 1 + TL_DI_KNOWN_SRC
};

enum tl_di_answer {
    TL_DI_NO,
    TL_DI_YES,
    TL_DI_MORE /* more bytes are needed */
};

/* Bytes under inspection: those not delivered yet. */
struct tl_di_view {
    const uint8_t *p;
    size_t n;
    const char *cut; /* why a packet may not be complete: nothing follows. NULL: more may */
};

static inline uint16_t tl_di_word(const struct tl_di *d, const uint8_t *p)
{
    return d->little_endian ? tl_le16(p) : tl_be16(p);
}

static inline bool tl_di_known(const uint64_t *set, uint16_t address)
{
    return set[address / 64] >> address % 64 & 1;
}

static inline size_t tl_di_packet_bytes(const struct tl_di *d, const uint8_t *p)
{
    return 2 * (1 + (size_t)tl_di_word(d, p));
}

static inline uint64_t tl_di_header_at(const uint8_t *p)
{
    return tl_le64(p);
}

static inline unsigned tl_di_slot_of(uint64_t header)
{
    return (unsigned)(header * 0x9e3779b97f4a7c15u >> 56);
}

/*
 * Was there recently a packet with exactly this header? 0 marks an unused slot and is not a header.
 */
static inline bool tl_di_is_usual(const struct tl_di *d, uint64_t header)
{
    return header && d->headers[tl_di_slot_of(header)] == header;
}

/* REG: all sub-types but one; EVENT: last, continued, overflow. The other types are reserved. */
bool tl_di_flags_defined(uint16_t flags);
/* Score a header at `p` (TL_DI_HEADER_BYTES are available). 0: invalid. */
unsigned tl_di_evidence(const struct tl_di *d, const uint8_t *p);
/*
 * Does the packet contain others? A damaged length may coincide with the end of another packet.
 * Then the packets it includes form a chain of headers that ends at the same position.
 */
bool tl_di_swallows_others(const struct tl_di *d, const uint8_t *p);
/* Are there `count` consecutive headers, the first one with score `first`, the others with `rest`?
 */
enum tl_di_answer tl_di_is_chain(const struct tl_di *d, const struct tl_di_view *v, size_t i,
                                 unsigned count, unsigned first, unsigned rest);
/* Is byte `i` plausible as the start of the packet after the one at `before`? */
enum tl_di_answer tl_di_is_next(const struct tl_di *d, const struct tl_di_view *v, size_t before,
                                size_t i);
/*
 * May the search end at byte `i`? An odd distance is less likely, so the requirements are higher.
 */
enum tl_di_answer tl_di_is_resync(const struct tl_di *d, const struct tl_di_view *v, size_t i,
                                  bool odd);

/*
 * Learn byte order, hosts and modules from the bytes from `i` on (di_learn.c). TL_DI_NO: nothing
 * there looks like consecutive packets.
 */
enum tl_di_answer tl_di_learn(struct tl_di *d, const struct tl_di_view *v, size_t i);
/* The bytes that are looked at for that. */
size_t tl_di_window(const struct tl_di *d);

#endif
