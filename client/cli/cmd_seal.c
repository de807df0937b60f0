/* SPDX-License-Identifier: MIT */
/* `tracelake seal`: the end of live captures whose rig is gone. */
#include "cli/cli.h"
#include "cli/remote.h"

static int seal(void *context, struct tracelake *lake, const char *trace)
{
    struct tracelake_error error;
    const int result = tracelake_seal(lake, trace, NULL, &error);
    return result < 0 ? tl_remote_fail(trace, &error) : TL_CLI_DONE;
}

int tl_cmd_seal(int argc, char **argv)
{
    struct tl_remote remote = {0};
    const struct tl_arg args[] = {TL_REMOTE_ARGS(remote), {0}};
    return tl_remote_each_trace(argc, argv, args, &remote, seal, NULL);
}
