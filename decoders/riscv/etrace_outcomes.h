/* SPDX-License-Identifier: MIT */
/*
 * Outcomes of branches that packets reported and that the walk has not used yet: first those of
 * branch maps, then a number of branches that the encoder's predictor foresaw, then perhaps one
 * that it did not. Includes the predictor, which learns from each branch in program order.
 * Not thread-safe.
 *
 * Source: E-Trace 2.0, "Branch prediction mode".
 */
#ifndef TL_RISCV_ETRACE_OUTCOMES_H
#define TL_RISCV_ETRACE_OUTCOMES_H

#include "base/state.h"

struct tl_etrace_outcomes {
    uint64_t map;       /* the oldest in bit 0; 1: not taken */
    uint32_t n;         /* outcomes in it */
    uint64_t right;     /* branches predicted right, behind those */
    bool wrong;         /* behind those a branch predicted wrong */
    bool untrained;     /* the predictor does not learn from the oldest outcome in `map` */
    uint8_t size, lsb;  /* of the predictor: logarithm of its entries; address bits left out */
    uint8_t *predictor; /* owned; NULL: none */
};

/* `size` is the largest bpred_size, which is in force, `lsb` iaddress_lsb. Returns TL_NOMEM. */
TL_MUST_USE int tl_etrace_outcomes_init(struct tl_etrace_outcomes *outcomes, uint8_t size,
                                        uint8_t lsb);
/* The predictor has another size, and has learnt nothing; 0: there is none. */
void tl_etrace_outcomes_resize(struct tl_etrace_outcomes *outcomes, uint8_t size);
void tl_etrace_outcomes_fini(struct tl_etrace_outcomes *outcomes);
void tl_etrace_outcomes_state(struct tl_etrace_outcomes *outcomes, struct tl_state *state);

/* Drop what is waiting. */
static inline void tl_etrace_outcomes_clear(struct tl_etrace_outcomes *o)
{
    o->map = o->right = 0;
    o->n = o->wrong = o->untrained = 0;
}

/* Forget everything that the predictor learnt. */
void tl_etrace_outcomes_forget(struct tl_etrace_outcomes *outcomes);

/* How many outcomes are waiting. */
static inline uint64_t tl_etrace_outcomes_waiting(const struct tl_etrace_outcomes *o)
{
    return o->n + o->right + o->wrong;
}

/* At most one outcome is waiting, that of the branch at `pc`: if it was given by a prediction,
 * replace it by what that was. */
void tl_etrace_outcomes_settle_predicted(struct tl_etrace_outcomes *outcomes, uint64_t pc);
static inline void tl_etrace_outcomes_settle(struct tl_etrace_outcomes *o, uint64_t pc)
{
    if (o->right > 0 || o->wrong)
        tl_etrace_outcomes_settle_predicted(o, pc);
}

/* Append `n` (up to 31) outcomes of a map. At most one may be waiting, of a map. */
static inline void tl_etrace_outcomes_add(struct tl_etrace_outcomes *o, uint32_t map, unsigned n)
{
    o->map |= (uint64_t)map << o->n;
    o->n += n;
}

/* The outcome of the next branch, which is at `pc`: was it taken? At least one is waiting. */
bool tl_etrace_outcomes_next(const struct tl_etrace_outcomes *outcomes, uint64_t pc);
/* The same, and use it up. */
bool tl_etrace_outcomes_take(struct tl_etrace_outcomes *outcomes, uint64_t pc);

#endif
