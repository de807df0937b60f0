/* SPDX-License-Identifier: MIT */
/*
 * Input of a stream to be split: consecutive runs, gathered or borrowed, each byte with its offset
 * in the file. For split.c. Not thread-safe, except for concurrent reading.
 */
#ifndef TL_DECODE_SPLIT_INPUT_H
#define TL_DECODE_SPLIT_INPUT_H

#include "base/buf.h"
#include "frame/run.h"

/* Position of a run in the input; file offsets as in struct tl_run. */
struct tl_split_run {
    size_t start;
    uint64_t base;
    size_t places; /* index of its places in the gathered array; SIZE_MAX: not gathered */
    const uint16_t *place;
};

/* Bytes to decode and their file offsets. Borrowed. */
struct tl_split_input {
    const uint8_t *p;
    size_t n;
    struct tl_split_run *runs;
    size_t n_runs;
};

/* Index of the run that contains byte `at` of the input. */
size_t tl_split_run_find(const struct tl_split_input *in, size_t at);
/* Run `i` starting at byte `at` of the input, which must be in that run. */
struct tl_run tl_split_run_from(const struct tl_split_input *in, size_t i, size_t at);

/* Runs collected until there are enough to share among threads. All zero: empty. */
struct tl_split_gather {
    struct tl_buf bytes, places; /* places: uint16_t each, for runs that have them */
    struct tl_split_run *runs;
    size_t n_runs, cap_runs;
};

/* Returns TL_NOMEM. */
TL_MUST_USE int tl_split_gather_add(struct tl_split_gather *gather, const struct tl_run *run);
/* All gathered runs as input; valid until more are added. */
struct tl_split_input tl_split_gather_input(struct tl_split_gather *gather);
void tl_split_gather_reset(struct tl_split_gather *gather); /* keeps the memory */
void tl_split_gather_fini(struct tl_split_gather *gather);

#endif
