/* SPDX-License-Identifier: MIT */
/* `tracelake raw`: the rig's bytes as they came, and its setup. */
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct tl_remote remote;
    struct tl_arg_range byte;
    const char *out, *config;
};

static int copy(const struct options *o, struct tracelake *lake, const char *trace, FILE *file)
{
    struct tracelake_raw *raw;
    struct tracelake_error error;
    const uint64_t to = o->byte.given ? o->byte.to : TRACELAKE_END;
    if (o->byte.given && o->byte.from == to)
        return TL_CLI_DONE;
    int result = tracelake_raw_open(&raw, lake, trace, o->byte.from, to, &error);
    if (result < 0)
        return tl_remote_fail_query(trace, &error);
    uint64_t done = 0;
    for (;;) {
        const void *p;
        size_t n;
        result = tracelake_raw_next(raw, &p, &n, &error);
        if (result < 0)
            break;
        if (fwrite(p, 1, n, file) != n) {
            tl_cli_warn(o->out, "cannot write: %s", strerror(errno));
            tracelake_raw_close(raw);
            return TL_CLI_BAD;
        }
        done += n;
        tl_progress_step(done, to == TRACELAKE_END ? 0 : to - o->byte.from, NULL);
    }
    tracelake_raw_close(raw);
    return result == TRACELAKE_EOF ? TL_CLI_DONE : tl_remote_fail_query(trace, &error);
}

static int write_bytes(const struct options *o, struct tracelake *lake, const char *trace)
{
    struct tl_outfile out;
    int status = tl_outfile_open(&out, o->out);
    if (status != TL_ARGS_GO)
        return status;
    tl_progress_begin(trace, "B");
    status = copy(o, lake, trace, out.file);
    tl_progress_end();
    return tl_outfile_close(&out, status);
}

static int write_setup(const struct options *o, struct tracelake *lake, const char *trace)
{
    struct tracelake_error error;
    struct tl_outfile out;
    char *setup;
    if (tracelake_get_setup(lake, trace, &setup, &error) < 0)
        return tl_remote_fail_query(trace, &error);
    int status = tl_outfile_open(&out, o->config);
    if (status == TL_ARGS_GO) {
        fputs(setup, out.file);
        status = tl_outfile_close(&out, TL_CLI_DONE);
    }
    free(setup);
    return status;
}

int tl_cmd_raw(int argc, char **argv)
{
    struct options o = {0};
    const struct tl_arg args[] = {
        {"byte", 0, TL_ARG_RANGE, &o.byte},
        {"output", 'o', TL_ARG_TEXT, &o.out},
        {"config", 0, TL_ARG_TEXT, &o.config},
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (argc - first == 2 && strcmp(argv[first + 1], "-") == 0 && !o.out) {
        o.out = "-";
        argc--;
    }
    if (argc - first != 1 || (!o.out && !o.config))
        return tl_cli_usage("raw", "give one TRACE, and -o FILE or - for the bytes, "
                                   "--config FILE for the setup");
    struct tracelake *lake;
    status = tl_remote_connect(&lake, &o.remote);
    if (status != TL_ARGS_GO)
        return status;
    status = TL_CLI_DONE;
    if (o.config)
        status = write_setup(&o, lake, argv[first]);
    if (o.out && status == TL_CLI_DONE)
        status = write_bytes(&o, lake, argv[first]);
    tracelake_close(lake);
    return status;
}
