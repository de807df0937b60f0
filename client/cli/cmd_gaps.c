/* SPDX-License-Identifier: MIT */
/*
 * `tracelake gaps`: lists the longest stretches without trace. What it shares with the other tables
 * of times is in timing.c.
 */
#include "cli/timing.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>

static int print_text(const struct tracelake_gaps *gaps)
{
    char text[TL_DURATION_TEXT];
    tl_timing_about(&gaps->about);
    printf("#%11s %16s %20s %10s  reasons\n", "length", "at", "from time", "gaps");
    for (size_t i = 0; i < gaps->n; i++) {
        const struct tracelake_timed_gap *const g = &gaps->p[i];
        tl_timing_cell(tl_duration_text(g->time_to - g->time_from, gaps->about.time_unit_ns, text),
                       12);
        tl_timing_number(g->at, 16);
        tl_timing_number(g->time_from, 20);
        tl_timing_number(g->gaps, 10);
        for (size_t k = 0; k < g->n_reasons; k++)
            printf(" %s", g->reasons[k]);
        puts(g->n_reasons == 0 ? " off" : "");
    }
    if (gaps->all > gaps->n)
        printf("# %" PRIu64 " more: raise --limit\n", gaps->all - gaps->n);
    return TL_CLI_DONE;
}

static int ask(void *context, struct tracelake *lake, struct tracelake_range *range, char **rest)
{
    const struct tl_timing_options *const o = context;
    struct tracelake_gaps *gaps;
    struct tracelake_error error;
    (void)rest;
    const int r = tracelake_gaps(lake, range, (uint32_t)o->limit, &gaps, &error);
    tl_progress_end();
    if (r < 0)
        return tl_remote_fail_query(range->trace, &error);
    const int status = o->json ? tl_timing_json(gaps->message, gaps->n) : print_text(gaps);
    tracelake_gaps_free(gaps);
    return status;
}

int tl_cmd_gaps(int argc, char **argv)
{
    struct tl_timing_options o = {.limit = 20};
    const struct tl_option args[] = {
        TL_SPAN_ARGS(o.span),
        {"limit", 0, TL_ARG_COUNT, &o.limit, "N", "number of gaps (default 20)"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "an object for each, one per line"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    return tl_timing_run("gaps", argc, argv, args, &o, 0, ask, &o);
}
