/* SPDX-License-Identifier: MIT */
/*
 * Packets from the length-prefixed DI datagrams of Open SoC Debug.
 *
 * The format has no synchronisation, checksum or sequence number: a lost word misaligns everything
 * after it. Therefore a packet is delivered only if a plausible header follows it, and after damage
 * the parser searches for the next position with two consecutive headers that match what has been
 * seen of the system so far. One lost, duplicated or changed word costs at most two packets. In
 * return, the newest packet is delayed until the header of the next one (or the end).
 *
 * Byte order (big-endian on GLIP, little-endian in osd-sw's dumps and from some simulators) is
 * detected from the first header. Any chunking gives the same packets. Bounded memory; no I/O; not
 * thread-safe.
 *
 * Source: Open SoC Debug documentation (2020-03-28), "Debug Interconnect" and "Host Interface
 * Module"; osd-hw.
 */
#ifndef TL_FRAME_DI_H
#define TL_FRAME_DI_H

#include "base/state.h"

#include <stdbool.h>

#define TL_DI_HEADER    3   /* words: DEST, SRC, FLAGS */
#define TL_DI_MAX_WORDS 256 /* maximum packet length, unless configured otherwise */

/* FLAGS word */
#define TL_DI_TYPE(flags)     ((flags) >> 14)
#define TL_DI_TYPE_SUB(flags) ((flags) >> 10 & 15)
#define TL_DI_TYPE_REG        0
#define TL_DI_TYPE_EVENT      2
#define TL_DI_EVENT_LAST      0
#define TL_DI_EVENT_CONT      1
#define TL_DI_EVENT_OVERFLOW  5
#define TL_DI_PLAIN_EVENT     0x8000 /* FLAGS of an event in one packet, or of its last part */
#define TL_DI_EVENT_PART      0x8400 /* FLAGS of the other parts of an event */

struct tl_di_packet {
    uint64_t offset; /* file offset of the length word */
    /* Host order: DEST, SRC, FLAGS, payload; borrowed for the call. Up to 3 undefined words after
     * the packet may be read. */
    const uint16_t *words;
    unsigned n; /* at least TL_DI_HEADER */
};

struct tl_di_sink {
    void *context;
    /* A result < 0 stops the push, which returns it. */
    int (*packet)(void *context, const struct tl_di_packet *packet);
    /* `bytes` from `offset` on were skipped; `reason` is static storage. May be NULL. */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
};

/* A packet in input form. */
struct tl_di_raw {
    uint64_t offset;  /* file offset of the length word */
    const uint8_t *p; /* the length word; 8 bytes after the packet may be read */
    unsigned n;       /* words after the length word */
};

#define TL_DI_BATCH       64
#define TL_DI_USUAL_WORDS 16 /* packets are rarely longer */

/* All members are private. */
struct tl_di {
    struct tl_di_sink sink;
    int (*batch)(void *context, const struct tl_di_raw *packets, size_t n);
    uint64_t offset; /* file offset of the first byte in `pending`, or of the next input byte */
    struct tl_buf pending;
    uint16_t *words; /* of the packet being delivered */
    size_t cap_words;
    uint64_t lost_at; /* offset where the search began */
    size_t scanned;   /* bytes of `pending` already ruled out by the search */
    unsigned limit;   /* maximum accepted packet length in words */
    bool little_endian;
    bool informed;        /* byte order and some addresses are known */
    bool started;         /* a packet was delivered */
    bool searching;       /* for the next packet */
    bool suspect;         /* while searching: `pending` begins with a packet that may be intact */
    uint64_t dests[1024]; /* addresses seen, as bit sets */
    uint64_t srcs[1024];
    uint64_t headers[256]; /* recently seen headers, by hash; in input form, 0: none */
};

/*
 * Initialise at file offset `offset`. `max_words` is the subnet's MAX_PKT_LEN, or 0 if unknown.
 * `sink` is copied. Memory allocated later is freed by tl_di_fini().
 */
void tl_di_init(struct tl_di *d, uint64_t offset, unsigned max_words,
                const struct tl_di_sink *sink);
void tl_di_fini(struct tl_di *d);

/*
 * Deliver undamaged consecutive packets in batches of at most TL_DI_BATCH, in input form, instead
 * of to sink->packet: this costs almost nothing. A result < 0 stops the push. tl_di_little_endian()
 * gives the byte order of the words.
 */
void tl_di_set_batch(struct tl_di *d,
                     int (*batch)(void *context, const struct tl_di_raw *packets, size_t n));

static inline bool tl_di_little_endian(const struct tl_di *d)
{
    return d->little_endian;
}

/* Copy a packet's words in host order to `words`, which has space for raw->n and for
 * TL_DI_USUAL_WORDS words. Returns the packet. */
struct tl_di_packet tl_di_read_raw(const struct tl_di_raw *raw, bool little_endian,
                                   uint16_t *words);

/* Load four words of a packet, the first one in the low bits. */
static inline uint64_t tl_di_words4(const uint8_t *p, bool little_endian)
{
    const uint64_t x = tl_le64(p), low = 0x00ff00ff00ff00ffu;
    return little_endian ? x : (x >> 8 & low) | (x & low) << 8;
}

/* Set MAX_PKT_LEN: packets longer than TL_DI_MAX_WORDS are accepted from now on. */
void tl_di_set_max_words(struct tl_di *d, unsigned max_words);

/* Process the next `n` bytes, all of them. Returns < 0 from the sink, or TL_NOMEM. */
TL_MUST_USE int tl_di_push(struct tl_di *d, const uint8_t *p, size_t n);

/* Account for `n` missing input bytes. Call after tl_di_finish(); the search for a header resumes
 * after them. */
void tl_di_skip(struct tl_di *d, uint64_t n);

/* End of input, or of contiguous input: deliver what is complete and report the rest as lost; if
 * that is the begin of a packet, for the reason `cut`. */
TL_MUST_USE int tl_di_finish(struct tl_di *d, const char *cut);

/*
 * Save the state between pushes, or restore it into a newly initialised object with the same sink.
 */
void tl_di_state(struct tl_di *d, struct tl_state *state);

#endif
