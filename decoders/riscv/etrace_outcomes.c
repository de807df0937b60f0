/* SPDX-License-Identifier: MIT */
/*
 * The encoder counts the branches that its predictor foresaw instead of sending their outcomes, so
 * the same predictor runs here. It learns from branches in program order, when the walk passes them
 * and not when a packet arrives: otherwise its state would differ from the encoder's.
 */
#include "riscv/etrace_outcomes.h"

#include <stdlib.h>

/* States of an entry: the top bit is the prediction, 1 = taken. */
enum { WEAK_NOT_TAKEN = 1, TAKEN = 2 };

int tl_etrace_outcomes_init(struct tl_etrace_outcomes *o, uint8_t size, uint8_t lsb)
{
    *o = (struct tl_etrace_outcomes){.size = size, .lsb = lsb};
    if (size == 0)
        return TL_OK;
    o->predictor = malloc((size_t)1 << size);
    if (!o->predictor)
        return TL_NOMEM;
    tl_etrace_outcomes_forget(o);
    return TL_OK;
}

void tl_etrace_outcomes_fini(struct tl_etrace_outcomes *o)
{
    free(o->predictor);
}

void tl_etrace_outcomes_forget(struct tl_etrace_outcomes *o)
{
    if (o->predictor)
        memset(o->predictor, WEAK_NOT_TAKEN, (size_t)1 << o->size);
}

void tl_etrace_outcomes_resize(struct tl_etrace_outcomes *o, uint8_t size)
{
    if (o->size == size)
        return;
    o->size = size;
    tl_etrace_outcomes_forget(o);
}

void tl_etrace_outcomes_settle_predicted(struct tl_etrace_outcomes *o, uint64_t pc)
{
    const bool taken = tl_etrace_outcomes_next(o, pc);
    o->right = 0;
    o->wrong = false;
    tl_etrace_outcomes_add(o, !taken, 1);
}

static uint8_t *entry_of(const struct tl_etrace_outcomes *o, uint64_t pc)
{
    const unsigned shift = o->lsb > 1 ? o->lsb : 1;
    return &o->predictor[pc >> shift & (((uint64_t)1 << o->size) - 1)];
}

static void train(const struct tl_etrace_outcomes *o, uint64_t pc, bool taken)
{
    /* By state: what follows it behind a branch that was not taken, and that was. */
    static const uint8_t next[4][2] = {{0, 1}, {0, 3}, {0, 3}, {2, 3}};
    uint8_t *const entry = entry_of(o, pc);
    *entry = next[*entry & 3][taken];
}

bool tl_etrace_outcomes_next(const struct tl_etrace_outcomes *o, uint64_t pc)
{
    if (o->n > 0)
        return !(o->map & 1);
    const bool predicted = o->predictor && *entry_of(o, pc) & TAKEN;
    return o->right > 0 ? predicted : !predicted;
}

bool tl_etrace_outcomes_take(struct tl_etrace_outcomes *o, uint64_t pc)
{
    const bool taken = tl_etrace_outcomes_next(o, pc);
    if (o->predictor && !(o->untrained && o->n > 0))
        train(o, pc, taken);
    if (o->n > 0) {
        o->map >>= 1;
        o->n--;
        o->untrained = false;
    } else if (o->right > 0) {
        o->right--;
    } else {
        o->wrong = false;
    }
    return taken;
}

void tl_etrace_outcomes_state(struct tl_etrace_outcomes *o, struct tl_state *s)
{
    tl_state_u64(s, &o->map);
    tl_state_u32(s, &o->n);
    tl_state_check(s, o->n <= 32);
    tl_state_u64(s, &o->right);
    tl_state_bool(s, &o->wrong);
    tl_state_bool(s, &o->untrained);
    if (o->predictor)
        tl_state_bytes(s, o->predictor, (size_t)1 << o->size);
}
