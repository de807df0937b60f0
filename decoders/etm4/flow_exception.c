/* SPDX-License-Identifier: MIT */
/*
 * Exceptions by the type that the trace reports. On the M profile they get the number of the
 * architecture, which the vector table and the IPSR have, so that an interrupt has one number in
 * every source of trace: types beyond the first eight interrupts are encoded otherwise.
 *
 * Source: Arm IHI0064H 6.4.12, tables of the TYPE field for the A, R and M profiles; DDI0553
 * B3.30 for the exception numbers of the M profile.
 */
#include "etm4/flow_walk.h"
#include "flow/m_exception.h"

static const char *const types[32] = {
    [0] = "pe-reset",     [1] = "debug-halt",  [2] = "call",       [3] = "trap",
    [4] = "system-error", [6] = "inst-debug",  [7] = "data-debug", [10] = "alignment",
    [11] = "inst-fault",  [12] = "data-fault", [14] = "irq",       [15] = "fiq",
};

/* What the M profile traces as exceptions, and are none of the architecture's. */
static const char *const events_m[32] = {
    [24] = "debug-halt", [25] = "lazy-fp-push", [26] = "lockup"};

enum {
    M_LOW_TYPES_END = 24, /* the types of exceptions and of IRQ0 to IRQ7 are their numbers */
    M_HIGH_TYPES = 0x208, /* type of IRQ8 */
    M_HIGH_INTERRUPT = 24 /* its exception number */
};

/* The architecture's number of an M-profile exception type; TL_EXCEPTION_UNKNOWN: it has none. */
static unsigned number_m(unsigned type)
{
    if (type >= M_HIGH_TYPES)
        return type - M_HIGH_TYPES + M_HIGH_INTERRUPT;
    return type < M_LOW_TYPES_END ? type : TL_EXCEPTION_UNKNOWN;
}

struct tl_item *tl_etm4_add_exception(const struct tl_walker *walker, unsigned type, bool m_profile,
                                      uint64_t offset)
{
    const unsigned number = m_profile ? number_m(type) : type;
    if (m_profile && number != TL_EXCEPTION_UNKNOWN)
        return tl_add_m_exception(walker->out, walker->image, number, offset);
    struct tl_item *const item = tl_item_batch_add(walker->out, TL_ITEM_EXCEPTION, offset);
    item->sub = (uint16_t)number;
    item->text = type >= 32 ? "impdef" : m_profile ? events_m[type] : types[type];
    return item;
}
