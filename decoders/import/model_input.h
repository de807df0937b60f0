/* SPDX-License-Identifier: MIT */
/*
 * A file of a model or a simulated core as its reader sees it: which of several cores or threads is
 * wanted, where the input ends, and what is told of parts that are left out. Not thread-safe. The
 * only I/O is reading lines.
 */
#ifndef TL_IMPORT_MODEL_INPUT_H
#define TL_IMPORT_MODEL_INPUT_H

#include "base/say.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TL_MODEL_LINE 32768 /* bytes of a line, at most */

/* The first five are the caller's; the rest begins as zero. */
struct tl_model_input {
    const char *name; /* for messages, borrowed */
    FILE *from;
    uint64_t number; /* of the core or thread that is wanted; 0: the first */
    tl_say_sink *warn;
    void *context;
    bool is_partial; /* something was left out, and told */
    uint64_t line;   /* number of the last line, from 1 */
    uint64_t n_strange, first_strange;
    char text[TL_MODEL_LINE]; /* of the last line */
};

/* Tell what is missing of the input. */
void tl_model_leave_out(struct tl_model_input *in, const char *format, ...) TL_PRINTF(2, 3);

/* The next line with its newline, borrowed until the next call; NULL: the end. A last line without
 * a newline is told, and not returned: a number in it may be cut. What is too long, or no text, is
 * told and ends the input. */
const char *tl_model_next_line(struct tl_model_input *in);

/* The last line should be of the log, but is not understood. */
void tl_model_mark_strange(struct tl_model_input *in);

/* Behind the last line: tell how many were not understood. */
void tl_model_end_lines(struct tl_model_input *in);

#endif
