/* SPDX-License-Identifier: MIT */
/*
 * Goes through the streams that a name means. The streams of a trace, one after the other, so that
 * commands agree on what a name means.
 */
#include "cli/streams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_streams_each(struct tracelake *lake, const struct tl_remote_name *name,
                    int (*each)(void *context, struct tracelake *lake,
                                const struct tl_remote_name *name,
                                const struct tracelake_stream *stream),
                    void *context)
{
    struct tracelake_trace *trace;
    struct tracelake_error error;
    struct tl_remote_name one = *name;
    size_t n = 0;
    int status = TL_CLI_DONE;
    if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    for (size_t i = 0; i < trace->n_streams && status == TL_CLI_DONE; i++) {
        if (*name->stream && strcmp(name->stream, trace->streams[i].name) != 0)
            continue;
        snprintf(one.stream, sizeof one.stream, "%s", trace->streams[i].name);
        status = each(context, lake, &one, &trace->streams[i]);
        n++;
    }
    tracelake_trace_free(trace);
    if (n > 0 || !*name->stream)
        return status;
    tl_cli_warn(name->trace, "it has no stream %s", name->stream);
    return TL_CLI_REFUSED;
}

void tl_streams_setup(struct tracelake *lake, const char *trace, struct tl_setup *setup)
{
    struct tracelake_error error;
    struct tl_fail fail;
    char *text;
    tl_setup_init(setup);
    if (tracelake_get_setup(lake, trace, &text, &error) < 0)
        return;
    if (tl_setup_parse(setup, text, strlen(text), &fail) < 0) {
        tl_setup_fini(setup);
        tl_setup_init(setup);
    }
    free(text);
}

int tl_streams_fail(const char *where, int error)
{
    tl_cli_warn(where, "cannot write: %s", error == TL_NOMEM ? "out of memory" : strerror(errno));
    return TL_CLI_BAD;
}
