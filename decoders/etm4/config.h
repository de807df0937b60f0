/* SPDX-License-Identifier: MIT */
/*
 * Trace unit properties that an ETMv4 or ETE decoder needs, taken from the unit's registers. Pure
 * functions, thread-safe.
 *
 * Source: Arm IHI0064H (TRCIDRn, TRCCONFIGR); Arm DDI0487 (TRCDEVARCH).
 */
#ifndef TL_ETM4_CONFIG_H
#define TL_ETM4_CONFIG_H

#include "base/err.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_etm4_config {
    uint8_t version;  /* ETMv4.n: 0x4n; ETE 1.n: 0x5n */
    uint8_t trace_id; /* formatter ID, 0 if the stream is not formatted */
    bool ete;
    bool m_profile;
    bool v8;      /* Armv8 or later */
    bool aarch64; /* the core executes A64 */

    /* Which packets can occur, and the lengths of their fields. */
    uint8_t vmid_bytes;    /* 0, 1, 2, 4 */
    uint8_t context_bytes; /* 0, 4 */
    uint8_t address_bits;  /* 32, 64 */
    uint8_t cycle_bits;    /* width of the cycle counter in bits */
    bool commit_opt1;      /* COMMOPT: cycle count packets have no commit count */
    bool conditional;      /* conditional instruction trace is enabled */
    bool data_trace;       /* data trace is enabled */
    bool q_elements;       /* Q packets can occur */

    /* How elements are derived from packets. */
    bool return_stack;
    bool branch_broadcast;
    bool cycle_count;
    bool timestamps;
    bool other_clock; /* timestamps do not determine which memory contents apply; use `since` */
    uint64_t since;   /* time for looking up memory: with `other_clock` for the whole trace, else at
                         its beginning */
    bool ts_marker;   /* ignore timestamps before the first timestamp marker */
    bool trans_p0;    /* a transaction start is a P0 element */
    bool wfx_branch;  /* WFI and WFE are P0 instructions */
    bool load_store_p0;      /* loads or stores are P0 elements */
    uint32_t max_spec_depth; /* maximum number of uncommitted P0 elements; 0: no speculation */
};

/*
 * Fill `out` from a source's registers. Absent registers get the documented defaults
 * (docs/setup.md), so this never fails; a source without any registers is an ETMv4.0 (or ETE 1.0)
 * for a 64-bit core without optional features.
 */
void tl_etm4_config_init(struct tl_etm4_config *out, const struct tl_source *source);

/*
 * Check whether the flow of such a trace can be reconstructed. Returns TL_UNSUPPORTED with the
 * reason in `fail` if not; packets can still be listed.
 */
int tl_etm4_config_check(const struct tl_etm4_config *config, struct tl_fail *fail);

#endif
