/* SPDX-License-Identifier: MIT */
/*
 * CMSIS-SVD files, in which vendors of microcontrollers describe their chips: names of interrupts
 * by number, and of registers by address. They name what a program's symbols do not.
 *
 * Source: CMSIS-SVD 1.3.10, "SVD File Schema Levels". Thread-safe for a frozen image.
 */
#ifndef TL_IMAGE_SVD_H
#define TL_IMAGE_SVD_H

#include "image/image.h"

/* Can bytes that a file begins with be XML that describes a device? */
bool tl_svd_is(struct tl_bytes head);

/* Add the interrupts and the registers, which are variables: "USART1.DR". TL_BAD: it is no such
 * file, or describes more than memory should be spent on; TL_NOMEM. */
TL_MUST_USE int tl_image_add_svd(struct tl_image *image, struct tl_bytes file, const char *name,
                                 struct tl_fail *fail);

/* Name of the interrupt IRQn; NULL: not described. */
const char *tl_image_irq(const struct tl_image *image, unsigned n);

#endif
