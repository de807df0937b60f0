/* SPDX-License-Identifier: MIT */
/*
 * Compares texts with patterns of shells, by the system's matcher. That takes no more than a
 * pattern's length times a text's, so that a hostile one cannot hold a server.
 */
#include "base/pattern.h"

#include <fnmatch.h>

bool tl_text_fits(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, FNM_CASEFOLD) == 0;
}
