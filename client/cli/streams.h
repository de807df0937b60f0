/* SPDX-License-Identifier: MIT */
/* Shared by the commands that write what each stream of a trace has. */
#ifndef TL_CLI_STREAMS_H
#define TL_CLI_STREAMS_H

#include "setup/setup.h"
#include "terminal/remote.h"

/*
 * Call `each` for the stream that is named, or without a name for every stream of the trace, until
 * it returns another exit status than TL_CLI_DONE. Returns the last one; errors are reported.
 */
int tl_streams_each(struct tracelake *lake, const struct tl_remote_name *name,
                    int (*each)(void *context, struct tracelake *lake,
                                const struct tl_remote_name *name,
                                const struct tracelake_stream *stream),
                    void *context);
/* The trace's setup, for names and clocks; an empty one if there is none. Free it with
 * tl_setup_fini(). */
void tl_streams_setup(struct tracelake *lake, const char *trace, struct tl_setup *setup);

/* Report that rows cannot be written, for an error of enum tl_err (TL_IO: errno says why), and
 * return the exit status. */
int tl_streams_fail(const char *where, int error);

#endif
