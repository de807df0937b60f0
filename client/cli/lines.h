/* SPDX-License-Identifier: MIT */
/*
 * What programs print by software trace (ITM, STM, UART, Open SoC Debug) as lines, out of flow text:
 *
 *     TIME SOURCE CHANNEL TEXT
 *
 * TIME is the last timestamp in front of the line's first character, "-" without one. Characters of
 * each source and channel make lines of their own; records of anything else are an entry each, as
 * a number. Gaps are told. Not thread-safe.
 */
#ifndef TL_CLI_LINES_H
#define TL_CLI_LINES_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdio.h>

struct tl_lines;

/* `out` is borrowed. TL_NOMEM. */
TL_MUST_USE int tl_lines_new(struct tl_lines **out, FILE *file);
/* Flow text in any pieces. TL_NOMEM. */
TL_MUST_USE int tl_lines_push(struct tl_lines *lines, struct tl_bytes text);
/* Lines that have not ended are printed as they are; others may follow. */
void tl_lines_flush(struct tl_lines *lines);
/* NULL is fine. */
void tl_lines_free(struct tl_lines *lines);

#endif
