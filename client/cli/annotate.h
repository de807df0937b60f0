/* SPDX-License-Identifier: MIT */
/*
 * Flow text with what people want to see of each instruction behind it:
 *
 *     I 0000000080000000 00150513  addi a0, a0, 1 <main+0x10> main.c:12
 *
 * All other lines stay as they are. Not thread-safe.
 */
#ifndef TL_CLI_ANNOTATE_H
#define TL_CLI_ANNOTATE_H

#include "cli/codetext.h"
#include "cli/sources.h"

#include <stdio.h>

struct tl_annotate;

struct tl_annotate_options {
    bool disasm;                  /* assembly text, … */
    const struct tl_image *image; /* … and functions, by these symbols, borrowed; NULL: none */
    struct tl_sources *sources;   /* … and source lines, borrowed; NULL: none */
};

/* `file` is borrowed. TL_NOMEM. */
TL_MUST_USE int tl_annotate_new(struct tl_annotate **out, const struct tl_annotate_options *options,
                                FILE *file);
void tl_annotate_free(struct tl_annotate *annotate); /* NULL is fine */
/* What is in force where the text begins, e.g. "el1.ns.a64"; without it nothing is known until the
 * text tells. */
void tl_annotate_mode(struct tl_annotate *annotate, const char *mode);
/* Flow text in any pieces. TL_NOMEM; TL_IO: it cannot be written. */
TL_MUST_USE int tl_annotate_push(struct tl_annotate *annotate, struct tl_bytes text);

#endif
