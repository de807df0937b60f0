/* SPDX-License-Identifier: MIT */
/*
 * Names of M-profile exceptions by number. Every kind of trace unit encodes them in its own way;
 * what comes out is one numbering, and one name, so that an interrupt is the same in each source of
 * a trace.
 */
#include "flow/m_exception.h"

#include "image/vectors.h"

#include <stdio.h>

static const char *const names[TL_M_FIRST_INTERRUPT] = {
    [0] = "thread",           [1] = "Reset",    [2] = "NonMaskableInt", [3] = "HardFault",
    [4] = "MemoryManagement", [5] = "BusFault", [6] = "UsageFault",     [7] = "SecureFault",
    [11] = "SVCall",          [14] = "PendSV",  [15] = "SysTick",       [12] = "DebugMonitor",
};

const char *tl_m_exception_name(const struct tl_image *image, unsigned number,
                                char out[static TL_M_NAME])
{
    if (number < TL_M_FIRST_INTERRUPT && names[number])
        return names[number];
    if (tl_image_interrupt_name(image, number, out, TL_M_NAME))
        return out;
    if (number < TL_M_FIRST_INTERRUPT)
        snprintf(out, TL_M_NAME, "exception%u", number);
    else
        snprintf(out, TL_M_NAME, "irq%u", number - TL_M_FIRST_INTERRUPT);
    return out;
}

struct tl_item *tl_add_m_exception(struct tl_item_batch *out, const struct tl_image *image,
                                   unsigned number, uint64_t offset)
{
    char *const room = tl_item_batch_store(out, TL_M_NAME);
    struct tl_item *const item = tl_item_batch_add(out, TL_ITEM_EXCEPTION, offset);
    item->sub = (uint16_t)number;
    item->text = number == TL_EXCEPTION_UNKNOWN ? NULL : tl_m_exception_name(image, number, room);
    return item;
}
