/* SPDX-License-Identifier: MIT */
/* The system's matcher: it takes no more than a pattern's length times a text's. */
#include "base/pattern.h"

#include <fnmatch.h>

bool tl_text_fits(const char *pattern, const char *text)
{
    return fnmatch(pattern, text, FNM_CASEFOLD) == 0;
}
