/* SPDX-License-Identifier: MIT */
/*
 * Follows ETMv3: an outcome for each instruction that was executed. The last one is held back until
 * the next outcome, since an exception may take it back.
 *
 * Source: Arm IHI0014Q 7.3 and 7.4; Cortex-M3 and M4 TRM, "ETM trace".
 */
#include "etm3/flow.h"

/* An exception exit without a branch behind it: the return has happened. */
static void settle_return(struct tl_etm3_flow *f, uint64_t offset)
{
    if (!f->returning)
        return;
    tl_etm3_release(f, offset);
    f->returning = false;
    tl_item_batch_add(f->out, TL_ITEM_ERET, offset);
}

static void spend_cycles(struct tl_etm3_flow *f, uint64_t offset)
{
    if (f->cycles == 0)
        return;
    tl_etm3_release(f, offset);
    tl_etm3_tell_cycles(f, f->cycles, offset);
    f->cycles = 0;
}

/* The block whose next instruction has an outcome. NULL: it cannot be followed, which was reported.
 */
static const struct tl_block *next_block(struct tl_etm3_flow *f, uint64_t offset)
{
    const struct tl_block *b = tl_walker_here(&f->walker, offset);
    if (b && f->held >= b->n) {
        tl_etm3_release(f, offset);
        b = tl_walker_here(&f->walker, offset);
    }
    return b;
}

/* Does the block end with an instruction that has two outcomes? */
static bool ends_with_halves(const struct tl_etm3_flow *f, const struct tl_block *b)
{
    return f->config.halves && b->isa == TL_ISA_T32 && b->end == TL_BLOCK_WAYPOINT &&
           b->last_size == 4 && b->last_kind == TL_INSN_BRANCH && b->link;
}

/* `n` outcomes, the oldest in bit 0, with no cycles between them. */
static void take_outcomes(struct tl_etm3_flow *f, uint32_t bits, unsigned n, uint64_t offset)
{
    settle_return(f, offset);
    if (f->n_behind > 0)
        tl_etm3_release(f, offset);
    f->told = TL_ETM3_UNTOLD;
    while (n > 0) {
        const struct tl_block *const b = next_block(f, offset);
        if (!b)
            return;
        const bool first = !f->half && ends_with_halves(f, b);
        const unsigned left = b->n - f->held - first, now = n < left ? n : left;
        if (left == 0) {
            f->half = true;
            bits >>= 1;
            n--;
            continue;
        }
        if (f->held == 0)
            f->held_offset = offset;
        f->held += now;
        f->half = false;
        f->passed = bits >> (now - 1) & 1;
        bits >>= now;
        n -= now;
    }
}

static void follow_atoms(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    f->cycles += p->lead;
    if (p->n == 0 || !f->begun)
        return;
    if (!p->each) {
        spend_cycles(f, p->offset);
        take_outcomes(f, p->atoms, p->n, p->offset);
        return;
    }
    for (unsigned i = 0; i < p->n; i++) {
        f->cycles += i > 0;
        spend_cycles(f, p->offset);
        take_outcomes(f, p->atoms >> i & 1, 1, p->offset);
    }
}

/* On the M profile a return is cancelled, not its instruction: one handler follows another. */
void tl_etm3_take_back(struct tl_etm3_flow *f)
{
    const bool keeps = f->returning && f->config.m_profile;
    f->returning = false;
    if (f->half) {
        f->half = false;
        return;
    }
    if (keeps || f->held == 0)
        return;
    f->held--;
    f->passed = true;
    unsigned kept = 0; /* its accesses go with it */
    for (unsigned i = 0; i < f->n_behind; i++)
        if (f->behind[i].type != TL_ETM3_DATA || f->behind[i].data == TL_ETM3_LATE)
            f->behind[kept++] = f->behind[i];
    f->n_behind = (uint8_t)kept;
}

static void follow_branch(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (p->has_exception && p->cancelled)
        tl_etm3_take_back(f);
    tl_etm3_release(f, p->offset);
    f->half = false;
    settle_return(f, p->offset);
    if (p->has_exception)
        tl_etm3_tell_exception(f, p);
    else if (!f->walker.need_address && f->told == TL_ETM3_TOLD_ON)
        tl_walker_lose(&f->walker, TL_GAP_NO_PATH, p->offset); /* it was not executed */
    else if (!f->walker.need_address && f->told == TL_ETM3_TOLD_FIRST)
        tl_walker_await(&f->walker,
                        true); /* another one for the same instruction: the last one counts */
    f->told = f->walker.need_address ? TL_ETM3_TOLD_FIRST : TL_ETM3_TOLD_ON;
    tl_etm3_go_to(f, p);
}

void tl_etm3_follow_etm(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    switch (p->type) {
    case TL_ETM3_ATOMS:
        follow_atoms(f, p);
        break;
    case TL_ETM3_BRANCH:
        follow_branch(f, p);
        break;
    case TL_ETM3_ISYNC:
        tl_etm3_start(f, p);
        break;
    case TL_ETM3_EXCEPTION_EXIT:
        settle_return(f, p->offset);
        f->returning = true;
        break;
    default:
        tl_etm3_tell_aside(f, p);
        break;
    }
}
