/* SPDX-License-Identifier: MIT */
/*
 * Messages of SiFive's encoders that tell events: Data Acquisition (7) and In-Circuit Trace (34,
 * 35). Part of riscv/nexus_flow.h. Not thread-safe.
 */
#ifndef TL_RISCV_NEXUS_EVENTS_H
#define TL_RISCV_NEXUS_EVENTS_H

#include "riscv/nexus_flow.h"

void tl_nexus_on_data(struct tl_nexus_flow *flow, const struct tl_nexus_message *message);
void tl_nexus_on_circuit(struct tl_nexus_flow *flow, const struct tl_nexus_message *message);

/* Address of a field of `bits` bits, whose top bit may be its sign; 0 bits: it is none. */
uint64_t tl_nexus_address(const struct tl_nexus_flow *flow, uint64_t field, unsigned bits);
/* Take what a PROCESS field says: privilege, and perhaps an identifier of memory. */
void tl_nexus_take_process(struct tl_nexus_flow *flow, uint64_t process, uint64_t offset);

#endif
