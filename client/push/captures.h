/* SPDX-License-Identifier: MIT */
/* Input captures of `decode` and `push`. */
#ifndef TL_PUSH_CAPTURES_H
#define TL_PUSH_CAPTURES_H

#include "import/bundle.h"

/* Options that give the locations of executed code; they fill a struct tl_code_places. */
#define TL_CLI_PLACES(places)                                                                      \
    {"symfs", 0, TL_ARG_TEXT, &(places).symfs},                                                    \
        {"buildid-dir", 0, TL_ARG_TEXT, &(places).buildid_dir},                                    \
        {"vmlinux", 0, TL_ARG_TEXT, &(places).vmlinux},                                            \
    {                                                                                              \
        "kcore", 0, TL_ARG_TEXT, &(places).kcore                                                   \
    }

struct tl_cli_captures {
    const char *command;
    struct tl_bundle_request request; /* complete except for `warn`, which prints */
    const char *buffer;               /* of a snapshot: process only this buffer; NULL: all */
    int stop; /* stop after a capture with this exit status or a higher one */
};

/* Check the options that name inputs (NULL: absent) for fitting together. Returns TL_ARGS_GO, or
 * the exit status: an error was reported. */
int tl_cli_captures_check(const char *command, const char *snapshot, const char *buffer,
                          const char *config, const char *input);
/*
 * Read the named inputs and pass each capture to `each`; `alone`: it is the only one. Reports
 * errors; returns the highest exit status.
 */
int tl_cli_captures(const struct tl_cli_captures *what,
                    int (*each)(void *context, struct tl_bundle_capture *capture, bool alone),
                    void *context);

/* Raw bytes of a capture that are in files; 0: the size is not completely known. */
uint64_t tl_cli_capture_bytes(const struct tl_bundle_capture *capture);

#endif
