/* SPDX-License-Identifier: MIT */
/*
 * Untrusted text on a terminal: control characters, and those that end a line or change the
 * direction of the text around them, are printed as \xHH.
 */
#ifndef TL_TERMINAL_PLAIN_H
#define TL_TERMINAL_PLAIN_H

#include "base/buf.h"

#include <stdio.h>

/*
 * Length in bytes of such a character at the start of `text`, 0 if there is none: C0, DEL, and in
 * UTF-8 C1, U+2028 to 202E and U+2066 to 2069.
 */
int tl_control_at(const char *text);

/*
 * Print `text`, padded with spaces to `width` columns (0: none). Returns the number of columns
 * used.
 */
int tl_print_plain(FILE *out, const char *text, int width);

/* Append what tl_print_plain() would print. Returns TL_NOMEM. */
TL_MUST_USE int tl_plain_append(struct tl_buf *out, const char *text);

/* Columns that tl_print_plain() would use, one per byte. */
int tl_plain_width(const char *text);

#endif
