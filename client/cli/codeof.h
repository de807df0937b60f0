/* SPDX-License-Identifier: MIT */
/*
 * Selection of the code that `profile` and `coverage` cover: the traces and streams on the command
 * line, a range, and the processes.
 */
#ifndef TL_CLI_CODEOF_H
#define TL_CLI_CODEOF_H

#include "terminal/filehash.h"
#include "terminal/span.h"

#include <stdio.h>

struct tl_codeof_options {
    struct tl_span span;
    const char *contexts; /* "N,N,…"; NULL: all */
    const char *image;    /* a local file, else a name the server knows; NULL: all code */
};

/* A request. */
struct tl_codeof {
    struct tracelake_code_request request;
    struct tl_remote_name *names;
    struct tracelake_code_source *also;
    uint64_t *contexts;
    char hash[TL_FILE_HASH];
};

/*
 * Run a command of this kind: build the request, connect, and have `write` print the answer to
 * `path` (NULL: standard output). Returns the exit status.
 */
int tl_codeof_run(const char *command, const struct tl_codeof_options *options,
                  const struct tl_remote *remote, const char *path, char **names, int n,
                  int (*write)(const void *context, struct tracelake *lake, struct tl_codeof *of,
                               FILE *file),
                  const void *context);

/* Report a failed request and return the exit status: prefixed with the trace's name if there is
 * only one, otherwise with the command's (the error then names the trace). */
int tl_codeof_fail(const struct tl_codeof *of, const char *command,
                   const struct tracelake_error *error);

#endif
