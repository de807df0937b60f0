/* SPDX-License-Identifier: MIT */
/* Text from elsewhere on a terminal: what it would obey is printed as \xHH. */
#ifndef TL_CLI_PLAIN_H
#define TL_CLI_PLAIN_H

#include <stdio.h>

/*
 * The bytes of the control character that `text` begins with (C0, DEL, or C1 in UTF-8), 0 if it
 * begins with none.
 */
int tl_control_at(const char *text);

/* Print `text`, and spaces until it has taken `width` columns (0: none). Returns what it took. */
int tl_print_plain(FILE *out, const char *text, int width);

/* What tl_print_plain() takes, one column a byte. */
int tl_plain_width(const char *text);

#endif
