/* SPDX-License-Identifier: MIT */
/*
 * The packet layer of ETMv4 and ETE: bytes of one trace source in, packets out, with addresses
 * resolved against the three address registers and timestamps merged to full values.
 *
 * Same bytes give the same packets, whatever the chunking (only where `merge_atoms` joins atom
 * packets, it never joins them across two pushes). Any bytes end in packets; there is no
 * failure but that of the sink. No allocation. Not thread-safe.
 *
 * Behind a BAD packet parsing goes on at the next byte as if in step, and so every byte is
 * listed; a consumer that wants flow must drop packets until the next ASYNC.
 *
 * Source: Arm IHI0064H chapter 6; Arm DDI0487 chapter D6.
 */
#ifndef TL_ETM4_PACKETIZER_H
#define TL_ETM4_PACKETIZER_H

#include "etm4/config.h"
#include "etm4/packet.h"
#include "frame/run.h"

#include <stddef.h>

#define TL_ETM4_BATCH 256 /* packets delivered at once, at most */

/* A batch, n >= 1, borrowed for the call. A result < 0 stops the push, which returns it. */
typedef int tl_etm4_packet_sink(void *context, const struct tl_etm4_packet *packets, size_t n);

/* The trace state: what later packets are relative to. */
struct tl_etm4_registers {
    uint64_t address[3]; /* most recent first */
    uint8_t is[3];       /* 1: IS1 form */
    uint8_t sf;          /* the last context was AArch64, or there was none */
    uint64_t timestamp;
    uint64_t threshold;  /* cycle count threshold */
};

/* Members are private, but the object is the caller's. About 9 KiB. */
struct tl_etm4_packetizer {
    struct tl_etm4_config config;
    tl_etm4_packet_sink *sink;
    void *context;
    struct tl_etm4_registers regs;
    uint8_t state;        /* enum in packetizer.c */
    bool merge_atoms;
    bool need_timestamp;  /* the next one is absolute */
    uint8_t length;       /* bytes of the packet in `bytes` */
    uint8_t bytes[64];    /* a packet that goes on in the next push */
    uint64_t start;       /* its offset */
    uint64_t zeros;       /* length of the run of zero bytes that the stream ends with */
    uint64_t zero_at[16]; /* offsets of its last ones, as a ring */
    uint64_t skipped;     /* bytes since synchronisation was lost, not yet told */
    uint64_t skipped_at;
    uint64_t bytes_in;    /* all bytes ever pushed */
    uint8_t class_of[256]; /* header byte to enum in headers.h */
    size_t n;
    struct tl_etm4_packet batch[TL_ETM4_BATCH];
};

/*
 * Start, not synchronised. `config` is copied. `merge_atoms`: consecutive atom packets become
 * one of up to 64 atoms, at the offset of the first: for speed, not for listings.
 */
void tl_etm4_packetizer_init(struct tl_etm4_packetizer *p, const struct tl_etm4_config *config,
                             bool merge_atoms, tl_etm4_packet_sink *sink, void *context);

/*
 * Take the whole run. Every packet that ends in it has been delivered on return; a packet that
 * has not ended waits for the next run. Bytes before the first A-Sync become one NOT_SYNC
 * packet, delivered with the A-Sync. Returns 0, or what the sink returned.
 */
TL_MUST_USE int tl_etm4_packetizer_push(struct tl_etm4_packetizer *p, const struct tl_run *run);

/* No more bytes: an unfinished packet becomes INCOMPLETE. Returns as push. */
TL_MUST_USE int tl_etm4_packetizer_finish(struct tl_etm4_packetizer *p);

#endif
