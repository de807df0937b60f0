/* SPDX-License-Identifier: MIT */
/*
 * N-Trace of a program's execution (sim/riscv_run.h), in every mode of the standard, and the flow
 * text that a decoder has to find.
 *
 * Source: RISC-V N-Trace 1.0.
 */
#ifndef TL_SIM_NEXUS_ENCODER_H
#define TL_SIM_NEXUS_ENCODER_H

#include "sim/riscv_run.h"

struct tl_sim_nexus_options {
    uint64_t seed;
    bool history;   /* HTM, else BTM */
    unsigned stack; /* returns are left out by a call stack of this depth, up to 1024; 0: none */
    bool sequences; /* jumps behind AUIPC are left out */
    bool repeats;   /* RepeatBranch, and histories with their number */
    bool jumps;     /* direct jumps are told as taken branches */
    bool times;     /* timestamps */
    bool contexts;  /* Ownership messages */
    bool extends;   /* addresses by their sign */
    bool gaps;      /* overflows, and trace off and on */
    bool sifive; /* timestamps by exclusive or; full histories of equal outcomes as their number */
    bool reserved; /* messages of codes that are reserved, and of vendors' */
    bool events;   /* SiFive's messages that tell no flow: software's data, in-circuit events */
    bool padded;   /* fields with more zeros than needed */
    unsigned src_bits, src;
    unsigned xlen;
    unsigned address_bits; /* sent of an address; 0: all */
    unsigned history_bits; /* of a full history: 2 to 31 */
    unsigned icnt_max;     /* halfwords of a full I-CNT */
    unsigned sync_every;   /* messages */
    unsigned time_bits;    /* of the timestamp counter, which wraps; 0: 64 */
    uint64_t time;         /* at the start */
};

/*
 * Append the trace to `trace` and its flow text, without modes and contexts, to `text`. Returns
 * TL_NOMEM.
 */
TL_MUST_USE int tl_sim_nexus_encode(const struct tl_sim_riscv_run *run,
                                    const struct tl_sim_nexus_options *options,
                                    struct tl_buf *trace, struct tl_buf *text);

#endif
