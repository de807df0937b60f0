/* SPDX-License-Identifier: MIT */
/*
 * Runs a random T32 program of the M profile, and leaves the RAM of an MTB as a debugger reads it
 * after the halt, with the truth as flow text: lines I, X (number and address only) and R, from the
 * destination of the oldest record on. Written from the standard apart from the decoder.
 *
 * Source: Arm DDI0486, "Trace packet format".
 */
#ifndef TL_SIM_MTB_ENCODER_H
#define TL_SIM_MTB_ENCODER_H

#include "sim/arm32_program.h"

#define TL_SIM_MTB_VECTOR 15u /* the exception whose handler the program has */

struct tl_sim_mtb_options {
    uint64_t seed;
    uint32_t insns; /* at least */
    unsigned mask;  /* MASTER.MASK: the buffer has 2^(mask + 4) bytes */
    unsigned front; /* bytes of the dump in front of the buffer */
    bool gaps;      /* tracing stops and starts */
};

struct tl_sim_mtb {
    struct tl_buf ram; /* the dump */
    struct tl_buf truth;
    uint32_t position; /* POSITION */
    bool has_pc;       /* no branch ran since the last record: */
    uint32_t pc;
};

/* Fill `out`, which is zeroed. TL_NOMEM. */
TL_MUST_USE int tl_sim_mtb_encode(const struct tl_arm32_program *program,
                                  const struct tl_sim_mtb_options *options, struct tl_sim_mtb *out);
void tl_sim_mtb_fini(struct tl_sim_mtb *mtb);

#endif
