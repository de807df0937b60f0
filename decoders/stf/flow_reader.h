/* SPDX-License-Identifier: MIT */
/*
 * An STF stream back to flow items: the inverse of flow_writer.h, and the way in for STF traces
 * that others made. No I/O, not thread-safe.
 *
 * Runs of instructions come as TL_ITEM_BLOCK with a block of their own that lives only during
 * the call; of a trace that others wrote it has the whole groups of its instructions
 * (stf/flow_groups.h). Their `offset` is the byte offset in the plain STF stream.
 */
#ifndef TL_STF_FLOW_READER_H
#define TL_STF_FLOW_READER_H

#include "base/state.h"
#include "flow/item.h"
#include "stf/reader.h"

struct tl_stf_flow_reader;

/* Items go to `sink` with `context`. TL_NOMEM. */
TL_MUST_USE int tl_stf_flow_reader_new(struct tl_stf_flow_reader **out, tl_item_sink *sink,
                                       void *context);
void tl_stf_flow_reader_free(struct tl_stf_flow_reader *reader);

/* Take one record, in order. The sink's errors; TL_NOMEM. */
TL_MUST_USE int tl_stf_flow_reader_add(struct tl_stf_flow_reader *reader,
                                       const struct tl_stf_record *record);
/* Deliver what is complete already, for those who follow a trace that is still growing. */
TL_MUST_USE int tl_stf_flow_reader_deliver(struct tl_stf_flow_reader *reader);
/*
 * Behind tl_stf_flow_reader_deliver(): where it stands, into bytes
 * or, of a new one, from them. TL_AGAIN: within a header, or where items wait for an instruction.
 */
void tl_stf_flow_reader_state(struct tl_stf_flow_reader *reader, struct tl_state *state);
/* Deliver what is pending. */
TL_MUST_USE int tl_stf_flow_reader_finish(struct tl_stf_flow_reader *reader);

/* All of a source, to the sink: tl_stf_reader and this in one. */
TL_MUST_USE int tl_stf_flow_read(const struct tl_stf_source *source, tl_item_sink *sink,
                                 void *context, struct tl_fail *fail);

#endif
