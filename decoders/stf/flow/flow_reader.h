/* SPDX-License-Identifier: MIT */
/*
 * Converts an STF stream to flow items: the inverse of flow_writer.h, and the import of STF traces
 * from other producers. No I/O, not thread-safe.
 *
 * Runs of instructions are delivered as TL_ITEM_BLOCK with a block that lives only during the call;
 * for a trace from another producer it contains the whole groups of its instructions
 * (stf/flow/flow_groups.h). The items' `offset` is the byte offset in the plain STF stream.
 */
#ifndef TL_STF_FLOW_READER_H
#define TL_STF_FLOW_READER_H

#include "base/state.h"
#include "flow/item.h"
#include "stf/reader.h"

struct tl_stf_flow_reader;

/* Create a reader. Items go to `sink` with `context`. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_flow_reader_new(struct tl_stf_flow_reader **out, tl_item_sink *sink,
                                       void *context);
void tl_stf_flow_reader_free(struct tl_stf_flow_reader *reader);

/* Process the next record. Returns the sink's errors; TL_NOMEM. */
TL_MUST_USE int tl_stf_flow_reader_add(struct tl_stf_flow_reader *reader,
                                       const struct tl_stf_record *record);
/* Deliver items that are complete, for following a growing trace. */
TL_MUST_USE int tl_stf_flow_reader_deliver(struct tl_stf_flow_reader *reader);
/*
 * Save the state, or restore it into a new reader. Call only right after
 * tl_stf_flow_reader_deliver(). Sets TL_AGAIN within a header, or while items are pending until the
 * next instruction.
 */
void tl_stf_flow_reader_state(struct tl_stf_flow_reader *reader, struct tl_state *state);
/* End of input: deliver pending items. */
TL_MUST_USE int tl_stf_flow_reader_finish(struct tl_stf_flow_reader *reader);

/* Convert a complete source: tl_stf_reader combined with this. */
TL_MUST_USE int tl_stf_flow_read(const struct tl_stf_source *source, tl_item_sink *sink,
                                 void *context, struct tl_fail *fail);

#endif
