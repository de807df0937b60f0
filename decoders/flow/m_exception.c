/* SPDX-License-Identifier: MIT */
/*
 * Names of M-profile exceptions by number. Every kind of trace unit encodes them in its own way;
 * what comes out is one numbering, so that an interrupt is the same in each source of a trace.
 */
#include "flow/m_exception.h"

#include <stdio.h>

static const char *const names[TL_M_FIRST_INTERRUPT] = {
    [1] = "pe-reset",       [2] = "nmi",         [3] = "hard-fault",   [4] = "mem-manage",
    [5] = "bus-fault",      [6] = "usage-fault", [7] = "secure-fault", [11] = "svc",
    [12] = "debug-monitor", [14] = "pendsv",     [15] = "systick",
};

struct tl_item *tl_add_m_exception(struct tl_item_batch *out, unsigned number, uint64_t offset)
{
    enum { NAME = 16 };
    const bool interrupt = number >= TL_M_FIRST_INTERRUPT && number != TL_EXCEPTION_UNKNOWN;
    char *const name = interrupt ? tl_item_batch_store(out, NAME) : NULL;
    struct tl_item *const item = tl_item_batch_add(out, TL_ITEM_EXCEPTION, offset);
    item->sub = (uint16_t)number;
    if (interrupt)
        snprintf(name, NAME, "irq%u", number - TL_M_FIRST_INTERRUPT);
    item->text = interrupt ? name : number < TL_M_FIRST_INTERRUPT ? names[number] : NULL;
    return item;
}
