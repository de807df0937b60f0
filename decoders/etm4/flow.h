/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 and ETE packets to flow items: elements, speculation, and the program's flow.
 *
 * Same packets give the same items, however they are batched. Any packets end in items; the
 * only failures are those of the sink, and of memory. Not thread-safe.
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

/* Told of bytes that were of no use; as in decode/ops.h. */
typedef int tl_etm4_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes);

/*
 * `image` (frozen; NULL or empty: addresses become BRANCH items) is borrowed for the object's
 * life, `config` is copied. `loss` may be NULL. Items and losses go to `context`. TL_NOMEM.
 */
TL_MUST_USE int tl_etm4_flow_new(struct tl_etm4_flow **out, const struct tl_etm4_config *config,
                                 const struct tl_image *image, tl_item_sink *items,
                                 tl_etm4_loss *loss, void *context);
void tl_etm4_flow_free(struct tl_etm4_flow *flow);

/*
 * Behind a flush: where it stands, into bytes or from them. What is loaded, of a new object or one
 * that was reset, of the same configuration and image, goes on as what was saved would have.
 */
void tl_etm4_flow_state(struct tl_etm4_flow *flow, struct tl_state *state);

/* As just made; decoded blocks are kept. Items that were not delivered are dropped. */
void tl_etm4_flow_reset(struct tl_etm4_flow *flow);

struct tl_walker *tl_etm4_flow_walker(struct tl_etm4_flow *flow);

/* What the sink takes, see struct tl_stream_sink. */
void tl_etm4_flow_sink(struct tl_etm4_flow *flow, bool paths, tl_block_code *code);

/* Take a batch; items are delivered as batches fill. TL_NOMEM, or what a sink returned. */
TL_MUST_USE int tl_etm4_flow_push(struct tl_etm4_flow *flow, const struct tl_etm4_packet *packets,
                                  size_t n);

/*
 * The same of a tape. Atoms that it ends with may wait for those of the next one, so that atoms
 * are taken together as far as the bytes of one push go.
 */
TL_MUST_USE int tl_etm4_flow_tape(struct tl_etm4_flow *flow, const struct tl_etm4_tape *tape);

/* A push has ended: atoms that wait are taken. */
TL_MUST_USE int tl_etm4_flow_pause(struct tl_etm4_flow *flow);

/* Take what waits, and deliver the items that are pending. */
TL_MUST_USE int tl_etm4_flow_flush(struct tl_etm4_flow *flow);

/*
 * No more packets: what was not committed is dropped. Delivers all items. `end` is the offset
 * behind the last byte. Tell of the end once.
 */
TL_MUST_USE int tl_etm4_flow_finish(struct tl_etm4_flow *flow, uint64_t end);

#endif
