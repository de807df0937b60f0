/* SPDX-License-Identifier: MIT */
/*
 * `tracelake seal`: ends live captures whose rig is gone. A server can do so after a time; this is
 * for people who know it earlier.
 */
#include "cli/cli.h"
#include "out/rows_out.h"
#include "terminal/remote.h"

static int seal(void *context, struct tracelake *lake, const char *trace)
{
    const bool *const json = context;
    struct tracelake_error error;
    struct tracelake_trace *row = NULL;
    const int result = tracelake_seal(lake, trace, &row, &error);
    if (result < 0)
        return tl_remote_fail(trace, &error);
    if (*json)
        tl_row_json(row);
    tracelake_trace_free(row);
    return TL_CLI_DONE;
}

int tl_cmd_seal(int argc, char **argv)
{
    struct tl_remote remote = {0};
    bool json = false;
    const struct tl_option args[] = {
        {"json", 0, TL_ARG_FLAG, &json, NULL, "print each trace as in 'ls --json', one per line"},
        TL_REMOTE_ARGS(remote),
        {0}};
    return tl_remote_each_trace(argc, argv, args, &remote, seal, &json);
}
