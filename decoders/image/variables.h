/* SPDX-License-Identifier: MIT */
/*
 * Names and values of variables, by the object symbols and debug information of ELF files.
 * Thread-safe for a frozen image, which may be NULL.
 */
#ifndef TL_IMAGE_VARIABLES_H
#define TL_IMAGE_VARIABLES_H

#include "image/image.h"
#include "image/types.h"

/* An access to a variable. */
struct tl_image_access {
    uint64_t address;
    uint64_t value;
    unsigned size; /* of the value in bytes; 0: there is none */
};

/*
 * Write what was accessed: "count", "buffer+12"; where the type of the variable is known, the part
 * of it, and the value as that: "buf[3].mode = IDLE (enum mode)". An overlong text is truncated.
 * False: there is no variable.
 */
bool tl_image_variable_text(const struct tl_image *image, const struct tl_image_access *access,
                            char *out, size_t size);

/* Addresses [from, to). */
struct tl_image_range {
    uint64_t from, to;
};

/* Get the memory of the variables of this name, as in the source or mangled: the first `cap` of
 * them. Returns how many there are. */
size_t tl_image_variables_named(const struct tl_image *image, const char *name,
                                struct tl_image_range *out, size_t cap);

/* What stands between a variable and its value, and in front of the type. */
#define TL_VARIABLE_VALUE " = "
#define TL_VARIABLE_TYPE  " ("

/* The types of variables, to be added to before the image is frozen. */
struct tl_types *tl_image_types(struct tl_image *image);
/* A tl_types_keep for an image. */
const char *tl_image_keep_text(void *image, const char *text);
/* Can data accesses be traced without instructions: is it a program of the M profile, as far as a
 * vector table tells? */
bool tl_image_has_vectors(const struct tl_image *image);

#endif
