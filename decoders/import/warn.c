/* SPDX-License-Identifier: MIT */
/*
 * Makes the text of a report. What is left out is named by paths of any length, so the text has
 * room for the longest.
 */
#include "import/warn.h"

#include <stdarg.h>
#include <stdio.h>

void tl_import_warn(void (*warn)(void *context, const char *text), void *context,
                    const char *format, ...)
{
    char text[4400];
    va_list args;
    if (!warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    warn(context, text);
}
