/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of the M profile as the program names them, by the vector table of its ELF file: the
 * address that is told, else the symbol `__Vectors` or another usual name, the section
 * `.isr_vector` or another usual name, else the lowest loaded address. Thread-safe for a frozen
 * image, which may be NULL.
 */
#ifndef TL_IMAGE_VECTORS_H
#define TL_IMAGE_VECTORS_H

#include "image/image.h"

#define TL_VECTOR_SHARED (-1)

/* Tell where the vector table is (VTOR), before ELF files are added. One without contents there
 * keeps its own. */
void tl_image_use_table(struct tl_image *image, uint64_t address);

/* Address of the handler of exception `number`; 0: unknown. */
uint64_t tl_image_handler(const struct tl_image *image, unsigned number);

/*
 * The exception whose handler is at `handler`, by the vector table at `table` in memory, else by
 * that of an ELF file. TL_VECTOR_SHARED: it is that of several exceptions; 0: of none.
 */
int tl_image_vector(const struct tl_image *image, unsigned space, uint32_t table, uint32_t handler);

/*
 * Write the name of an exception by its handler: "UART1" for a vector to UART1_IRQHandler. If that
 * has no name, or is that of other exceptions too, which names none of them, by an SVD file of the
 * chip. False, and `out` is undefined: that has none either.
 */
bool tl_image_interrupt_name(const struct tl_image *image, unsigned number, char *out, size_t size);

#endif
