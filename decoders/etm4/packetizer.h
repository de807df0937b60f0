/* SPDX-License-Identifier: MIT */
/*
 * The packet layer of ETMv4 and ETE: bytes of one trace source in, packets out, with addresses
 * resolved against the three address registers and timestamps merged to full values.
 *
 * Same bytes give the same packets, whatever the chunking. Any bytes end in packets; there is no
 * failure but that of the sink. No allocation. Not thread-safe.
 *
 * Behind a BAD packet parsing goes on at the next byte as if in step, and so every byte is
 * listed; a consumer that wants flow must drop packets until the next ASYNC.
 *
 * An A-Sync is found also where a damaged packet has taken its first bytes for its own.
 *
 * Trace info resets the address registers, the timestamp and the threshold. An ETE transaction
 * failure is an EXCEPTION of type 0x18 with TRANSACTION_FAILED; as behind PE_RESET, no address
 * packet belongs to it.
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

#define TL_ETM4_BATCH 256 /* packets delivered at once, at most */

/* A batch, n >= 1, borrowed for the call. A result < 0 stops the push, which returns it. */
typedef int tl_etm4_packet_sink(void *context, const struct tl_etm4_packet *packets, size_t n);

/* The trace state: what later packets are relative to. */
struct tl_etm4_registers {
    uint64_t address[3]; /* most recent first */
    uint8_t is[3];       /* 1: IS1 form */
    uint8_t sf;          /* 0: the last context was AArch32 */
    uint64_t timestamp;
    uint64_t threshold; /* cycle count threshold */
};

#define TL_TAPE_SLACK   64                             /* blocks are written whole */
#define TL_TAPE_PACKETS (TL_TAPE_ROOM - TL_TAPE_SLACK) /* a tape with as many is full */
#define TL_TAPE_OTHERS  64

/* A tape in the making, see tape.h. */
struct tl_etm4_columns {
    size_t n, n_addresses, n_others;
    size_t n_found; /* address packets; those from n_addresses on are to be resolved */
    uint8_t header[TL_TAPE_ROOM];
    uint16_t at[TL_TAPE_ROOM];
    uint64_t address[TL_TAPE_ROOM];
    struct tl_etm4_packet other[TL_TAPE_OTHERS];
    /* What resolves addresses, of kernels that do so late: */
    uint8_t found[TL_TAPE_ROOM];      /* their headers, */
    uint8_t payload[4][TL_TAPE_ROOM]; /* … the bytes behind these, */
    uint16_t found_at[TL_TAPE_ROOM];  /* … and where they are in the run */
};

struct tl_etm4_kernel;

/* Members are private, but the object is the caller's. About 32 KiB. */
struct tl_etm4_packetizer {
    tl_etm4_packet_sink *sink;    /* of packets, or */
    tl_etm4_tape_sink *tape_sink; /* … of tapes */
    void *context;
    struct tl_etm4_registers regs;
    bool in_sync;
    int failed;           /* what the sink returned, if that was < 0 */
    uint8_t length;       /* bytes in `bytes` */
    uint8_t bytes[64];    /* a packet that goes on in the next push */
    uint64_t start;       /* its offset, or that of the run of zeros, or of the bytes skipped */
    uint64_t zeros;       /* length of the run of zero bytes that the stream ends with */
    uint64_t zero_at[16]; /* offsets of its last ones, as a ring */
    uint64_t skipped;     /* bytes not in sync before that run */
    uint8_t tail[16];     /* the last bytes of earlier runs */
    const struct tl_etm4_kernel *kernel; /* for many bytes at once, see unrolled.h; may be NULL */
    struct tl_run run;                   /* the one being taken */
    struct tl_etm4_forms forms;
    struct tl_etm4_columns columns;
};

/* Start, not synchronised. `config` is copied. */
void tl_etm4_packetizer_init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                             tl_etm4_packet_sink *sink, void *context);

/* The same for packets as tapes, each within a run: what costs least. */
void tl_etm4_packetizer_init_tape(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                                  tl_etm4_tape_sink *sink, void *context);

/* Not synchronised, as just made. */
void tl_etm4_packetizer_reset(struct tl_etm4_packetizer *p);

/*
 * Between two pushes: where it stands, into bytes or from them. What is loaded goes on as what was
 * saved would have, of the same configuration; kernel and sink stay.
 */
void tl_etm4_packetizer_state(struct tl_etm4_packetizer *p, struct tl_state *state);

/*
 * Take the whole run. Every packet that ends in it has been delivered on return; a packet that
 * has not ended waits for the next run. Bytes before the first A-Sync become one NOT_SYNC
 * packet, delivered with the A-Sync. Returns 0, or what the sink returned; the object is of no
 * use then.
 */
TL_MUST_USE int tl_etm4_packetizer_push(struct tl_etm4_packetizer *p, const struct tl_run *run);

/* No more bytes: an unfinished packet becomes INCOMPLETE. Returns as push. */
TL_MUST_USE int tl_etm4_packetizer_finish(struct tl_etm4_packetizer *p);

#endif
