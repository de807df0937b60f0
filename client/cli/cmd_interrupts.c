/* SPDX-License-Identifier: MIT */
/*
 * `tracelake interrupts`: lists exceptions and interrupts of a range by number. What it shares with
 * the other tables of times is in timing.c.
 */
#include "cli/timing.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>

/* A duration; "-" if there is none. */
static const char *some(bool any, double value, bool ns, char out[static TL_DURATION_TEXT])
{
    return any ? tl_duration_text((uint64_t)(value + 0.5), ns, out) : "-";
}

static void print_row(const struct tracelake_timing *about,
                      const struct tracelake_exception_times *e)
{
    char text[TL_DURATION_TEXT];
    const bool timed = about->has_time;
    const struct tracelake_lengths *const l = timed ? &e->time : &e->insns;
    const struct {
        bool any;
        double value;
    } cells[] = {{e->ended, (double)l->min},
                 {e->ended, (double)l->p50},
                 {e->ended, (double)l->max},
                 {e->ended, (double)l->total},
                 {e->latencies && timed, (double)e->latency_max},
                 {e->periods && timed, e->period},
                 {e->periods && timed, e->jitter},
                 {e->periods && timed, (double)e->period_max}};
    printf("%6d ", e->number);
    tl_timing_number(e->entered, 10);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        tl_timing_cell(some(cells[i].any, cells[i].value, timed && about->time_unit_ns, text), 11);
    if (e->ended > 0)
        tl_timing_number(l->longest, 16);
    else
        printf("%16s ", "-"); /* none has a length */
    putchar(' ');
    tl_print_plain(stdout, e->name, 0);
    fputs(*e->name && *e->handler ? ", " : "", stdout);
    tl_print_plain(stdout, e->handler, 0);
    if (e->nested > 0)
        printf(" (%" PRIu64 " nested)", e->nested);
    putchar('\n');
}

static int print_text(const struct tracelake_exceptions *exceptions)
{
    tl_timing_about(&exceptions->about);
    printf("#%5s %10s %11s %11s %11s %11s %11s %11s %11s %11s %16s  name, handler\n", "nr.",
           "entered", "shortest", "median", "longest", "total", "latency max", "period", "jitter",
           "period max", "longest at");
    for (size_t i = 0; i < exceptions->n; i++)
        print_row(&exceptions->about, &exceptions->p[i]);
    return TL_CLI_DONE;
}

static int ask(void *context, struct tracelake *lake, struct tracelake_range *range, char **rest)
{
    const struct tl_timing_options *const o = context;
    struct tracelake_exceptions *exceptions;
    struct tracelake_error error;
    (void)rest;
    const int r = tracelake_exceptions(lake, range, &exceptions, &error);
    tl_progress_end();
    if (r < 0)
        return tl_remote_fail_query(range->trace, &error);
    const int status =
        o->json ? tl_timing_json(exceptions->message, exceptions->n) : print_text(exceptions);
    tracelake_exceptions_free(exceptions);
    return status;
}

int tl_cmd_interrupts(int argc, char **argv)
{
    struct tl_timing_options o = {0};
    const struct tl_option args[] = {
        TL_SPAN_ARGS(o.span),
        {"json", 0, TL_ARG_FLAG, &o.json, NULL, "an object for each, one per line"},
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    return tl_timing_run("interrupts", argc, argv, args, &o, 0, ask, &o);
}
