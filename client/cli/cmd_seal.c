/* SPDX-License-Identifier: MIT */
/* `tracelake seal`: the end of live captures whose rig is gone. */
#include "cli/cli.h"
#include "cli/remote.h"

int tl_cmd_seal(int argc, char **argv)
{
    struct tl_remote remote = {0};
    const struct tl_arg args[] = {TL_REMOTE_ARGS(remote), {0}};
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && first == argc)
        status = tl_cli_usage("seal", "give at least one TRACE");
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = TL_CLI_DONE;
    for (int i = first; i < argc; i++) {
        struct tracelake_error error;
        if (tracelake_seal(lake, argv[i], NULL, &error) >= 0)
            continue;
        const int one = tl_remote_fail(argv[i], &error);
        status = one > status ? one : status;
    }
    tracelake_close(lake);
    return status;
}
