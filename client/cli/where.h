/* SPDX-License-Identifier: MIT */
/*
 * A range selected by its contents: it begins the n-th time that a function is called, an address
 * or an encoding is executed or an event occurs, and extends for a number of instructions or until
 * another such place.
 */
#ifndef TL_CLI_WHERE_H
#define TL_CLI_WHERE_H

#include "terminal/remote.h"

/* What the options ask for. Texts are borrowed, NULL: not given. */
struct tl_where {
    const char *from_symbol, *from_pc, *from_event, *from_opcode;
    const char *to_symbol, *to_pc, *to_event, *to_opcode;
    uint64_t occurrence; /* of the beginning, from 1 */
    uint64_t count;      /* instructions, 0: up to the given place, or to the end */
    uint64_t warm_up;    /* instructions in front of the range to be included, too */
};

/* Rows of a subcommand's table of options that fill `w`, a struct tl_where. */
#define TL_WHERE_ARGS(w)                                                                             \
    {"from-symbol",    0,   TL_ARG_TEXT,                                                             \
     &(w).from_symbol, "F", "where it begins: a call of the function F"},                            \
        {"from-pc", 0, TL_ARG_TEXT, &(w).from_pc, "ADDR", "… an address (hexadecimal) is executed"}, \
        {"from-event",    0,      TL_ARG_TEXT,                                                       \
         &(w).from_event, "KIND", "… an event occurs, see 'find --event'"},                          \
        {"from-opcode",                                                                              \
         0,                                                                                          \
         TL_ARG_TEXT,                                                                                \
         &(w).from_opcode,                                                                           \
         "ENC",                                                                                      \
         "… an instruction with this encoding, such as a marker (hex, x: any digit)"},               \
        {"occurrence", 0, TL_ARG_COUNT, &(w).occurrence, "N", "… the N-th time (default 1)"},        \
        {"to-symbol",    0,   TL_ARG_TEXT,                                                           \
         &(w).to_symbol, "F", "where it ends, the next time: as --from-symbol"},                     \
        {"to-pc", 0, TL_ARG_TEXT, &(w).to_pc, "ADDR", "… as --from-pc"},                             \
        {"to-event", 0, TL_ARG_TEXT, &(w).to_event, "KIND", "… as --from-event"},                    \
        {"to-opcode", 0, TL_ARG_TEXT, &(w).to_opcode, "ENC", "… as --from-opcode"},                  \
        {"count", 0, TL_ARG_COUNT, &(w).count, "N", "instructions"},                                 \
    {                                                                                                \
        "warm-up", 0, TL_ARG_COUNT, &(w).warm_up, "N", "also include N instructions before it"       \
    }

/* Is any of these options given? */
bool tl_where_given(const struct tl_where *where);
/* Find the range in the trace and stream of `range`, between its `from` and `to` instructions, and
 * narrow it. TL_ARGS_GO, or the exit status of what has been reported. */
int tl_where_find(const struct tl_where *where, struct tracelake *lake,
                  struct tracelake_range *range);

#endif
