/* SPDX-License-Identifier: MIT */
/*
 * Convert ETMv4 and ETE packets to flow items: elements, speculation, and the program's flow.
 *
 * The same packets give the same items for any batching. Any packet sequence is accepted; the only
 * failures are those of the sink and out of memory. Not thread-safe.
 *
 * Source: Arm IHI0064H chapter 5; Arm DDI0487 D5.
 */
#ifndef TL_ETM4_FLOW_H
#define TL_ETM4_FLOW_H

#include "base/state.h"
#include "etm4/config.h"
#include "etm4/tape.h"
#include "flow/item.h"

struct tl_etm4_flow;

/* Receive the extent of undecodable bytes; as in decode/ops.h. */
typedef int tl_etm4_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes);

/*
 * Create a decoder. `image` (frozen; NULL or empty: addresses become BRANCH items) is borrowed for
 * the object's life, `config` is copied. `loss` may be NULL. Items and losses go to `context`.
 * Returns TL_NOMEM.
 */
TL_MUST_USE int tl_etm4_flow_new(struct tl_etm4_flow **out, const struct tl_etm4_config *config,
                                 const struct tl_image *image, tl_item_sink *items,
                                 tl_etm4_loss *loss, void *context);
void tl_etm4_flow_free(struct tl_etm4_flow *flow);

/*
 * Save or restore the decoder's state. Call only right after a flush. A restored decoder (new or
 * reset, same configuration and image) continues exactly where the saved one stopped.
 */
void tl_etm4_flow_state(struct tl_etm4_flow *flow, struct tl_state *state);

/* Reset to the initial state, but keep decoded blocks. Undelivered items are dropped. */
void tl_etm4_flow_reset(struct tl_etm4_flow *flow);

struct tl_walker *tl_etm4_flow_walker(struct tl_etm4_flow *flow);

/* Set what the sink accepts, see struct tl_stream_sink. */
void tl_etm4_flow_sink(struct tl_etm4_flow *flow, bool paths, tl_block_code *code);

/* Process a batch; items are delivered as their batch fills up. Returns TL_NOMEM, or what a sink
 * returned. */
TL_MUST_USE int tl_etm4_flow_push(struct tl_etm4_flow *flow, const struct tl_etm4_packet *packets,
                                  size_t n);

/*
 * Process a tape. Atoms at its end may stay pending to be joined with those of the next tape, so
 * that atoms are processed together within the bytes of one push.
 */
TL_MUST_USE int tl_etm4_flow_tape(struct tl_etm4_flow *flow, const struct tl_etm4_tape *tape);

/* End of a push: process pending atoms. */
TL_MUST_USE int tl_etm4_flow_pause(struct tl_etm4_flow *flow);

/* Process pending atoms and deliver all items. */
TL_MUST_USE int tl_etm4_flow_flush(struct tl_etm4_flow *flow);

/*
 * End of input: drop uncommitted elements and deliver all items. `end` is the offset after the last
 * byte. Call once.
 */
TL_MUST_USE int tl_etm4_flow_finish(struct tl_etm4_flow *flow, uint64_t end);

#endif
