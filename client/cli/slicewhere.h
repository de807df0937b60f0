/* SPDX-License-Identifier: MIT */
/*
 * A range of an STF file, given by what is executed: from the n-th execution of an address, or of
 * the begin of a function, for a number of instructions or up to another address.
 */
#ifndef TL_CLI_SLICEWHERE_H
#define TL_CLI_SLICEWHERE_H

#include "terminal/args.h"

struct tl_slice_where {
    const char *from_symbol, *from_pc;
    const char *to_symbol, *to_pc;
    const char *symbols; /* "FILE[@BIAS]" with the functions */
    uint64_t occurrence; /* of the begin, counted from 1 */
    uint64_t count;      /* instructions; 0: up to the given place, or to the end */
    uint64_t warm_up;    /* preceding instructions to include */
};

#define TL_SLICE_WHERE_ARGS(w)                                                                       \
    {"from-symbol",    0,   TL_ARG_TEXT,                                                             \
     &(w).from_symbol, "F", "where it begins: the start of the function F"},                         \
        {"from-pc", 0, TL_ARG_TEXT, &(w).from_pc, "ADDR", "… an address (hexadecimal) is executed"}, \
        {"occurrence", 0, TL_ARG_COUNT, &(w).occurrence, "N", "… the N-th time (default 1)"},        \
        {"to-symbol",    0,   TL_ARG_TEXT,                                                           \
         &(w).to_symbol, "F", "where it ends, the next time: as --from-symbol"},                     \
        {"to-pc", 0, TL_ARG_TEXT, &(w).to_pc, "ADDR", "… as --from-pc"},                             \
        {"count", 0, TL_ARG_COUNT, &(w).count, "N", "instructions"},                                 \
        {"warm-up", 0, TL_ARG_COUNT, &(w).warm_up, "N", "also include N instructions before it"},    \
    {                                                                                                \
        "symbols", 0, TL_ARG_TEXT, &(w).symbols, "ELF[@BIAS]", "the program with the functions"      \
    }

/* Find it in the file, within the range's instructions, and narrow the range to it. TL_ARGS_GO, or
 * the exit status; errors are printed. */
int tl_slice_where_find(const struct tl_slice_where *where, const char *path,
                        struct tl_arg_range *range);

#endif
