/* SPDX-License-Identifier: MIT */
/*
 * Random ETMv4 and ETE packets of every type that a configuration allows, valid and invalid, with
 * the expected result of a packetizer. They do not form a meaningful flow: they only test the
 * packet layer.
 *
 * Deterministic, not thread-safe.
 */
#ifndef TL_SIM_ETM4_ENCODER_PACKETS_H
#define TL_SIM_ETM4_ENCODER_PACKETS_H

#include "base/buf.h"
#include "etm4/packetizer.h"
#include "sim/program_rng.h"

/* Frequencies of packet types. */
enum tl_sim_mix {
    TL_SIM_MIX_ALL,       /* all types equally often */
    TL_SIM_MIX_ATOMS,     /* mostly atoms */
    TL_SIM_MIX_ADDRESSES, /* mostly addresses and atoms, as with branch broadcast */
    TL_SIM_MIXES
};

struct tl_sim_packets {
    struct tl_etm4_config config;
    struct tl_sim_rng rng;
    enum tl_sim_mix mix;
    bool bad; /* also reserved headers and bad sequences */
    struct tl_buf bytes;
    struct tl_etm4_packet *expected;
    size_t n, cap;
    uint64_t address[3];
    uint8_t is[3];
    bool aarch32;
    uint64_t timestamp;
    uint64_t threshold;
    int result;
};

/* A random configuration. */
void tl_sim_packets_config(struct tl_etm4_config *config, struct tl_sim_rng *rng);

void tl_sim_packets_init(struct tl_sim_packets *s, const struct tl_etm4_config *config,
                         enum tl_sim_mix mix, bool bad, uint64_t seed);
void tl_sim_packets_fini(struct tl_sim_packets *s);

/* Append an A-Sync (must come first) or `n` random packets. TL_NOMEM. */
TL_MUST_USE int tl_sim_packets_async(struct tl_sim_packets *s);
TL_MUST_USE int tl_sim_packets_add(struct tl_sim_packets *s, size_t n);

#endif
