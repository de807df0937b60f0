/* SPDX-License-Identifier: MIT */
/*
 * Walks through known blocks for traces whose encoder has options. Each kind is code of its own,
 * because what an option asks of every block costs more than passing the block.
 */
#include "riscv/etrace_walk_known.h"

enum tl_etrace_arrival tl_etrace_step_by_map(struct tl_etrace_walk *w,
                                             const struct tl_etrace_goal *goal, bool *any,
                                             bool *steps, uint64_t offset)
{
    return step_known(w, goal, BY_MAP, any, steps, offset);
}

enum tl_etrace_arrival tl_etrace_step_by_prediction(struct tl_etrace_walk *w,
                                                    const struct tl_etrace_goal *goal, bool *any,
                                                    bool *steps, uint64_t offset)
{
    return step_known(w, goal, PREDICTED, any, steps, offset);
}
