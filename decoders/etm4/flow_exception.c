/* SPDX-License-Identifier: MIT */
/*
 * Exception types by number.
 *
 * Source: Arm IHI0064H 6.4.12, tables of the TYPE field for the A, R and M profiles; DDI0553
 * B3.30 for the exception numbers of the M profile's external interrupts.
 */
#include "etm4/flow_walk.h"

static const char *const types[32] = {
    [0] = "pe-reset",     [1] = "debug-halt",  [2] = "call",       [3] = "trap",
    [4] = "system-error", [6] = "inst-debug",  [7] = "data-debug", [10] = "alignment",
    [11] = "inst-fault",  [12] = "data-fault", [14] = "irq",       [15] = "fiq",
};

static const char *const types_m[32] = {
    [1] = "pe-reset",       [2] = "nmi",         [3] = "hard-fault",   [4] = "mem-manage",
    [5] = "bus-fault",      [6] = "usage-fault", [7] = "secure-fault", [11] = "svc",
    [12] = "debug-monitor", [14] = "pendsv",     [15] = "systick",     [16] = "irq0",
    [17] = "irq1",          [18] = "irq2",       [19] = "irq3",        [20] = "irq4",
    [21] = "irq5",          [22] = "irq6",       [23] = "irq7",        [24] = "debug-halt",
    [25] = "lazy-fp-push",  [26] = "lockup",
};

#define M_FIRST_EXTERNAL 0x208u /* further interrupts, starting with number 8 */

const char *tl_etm4_exception_name(unsigned type, bool m_profile)
{
    if (m_profile && type >= M_FIRST_EXTERNAL)
        return "irq";
    if (type >= 32)
        return "impdef";
    return m_profile ? types_m[type] : types[type];
}
