/* SPDX-License-Identifier: MIT */
/*
 * The E-Trace packets of one hart to flow items. The container (riscv/etrace.c) takes the packets
 * out of their envelopes. Not thread-safe.
 */
#ifndef TL_RISCV_ETRACE_FLOW_H
#define TL_RISCV_ETRACE_FLOW_H

#include "decode/ops.h"
#include "riscv/etrace_envelope.h"
#include "riscv/etrace_packet.h"

struct tl_etrace_flow;

/*
 * Create a decoder for `source` (NULL: the defaults); `image` may be NULL. `vmid` is that of the
 * images bound to the source (tl_setup_source_vmid()), 0: none. `unit` is for tl_etrace_params().
 * `sink` is copied. Returns TL_UNSUPPORTED, with the parameter in `fail`, or TL_NOMEM.
 */
TL_MUST_USE int tl_etrace_flow_new(struct tl_etrace_flow **out, const struct tl_source *source,
                                   const struct tl_image *image, uint32_t vmid,
                                   enum tl_etrace_unit unit, const struct tl_stream_sink *sink,
                                   struct tl_fail *fail);
void tl_etrace_flow_free(struct tl_etrace_flow *flow);

/* Could these bytes be a packet? For synchronisation with damaged input. */
bool tl_etrace_flow_is_plausible(const struct tl_etrace_flow *flow, struct tl_bytes payload);

/* Process a packet. Returns the sink's errors, TL_NOMEM, or those of tl_cancel_check(). */
TL_MUST_USE int tl_etrace_flow_packet(struct tl_etrace_flow *flow,
                                      const struct tl_etrace_frame *frame);

/* Packets in front of `offset` are missing: reports `gap`, if anything was being followed. */
void tl_etrace_flow_lost(struct tl_etrace_flow *flow, enum tl_gap gap, uint64_t offset);

/* Deliver pending items. Returns the sink's errors. */
TL_MUST_USE int tl_etrace_flow_flush(struct tl_etrace_flow *flow);
/* At the end of the trace: deliver everything. */
TL_MUST_USE int tl_etrace_flow_finish(struct tl_etrace_flow *flow);

void tl_etrace_flow_state(struct tl_etrace_flow *flow, struct tl_state *state);

#endif
