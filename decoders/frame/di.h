/* SPDX-License-Identifier: MIT */
/*
 * Length-prefixed DI datagrams of Open SoC Debug: bytes to packets.
 *
 * The format has no synchronisation, checksum or sequence number: a lost word moves everything
 * behind it. So a packet is delivered only when what follows it looks like a header too, and
 * after damage the next place is searched where two headers in a row fit what has been seen of
 * the system so far. One lost, doubled or changed word costs two packets at most. The price is
 * that the newest packet waits for the header of its successor (or the end).
 *
 * Byte order (big-endian on GLIP, little-endian in osd-sw's dumps and from some simulators) is
 * found out from the first header. Any chunking gives the same packets. Bounded memory; no I/O;
 * not thread-safe.
 *
 * Source: Open SoC Debug documentation (2020-03-28), "Debug Interconnect" and "Host Interface
 * Module"; osd-hw.
 */
#ifndef TL_FRAME_DI_H
#define TL_FRAME_DI_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>

#define TL_DI_HEADER    3   /* words: DEST, SRC, FLAGS */
#define TL_DI_MAX_WORDS 255 /* accepted where nobody has said more */

/* FLAGS */
#define TL_DI_TYPE(flags)     ((flags) >> 14)
#define TL_DI_TYPE_SUB(flags) ((flags) >> 10 & 15)
#define TL_DI_TYPE_REG        0
#define TL_DI_TYPE_EVENT      2
#define TL_DI_EVENT_LAST      0
#define TL_DI_EVENT_CONT      1
#define TL_DI_EVENT_OVERFLOW  5

struct tl_di_packet {
    uint64_t offset;       /* file offset of the length word */
    const uint16_t *words; /* host order: DEST, SRC, FLAGS, payload; borrowed for the call */
    unsigned n;            /* at least TL_DI_HEADER */
};

struct tl_di_sink {
    void *context;
    /* A result < 0 stops the push, which returns it. */
    int (*packet)(void *context, const struct tl_di_packet *packet);
    /* `bytes` from `offset` on were skipped; `reason` is static storage. May be NULL. */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
};

/* The members are private. */
struct tl_di {
    struct tl_di_sink sink;
    uint64_t offset; /* of the first byte in `pending`, or of the next one to come */
    struct tl_buf pending;
    uint16_t *words; /* of the packet being delivered */
    size_t cap_words;
    uint64_t packets; /* delivered, since nothing was known */
    uint64_t lost_at; /* offset where the search began */
    size_t scanned;   /* bytes of `pending` that the search has ruled out */
    unsigned limit;   /* longest packet accepted, words */
    unsigned longest; /* seen so far */
    bool little_endian;
    bool order_known;
    bool started; /* a packet was delivered */
    bool searching;
    bool suspect;         /* while searching: `pending` begins with a packet that may be whole */
    uint64_t dests[1024]; /* addresses seen, as bits */
    uint64_t srcs[1024];
    uint64_t headers[256]; /* seen lately, by hash; raw, 0: none */
};

/*
 * Begin at file offset `offset`. `max_words` is the subnet's MAX_PKT_LEN, or 0 if that is not
 * known. `sink` is copied. tl_di_fini() frees what it allocates later.
 */
void tl_di_init(struct tl_di *d, uint64_t offset, unsigned max_words,
                const struct tl_di_sink *sink);
void tl_di_fini(struct tl_di *d);

/* MAX_PKT_LEN has become known: longer packets than TL_DI_MAX_WORDS are accepted from now on. */
void tl_di_set_max_words(struct tl_di *d, unsigned max_words);

/* Take the next `n` bytes, all of them. < 0: from the sink, or TL_NOMEM. */
TL_MUST_USE int tl_di_push(struct tl_di *d, const uint8_t *p, size_t n);

/* No more bytes: deliver what is complete, report the rest as lost. */
TL_MUST_USE int tl_di_finish(struct tl_di *d);

#endif
