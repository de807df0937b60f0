/* SPDX-License-Identifier: MIT */
/*
 * Says what a filter looked for in vain, and which command lists what there is: an empty answer
 * alone could as well be a misspelt name.
 */
#include "cli/filter.h"

#include <stdio.h>

int tl_filter_nothing(const char *where, const struct tracelake_filter *filter)
{
    const char *const of[] = {filter->mode, filter->process, filter->thread};
    static const char *const what[] = {"mode", "process", "thread"};
    char text[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        if (of[i] && *of[i] && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.60s", n ? ", " : "", what[i],
                                  of[i]);
    tl_cli_warn(where,
                "nothing in this range ran in %s; 'tracelake stats %s' lists the modes, 'tracelake "
                "find %s --event context' and 'find %s \"process:*\"' the processes",
                text, where, where, where);
    return TL_CLI_BAD;
}
