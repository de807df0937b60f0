/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of the M profile: their items and names, by the number that the vector table and the
 * IPSR have.
 *
 * Source: Arm DDI0403E B1.5.2, DDI0553 B3.30.
 */
#ifndef TL_FLOW_M_EXCEPTION_H
#define TL_FLOW_M_EXCEPTION_H

#include "flow/batch.h"

#define TL_M_FIRST_INTERRUPT 16u /* exception number of IRQ0 */
#define TL_M_NAME            48  /* bytes of a name, with its NUL */

/*
 * Name of an exception: "SysTick", "UART1" as the program's vector table calls it, else "irq38".
 * `image` may be NULL. Returns `out` or static storage.
 */
const char *tl_m_exception_name(const struct tl_image *image, unsigned number,
                                char out[static TL_M_NAME]);

/* Append an EXCEPTION with number, name and no address yet; valid until the next one is appended.
 */
struct tl_item *tl_add_m_exception(struct tl_item_batch *out, const struct tl_image *image,
                                   unsigned number, uint64_t offset);

#endif
