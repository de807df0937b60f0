/* SPDX-License-Identifier: MIT */
/* What `decode` and `push` are given, capture by capture. */
#ifndef TL_CLI_CAPTURES_H
#define TL_CLI_CAPTURES_H

#include "import/bundle.h"

/* Options that say where the code is that ran, to a struct tl_code_places. */
#define TL_CLI_PLACES(places)                                                                      \
    {"symfs", 0, TL_ARG_TEXT, &(places).symfs},                                                    \
        {"buildid-dir", 0, TL_ARG_TEXT, &(places).buildid_dir},                                    \
        {"vmlinux", 0, TL_ARG_TEXT, &(places).vmlinux},                                            \
    {                                                                                              \
        "kcore", 0, TL_ARG_TEXT, &(places).kcore                                                   \
    }

struct tl_cli_captures {
    const char *command;
    struct tl_bundle_request request; /* but for `warn`, which prints */
    const char *buffer;               /* of a snapshot: that one alone; or NULL */
    int stop;                         /* no more captures behind such an exit status, or a higher */
};

/*
 * Read what was named and hand over each capture; `alone`: it is the only one that there is. Says
 * what went wrong; returns the highest exit status.
 */
int tl_cli_captures(const struct tl_cli_captures *what,
                    int (*each)(void *context, struct tl_bundle_capture *capture, bool alone),
                    void *context);

/* How many raw bytes a capture has in files; 0: that is not known of all of it. */
uint64_t tl_cli_capture_bytes(const struct tl_bundle_capture *capture);

#endif
