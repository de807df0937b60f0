/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of the M profile: their items, by the number that the vector table and the IPSR have.
 *
 * Source: Arm DDI0403E B1.5.2, DDI0553 B3.30.
 */
#ifndef TL_FLOW_M_EXCEPTION_H
#define TL_FLOW_M_EXCEPTION_H

#include "flow/batch.h"

#define TL_M_FIRST_INTERRUPT 16u /* exception number of IRQ0 */

/* Append an EXCEPTION with number, name and no address yet; valid until the next one is appended.
 */
struct tl_item *tl_add_m_exception(struct tl_item_batch *out, unsigned number, uint64_t offset);

#endif
