/* SPDX-License-Identifier: MIT */
/*
 * Selection of the code that `profile` and `coverage` cover: the traces and streams on the command
 * line, a range, and the processes.
 */
#ifndef TL_CLI_CODEOF_H
#define TL_CLI_CODEOF_H

#include "cli/filehash.h"
#include "cli/remote.h"

struct tl_codeof_options {
    struct tl_arg_range insn, time;
    const char *contexts; /* "N,N,…"; NULL: all */
    const char *image;    /* a local file, else a name the server knows; NULL: all code */
};

/* A request; free with tl_codeof_fini(), also after an error. */
struct tl_codeof {
    struct tracelake_code_request request;
    struct tl_remote_name *names;
    struct tracelake_code_source *also;
    uint64_t *contexts;
    char hash[TL_FILE_HASH];
};

/*
 * Build the request from TRACE[/STREAM]… and the options. Returns TL_ARGS_GO, or the exit status if
 * an error was reported.
 */
int tl_codeof_init(struct tl_codeof *of, const char *command,
                   const struct tl_codeof_options *options, char **names, int n);
void tl_codeof_fini(struct tl_codeof *of);

/* Report a failed request and return the exit status: prefixed with the trace's name if there is
 * only one, otherwise with the command's (the error then names the trace). */
int tl_codeof_fail(const struct tl_codeof *of, const char *command,
                   const struct tracelake_error *error);

/* The range of a single name. */
struct tracelake_range tl_codeof_range(const struct tl_codeof_options *options,
                                       const struct tl_remote_name *name);

#endif
