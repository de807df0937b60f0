/* SPDX-License-Identifier: MIT */
/*
 * Instructions as a disassembly list shows them, and their source. Threads and errors as in lake.h.
 */
#ifndef TL_LAKE_INSNS_H
#define TL_LAKE_INSNS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lake;

/* An inlined function, and its call site. */
struct tl_insn_inlined {
    const char *function, *file;
    uint32_t line;
};

/* A row of the disassembly list. Texts are "" if unknown, and valid only during the callback. */
struct tl_insn_row {
    uint64_t insn, pc;
    uint64_t time; /* if has_time */
    bool has_time;
    const char *function; /* "main+0x10" */
    const char *mode;     /* as in flow text */
    const char *encoding; /* as in flow text */
    const char *text;     /* the instruction, or the item at the position */
    const char *events;   /* items before it: lines of flow text, each with its line end */
    /* From debug information: */
    const char *file;                      /* source file */
    uint32_t line, column;                 /* from 1; 0: not known */
    const struct tl_insn_inlined *inlined; /* outermost first */
    size_t n_inlined;
    const char *image; /* hash of the image with the debug information */
    const char *lacks; /* which source information is missing, and why */
};
typedef int tl_insn_sink(void *context, const struct tl_insn_row *row);
/* Pass rows for `count` (<= 4096) instructions beginning at `from` to `sink`; a result < 0 of it
 * ends the call and is returned. */
TL_MUST_USE int tl_lake_insns(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint32_t count, tl_insn_sink *sink, void *context,
                              struct tl_fail *fail);

/* Source location of an instruction. */
struct tl_source_file {
    char *file;    /* as named by debug information; "" if it names none */
    uint32_t line; /* from 1, 0: no line */
    bool has_text;
    struct tl_buf text; /* the complete file, arbitrary bytes */
    char why[256];      /* why there is no text, or no file; "" if there is */
};
/*
 * Find the source of an instruction. `frame` 0: of the instruction itself, 1: the call site of the
 * innermost function inlined there, 2: of the next outer one … TL_NOTFOUND: no such trace, stream,
 * instruction or frame. Free with tl_source_file_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_source(struct tl_lake *lake, const char *trace, const char *stream,
                               uint64_t insn, uint32_t frame, struct tl_source_file *out,
                               struct tl_fail *fail);
void tl_source_file_fini(struct tl_source_file *source);

#endif
