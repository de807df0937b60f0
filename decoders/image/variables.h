/* SPDX-License-Identifier: MIT */
/*
 * Names of variables, by the object symbols of ELF files. Thread-safe for a frozen image, which may
 * be NULL.
 */
#ifndef TL_IMAGE_VARIABLES_H
#define TL_IMAGE_VARIABLES_H

#include "image/image.h"

/* Write the name of the variable that covers `address`: "count", or "buffer+12"; an overlong name
 * is truncated. False: there is none. */
bool tl_image_variable_name(const struct tl_image *image, uint64_t address, char *out, size_t size);

#endif
