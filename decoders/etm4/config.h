/* SPDX-License-Identifier: MIT */
/*
 * What an ETMv4 or ETE decoder must know of its trace unit, taken from the unit's registers.
 * Pure functions, thread-safe.
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
    bool aarch64; /* the core can execute A64 */

    /* Which packets there are, and how long their fields. */
    uint8_t vmid_bytes;    /* 0, 1, 2, 4 */
    uint8_t context_bytes; /* 0, 4 */
    uint8_t address_bits;  /* 32, 64 */
    uint8_t cycle_bits;    /* width of the cycle counter */
    bool commit_opt1;      /* no commit count in cycle count packets */
    bool conditional;      /* conditional instruction trace is on */
    bool data_trace;       /* data trace is on */
    bool q_elements;       /* Q packets are possible */

    /* How elements are made of packets. */
    bool return_stack;
    bool branch_broadcast;
    bool cycle_count;
    bool timestamps;
    bool other_clock;        /* … which do not say when memory changes: it is as it was … */
    uint64_t since;          /* … at this time, else where the trace begins */
    bool ts_marker;          /* timestamps before the first marker do not count */
    bool trans_p0;           /* transaction start is a P0 element */
    bool wfx_branch;         /* WFI and WFE are P0 instructions */
    bool load_store_p0;      /* loads or stores are P0 elements */
    uint32_t max_spec_depth; /* P0 elements that may wait for their commit; 0: none does */
};

/*
 * Fill `out` from a source's registers. Registers that are absent get the documented defaults
 * (docs/setup.md), so this never fails on a source without any: it is then an ETMv4.0 (or ETE
 * 1.0) for a 64-bit core with nothing optional.
 */
void tl_etm4_config_init(struct tl_etm4_config *out, const struct tl_source *source);

/*
 * TL_UNSUPPORTED, saying what, where the flow of such a trace cannot be reconstructed. Packets can
 * be listed all the same.
 */
int tl_etm4_config_check(const struct tl_etm4_config *config, struct tl_fail *fail);

#endif
