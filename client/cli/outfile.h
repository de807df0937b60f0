/* SPDX-License-Identifier: MIT */
/*
 * A result that becomes a file when it is whole: written beside it under a temporary name, renamed
 * at the end. What has the name already stays as it is until then, whatever goes wrong; a signal
 * that ends the program (Ctrl-C) removes what is not whole.
 *
 * Every command that writes files writes them by this. One thread at a time.
 */
#ifndef TL_CLI_OUTFILE_H
#define TL_CLI_OUTFILE_H

#include "base/err.h"

#include <stdio.h>

struct tl_outfile_beside;

/* Zeroed: none. */
struct tl_outfile {
    char *path;                       /* where it goes: what a symbolic link points to */
    struct tl_outfile_beside *beside; /* the temporary; NULL: `path` itself, a device or a pipe */
    FILE *file;
};

/*
 * Begin `path`; "-" is standard output, which is refused (TL_USAGE) where it is a terminal. `input`
 * (NULL: none): a file that is being read, and so may not be written (TL_USAGE). TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_outfile_begin(struct tl_outfile *out, const char *path, const char *input,
                                 struct tl_fail *fail);
/* All is written: give the file its name. TL_IO: not all of it was, and nothing is left of it. */
TL_MUST_USE int tl_outfile_commit(struct tl_outfile *out, struct tl_fail *fail);
/* Leave nothing of it. After a commit, or of a zeroed one: does nothing. */
void tl_outfile_drop(struct tl_outfile *out);

/* As tl_outfile_begin(), and says what is wrong: TL_ARGS_GO, or the exit status. NULL: text on
 * standard output, also if that is a terminal. */
int tl_outfile_open(struct tl_outfile *out, const char *path);
/*
 * Commit if `status` is TL_CLI_DONE, which says that all was written, else drop. Returns the exit
 * status; what went wrong here is said.
 */
int tl_outfile_close(struct tl_outfile *out, int status);

#endif
