/* SPDX-License-Identifier: MIT */
/*
 * What a capture's bytes say of its sources: found by decoding the packets with a setup, without a
 * program. Not thread-safe.
 */
#ifndef TL_CLI_SETUPEVIDENCE_H
#define TL_CLI_SETUPEVIDENCE_H

#include "setup/setup.h"

#define TL_EVIDENCE_IDS 128

/* Of a source. */
struct tl_evidence {
    uint64_t packets;
    uint64_t errors;             /* bytes that are no packets, and packets that are wrong */
    uint64_t syncs;              /* synchronisation packets of an ETMv4 or ETE */
    uint64_t infos;              /* trace information packets, */
    uint32_t info_any, info_all; /* their control bits: in any of them, in all of them */
    uint64_t stamps, contexts, vmids;
    uint64_t wide; /* addresses with more than 32 bits */
    /* Of an ETMv3: I-syncs that begin anew, and counts of cycles of those. */
    uint64_t starts, counted;
};

struct tl_evidences {
    struct tl_evidence of[TL_EVIDENCE_IDS]; /* by ID */
    uint64_t packets, errors;               /* of all of them, and of frames */
    bool unnamed;                           /* there are IDs that the setup lacks */
};

/* List the packets of `bytes` with this setup. Where it is refused, all is zero. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_evidence_list(const struct tl_setup *setup, struct tl_bytes bytes,
                                 struct tl_evidences *out);

#endif
