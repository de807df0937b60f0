/* SPDX-License-Identifier: MIT */
/*
 * A result that becomes a file when it is whole: written beside it under a temporary name, renamed
 * at the end. What has the name already stays as it is until then, whatever goes wrong.
 */
#ifndef TL_CLI_OUTFILE_H
#define TL_CLI_OUTFILE_H

#include <stdio.h>

struct tl_outfile {
    const char *path; /* borrowed; "-": standard output */
    char *beside;     /* the temporary name; NULL: `path` itself, a device or a pipe */
    FILE *file;
};

/* TL_ARGS_GO, or the exit status; said. "-" is refused where it is a terminal. */
int tl_outfile_open(struct tl_outfile *out, const char *path);
/*
 * Close; `status` is TL_CLI_DONE if all was written. Only then the file gets its name, else it is
 * removed. Returns the exit status; what went wrong here is said.
 */
int tl_outfile_close(struct tl_outfile *out, int status);

#endif
