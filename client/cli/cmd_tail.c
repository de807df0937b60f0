/* SPDX-License-Identifier: MIT */
/* `tracelake tail`: a live stream as it grows. */
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 200 };

struct options {
    struct tl_remote remote;
    uint64_t from;
    bool json;
};

static const struct tracelake_stream *find_stream(const struct tracelake_trace *trace,
                                                  const char *name)
{
    for (size_t i = 0; i < trace->n_streams; i++)
        if (!name[0] || strcmp(trace->streams[i].name, name) == 0)
            return &trace->streams[i];
    return NULL;
}

/* Wait until the stream is there: a rig may have only just begun. `*at` gets what it holds. */
static int wait_for_stream(struct tracelake *lake, struct tl_remote_name *name, uint64_t *at)
{
    for (;;) {
        struct tracelake_trace *trace;
        struct tracelake_error error;
        if (tracelake_get_trace(lake, name->trace, &trace, &error) < 0)
            return tl_remote_fail_query(name->trace, &error);
        const struct tracelake_stream *stream = find_stream(trace, name->stream);
        const bool more_may_come =
            trace->state == TRACELAKE_LIVE || trace->state == TRACELAKE_DECODING;
        if (stream)
            *at = stream->insns;
        tracelake_trace_free(trace);
        if (stream)
            return tl_remote_one_stream(lake, name);
        if (!more_may_come) {
            tl_cli_warn(name->trace, "it has no stream %s", name->stream);
            return TL_CLI_REFUSED;
        }
        if (tl_remote_signalled())
            return TL_CLI_DONE;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

static int follow(const struct options *o, struct tracelake *lake,
                  const struct tl_remote_name *name, uint64_t from)
{
    struct tracelake_fetch *fetch;
    struct tracelake_error error;
    char where[256];
    snprintf(where, sizeof where, "%s/%s", name->trace, name->stream);
    int result = tracelake_follow_open(&fetch, lake, name->trace, name->stream, from,
                                       o->json ? TRACELAKE_JSON : TRACELAKE_TEXT, &error);
    if (result < 0)
        return tl_remote_fail_query(where, &error);
    const void *p;
    size_t n;
    while ((result = tracelake_fetch_next(fetch, &p, &n, &error)) == TRACELAKE_OK)
        if (fwrite(p, 1, n, stdout) != n || fflush(stdout) != 0)
            break;
    tracelake_fetch_close(fetch);
    if (result == TRACELAKE_OK) {
        tl_cli_warn(NULL, "standard output: %s", strerror(errno));
        return TL_CLI_BAD;
    }
    /* Ended by the user or by the end of the trace: both are what tail is for. */
    return result == TRACELAKE_EOF || result == TRACELAKE_CANCELLED
               ? TL_CLI_DONE
               : tl_remote_fail_query(where, &error);
}

int tl_cmd_tail(int argc, char **argv)
{
    struct options o = {.from = UINT64_MAX};
    const struct tl_arg args[] = {
        {"from", 0, TL_ARG_U64, &o.from},
        {"json", 0, TL_ARG_FLAG, &o.json},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake;
    uint64_t at = 0;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("tail", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("tail", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o.remote);
    if (status != TL_ARGS_GO)
        return status;
    tl_remote_on_signal(lake);
    status = wait_for_stream(lake, &name, &at);
    if (status == TL_ARGS_GO)
        status = follow(&o, lake, &name, o.from == UINT64_MAX ? at : o.from);
    tl_remote_on_default();
    tracelake_close(lake);
    return status;
}
