/* SPDX-License-Identifier: MIT */
/*
 * The packet layer of ETMv4 and ETE: takes the bytes of one trace source and produces packets, with
 * addresses decompressed using the three address registers and timestamps merged to full values.
 *
 * The same bytes give the same packets for any chunking. Any bytes are accepted; the only failures
 * are those of the sink. No allocation. Not thread-safe.
 *
 * After a BAD packet parsing continues at the next byte as if synchronised, so that every byte is
 * listed; a consumer that reconstructs flow must drop packets until the next ASYNC.
 *
 * An A-Sync is also found if a damaged packet consumed its first bytes.
 *
 * Trace info resets the address registers, the timestamp and the threshold. An ETE transaction
 * failure is an EXCEPTION of type 0x18 with TRANSACTION_FAILED; like PE_RESET, it is not followed
 * by an address packet.
 *
 * Source: Arm IHI0064H chapter 6; Arm DDI0487 chapter D6.
 */
#ifndef TL_ETM4_PACKETIZER_H
#define TL_ETM4_PACKETIZER_H

#include "base/state.h"
#include "etm4/config.h"
#include "etm4/packet.h"
#include "etm4/tape.h"
#include "frame/run.h"

#include <stddef.h>

#define TL_ETM4_BATCH 256 /* packets per delivery, at most */

/* Receive a batch of n >= 1 packets, borrowed for the call. A result < 0 stops the push, which
 * returns it. */
typedef int tl_etm4_packet_sink(void *context, const struct tl_etm4_packet *packets, size_t n);

/* The trace state that packets are compressed against. */
struct tl_etm4_registers {
    uint64_t address[3]; /* most recent first */
    uint8_t is[3];       /* 1: IS1 form */
    uint8_t sf;          /* 0: the last context was AArch32 */
    uint64_t timestamp;
    uint64_t threshold; /* cycle count threshold */
};

#define TL_TAPE_SLACK 64 /* extra space, since kernels write whole blocks */
#define TL_TAPE_PACKETS                                                                            \
    (TL_TAPE_ENTRIES - TL_TAPE_SLACK) /* a tape with this many packets is full */
#define TL_TAPE_OTHERS 64             /* complete packets in a tape, at most */

/* A tape being built, see tape.h. */
struct tl_etm4_columns {
    size_t n, n_addresses, n_others;
    size_t n_found; /* address packets, including those from n_addresses on that are not resolved
                       yet */
    uint8_t header[TL_TAPE_ENTRIES];
    uint16_t at[TL_TAPE_ENTRIES];
    uint64_t address[TL_TAPE_ENTRIES];
    struct tl_etm4_packet other[TL_TAPE_OTHERS];
    /* Unresolved address packets, for kernels that resolve them in batches: */
    uint8_t found[TL_TAPE_ENTRIES];      /* headers */
    uint8_t payload[4][TL_TAPE_ENTRIES]; /* payload bytes after the header */
    uint16_t found_at[TL_TAPE_ENTRIES];  /* positions in the run */
};

/* Finds the packets in many bytes at once, by vector instructions (unrolled.h). */
struct tl_etm4_kernel;

/* Allocated by the caller; members are private. About 30 KiB. */
struct tl_etm4_packetizer {
    tl_etm4_packet_sink *sink;    /* receives packets; NULL if `tape_sink` is used */
    tl_etm4_tape_sink *tape_sink; /* receives tapes */
    void *context;
    struct tl_etm4_registers regs;
    bool in_sync;
    int failed;        /* result of the sink if it was < 0, else 0 */
    uint8_t length;    /* number of bytes in `bytes` */
    uint8_t bytes[64]; /* a packet that is completed in the next push */
    /* Offset of that packet, of the current run of zeros, or of the skipped bytes */
    uint64_t start;
    uint64_t zeros;       /* length of the run of zero bytes at the end of the input so far */
    uint64_t zero_at[16]; /* ring of the offsets of its last bytes, one of which begins an A-Sync */
    uint64_t skipped;     /* unsynchronised bytes before that run */
    uint8_t tail[16];     /* last bytes of earlier runs */
    const struct tl_etm4_kernel *kernel; /* NULL: packet by packet */
    struct tl_run run;                   /* the run being processed */
    struct tl_etm4_forms forms;
    struct tl_etm4_columns columns;
};

/* Initialise, not synchronised. `config` is copied. */
void tl_etm4_packetizer_init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                             tl_etm4_packet_sink *sink, void *context);

/* The same, delivering packets as tapes, each within one run: the cheapest form. */
void tl_etm4_packetizer_init_tape(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                                  tl_etm4_tape_sink *sink, void *context);

/* Reset to the initial state, not synchronised. */
void tl_etm4_packetizer_reset(struct tl_etm4_packetizer *p);

/*
 * Save or restore the state, between pushes. A restored packetizer of the same configuration
 * continues exactly where the saved one stopped. Kernel and sink are not part of the state.
 */
void tl_etm4_packetizer_state(struct tl_etm4_packetizer *p, struct tl_state *state);

/*
 * Process a whole run. Every packet that ends in it has been delivered on return; an incomplete
 * packet is kept for the next run. Bytes before the first A-Sync become one NOT_SYNC packet,
 * delivered with the A-Sync. Returns 0, or what the sink returned; the object is unusable then.
 */
TL_MUST_USE int tl_etm4_packetizer_push(struct tl_etm4_packetizer *p, const struct tl_run *run);

/* How many bytes there are of a packet that has begun, between pushes, and the first one's offset.
 * Of an A-Sync there are none. */
size_t tl_etm4_packetizer_begun(const struct tl_etm4_packetizer *p, uint64_t *offset);

/* End of input: an incomplete packet becomes INCOMPLETE. Returns as tl_etm4_packetizer_push(). */
TL_MUST_USE int tl_etm4_packetizer_finish(struct tl_etm4_packetizer *p);

#endif
