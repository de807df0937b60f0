/* SPDX-License-Identifier: MIT */
/*
 * Formats a message, and gives it to whoever receives them. Receivers get text instead of a format
 * and its arguments, so that they can be in any language and keep what they got.
 */
#include "base/say.h"

#include <stdarg.h>
#include <stdio.h>

void tl_say(tl_say_sink *sink, void *context, const char *format, ...)
{
    char line[4400]; /* paths may be long */
    va_list args;
    if (!sink)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sink(context, line);
}
