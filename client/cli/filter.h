/* SPDX-License-Identifier: MIT */
/* Options of `get` and `tail` that say which part of the program is wanted. */
#ifndef TL_CLI_FILTER_H
#define TL_CLI_FILTER_H

#include "terminal/remote.h"

/* `f`: a struct tracelake_filter, all zero before. */
#define TL_FILTER_ARGS(f)                                                                          \
    {.help = "only a part of the program, the rest is a gap 'off' (the server filters):"},         \
        {"mode",                                                                                   \
         0,                                                                                        \
         TL_ARG_TEXT,                                                                              \
         &(f).mode,                                                                                \
         "u|k|el0|el1|el2|el3|ring0|ring3|s|m|vu|vs",                                              \
         "u: user mode; k: all others; or the begin of a mode as flow text has it: el1, el1.ns; "  \
         "several with commas"},                                                                   \
        {"process",   0,                                                                           \
         TL_ARG_TEXT, &(f).process,                                                                \
         "NAME",      "a process, by its name (* and ? fit any) or number; also a context ID"},    \
    {                                                                                              \
        "thread", 0, TL_ARG_TEXT, &(f).thread, "NAME", "a thread, by its name or number"           \
    }

/* Warn that nothing in the range fits. Returns the exit status. */
int tl_filter_nothing(const char *where, const struct tracelake_filter *filter);

#endif
