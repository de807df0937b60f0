/* SPDX-License-Identifier: MIT */
/*
 * Encodes Intel PT packets, with the IP compression and TNT packing of a processor. Each function
 * appends to `out`; if memory runs out, the program ends. Not thread-safe.
 *
 * Source: Intel SDM volume 3, "Intel Processor Trace", Trace Packets and Data Types.
 */
#ifndef TL_SIM_PT_ENCODER_H
#define TL_SIM_PT_ENCODER_H

#include "base/buf.h"
#include "pt/packet.h"
#include "sim/program_rng.h"

/* All zeros: the initial state of a processor. */
struct tl_sim_pt {
    struct tl_buf out;
    uint64_t ip;       /* last IP */
    uint64_t outcomes; /* of branches, not yet sent; the newest in bit 0 */
    unsigned n_outcomes;
    bool long_tnt; /* use TNT_64 for more than 6 */
};

void tl_sim_pt_fini(struct tl_sim_pt *pt);

/* Encode the packet as given, its payload cut to the maximum size. Updates the last IP. */
void tl_sim_pt_packet(struct tl_sim_pt *pt, const struct tl_pt_packet *packet);
/* A packet without payload: PAD, PSB, PSBEND, OVF, STOP. */
void tl_sim_pt_bare(struct tl_sim_pt *pt, enum tl_pt_kind kind);

/* The outcome of a branch, held back until there are enough for a packet. */
void tl_sim_pt_branch(struct tl_sim_pt *pt, bool taken);
/* Send the outcomes held back. */
void tl_sim_pt_flush(struct tl_sim_pt *pt);

/*
 * TIP, TIP.PGE, TIP.PGD or FUP with the smallest number of bytes that encodes `ip`; outcomes held
 * back are sent before it.
 */
void tl_sim_pt_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind, uint64_t ip);
/* The same without an IP. */
void tl_sim_pt_no_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind);

/* A packet of any kind except INVALID, with a random payload that can still be parsed. */
void tl_sim_pt_random(struct tl_pt_packet *packet, struct tl_sim_rng *rng);

/*
 * Write about `bytes` bytes, like those of a long-running program: PSB+ every few KiB, and between
 * them branches, indirect branches to some hundred addresses, and interrupts. `timing`: CYC before
 * each packet, and MTC.
 */
void tl_sim_pt_program(struct tl_sim_pt *pt, struct tl_sim_rng *rng, size_t bytes, bool timing);

#endif
