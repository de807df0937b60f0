/* SPDX-License-Identifier: MIT */
/* Shared by the commands that write what each stream of a trace has. */
#ifndef TL_CLI_STREAMS_H
#define TL_CLI_STREAMS_H

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
/* Report that rows cannot be written, for an error of enum tl_err (TL_IO: errno says why), and
 * return the exit status. */
int tl_streams_fail(const char *where, int error);

#endif
