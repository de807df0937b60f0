/* SPDX-License-Identifier: MIT */
/*
 * Register state: the last value of each register in any INST_REG, in the order of execution: first
 * the "state" records of an instruction, then its sources, then its destinations, wherever they are
 * in the file. fflags and frm follow fcsr and it follows them, likewise vxsat, vxrm and vcsr. No
 * I/O, not thread-safe. Memory: about 100 KiB, plus the vector registers.
 *
 * Registers that RISC-V does not have, and vectors longer than it allows, are not kept.
 */
#ifndef TL_STF_REGSTATE_H
#define TL_STF_REGSTATE_H

#include "stf/record.h"

TL_C_BEGIN

struct tl_stf_regstate;

TL_MUST_USE int tl_stf_regstate_new(struct tl_stf_regstate **out);
void tl_stf_regstate_free(struct tl_stf_regstate *state);

/*
 * Process an INST_REG of any operand type, in order; other records are ignored. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_stf_regstate_add(struct tl_stf_regstate *state,
                                    const struct tl_stf_record *record);
/* The instruction of the records so far is complete. */
void tl_stf_regstate_close(struct tl_stf_regstate *state);
/* Is any register known? */
bool tl_stf_regstate_any(const struct tl_stf_regstate *state);

/*
 * Iterate over the known registers as INST_REG records of operand type "state": integer registers
 * first, then floating point, vectors, CSRs, each by number. Start with `*at` = 0. Returns TL_EOF
 * after the last one. The record's value is valid until the next tl_stf_regstate_add().
 */
int tl_stf_regstate_next(const struct tl_stf_regstate *state, size_t *at,
                         struct tl_stf_record *record);

TL_C_END

#endif
