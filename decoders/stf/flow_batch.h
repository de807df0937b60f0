/* SPDX-License-Identifier: MIT */
/*
 * Flow items gathered with all that they point to, then delivered together. Runs of instructions
 * become blocks that live until the delivery. Private to the library; not thread-safe.
 */
#ifndef TL_STF_FLOW_BATCH_H
#define TL_STF_FLOW_BATCH_H

#include "base/state.h"
#include "flow/item.h"
#include "stf/flow_groups.h"

#define TL_STF_BATCH_ITEMS 128
#define TL_STF_RUN_MAX     1024 /* instructions */

struct tl_stf_batch {
    tl_item_sink *sink;
    void *context;
    const struct tl_stf_groups *groups; /* NULL: blocks have closing records only */
    struct tl_item items[TL_STF_BATCH_ITEMS];
    struct tl_block blocks[TL_STF_BATCH_ITEMS];
    size_t n;
    struct tl_buf arena; /* texts, payloads, code and records, by offset until the delivery */
    /* The run being built: consecutive instructions of one instruction set. */
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
 * Add an item (copied, with its text, name of static storage, and data). A run that is being built
 * goes first. Errors: TL_NOMEM, the sink's.
 */
TL_MUST_USE int tl_stf_batch_add(struct tl_stf_batch *batch, const struct tl_item *item);

/*
 * Add an instruction of `size` bytes `code` at `pc`; `group`, if the batch has groups, is the whole
 * group of its trace. It ends the run if it can change the flow, or did (`taken`).
 */
TL_MUST_USE int tl_stf_batch_insn(struct tl_stf_batch *batch, enum tl_isa isa, uint64_t pc,
                                  const uint8_t *code, uint32_t size, struct tl_bytes group,
                                  bool taken, uint64_t offset);

/* With all that is complete delivered: the run, into bytes or, of a new batch, from them; `groups`
 * are its own. */
void tl_stf_batch_state(struct tl_stf_batch *batch, struct tl_state *state);

/* Deliver what is complete; the run goes on. */
TL_MUST_USE int tl_stf_batch_deliver(struct tl_stf_batch *batch);
/* End the run and deliver everything. */
TL_MUST_USE int tl_stf_batch_flush(struct tl_stf_batch *batch);

#endif
