/* SPDX-License-Identifier: MIT */
/*
 * Printed output of software trace (ITM, STM, UART, Open SoC Debug) as lines, from flow text:
 *
 *     TIME SOURCE CHANNEL TEXT
 *
 * TIME is the last timestamp before the line's first character, "-" without one. Characters of each
 * source and channel form their own lines; each other record, also one with a NUL in it, is an
 * entry of its own, as a number.
 * Gaps are reported. Not thread-safe.
 */
#ifndef TL_OUT_LINES_H
#define TL_OUT_LINES_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdio.h>

struct tl_lines;

/* `file` is borrowed. TL_NOMEM. */
TL_MUST_USE int tl_lines_new(struct tl_lines **out, FILE *file);
/* Process flow text, split anywhere. TL_NOMEM. */
TL_MUST_USE int tl_lines_push(struct tl_lines *lines, struct tl_bytes text);
/* Print unfinished lines as they are; more input may follow. */
void tl_lines_flush(struct tl_lines *lines);
/* Accepts NULL. */
void tl_lines_free(struct tl_lines *lines);

#endif
