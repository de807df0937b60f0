/* SPDX-License-Identifier: MIT */
/*
 * What `functions`, `calls`, `interrupts` and `gaps` have in common: their arguments, their range,
 * and columns of times. They differ only in their rows.
 */
#include "cli/timing.h"

#include "terminal/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum tracelake_weight tl_timing_weight(const struct tl_timing_options *options)
{
    enum tracelake_weight weight = TRACELAKE_BY_TIME;
    (void)tl_weight_of("", options->weight, false, &weight);
    return weight;
}

static int check(const char *command, const struct tl_timing_options *o)
{
    enum tracelake_weight weight;
    if (tl_weight_of(command, o->weight, false, &weight) != TL_ARGS_GO)
        return TL_CLI_USAGE;
    if (o->limit > UINT32_MAX)
        return tl_cli_usage(command, "--limit is at most %u", UINT32_MAX);
    return tl_span_check(command, &o->span);
}

int tl_timing_run(const char *command, int argc, char **argv, const struct tl_option *args,
                  struct tl_timing_options *o, int extra,
                  int (*ask)(void *context, struct tracelake *lake, struct tracelake_range *range,
                             char **rest),
                  void *context)
{
    struct tl_remote_name name;
    struct tracelake *lake;
    int first;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1 + extra)
        status = tl_cli_usage(command, extra ? "give one TRACE/STREAM, and a function"
                                             : "give one TRACE/STREAM");
    if (status == TL_ARGS_GO)
        status = check(command, o);
    if (status == TL_ARGS_GO)
        status = tl_remote_name(command, argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &o->remote);
    if (status != TL_ARGS_GO)
        return status;
    status = tl_remote_one_stream(lake, &name);
    if (status == TL_ARGS_GO)
        status = tl_span_there(&o->span, lake, &name);
    if (status == TL_ARGS_GO) {
        struct tracelake_range range = tl_span_range(&o->span, &name);
        tl_progress_wait(name.trace);
        status = ask(context, lake, &range, argv + first + 1);
    }
    tracelake_close(lake);
    return status;
}

static void print_range(const struct tracelake_timing *about)
{
    char text[TL_DURATION_TEXT];
    const bool ns = about->time_unit_ns;
    if (!about->has_time) {
        puts("# the stream has no time: lengths are in instructions");
        return;
    }
    printf("# %s%s", tl_duration_text(about->time, ns, text), ns ? "" : " ticks");
    if (about->lost > 0)
        printf(", of it %s lost", tl_duration_text(about->lost, ns, text));
    if (about->off > 0)
        printf(", %s off", tl_duration_text(about->off, ns, text));
    if (about->switched_out > 0)
        printf(", %s switched out", tl_duration_text(about->switched_out, ns, text));
    if (about->time_step > 0)
        printf("; timestamps %s apart: shorter times are estimates",
               tl_duration_text(about->time_step, ns, text));
    putchar('\n');
}

void tl_timing_about(const struct tracelake_timing *about)
{
    print_range(about);
    if (about->behind)
        printf("# behind: what is from instruction %" PRIu64 " on is still being indexed\n",
               about->to);
}

void tl_timing_cell(const char *text, int width)
{
    for (const char *p = text; *p; p++)
        width -= (*p & 0xc0) != 0x80; /* characters, not bytes: "µs" */
    printf("%*s%s ", width > 0 ? width : 0, "", text);
}

void tl_timing_number(uint64_t number, int width)
{
    printf("%*" PRIu64 " ", width, number);
}

int tl_timing_json(const void *message, size_t n)
{
    struct tracelake_error error;
    for (size_t i = 0; i < n; i++) {
        char *json;
        if (tracelake_row_json(message, i, &json, &error) < 0) {
            tl_cli_warn("stdout", "%s", error.text);
            return TL_CLI_BAD;
        }
        const bool printed = puts(json) >= 0;
        free(json);
        if (!printed) {
            tl_cli_warn("stdout", "%s", strerror(errno));
            return TL_CLI_BAD;
        }
    }
    return TL_CLI_DONE;
}
