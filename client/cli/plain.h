/* SPDX-License-Identifier: MIT */
/* Untrusted text on a terminal: control characters are printed as \xHH. */
#ifndef TL_CLI_PLAIN_H
#define TL_CLI_PLAIN_H

#include <stdio.h>

/*
 * Length in bytes of the control character at the start of `text` (C0, DEL, or C1 in UTF-8), 0 if
 * there is none.
 */
int tl_control_at(const char *text);

/*
 * Print `text`, padded with spaces to `width` columns (0: none). Returns the number of columns
 * used.
 */
int tl_print_plain(FILE *out, const char *text, int width);

/* Columns that tl_print_plain() would use, one per byte. */
int tl_plain_width(const char *text);

#endif
