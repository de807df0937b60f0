/* SPDX-License-Identifier: MIT */
/*
 * Follows PTM: an outcome for each waypoint. A branch packet stands for the outcome of the branch
 * that it is for; an outcome alone for an indirect branch says that the return stack predicted it.
 *
 * Source: Arm IHI0035B chapters 3 and 4.
 */
#include "etm3/flow.h"

static void tell_count(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (p->has_cycles)
        tl_etm3_tell_cycles(f, p->cycles, p->offset);
}

static void follow_atoms(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (!f->begun)
        return;
    tl_walker_waypoints(&f->walker, p->atoms, p->n, p->offset);
    tl_walker_pop_return(&f->walker, p->offset);
    /* Where nothing predicts a return, no address follows either: the next one belongs to a later
     * branch. */
    (void)tl_walker_is_known(&f->walker, p->offset);
    tell_count(f, p);
}

static void follow_branch(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    enum { DEBUG_HALT = 1 };
    struct tl_walker *const w = &f->walker;
    if (p->has_exception)
        tl_etm3_tell_exception(f, p);
    else if (!w->need_address)
        tl_walker_waypoints(w, 1, 1, p->offset);
    if (!p->has_exception || p->exception != DEBUG_HALT)
        tl_etm3_go_to(f, p);
    tell_count(f, p);
}

/* Everything up to the instruction at the address, and that one, was executed. */
static void follow_waypoint(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
{
    if (tl_walker_to(&f->walker, p->address, false, p->offset))
        tl_etm3_execute_one(f, p->offset);
}

void tl_etm3_follow_ptm(struct tl_etm3_flow *f, const struct tl_etm3_packet *p)
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
    case TL_ETM3_WAYPOINT:
        follow_waypoint(f, p);
        break;
    case TL_ETM3_EXCEPTION_EXIT:
        tl_item_batch_add(f->out, TL_ITEM_ERET, p->offset);
        break;
    case TL_ETM3_TIMESTAMP:
        tl_etm3_tell_aside(f, p);
        tell_count(f, p);
        break;
    default:
        tl_etm3_tell_aside(f, p);
        break;
    }
}
