/* SPDX-License-Identifier: MIT */
/*
 * Copies the records of a block's instructions. One loop per kind of instruction set, from the same
 * inline code: it then has no branches on it, and keeps its state in registers.
 */
#include "stf/flow/flow_copy.h"

static TL_COPY_INLINE const uintptr_t *copy_steps(struct tl_stf_cursor *at, const uintptr_t *step,
                                                  const uintptr_t *end, uint8_t isa, bool odds)
{
    struct tl_stf_cursor here = *at;
    for (; step < end && tl_stf_copy_leads(&here, tl_path_block(*step), isa); step++)
        tl_stf_copy_step(&here, tl_path_block(*step), tl_path_taken(*step), odds);
    *at = here;
    return step;
}

const uintptr_t *tl_stf_copy_path(struct tl_stf_cursor *at, const uintptr_t *step,
                                  const uintptr_t *end, uint8_t isa)
{
    return tl_isa_is_x86((enum tl_isa)isa) ? copy_steps(at, step, end, isa, true)
                                           : copy_steps(at, step, end, isa, false);
}
