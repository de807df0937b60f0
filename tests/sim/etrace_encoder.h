/* SPDX-License-Identifier: MIT */
/*
 * An E-Trace encoder with all options of the standard, for tests: the execution of a simulated
 * program to enveloped packets, and what a decoder can know of traps.
 *
 * Unless it is `plain`, it avoids the few sequences that the standard's decoder takes for others,
 * with additional packets: places that are reached again without any branch in between.
 */
#ifndef TL_SIM_ETRACE_ENCODER_H
#define TL_SIM_ETRACE_ENCODER_H

#include "riscv/etrace_envelope.h"
#include "riscv/etrace_packet.h"
#include "sim/riscv_run.h"

/* How far payloads are shortened. */
enum tl_sim_etrace_lengths {
    TL_SIM_SHORTEST,
    TL_SIM_WHOLE,      /* not at all */
    TL_SIM_SYNC_WHOLE, /* format 3 not at all */
    TL_SIM_BETWEEN     /* some more than others */
};

struct tl_sim_etrace_options {
    struct tl_etrace_params params;
    unsigned options; /* enum tl_etrace_option */
    struct tl_etrace_envelope envelope;
    uint16_t src;
    uint32_t resync;   /* instructions between synchronisation packets; 0: none */
    uint32_t notify;   /* instructions between notifications; 0: none */
    bool precise;      /* a change of context is a synchronisation packet */
    uint32_t off_each; /* instructions after which trace is off for a while; 0: never */
    bool repeats;      /* the last instruction of a trace is reported again behind format 3 */
    bool plain;        /* no packets but those of the standard; not with implicit returns */
    uint8_t lengths;   /* enum tl_sim_etrace_lengths */
    uint32_t data;     /* packets of which one follows a packet of data trace; 0: there is none */
    uint32_t again; /* instructions of which one is followed by the same support packet; 0: none */
    uint32_t bogus; /* packets between support packets that the encoder did not send; 0: none */
    uint64_t seed;
};

struct tl_sim_etrace {
    struct tl_buf bytes;
    /* By event: is it traced; of a trap: does the decoder know the preferred return address? */
    uint8_t *traced, *known; /* owned */
    uint32_t n_bogus;
};

/* Returns TL_NOMEM. */
TL_MUST_USE int tl_sim_etrace_encode(struct tl_sim_etrace *out, const struct tl_sim_riscv_run *run,
                                     const struct tl_sim_etrace_options *options);
void tl_sim_etrace_fini(struct tl_sim_etrace *etrace);

/* The same for E-Trace 2.1, with sizes. */
uint32_t tl_sim_etrace_sized_ioptions(const struct tl_etrace_params *params, unsigned options);

/* The same of PULP's unit. */
uint32_t tl_sim_etrace_pulp_ioptions(unsigned options);

/* The encoder's `ioptions` for these options, in the order of the standard's model. */
uint32_t tl_sim_etrace_ioptions(unsigned options);

#endif
