/* SPDX-License-Identifier: MIT */
/* `tracelake stats`: what a range consists of. */
#include "cli/remote.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>

static int print_stats(const char *json, bool raw)
{
    if (raw) {
        puts(json);
        return TL_CLI_DONE;
    }
    cJSON *tree = cJSON_Parse(json);
    char *text = tree ? cJSON_Print(tree) : NULL;
    puts(text ? text : json);
    cJSON_free(text);
    cJSON_Delete(tree);
    return TL_CLI_DONE;
}

int tl_cmd_stats(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct tl_arg_range insn = {0, TRACELAKE_END, false};
    bool raw = false;
    const struct tl_arg args[] = {
        {"insn", 0, TL_ARG_RANGE, &insn},
        {"json", 0, TL_ARG_FLAG, &raw},
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake;
    struct tracelake_error error;
    char *json = NULL;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("stats", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("stats", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_remote_one_stream(lake, &name);
    if (status == TL_ARGS_GO)
        status =
            tracelake_stats(lake, name.trace, name.stream, insn.from, insn.to, &json, &error) < 0
                ? tl_remote_fail_query(argv[first], &error)
                : print_stats(json, raw);
    free(json);
    tracelake_close(lake);
    return status;
}
