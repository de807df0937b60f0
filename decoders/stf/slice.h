/* SPDX-License-Identifier: MIT */
/*
 * A range of instructions as a trace of its own. Records are kept as they are; the header is made
 * anew: FORCE_PC, PROCESS_ID_EXT and INST_IEM as they are at the first instruction, one COMMENT and
 * one TRACE_INFO more, all else as it was. Into the first instruction's group come the registers
 * that are known (INST_REG of operand type "state") and the privilege mode (MODE_CHANGE).
 * Instruction numbers in page table walks are shifted.
 *
 * Takes shards of one stream one behind another as one trace. No I/O, not thread-safe.
 */
#ifndef TL_STF_SLICE_H
#define TL_STF_SLICE_H

#include "stf/writer.h"

TL_C_BEGIN

struct tl_stf_slicer;

/*
 * Instructions [from, to) of what is added, into `out` (borrowed; must have been made
 * `unchecked`). `comment` (borrowed for the object's life, NULL: none) is the COMMENT to add.
 */
TL_MUST_USE int tl_stf_slicer_new(struct tl_stf_slicer **slicer, uint64_t from, uint64_t to,
                                  const char *comment, struct tl_stf_out *out);
void tl_stf_slicer_free(struct tl_stf_slicer *slicer);

/*
 * Take one record, in order. TL_EOF: the range is complete, nothing more is wanted.
 * TL_UNSUPPORTED: a transaction trace. Errors of tl_stf_out_put().
 */
TL_MUST_USE int tl_stf_slicer_add(struct tl_stf_slicer *slicer, const struct tl_stf_record *record,
                                  struct tl_fail *fail);

/* Instructions written so far, and seen in all. */
uint64_t tl_stf_slicer_written(const struct tl_stf_slicer *slicer);
uint64_t tl_stf_slicer_seen(const struct tl_stf_slicer *slicer);

TL_C_END

#endif
