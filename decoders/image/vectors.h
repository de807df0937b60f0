/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of the M profile as the program names them, by the vector table of its ELF file: the
 * symbol `__Vectors` or another usual name, the section `.isr_vector` or another usual name, else
 * the lowest loaded address. Thread-safe for a frozen image, which may be NULL.
 */
#ifndef TL_IMAGE_VECTORS_H
#define TL_IMAGE_VECTORS_H

#include "image/image.h"

/* Address of the handler of exception `number`; 0: unknown. */
uint64_t tl_image_handler(const struct tl_image *image, unsigned number);

/*
 * Write the name of an exception by its handler: "UART1" for a vector to UART1_IRQHandler. False,
 * and `out` is undefined: its handler has no name, or is that of other exceptions too, which names
 * none of them.
 */
bool tl_image_interrupt_name(const struct tl_image *image, unsigned number, char *out, size_t size);

#endif
