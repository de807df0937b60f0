/* SPDX-License-Identifier: MIT */
/*
 * The packet layer of Intel PT: bytes of one stream in chunks of any size in, packets out, as
 * tapes.
 *
 * Synchronises at PSBs. Behind a packet that cannot be parsed it goes on at the next PSB, one that
 * the bad packet may have begun to take for its own among them. Same bytes give the same packets,
 * losses and errors, whatever the chunking. No allocation. Not thread-safe.
 */
#ifndef TL_PT_PACKETIZER_H
#define TL_PT_PACKETIZER_H

#include "base/state.h"
#include "pt/tape.h"

/* What a tape is of: packets [from, to) of `bytes`, whose first byte is at `base` in the stream. */
struct tl_pt_piece {
    struct tl_bytes bytes; /* borrowed for the call */
    size_t from, to;
    uint64_t base;
};

struct tl_pt_packet_sink {
    void *context;
    /* Results < 0 stop the push, which returns them. */
    int (*tape)(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece);
    /* The packet at this offset: TL_UNSUPPORTED or TL_BAD, as tl_pt_parse(); TL_AGAIN: the stream
     * ends within it. */
    int (*error)(void *context, int why, uint64_t offset);
    /* These bytes, behind an error or at the beginning, are in no packet. */
    int (*loss)(void *context, uint64_t offset, uint64_t bytes);
};

#define TL_PT_HISTORY 15 /* bytes in front of a bad packet in which a PSB may begin */
#define TL_PT_HELD    17 /* bytes at the end of a push that wait for the next one, at most */

/* Members are private, but the object is the caller's. About 35 KiB. */
struct tl_pt_packetizer {
    struct tl_pt_packet_sink sink;
    struct tl_pt_config config;
    uint64_t end;  /* offset behind all bytes so far */
    uint64_t lost; /* offset from which on bytes are in no packet, if not in sync */
    bool in_sync;
    uint8_t n_tail, n_held;
    uint8_t tail[TL_PT_HISTORY + TL_PT_HELD]; /* the last bytes so far; `n_held` of them wait */
    struct tl_pt_tape tape;
};

/* Start, not synchronised. `config` and `sink` are copied. */
void tl_pt_packetizer_init(struct tl_pt_packetizer *p, const struct tl_pt_config *config,
                           const struct tl_pt_packet_sink *sink);

/* The first byte that will be pushed is at this offset. */
void tl_pt_packetizer_begin(struct tl_pt_packetizer *p, uint64_t offset);

/* The next byte is at this offset, which is not where the one before it ended. */
void tl_pt_packetizer_move(struct tl_pt_packetizer *p, uint64_t offset);

/* Take all bytes. Packets that end in them have been delivered on return, but for up to 17 bytes
 * where a PSB may begin. Returns TL_OK, or what the sink returned; it is of no use then. */
TL_MUST_USE int tl_pt_packetizer_push(struct tl_pt_packetizer *p, struct tl_bytes in);

/* There are no more bytes. Returns as push. */
TL_MUST_USE int tl_pt_packetizer_finish(struct tl_pt_packetizer *p);

/* Between two pushes: where it stands, into bytes or from them. Configuration and sink stay. */
void tl_pt_packetizer_state(struct tl_pt_packetizer *p, struct tl_state *state);

#endif
