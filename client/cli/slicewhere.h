/* SPDX-License-Identifier: MIT */
/*
 * A range of an STF file told by what is executed: from the n-th time that an address is, or that a
 * function begins, for so many instructions or until another address.
 */
#ifndef TL_CLI_SLICEWHERE_H
#define TL_CLI_SLICEWHERE_H

#include "cli/args.h"

struct tl_slice_where {
    const char *from_symbol, *from_pc;
    const char *to_symbol, *to_pc;
    const char *symbols; /* "FILE[@BIAS]" that has the functions */
    uint64_t occurrence; /* of the begin, from 1 */
    uint64_t count;      /* instructions, 0: up to the place that is told, or to the end */
    uint64_t warm_up;    /* instructions in front of it that come along */
};

#define TL_SLICE_WHERE_ARGS(w)                                                                     \
    {"from-symbol", 0, TL_ARG_TEXT, &(w).from_symbol}, {"from-pc", 0, TL_ARG_TEXT, &(w).from_pc},  \
        {"to-symbol", 0, TL_ARG_TEXT, &(w).to_symbol}, {"to-pc", 0, TL_ARG_TEXT, &(w).to_pc},      \
        {"symbols", 0, TL_ARG_TEXT, &(w).symbols}, {"occurrence", 0, TL_ARG_U64, &(w).occurrence}, \
        {"count", 0, TL_ARG_COUNT, &(w).count},                                                    \
    {                                                                                              \
        "warm-up", 0, TL_ARG_COUNT, &(w).warm_up                                                   \
    }

/* Find it in the file, between the range's instructions, which it narrows. TL_ARGS_GO, or the exit
 * status; what is wrong is said. */
int tl_slice_where_find(const struct tl_slice_where *where, const char *path,
                        struct tl_arg_range *range);

#endif
