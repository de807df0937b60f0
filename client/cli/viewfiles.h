/* SPDX-License-Identifier: MIT */
/* The files of `view`: which of them is a capture, a program or a configuration. */
#ifndef TL_CLI_VIEWFILES_H
#define TL_CLI_VIEWFILES_H

#include "terminal/args.h"

enum tl_view_kind { TL_VIEW_CAPTURE, TL_VIEW_SNAPSHOT, TL_VIEW_PROGRAM, TL_VIEW_CONFIG };

struct tl_view_file {
    const char *path; /* borrowed */
    enum tl_view_kind kind;
    const char *format; /* of a capture, for --format; NULL: perf.data, or as configured. Static */
};

/*
 * Determine what a file or folder is by its contents. `format` is what the user says of raw
 * captures, or NULL; `configured`: there is a configuration, which may say it. TL_ARGS_GO, or the
 * exit status of a reported error: it cannot be read, or nothing says what it is.
 */
int tl_view_file(struct tl_view_file *out, const char *path, const char *format, bool configured);
/* Is it a configuration, which tl_view_file() needs to know of the others? */
bool tl_view_is_config(const char *path);
/* The trace's name for a file: its base name, as far as it is allowed in names. */
void tl_view_name(const char *path, char out[static 48]);

#endif
