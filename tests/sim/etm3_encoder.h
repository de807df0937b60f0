/* SPDX-License-Identifier: MIT */
/*
 * Runs a random A32 and T32 program and encodes it as ETMv3 or PTM, with the truth as flow text:
 * lines I, X (number and address only), R, T and Y, and A of data trace. Written from the standards
 * apart from the decoder.
 *
 * Source: Arm IHI0014Q chapter 7; IHI0035B chapters 3 and 4.
 */
#ifndef TL_SIM_ETM3_ENCODER_H
#define TL_SIM_ETM3_ENCODER_H

#include "sim/arm32_program.h"

struct tl_sim_etm3_options {
    uint64_t seed;
    uint32_t insns; /* at least */
    bool ptm;
    bool m_profile; /* ETMv3 */
    /* Of the M profile: numbers of the exceptions that occur, which are those traced, too; 0 ends
     * them. None: some of all that there are. */
    uint8_t exceptions[4];
    bool alternative_branch; /* ETMv3 */
    bool cycle_accurate;
    bool timestamps;
    bool gray, wide_time;             /* Gray-coded; 64 bits */
    bool halves;                      /* ETMv3: those of Thumb's BL have an outcome each */
    bool exit_packets;                /* exception returns have a packet */
    unsigned context_bytes;           /* 0, 1, 2, 4 */
    unsigned stack;                   /* PTM: depth of the return stack; 0: none */
    bool barriers;                    /* PTM: DMB is a waypoint */
    bool data_addresses, data_values; /* ETMv3: data trace */
    bool gaps;                        /* tracing is switched off and overflows */
    unsigned sync_every;              /* bytes between synchronisations */
    uint64_t time;                    /* what timestamps begin with; 0: anything */
    uint32_t time_step;               /* the most from one to the next; 0: 5000 */
};

/* Append trace and truth. TL_NOMEM. */
TL_MUST_USE int tl_sim_etm3_encode(const struct tl_arm32_program *program,
                                   const struct tl_sim_etm3_options *options, struct tl_buf *trace,
                                   struct tl_buf *truth);

#endif
