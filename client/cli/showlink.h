/* SPDX-License-Identifier: MIT */
/* `show --link`: the page's address of a place. */
#ifndef TL_CLI_SHOWLINK_H
#define TL_CLI_SHOWLINK_H

#include "cli/where.h"

/* A place of a stream: at most one of these. */
struct tl_showlink {
    bool given; /* --link */
    uint64_t insn;
    struct tl_time_arg time;
    struct tl_where where; /* from_symbol, from_pc, from_event */
};

#define TL_SHOWLINK_INIT                                                                           \
    {                                                                                              \
        .insn = TRACELAKE_END, .time.value = TRACELAKE_END, .where.occurrence = 1                  \
    }
#define TL_SHOWLINK_ARGS(l)                                                                        \
    {"link",     0,    TL_ARG_FLAG,                                                                \
     &(l).given, NULL, "only the address of TRACE or TRACE/STREAM in the browser; of a place:"},   \
        {"insn", 0, TL_ARG_COUNT, &(l).insn, "N", "… an instruction"},                             \
        {"time", 0, TL_ARG_TIME, &(l).time, "T", "… a time, such as 1.5ms"},                       \
        {"symbol", 0, TL_ARG_TEXT, &(l).where.from_symbol, "F", "… a call of the function F"},     \
        {"pc", 0, TL_ARG_TEXT, &(l).where.from_pc, "ADDR", "… an address (hexadecimal) is run"},   \
        {"event",     0,                                                                           \
         TL_ARG_TEXT, &(l).where.from_event,                                                       \
         "KIND",      "… an event occurs, see 'find --event'"},                                    \
    {                                                                                              \
        "occurrence", 0, TL_ARG_COUNT, &(l).where.occurrence, "N", "… the N-th time (default 1)" \
    }

/* Is a place given without --link? Reported; returns TL_ARGS_GO if not. */
int tl_showlink_check(const struct tl_showlink *link);
/* Print the address of "TRACE" or "TRACE/STREAM". Returns the exit status. */
int tl_showlink(const struct tl_showlink *link, struct tracelake *lake, const char *url,
                const char *name);

#endif
