/* SPDX-License-Identifier: MIT */
/*
 * Extracts a range of instructions as a separate trace. Records are copied unchanged; the header is
 * regenerated: FORCE_PC, PROCESS_ID_EXT and INST_IEM as of the first instruction, one additional
 * COMMENT and TRACE_INFO, everything else as in the original. The first instruction's group also
 * gets the known registers (INST_REG of operand type "state") and the privilege mode (MODE_CHANGE).
 * Instruction numbers in page table walks are adjusted.
 *
 * Consecutive shards of one stream are treated as one trace. No I/O, not thread-safe.
 */
#ifndef TL_STF_SLICE_H
#define TL_STF_SLICE_H

#include "stf/writer.h"

TL_C_BEGIN

struct tl_stf_slicer;

/*
 * Extract instructions [from, to) of the input into `out` (borrowed; must have been created
 * `unchecked`). `comment` (borrowed for the object's life, NULL: none) is the additional COMMENT.
 * TL_NOMEM.
 */
TL_MUST_USE int tl_stf_slicer_new(struct tl_stf_slicer **slicer, uint64_t from, uint64_t to,
                                  const char *comment, struct tl_stf_out *out);
void tl_stf_slicer_free(struct tl_stf_slicer *slicer); /* accepts NULL */

/*
 * Process one record, in order. Returns TL_EOF: the range is complete, no more input is needed;
 * TL_UNSUPPORTED: a transaction trace; errors of tl_stf_out_put().
 */
TL_MUST_USE int tl_stf_slicer_add(struct tl_stf_slicer *slicer, const struct tl_stf_record *record,
                                  struct tl_fail *fail);

/* Number of instructions written, and read, so far. */
uint64_t tl_stf_slicer_written(const struct tl_stf_slicer *slicer);
uint64_t tl_stf_slicer_seen(const struct tl_stf_slicer *slicer);

TL_C_END

#endif
