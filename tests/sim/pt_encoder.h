/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets to bytes, with the IP compression and TNT packing of a processor. Each function
 * appends to `out`; without memory the program ends. Not thread-safe.
 *
 * Source: Intel SDM volume 3, "Intel Processor Trace", Trace Packets and Data Types.
 */
#ifndef TL_SIM_PT_ENCODER_H
#define TL_SIM_PT_ENCODER_H

#include "base/buf.h"
#include "pt/packet.h"
#include "sim/program_rng.h"

/* Zeroed: as a processor begins. */
struct tl_sim_pt {
    struct tl_buf out;
    uint64_t ip;       /* last IP */
    uint64_t outcomes; /* of branches, not sent yet; the newest in bit 0 */
    unsigned n_outcomes;
    bool long_tnt; /* TNT_64 where there are more than 6 */
};

void tl_sim_pt_fini(struct tl_sim_pt *pt);

/* The packet as it says, its payload cut to what it can hold. Last IP is kept up with. */
void tl_sim_pt_packet(struct tl_sim_pt *pt, const struct tl_pt_packet *packet);
/* One that is nothing but its kind: PAD, PSB, PSBEND, OVF, STOP. */
void tl_sim_pt_bare(struct tl_sim_pt *pt, enum tl_pt_kind kind);

/* The outcome of a branch, which waits until there are enough for a packet. */
void tl_sim_pt_branch(struct tl_sim_pt *pt, bool taken);
/* Send those that wait. */
void tl_sim_pt_flush(struct tl_sim_pt *pt);

/* TIP, TIP.PGE, TIP.PGD, FUP with as few bytes as say `ip`; outcomes that wait go before it. */
void tl_sim_pt_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind, uint64_t ip);
/* The same without an IP. */
void tl_sim_pt_no_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind);

/* A packet of any kind but INVALID, with a random payload that is none too bad to be parsed. */
void tl_sim_pt_random(struct tl_pt_packet *packet, struct tl_sim_rng *rng);

/*
 * About `bytes` bytes as of a program that runs for long: PSB+ every few KiB, between them
 * branches, indirect ones to some hundred addresses, interrupts. `timing`: CYC before each packet,
 * and MTC.
 */
void tl_sim_pt_program(struct tl_sim_pt *pt, struct tl_sim_rng *rng, size_t bytes, bool timing);

#endif
