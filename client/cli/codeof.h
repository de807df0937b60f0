/* SPDX-License-Identifier: MIT */
/*
 * Of which code `profile` and `coverage` tell: the traces and streams on the command line, a range,
 * and which processes.
 */
#ifndef TL_CLI_CODEOF_H
#define TL_CLI_CODEOF_H

#include "cli/filehash.h"
#include "cli/remote.h"

struct tl_codeof_options {
    struct tl_arg_range insn, time;
    const char *contexts; /* "N,N,…"; NULL: all */
    const char *image;    /* a file here, else as the server knows it; NULL: all code */
};

/* A request that tl_codeof_fini() frees, also after an error. */
struct tl_codeof {
    struct tracelake_code_request request;
    struct tl_remote_name *names;
    struct tracelake_code_source *also;
    uint64_t *contexts;
    char hash[TL_FILE_HASH];
};

/* TRACE[/STREAM]… and the options as a request: TL_ARGS_GO, or the exit status of what was said. */
int tl_codeof_init(struct tl_codeof *of, const char *command,
                   const struct tl_codeof_options *options, char **names, int n);
void tl_codeof_fini(struct tl_codeof *of);

/* Print an error of the request: of one trace with its name, of several, whose error names the one
 * that it is of, with the command's. The exit status. */
int tl_codeof_fail(const struct tl_codeof *of, const char *command,
                   const struct tracelake_error *error);

/* One of the names alone, as a range. */
struct tracelake_range tl_codeof_range(const struct tl_codeof_options *options,
                                       const struct tl_remote_name *name);

#endif
