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

#include "base/state.h"

#include <stdbool.h>

#define TL_DI_HEADER    3   /* words: DEST, SRC, FLAGS */
#define TL_DI_MAX_WORDS 256 /* accepted where nobody has said more */

/* FLAGS */
#define TL_DI_TYPE(flags)     ((flags) >> 14)
#define TL_DI_TYPE_SUB(flags) ((flags) >> 10 & 15)
#define TL_DI_TYPE_REG        0
#define TL_DI_TYPE_EVENT      2
#define TL_DI_EVENT_LAST      0
#define TL_DI_EVENT_CONT      1
#define TL_DI_EVENT_OVERFLOW  5
#define TL_DI_PLAIN_EVENT     0x8000 /* FLAGS of an event in one packet, or its last part */
#define TL_DI_EVENT_PART      0x8400 /* … of another part */

struct tl_di_packet {
    uint64_t offset;       /* file offset of the length word */
    const uint16_t *words; /* host order: DEST, SRC, FLAGS, payload; borrowed for the call; 3 more
                              of no meaning may be read */
    unsigned n;            /* at least TL_DI_HEADER */
};

struct tl_di_sink {
    void *context;
    /* A result < 0 stops the push, which returns it. */
    int (*packet)(void *context, const struct tl_di_packet *packet);
    /* `bytes` from `offset` on were skipped; `reason` is static storage. May be NULL. */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
};

/* A packet as it lies in the input. */
struct tl_di_raw {
    uint64_t offset;  /* file offset of the length word */
    const uint8_t *p; /* its length word; 8 bytes behind the packet may be read */
    unsigned n;       /* words behind the length word */
};

#define TL_DI_BATCH       64
#define TL_DI_USUAL_WORDS 16 /* almost no packet has more */

/* The members are private. */
struct tl_di {
    struct tl_di_sink sink;
    int (*batch)(void *context, const struct tl_di_raw *packets, size_t n);
    uint64_t offset; /* of the first byte in `pending`, or of the next one to come */
    struct tl_buf pending;
    uint16_t *words; /* of the packet being delivered */
    size_t cap_words;
    uint64_t lost_at; /* offset where the search began */
    size_t scanned;   /* bytes of `pending` that the search has ruled out */
    unsigned limit;   /* longest packet accepted, words */
    bool little_endian;
    bool informed;        /* the byte order, and some addresses, are known */
    bool started;         /* a packet was delivered */
    bool searching;       /* for the next packet */
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

/*
 * Deliver packets that follow each other without anything odd in batches of at most TL_DI_BATCH, as
 * they lie there, instead of to sink->packet: they cost next to nothing then. A result < 0 stops
 * the push. tl_di_little_endian() says how the words are to be read.
 */
void tl_di_set_batch(struct tl_di *d,
                     int (*batch)(void *context, const struct tl_di_raw *packets, size_t n));

static inline bool tl_di_little_endian(const struct tl_di *d)
{
    return d->little_endian;
}

/* Copy a packet's words in host order to `words`, which holds at least raw->n and
 * TL_DI_USUAL_WORDS. Returns the packet. */
struct tl_di_packet tl_di_read_raw(const struct tl_di_raw *raw, bool little_endian,
                                   uint16_t *words);

/* Four words of a packet, the first one in the low bits. */
static inline uint64_t tl_di_words4(const uint8_t *p, bool little_endian)
{
    const uint64_t x = tl_le64(p), low = 0x00ff00ff00ff00ffu;
    return little_endian ? x : (x >> 8 & low) | (x & low) << 8;
}

/* MAX_PKT_LEN has become known: longer packets than TL_DI_MAX_WORDS are accepted from now on. */
void tl_di_set_max_words(struct tl_di *d, unsigned max_words);

/* Take the next `n` bytes, all of them. < 0: from the sink, or TL_NOMEM. */
TL_MUST_USE int tl_di_push(struct tl_di *d, const uint8_t *p, size_t n);

/* The next `n` bytes are missing: behind tl_di_finish(), go on searching for a header after them.
 */
void tl_di_skip(struct tl_di *d, uint64_t n);

/* No more bytes, or none that follow these: deliver what is complete, report the rest as lost. */
TL_MUST_USE int tl_di_finish(struct tl_di *d);

/* Between two pushes: where it stands, into bytes or, of one that was just begun for the same sink,
 * from them. */
void tl_di_state(struct tl_di *d, struct tl_state *state);

#endif
