/* SPDX-License-Identifier: MIT */
/* Patterns that users give for names. Pure functions. */
#ifndef TL_BASE_PATTERN_H
#define TL_BASE_PATTERN_H

#include <stdbool.h>

/* Does the text match `pattern`, with * for any characters and ? for one? Ignores case. */
bool tl_text_fits(const char *pattern, const char *text);

#endif
