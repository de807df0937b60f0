/* SPDX-License-Identifier: MIT */
/*
 * What no single record shows: that a trace is one that a core could have executed.
 *
 *   flow-target   a direct branch, or an instruction that is no branch, leads elsewhere than it can
 *   flow-straight an unconditional direct branch that goes straight on (RISC-V: see jump-target)
 *   flow-forced   a FORCE_PC behind the header: what follows does not come from what was before
 *   mode-cause    the privilege mode changes without a trap or a return from one
 *   code-changed  another opcode at an address, without a store to it and without a fence
 *   reg-x0        RISC-V: x0 has a value that is not 0
 *   walk-differs  a page table entry has another value than before, without a store or a fence
 *
 * Part of a check (stf/check.h). Memory: some 40 bytes for each instruction of the program and each
 * page table entry, of which no more than TL_STF_INVARIANT_KEYS are followed. Not thread-safe.
 */
#ifndef TL_STF_INVARIANTS_H
#define TL_STF_INVARIANTS_H

#include "stf/check.h"

#define TL_STF_INVARIANT_KEYS (UINT32_C(1) << 20)

struct tl_stf_invariants;

TL_MUST_USE int tl_stf_invariants_new(struct tl_stf_invariants **out, tl_stf_finding_sink *sink,
                                      void *context);
void tl_stf_invariants_free(struct tl_stf_invariants *v);
/*
 * Record `number`, in order; `header` is what was told so far, `pc` the address of the instruction
 * to come, as it was in front of the record. The sink's errors; TL_NOMEM.
 */
TL_MUST_USE int tl_stf_invariants_add(struct tl_stf_invariants *v,
                                      const struct tl_stf_header *header,
                                      const struct tl_stf_record *record, uint64_t number,
                                      uint64_t pc);

#endif
