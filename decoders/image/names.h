/* SPDX-License-Identifier: MIT */
/*
 * Names of an image's symbols as users read and write them. An image has them as in its files; C++
 * and Rust names are demangled when they are first asked for, and kept. Everything may be called by
 * several threads at once for a frozen image.
 */
#ifndef TL_IMAGE_NAMES_H
#define TL_IMAGE_NAMES_H

#include "image/demangle.h"
#include "image/image.h"

/* Name of a symbol (an index into tl_image_symbols()), spelled as the thread wants it
 * (base/spelling.h); valid as long as the image. If there is no memory to demangle it, as in the
 * file. */
const char *tl_image_symbol_name(const struct tl_image *image, size_t symbol);
/* The program that a function is of; "": not known. */
const char *tl_image_symbol_program(const struct tl_image *image, size_t symbol);
/* Its name, with its program's where others have a function of that name too: "main [ls]"; as in
 * the file if the thread wants names so. */
const char *tl_image_symbol_told(const struct tl_image *image, size_t symbol);

/* How a text names symbols. */
enum tl_naming {
    TL_NAMING_WHOLE, /* by their whole name */
    TL_NAMING_PARTS  /* if that gives none: by a pattern with * and ?, or else by a part; in quotes:
                        by whole words */
};

/*
 * Set `wanted` (a zeroed byte for each symbol) to 1 for the symbols that a text names, and return
 * how many: those of this name, demangled or not, or with this alias; if there are none, the
 * functions of this name with any arguments or version, then with any template arguments, or as
 * copies that compilers make. A program in brackets behind it, "main [ls]", leaves out the others'.
 * `n`: length of the text.
 */
size_t tl_image_named(const struct tl_image *image, const char *text, size_t n,
                      enum tl_naming naming, uint8_t *wanted);

#endif
