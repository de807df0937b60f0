/* SPDX-License-Identifier: MIT */
/*
 * `tracelake functions`: lists the functions of a range with their time. What it shares with the
 * other tables of times is in timing.c.
 */
#include "cli/timing.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>

enum { FUNCTIONS = 30 };

static void print_row(const struct tracelake_timing *about,
                      const struct tracelake_function_times *f, bool time)
{
    char self[TL_DURATION_TEXT], total[TL_DURATION_TEXT], text[TL_DURATION_TEXT];
    const bool ns = time && about->time_unit_ns;
    const struct tracelake_lengths *const l = time ? &f->time : &f->insns;
    const double all = (double)(time ? about->ran : about->to - about->from);
    const double own = (double)(time ? f->self_time.value : f->self);
    if (time)
        tl_duration_bounds(&f->self_time, ns, self);
    else
        tl_duration_text(f->self, false, self);
    tl_timing_cell(self, 20);
    printf("%5.1f %% ", all > 0 ? 100 * own / all : 0);
    tl_timing_cell(tl_duration_text(time ? f->total_time : f->total, ns, total), 12);
    tl_timing_number(f->calls, 10);
    const uint64_t lengths[] = {l->min, l->p50, l->p99, l->max};
    for (size_t i = 0; i < 4; i++)
        tl_timing_cell(f->ended > 0 ? tl_duration_text(lengths[i], ns, text) : "-", 10);
    putchar(' ');
    tl_print_plain(stdout, *f->name ? f->name : "(no symbol)", 0);
    putchar('\n');
}

static int print_text(const struct tracelake_functions *functions, bool time)
{
    tl_timing_about(&functions->about);
    printf("#%19s %7s %12s %10s %10s %10s %10s %10s  function\n", "own", "", "with callees",
           "calls", "shortest", "median", "99 %", "longest");
    for (size_t i = 0; i < functions->n; i++)
        print_row(&functions->about, &functions->p[i], time && functions->about.has_time);
    if (functions->all > functions->n)
        printf("# %" PRIu64 " more: raise --limit\n", functions->all - functions->n);
    return TL_CLI_DONE;
}

static int ask(void *context, struct tracelake *lake, struct tracelake_range *range, char **rest)
{
    const struct tl_timing_options *const o = context;
    struct tracelake_functions *functions;
    struct tracelake_error error;
    (void)rest;
    const enum tracelake_weight weight = tl_timing_weight(o);
    const int r = tracelake_functions(lake, range, weight, (uint32_t)o->limit, &functions, &error);
    tl_progress_end();
    if (r < 0)
        return tl_remote_fail_query(range->trace, &error);
    const int status = o->json ? tl_timing_json(functions->message, functions->n)
                               : print_text(functions, weight == TRACELAKE_BY_TIME);
    tracelake_functions_free(functions);
    return status;
}

int tl_cmd_functions(int argc, char **argv)
{
    struct tl_timing_options o = {.limit = FUNCTIONS};
    const struct tl_option args[] = {
        TL_SPAN_ARGS(o.span),
        TL_WEIGHT_ARG(o.weight, "time; insns where there is none"),
        {"limit", 0, TL_ARG_COUNT, &o.limit, "N", "number of functions (default 30)"},
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "an object for each, one per line"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    return tl_timing_run("functions", argc, argv, args, &o, 0, ask, &o);
}
