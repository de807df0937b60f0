/* SPDX-License-Identifier: MIT */
/*
 * `tracelake calls`: lists the calls of a function, the longest first. Order and filter are the
 * server's work, since a function may have millions of calls.
 */
#include "cli/timing.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    struct tl_timing_options timing;
    const char *order; /* NULL: longest */
    struct tl_time_arg least, most;
    uint64_t skip;
};

static void print_row(const struct tracelake_timing *about, const struct tracelake_timed_call *c)
{
    char time[TL_DURATION_TEXT], own[TL_DURATION_TEXT], stolen[TL_DURATION_TEXT];
    const bool ns = about->time_unit_ns;
    tl_duration_bounds(&c->time, ns, time);
    tl_timing_cell(time, 20);
    tl_timing_number(c->to - c->from, 12);
    tl_timing_cell(tl_duration_text(c->self_time, ns, own), 12);
    tl_timing_cell(c->interruptions ? tl_duration_text(c->interrupted, ns, stolen) : "-", 12);
    tl_timing_number(c->from, 16);
    putchar(' ');
    tl_print_plain(stdout, c->name, 0);
    if (*c->caller) {
        fputs(" < ", stdout);
        tl_print_plain(stdout, c->caller, 0);
    }
    if (c->switched_out > 0)
        printf("  (%s switched out)", tl_duration_text(c->switched_out, ns, time));
    puts(c->open ? "  (goes on)" : c->cut ? "  (cut off)" : "");
}

static int print_text(const struct tracelake_calls *calls, const struct options *o)
{
    tl_timing_about(&calls->about);
    printf("#%19s %12s %12s %12s %16s  function < caller\n", "time", "instructions", "own time",
           "interrupted", "at");
    for (size_t i = 0; i < calls->n; i++)
        print_row(&calls->about, &calls->p[i]);
    if (o->skip + calls->n < calls->all)
        printf("# %" PRIu64 " %s; --skip %" PRIu64 " shows the next\n", calls->all, calls->what,
               o->skip + calls->n);
    return TL_CLI_DONE;
}

static int order_of(const char *order, enum tracelake_calls_order *out)
{
    static const char *const names[] = {"longest", "shortest", "first"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!order || !strcmp(order, names[i])) {
            *out = (enum tracelake_calls_order)i;
            return TL_ARGS_GO;
        }
    return tl_cli_usage("calls", "--order %.20s: it is longest, shortest or first", order);
}

/* Lengths are instructions, or time, both with a unit or neither. */
static int set_lengths(const struct options *o, struct tracelake_calls_query *query)
{
    const bool ns = o->least.ns || o->most.ns;
    if (ns && query->weight == TRACELAKE_BY_INSNS)
        return tl_cli_usage("calls", "--least and --most are instructions with --weight insns");
    if (o->least.ns != o->most.ns && o->least.value > 0 && o->most.value > 0)
        return tl_cli_usage("calls", "--least and --most both have a unit, or neither has");
    query->least = o->least.value;
    query->most = o->most.value;
    query->lengths_in_ns = ns;
    return TL_ARGS_GO;
}

static int ask(void *context, struct tracelake *lake, struct tracelake_range *range, char **rest)
{
    const struct options *const o = context;
    struct tracelake_calls_query query = {.range = *range,
                                          .function = rest[0],
                                          .weight = tl_timing_weight(&o->timing),
                                          .skip = o->skip,
                                          .limit = (uint32_t)o->timing.limit};
    struct tracelake_calls *calls;
    struct tracelake_error error;
    int status = order_of(o->order, &query.order);
    if (status == TL_ARGS_GO)
        status = set_lengths(o, &query);
    if (status != TL_ARGS_GO)
        return status;
    const int r = tracelake_calls(lake, &query, &calls, &error);
    tl_progress_end();
    if (r < 0)
        return tl_remote_fail_query(range->trace, &error);
    status = o->timing.json ? tl_timing_json(calls->message, calls->n) : print_text(calls, o);
    tracelake_calls_free(calls);
    return status;
}

int tl_cmd_calls(int argc, char **argv)
{
    struct options o = {.timing = {.limit = 20}};
    const struct tl_option args[] = {
        TL_SPAN_ARGS(o.timing.span),
        TL_WEIGHT_ARG(o.timing.weight, "time; insns where there is none"),
        {"order", 0, TL_ARG_TEXT, &o.order, "longest|shortest|first",
         "which come first (default: longest; first: as they happened)"},
        {"least", 0, TL_ARG_TIME, &o.least, "T",
         "only calls that last at least this long: 1.5us, or instructions with --weight insns"},
        {"most", 0, TL_ARG_TIME, &o.most, "T", "… and less than this"},
        {"limit", 0, TL_ARG_COUNT, &o.timing.limit, "N", "number of calls (default 20)"},
        {"skip", 0, TL_ARG_COUNT, &o.skip, "N", "leave out the first N"},
        {"json", 0, TL_ARG_FLAG, &o.timing.json, NULL, "an object for each, one per line"},
        TL_NAMES_ARG(o.timing.remote),
        TL_REMOTE_ARGS(o.timing.remote),
        {0},
    };
    return tl_timing_run("calls", argc, argv, args, &o.timing, 1, ask, &o);
}
