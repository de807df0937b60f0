/* SPDX-License-Identifier: MIT */
/*
 * Flow text with annotations appended to each instruction:
 *
 *     I 0000000080000000 00150513  addi a0, a0, 1 <main+0x10> main.c:12
 *
 * All other lines are unchanged; in a listing there are none, and instructions are numbered
 * (tl_codetext_row()). Not thread-safe.
 */
#ifndef TL_OUT_ANNOTATE_H
#define TL_OUT_ANNOTATE_H

#include "out/codetext.h"
#include "out/sources.h"
#include "terminal/args.h"

#include <stdio.h>

struct tl_annotate;

struct tl_annotate_options {
    bool disasm;                  /* append assembly text */
    bool listing;                 /* a line for each executed instruction, and no other */
    const struct tl_image *image; /* append functions from these symbols, borrowed; NULL: none */
    struct tl_sources *sources;   /* append source lines from these files, borrowed; NULL: none */
};

/* The command-line options that select annotations. Zero-initialise. */
struct tl_annotate_args {
    struct tl_arg_list symbols; /* ELF files, "FILE[@BIAS]" */
    bool source;
    struct tl_arg_list maps;            /* of source paths, "A=B"; they imply `source` */
    bool names;                         /* functions by the server's images */
    struct tl_image *image;             /* symbols of the files; NULL: none */
    struct tl_annotate_options options; /* `disasm` as given, the rest from tl_annotate_open() */
};
#define TL_ANNOTATE_ARGS(args)                                                                     \
    {"disasm",    0,                                                                               \
     TL_ARG_FLAG, &(args).options.disasm,                                                          \
     NULL,        "flow text: each instruction followed by its assembly text"},                    \
        {"symbols",    0,                                                                          \
         TL_ARG_LIST,  &(args).symbols,                                                            \
         "ELF[@BIAS]", "… and its function, by this file's symbols"},                              \
        {"source",       0,    TL_ARG_FLAG,                                                        \
         &(args).source, NULL, "… and its source line, by the same file's debug information"},     \
    {                                                                                              \
        "source-map", 0, TL_ARG_LIST, &(args).maps, "A=B",                                         \
            "… in the folder B instead of A, where it was compiled; repeated: the longest A"     \
    }
/* The same for text of a server, which has names itself. */
#define TL_ANNOTATE_REMOTE_ARGS(args)                                                              \
    TL_ANNOTATE_ARGS(args),                                                                        \
    {                                                                                              \
        "functions", 0, TL_ARG_FLAG, &(args).names, NULL,                                          \
            "flow text: each instruction followed by its function, by the server's images (with "  \
            "--disasm always)"                                                                     \
    }
/* Does the server name the functions? */
static inline bool tl_annotate_remote(const struct tl_annotate_args *args)
{
    return (args->names || args->options.disasm) && args->symbols.n == 0;
}
/* Open the files. Returns TL_ARGS_GO, or the exit status if an error was reported. */
int tl_annotate_open(struct tl_annotate_args *args, const char *command);
void tl_annotate_close(struct tl_annotate_args *args); /* also after an error */

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
