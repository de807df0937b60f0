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
 * Create a decoder for `source`, which is a struct tl_etrace_flow: the functions below pass packets
 * to it, instead of `push` of its operations. `image` may be NULL; `sink` is copied. Returns
 * TL_UNSUPPORTED, with the parameter in `fail`, or TL_NOMEM.
 */
TL_MUST_USE int tl_etrace_flow_new(struct tl_stream_decoder **out, const struct tl_source *source,
                                   const struct tl_image *image, const struct tl_stream_sink *sink,
                                   struct tl_fail *fail);

/* May the encoder send packets of data trace? */
bool tl_etrace_flow_has_data(const struct tl_etrace_flow *flow);

/* Could these bytes be a packet, for synchronisation with damaged input? `strict`: shortened as
 * those before, or not at all, or as far as possible. */
bool tl_etrace_flow_is_plausible(struct tl_etrace_flow *flow, const struct tl_etrace_frame *frame,
                                 bool strict);

/* Process a packet; one of data trace is only listed. Returns the sink's errors, TL_NOMEM, or those
 * of tl_cancel_check(). */
TL_MUST_USE int tl_etrace_flow_packet(struct tl_etrace_flow *flow,
                                      const struct tl_etrace_frame *frame);

/* The same for a packet that is not known to be one: if it is not plausible (not strict), nothing
 * happens, and TL_ETRACE_NONSENSE is returned; TL_ETRACE_SENSE otherwise. Not of data trace. */
TL_MUST_USE int tl_etrace_flow_take(struct tl_etrace_flow *flow,
                                    const struct tl_etrace_frame *frame);

/* Packets in front of `offset` are missing: reports `gap`, if anything was being followed. With a
 * `note` (NULL: none) both are reported in any case, the note first. */
void tl_etrace_flow_lost(struct tl_etrace_flow *flow, const char *note, enum tl_gap gap,
                         uint64_t offset);

#endif
