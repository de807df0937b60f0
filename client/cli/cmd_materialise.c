/* SPDX-License-Identifier: MIT */
/*
 * `tracelake materialise`: has the server convert virtual shards to stored ones. Unless told
 * otherwise it waits until they are, so that a script can go on with them.
 */
#include "cli/cli.h"
#include "out/rows_out.h"
#include "terminal/remote.h"

struct options {
    bool no_wait;
    bool json;
};

static int materialise(void *context, struct tracelake *lake, const char *trace)
{
    const struct options *const o = context;
    const struct tracelake_label stored = {"shards", "stored"};
    struct tracelake_trace *row = NULL;
    struct tracelake_error error;
    int result = tracelake_set_labels(lake, trace, &stored, 1, NULL, &error);
    if (result >= 0)
        result = tracelake_redecode(lake, trace, NULL, NULL, &error);
    if (result >= 0 && (!o->no_wait || o->json))
        result = tl_remote_decoded(lake, trace, !o->no_wait, &row, &error);
    if (result >= 0 && o->json)
        tl_row_json(row);
    tracelake_trace_free(row);
    return result < 0 ? tl_remote_fail(trace, &error) : TL_CLI_DONE;
}

int tl_cmd_materialise(int argc, char **argv)
{
    struct tl_remote remote = {0};
    struct options o = {0};
    const struct tl_option args[] = {
        {"no-wait", 0, TL_ARG_FLAG, &o.no_wait, NULL, "do not wait until this is done"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "print each trace as in 'ls --json', one per line"},
        TL_REMOTE_ARGS(remote),
        {0}};
    return tl_remote_each_trace(argc, argv, args, &remote, materialise, &o);
}
