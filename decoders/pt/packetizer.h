/* SPDX-License-Identifier: MIT */
/*
 * The packet layer of Intel PT: takes the bytes of one stream in chunks of any size and produces
 * packets, many at a time, as columns of their fields: tapes (pt/tape.h).
 *
 * Synchronises at PSBs. After a packet that cannot be parsed it resumes at the next PSB, including
 * one whose first bytes the bad packet consumed. The same bytes give the same packets, losses and
 * errors for any chunking. No allocation. Not thread-safe.
 */
#ifndef TL_PT_PACKETIZER_H
#define TL_PT_PACKETIZER_H

#include "base/state.h"
#include "pt/tape.h"

/* The bytes a tape was made from: packets [from, to) of `bytes`, whose first byte is at stream
 * offset `base`. */
struct tl_pt_piece {
    struct tl_bytes bytes; /* borrowed for the call */
    size_t from, to;
    uint64_t base;
};

struct tl_pt_packet_sink {
    void *context;
    /* Results < 0 stop the push, which returns them. */
    int (*tape)(void *context, const struct tl_pt_tape *tape, const struct tl_pt_piece *piece);
    /* The packet at `offset` is invalid: `why` is TL_UNSUPPORTED or TL_BAD as from tl_pt_parse(),
     * or TL_AGAIN if the stream ends within it. */
    int (*error)(void *context, int why, uint64_t offset);
    /* These bytes, after an error or at the beginning, are not part of any packet. */
    int (*loss)(void *context, uint64_t offset, uint64_t bytes);
};

#define TL_PT_HISTORY 15 /* bytes before a bad packet in which a PSB may begin */
#define TL_PT_HELD    17 /* maximum number of bytes held back at the end of a push */

/* Allocated by the caller; members are private. About 24 KiB. */
struct tl_pt_packetizer {
    struct tl_pt_packet_sink sink;
    struct tl_pt_config config;
    uint64_t end;  /* offset after all bytes so far */
    uint64_t lost; /* if not in sync: offset of the first byte that is not part of a packet */
    bool in_sync;
    uint8_t n_tail, n_held;
    /* the last bytes so far, of which `n_held` are not processed yet */
    uint8_t tail[TL_PT_HISTORY + TL_PT_HELD];
    struct tl_pt_tape tape;
};

/* Initialise, not synchronised. `config` and `sink` are copied. */
void tl_pt_packetizer_init(struct tl_pt_packetizer *p, const struct tl_pt_config *config,
                           const struct tl_pt_packet_sink *sink);

/* Set the offset of the first byte to be pushed. */
void tl_pt_packetizer_begin(struct tl_pt_packetizer *p, uint64_t offset);

/* Set the offset of the next byte, after a jump in the input offsets. */
void tl_pt_packetizer_move(struct tl_pt_packetizer *p, uint64_t offset);

/*
 * Process `in`, all of it. Packets that end in it have been delivered on return, except in the last
 * TL_PT_HELD bytes if a PSB may begin there. Returns TL_OK, or what the sink returned; the object
 * is then unusable.
 */
TL_MUST_USE int tl_pt_packetizer_push(struct tl_pt_packetizer *p, struct tl_bytes in);

/* End of input. Returns as tl_pt_packetizer_push(). */
TL_MUST_USE int tl_pt_packetizer_finish(struct tl_pt_packetizer *p);

/* Save or restore the state, between pushes. Configuration and sink are not part of it. */
void tl_pt_packetizer_state(struct tl_pt_packetizer *p, struct tl_state *state);

#endif
