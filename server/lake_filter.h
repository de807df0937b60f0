/* SPDX-License-Identifier: MIT */
/*
 * Ranges of which only some of the program is wanted: user mode, one process, one thread. The
 * result is what a trace unit with such a filter would have recorded, at the same positions: what
 * is left out is a gap `off`.
 */
#ifndef TL_LAKE_FILTER_H
#define TL_LAKE_FILTER_H

#include "lake_ranges.h"

/* What is kept: what fits everything that is given. NULL, "": anything. */
struct tl_range_filter {
    /* Modes, separated by commas: "u" user, "k" known and not user, or the begin of a mode as in
     * flow text up to a dot: "el1", "el1.ns", "ring0", "s". */
    const char *mode;
    const char *process; /* name (a pattern) or number: process ID, context ID */
    const char *thread;  /* name or number of a thread; context ID where there are only these */
};

/* Does it leave anything out? */
bool tl_range_filter_given(const struct tl_range_filter *filter);
/* Filter a range that was just opened. The filter is copied. TL_USAGE: no such mode; TL_NOMEM. */
TL_MUST_USE int tl_range_filter(struct tl_range *range, const struct tl_range_filter *filter,
                                struct tl_fail *fail);
/* Number of instructions that a filtered range has passed so far. */
uint64_t tl_range_kept(const struct tl_range *range);

#endif
