/* SPDX-License-Identifier: MIT */
/* The vector table of an M-profile processor, in the program image. Pure functions, thread-safe.
 *
 * Source: Arm DDI0419, B1.5.3. */
#ifndef TL_MTB_VECTORS_H
#define TL_MTB_VECTORS_H

#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

/* Is `handler` the address of a handler in the vector table at `table`, or in that of an ELF file?
 * `*number`: its exception; of a handler of several exceptions TL_EXCEPTION_UNKNOWN. */
bool tl_find_vector(const struct tl_image *image, unsigned space, uint32_t table, uint32_t handler,
                    unsigned *number);

#endif
