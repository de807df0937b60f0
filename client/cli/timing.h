/* SPDX-License-Identifier: MIT */
/* What the commands about time have in common: their options, what they say of the range, JSON. */
#ifndef TL_CLI_TIMING_H
#define TL_CLI_TIMING_H

#include "cli/cli.h"
#include "out/durations.h"
#include "terminal/span.h"

struct tl_timing_options {
    struct tl_remote remote;
    struct tl_span span;
    const char *weight; /* NULL: time */
    uint64_t limit;
    bool json;
};

/*
 * Parse the arguments of `command`, connect, and call `ask` with the stream, which returns an exit
 * status. `extra`: this many positional arguments after TRACE/STREAM; they are passed on.
 */
int tl_timing_run(const char *command, int argc, char **argv, const struct tl_option *args,
                  struct tl_timing_options *options, int extra,
                  int (*ask)(void *context, struct tracelake *lake, struct tracelake_range *range,
                             char **rest),
                  void *context);
/* The weight asked for; before anything else is asked, `options->weight` is checked. */
enum tracelake_weight tl_timing_weight(const struct tl_timing_options *options);
/* Print what the range was: "# 1.5 ms, of it 3 µs lost". */
void tl_timing_about(const struct tracelake_timing *about);

/* Print a text of a table, right-aligned in `width` columns, with a blank after it. */
void tl_timing_cell(const char *text, int width);
/* The same for a number. */
void tl_timing_number(uint64_t number, int width);

/* Print the rows of an answer's message as JSON, one in each line. TL_CLI_DONE, or the exit status
 * of a reported error. */
int tl_timing_json(const void *message, size_t n);

#endif
