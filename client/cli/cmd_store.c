/* SPDX-License-Identifier: MIT */
/*
 * `tracelake store`: works on a server's store without the server. A store is copied this way
 * because both ends may be folders or clusters that no single server has open.
 */
#include "cli/cli.h"
#include "lake_copy.h"
#include "terminal/args.h"
#include "terminal/progress.h"
#include "terminal/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct copied {
    char id[128]; /* of the trace currently shown */
    bool quiet, json;
    size_t done, there, busy, bad, missing;
    uint64_t bytes;
};

static int show(void *context, const char *trace, uint64_t done, uint64_t total)
{
    struct copied *const c = context;
    if (tl_remote_signalled())
        return TL_CANCELLED;
    if (strncmp(c->id, trace, sizeof c->id - 1) != 0) {
        tl_progress_end();
        snprintf(c->id, sizeof c->id, "%s", trace);
        tl_progress_begin(c->id, "B");
    }
    tl_progress_step(done, total, NULL);
    return TL_OK;
}

/* {"id":"run7","outcome":"copied","bytes":4096} */
static void print_json(const char *trace, enum tl_copy_outcome outcome, uint64_t bytes)
{
    static const char *const names[] = {
        [TL_COPY_DONE] = "copied", [TL_COPY_THERE] = "there",     [TL_COPY_BUSY] = "busy",
        [TL_COPY_OTHER] = "other", [TL_COPY_DAMAGED] = "damaged", [TL_COPY_MISSING] = "missing"};
    fputs("{\"id\":", stdout);
    tl_print_json_text(trace);
    printf(",\"outcome\":\"%s\"", names[outcome]);
    tl_print_json_member("bytes", bytes);
    puts("}");
}

static void report(void *context, const char *trace, enum tl_copy_outcome outcome, uint64_t bytes)
{
    struct copied *const c = context;
    tl_progress_end();
    c->id[0] = 0;
    if (c->json)
        print_json(trace, outcome, bytes);
    switch (outcome) {
    case TL_COPY_DONE:
        c->done++;
        c->bytes += bytes;
        if (!c->quiet && !c->json)
            printf("%s: %" PRIu64 " bytes\n", trace, bytes);
        break;
    case TL_COPY_THERE:
        c->there++;
        break;
    case TL_COPY_BUSY:
        c->busy++;
        tl_cli_warn(trace, "it is being pushed or decoded; run this again once it is sealed");
        break;
    case TL_COPY_OTHER:
        c->bad++;
        tl_cli_warn(trace, "another trace, or another decoding of it, has this name there; remove "
                           "that one to copy it");
        break;
    case TL_COPY_DAMAGED:
        c->bad++;
        tl_cli_warn(trace, "copied as it is, but its raw bytes are damaged; 'tracelake verify' "
                           "tells where");
        break;
    case TL_COPY_MISSING:
        c->missing++;
        tl_cli_warn(trace, "there is no such trace");
        break;
    }
}

static int copy(int argc, char **argv, bool quiet, bool json)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    struct copied c = {.quiet = quiet, .json = json};
    if (argc < 2)
        return tl_cli_usage("store", "copy what? copy FROM TO [TRACE…]");
    const struct tl_copy_request request = {.from = argv[0],
                                            .to = argv[1],
                                            .traces = (const char *const *)argv + 2,
                                            .n_traces = (size_t)argc - 2,
                                            .report = report,
                                            .progress = show,
                                            .context = &c};
    tl_remote_on_signal(NULL);
    const int r = tl_lake_copy(&request, &fail);
    tl_progress_end();
    tl_remote_on_default();
    if (r == TL_CANCELLED) {
        tl_cli_warn(NULL, "interrupted; run the same command again to go on");
        return TL_CLI_BAD;
    }
    if (r < 0)
        return tl_cli_fail(NULL, &fail);
    if (!quiet && !json)
        fprintf(stderr,
                "tracelake: %zu copied (%" PRIu64 " bytes), %zu there before, %zu not sealed yet, "
                "%zu refused or damaged\n",
                c.done, c.bytes, c.there, c.busy, c.bad);
    return c.missing > 0 ? TL_CLI_REFUSED : c.bad > 0 || c.busy > 0 ? TL_CLI_BAD : TL_CLI_DONE;
}

int tl_cmd_store(int argc, char **argv)
{
    bool quiet = false, json = false;
    const struct tl_option args[] = {
        {"quiet", 'q', TL_ARG_FLAG, &quiet, NULL, "print only failures"},
        {"json", 0, TL_ARG_FLAG, &json, NULL,
         "an object for each trace, one per line: its id, outcome (copied, there, busy, other, "
         "damaged, missing) and bytes"},
        {0}};
    int first;
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (first < argc && strcmp(argv[first], "copy") == 0)
        return copy(argc - first - 1, argv + first + 1, quiet, json);
    return tl_cli_usage("store", "say copy FROM TO");
}
