/* SPDX-License-Identifier: MIT */
/*
 * Checks across records: whether a core could have executed the trace.
 *
 *   flow-target   an instruction continues at an impossible address
 *   flow-straight an instruction that always continues elsewhere does not, or nothing says where
 *                 (jumps of RISC-V: see jump-target)
 *   target-branch INST_PC_TARGET with an instruction that is no branch (RISC-V: see
 * stf/tools/check.c) target-straight INST_PC_TARGET with a conditional branch that is not taken
 *   flow-forced   a FORCE_PC after the header: the following does not result from what precedes it
 *   mode-cause    the privilege mode changes without a trap or a return from one
 *   code-changed  a different opcode at an address, without a store to it and without a fence
 *   reg-x0        RISC-V: x0 has a value other than 0
 *   walk-differs  a page table entry has a different value than before, without a store or a fence
 *
 * Part of a check (stf/tools/check.h). Memory: 40 to 80 bytes for each instruction of the program
 * and each page table entry, at most TL_STF_INVARIANT_KEYS of which are tracked. Not thread-safe.
 */
#ifndef TL_STF_INVARIANTS_H
#define TL_STF_INVARIANTS_H

#include "stf/tools/check.h"

#define TL_STF_INVARIANT_KEYS (UINT32_C(1) << 20)

struct tl_stf_invariants;

TL_MUST_USE int tl_stf_invariants_new(struct tl_stf_invariants **out, tl_stf_finding_sink *sink,
                                      void *context);
void tl_stf_invariants_free(struct tl_stf_invariants *v);
/*
 * Check record `number`, in order; `header` is the state so far, `pc` the address of the next
 * instruction before this record. Returns the sink's errors; TL_NOMEM.
 */
TL_MUST_USE int tl_stf_invariants_add(struct tl_stf_invariants *v,
                                      const struct tl_stf_header *header,
                                      const struct tl_stf_record *record, uint64_t number,
                                      uint64_t pc);

#endif
