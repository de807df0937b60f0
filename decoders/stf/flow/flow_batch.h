/* SPDX-License-Identifier: MIT */
/*
 * Collects flow items with everything they point to, for delivery in one call. Runs of instructions
 * become blocks that live until the delivery. Private to the library; not thread-safe.
 */
#ifndef TL_STF_FLOW_BATCH_H
#define TL_STF_FLOW_BATCH_H

#include "base/state.h"
#include "flow/item.h"
#include "stf/flow/flow_groups.h"

#define TL_STF_BATCH_ITEMS 128
#define TL_STF_RUN_MAX     1024 /* instructions */

struct tl_stf_batch {
    tl_item_sink *sink;
    void *context;
    const struct tl_stf_groups *groups; /* NULL: blocks contain only closing records */
    struct tl_item items[TL_STF_BATCH_ITEMS];
    struct tl_block blocks[TL_STF_BATCH_ITEMS];
    size_t n;
    /* Texts, payloads, code and records; referenced by offset until the delivery */
    struct tl_buf arena;
    /* The run being built: consecutive instructions in one instruction set. */
    struct tl_buf code, stf;
    uint64_t pc;
    uint64_t offset;
    uint32_t insns;
    uint32_t last_coded; /* bytes of the last instruction's records */
    struct tl_insn last;
    uint8_t isa;
};

void tl_stf_batch_fini(struct tl_stf_batch *batch);

/*
 * Append an item (copied, with its text and data; `name` has static storage). Ends the current run
 * first. Returns TL_NOMEM, the sink's errors.
 */
TL_MUST_USE int tl_stf_batch_add(struct tl_stf_batch *batch, const struct tl_item *item);

/* How the flow went on behind an instruction. */
enum tl_stf_way {
    TL_STF_STRAIGHT,
    TL_STF_RETURNS, /* to another address if it is an unconditional exception return */
    TL_STF_TAKEN    /* to another address */
};

/*
 * Append an instruction of `size` bytes `code` at `pc`; if the batch has groups, `group` is the
 * complete group in its trace. Ends the run if the instruction can change the flow, or did.
 */
TL_MUST_USE int tl_stf_batch_insn(struct tl_stf_batch *batch, enum tl_isa isa, uint64_t pc,
                                  const uint8_t *code, uint32_t size, struct tl_bytes group,
                                  enum tl_stf_way way, uint64_t offset);

/* Save the current run, or restore it into a new batch with its own `groups`. All complete items
 * must have been delivered. */
void tl_stf_batch_state(struct tl_stf_batch *batch, struct tl_state *state);

/* Deliver complete items; the run continues. */
TL_MUST_USE int tl_stf_batch_deliver(struct tl_stf_batch *batch);
/* End the run and deliver everything. */
TL_MUST_USE int tl_stf_batch_flush(struct tl_stf_batch *batch);

#endif
