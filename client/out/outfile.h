/* SPDX-License-Identifier: MIT */
/*
 * An output file that appears only when it is complete: written next to its destination under a
 * temporary name, renamed at the end. Until then an existing file of that name stays unchanged,
 * whatever goes wrong; a signal that ends the program (Ctrl-C) removes the incomplete file.
 *
 * All commands that write files use this. One thread at a time.
 */
#ifndef TL_OUT_OUTFILE_H
#define TL_OUT_OUTFILE_H

#include "base/err.h"

#include <stdio.h>

struct tl_outfile_beside;

/* Zero-initialised: none. */
struct tl_outfile {
    char *path; /* destination, with symbolic links resolved */
    /* The temporary file; NULL: `path` is written directly, a device or a pipe. */
    struct tl_outfile_beside *beside;
    FILE *file;
};

/*
 * Begin writing `path`; "-" is standard output, which is refused (TL_USAGE) if it is a terminal.
 * `input` (NULL: none): a file that is being read, and therefore must not be written (TL_USAGE).
 * TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_outfile_begin(struct tl_outfile *out, const char *path, const char *input,
                                 struct tl_fail *fail);
/* Complete the file and rename it. TL_IO: writing failed, and nothing is left of it. */
TL_MUST_USE int tl_outfile_commit(struct tl_outfile *out, struct tl_fail *fail);
/* Discard the file. After a commit, or on a zeroed one: does nothing. */
void tl_outfile_drop(struct tl_outfile *out);

/* Remove all incomplete files, in a signal handler that ends the process. */
void tl_outfile_remove_all(void);

/* As tl_outfile_begin(), but reports errors: TL_ARGS_GO, or the exit status. NULL `path`: text on
 * standard output, which may be a terminal. */
int tl_outfile_open(struct tl_outfile *out, const char *path);
/*
 * Commit if `status` is TL_CLI_DONE, which means that everything was written, otherwise drop.
 * Returns the exit status; errors here are reported.
 */
int tl_outfile_close(struct tl_outfile *out, int status);

#endif
