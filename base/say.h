/* SPDX-License-Identifier: MIT */
/*
 * Formatted lines for whoever receives them, as text, by a function of the caller's: warnings of
 * importers, log lines of hosts. Thread-safe if the receiver is.
 */
#ifndef TL_BASE_SAY_H
#define TL_BASE_SAY_H

#include "base/err.h"

/* A line without its newline, borrowed for the call. */
typedef void tl_say_sink(void *context, const char *text);

/* Of longer lines 4,399 bytes are kept. `sink` may be NULL. */
void tl_say(tl_say_sink *sink, void *context, const char *format, ...) TL_PRINTF(3, 4);

#endif
