/* SPDX-License-Identifier: MIT */
/* `tracelake materialise`: virtual shards become stored ones. */
#include "cli/cli.h"
#include "cli/remote.h"

static int materialise(void *context, struct tracelake *lake, const char *trace)
{
    const bool *const no_wait = context;
    const struct tracelake_label stored = {"shards", "stored"};
    struct tracelake_trace *row = NULL;
    struct tracelake_error error;
    int result = tracelake_set_labels(lake, trace, &stored, 1, NULL, &error);
    if (result >= 0)
        result = tracelake_redecode(lake, trace, NULL, NULL, &error);
    if (result >= 0 && !*no_wait)
        result = tl_remote_decoded(lake, trace, true, &row, &error);
    tracelake_trace_free(row);
    return result < 0 ? tl_remote_fail(trace, &error) : TL_CLI_DONE;
}

int tl_cmd_materialise(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool no_wait = false;
    const struct tl_arg args[] = {
        {"no-wait", 0, TL_ARG_FLAG, &no_wait}, TL_REMOTE_ARGS(remote), {0}};
    return tl_remote_each_trace(argc, argv, args, &remote, materialise, &no_wait);
}
