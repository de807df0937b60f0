/* SPDX-License-Identifier: MIT */
/*
 * Flow text with annotations appended to each instruction:
 *
 *     I 0000000080000000 00150513  addi a0, a0, 1 <main+0x10> main.c:12
 *
 * All other lines are unchanged. Not thread-safe.
 */
#ifndef TL_CLI_ANNOTATE_H
#define TL_CLI_ANNOTATE_H

#include "cli/codetext.h"
#include "cli/sources.h"

#include <stdio.h>

struct tl_annotate;

struct tl_annotate_options {
    bool disasm;                  /* append assembly text */
    const struct tl_image *image; /* append functions from these symbols, borrowed; NULL: none */
    struct tl_sources *sources;   /* append source lines from these files, borrowed; NULL: none */
};

/* `file` is borrowed. TL_NOMEM. */
TL_MUST_USE int tl_annotate_new(struct tl_annotate **out, const struct tl_annotate_options *options,
                                FILE *file);
void tl_annotate_free(struct tl_annotate *annotate); /* accepts NULL */
/* Set the mode current at the beginning of the text, e.g. "el1.ns.a64"; without it the mode is
 * unknown until the text gives one. */
void tl_annotate_mode(struct tl_annotate *annotate, const char *mode);
/* Process flow text, split anywhere. TL_NOMEM; TL_IO: writing failed. */
TL_MUST_USE int tl_annotate_push(struct tl_annotate *annotate, struct tl_bytes text);

#endif
