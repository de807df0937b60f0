/* SPDX-License-Identifier: MIT */
/*
 * Trace unit properties that a decoder of ETMv3 or PTM (program flow trace) needs, taken from the
 * unit's registers. Pure functions, thread-safe.
 *
 * Source: Arm IHI0014Q (ETMv3), IHI0035B (PFT), "ETMCR", "ETMCCER", "ETMIDR".
 */
#ifndef TL_ETM3_CONFIG_H
#define TL_ETM3_CONFIG_H

#include "base/err.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_etm3_config {
    bool ptm;      /* PTM; else ETMv3 */
    uint8_t minor; /* ETMv3.n, PFT1.n */
    uint8_t trace_id;
    bool m_profile;
    uint8_t context_bytes; /* of context IDs: 0, 1, 2, 4 */
    bool cycle_accurate;
    bool alternative_branch; /* ETMv3: the encoding in which short branches have exceptions */
    bool halves;             /* ETMv3: the two halves of Thumb's BL and BLX have an outcome each */
    bool timestamps;         /* they are traced */
    bool gray;               /* timestamps are Gray-coded */
    uint8_t time_bits;       /* of timestamps: 48, 64 */
    bool return_stack;       /* PTM: indirect branches may be predicted */
    bool barrier_waypoints;  /* PTM: DMB and DSB are waypoints */
    bool data_addresses;     /* ETMv3: addresses of data are traced, */
    bool data_values;        /* and their values */
    bool data_only;          /* ETMv3: no instructions are traced, and so no place */
    bool other_clock;        /* timestamps do not determine which memory contents apply */
    uint64_t since;          /* time for looking up memory, see struct tl_source */
};

/*
 * Fill `out` from a source's registers. Absent registers get the documented defaults
 * (docs/setup.md), so this never fails.
 */
void tl_etm3_config_init(struct tl_etm3_config *out, const struct tl_source *source);

#endif
