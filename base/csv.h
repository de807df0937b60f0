/* SPDX-License-Identifier: MIT */
/* Writes comma-separated values (RFC 4180, lines end in LF). */
#ifndef TL_BASE_CSV_H
#define TL_BASE_CSV_H

#include "base/buf.h"

/* Append a field, in quotes if it needs them, and `end`, a comma or a line feed. TL_NOMEM. */
TL_MUST_USE int tl_csv_field(struct tl_buf *out, const char *text, char end);

#endif
