/* SPDX-License-Identifier: MIT */
/*
 * The bytes that a stream is split over: runs in a row, gathered or not, each byte with its place
 * in the file. For split.c; not thread-safe, but for reading.
 */
#ifndef TL_DECODE_SPLIT_INPUT_H
#define TL_DECODE_SPLIT_INPUT_H

#include "base/buf.h"
#include "frame/run.h"

/* A run's place among the bytes of the input, and in the file as in struct tl_run. */
struct tl_split_run {
    size_t start;
    uint64_t base;
    size_t places; /* where its places are among those gathered; SIZE_MAX: it has none there */
    const uint16_t *place;
};

/* Bytes to be decoded, and where they are in the file. Borrowed. */
struct tl_split_input {
    const uint8_t *p;
    size_t n;
    struct tl_split_run *runs;
    size_t n_runs;
};

/* The run that byte `at` of the input is in. */
size_t tl_split_run_find(const struct tl_split_input *in, size_t at);
/* Run `i` of it from byte `at` of the input on, which is in that run. */
struct tl_run tl_split_run_from(const struct tl_split_input *in, size_t i, size_t at);

/* Runs that are gathered until they are worth sharing. Zeroed it is empty. */
struct tl_split_gather {
    struct tl_buf bytes, places; /* places: uint16_t each, of runs that have them */
    struct tl_split_run *runs;
    size_t n_runs, cap_runs;
};

/* TL_NOMEM. */
TL_MUST_USE int tl_split_gather_add(struct tl_split_gather *gather, const struct tl_run *run);
/* All of them, until more are added. */
struct tl_split_input tl_split_gather_input(struct tl_split_gather *gather);
void tl_split_gather_reset(struct tl_split_gather *gather); /* keeps the memory */
void tl_split_gather_fini(struct tl_split_gather *gather);

#endif
