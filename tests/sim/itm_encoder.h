/* SPDX-License-Identifier: MIT */
/*
 * Encodes ITM packets of a program that prints, samples and takes exceptions, together with the
 * flow text that a decoder must derive from them. Not thread-safe.
 */
#ifndef TL_SIM_ITM_ENCODER_H
#define TL_SIM_ITM_ENCODER_H

#include "base/buf.h"
#include "sim/program_rng.h"

struct tl_sim_itm_options {
    uint64_t seed;
    unsigned prescale;  /* of local timestamps: 1, 4, 16, 64 */
    bool timed;         /* local timestamps are enabled */
    bool syncs;         /* synchronisation packets are */
    bool global;        /* global timestamps are */
    bool wide;          /* they have 64 bits, not 48 */
    unsigned overflows; /* one in about so many packets is an overflow; 0: none */
    unsigned bad_bytes; /* before one in about so many packets, 1 to 3 bytes are none; 0: none */
};

struct tl_sim_itm {
    struct tl_sim_itm_options options;
    struct tl_sim_rng rng;
    struct tl_buf trace; /* encoded so far */
    struct tl_buf text;  /* flow text, except what waits for its time */
    struct tl_buf held;
    uint64_t time, global, base; /* the sum of local times; the last global one; their distance */
    unsigned page, together;     /* packets since the last local timestamp */
    bool begun;                  /* a packet was encoded */
    size_t gaps, overflows, times;
};

/* Initialise a zeroed encoder. */
void tl_sim_itm_init(struct tl_sim_itm *itm, const struct tl_sim_itm_options *options);
void tl_sim_itm_fini(struct tl_sim_itm *itm);
/* Encode about `n` packets. TL_NOMEM. */
TL_MUST_USE int tl_sim_itm_run(struct tl_sim_itm *itm, unsigned n);
/* Encode a synchronisation packet. TL_NOMEM. */
TL_MUST_USE int tl_sim_itm_sync(struct tl_sim_itm *itm);
/* Complete `text`. TL_NOMEM. */
TL_MUST_USE int tl_sim_itm_end(struct tl_sim_itm *itm);

#endif
