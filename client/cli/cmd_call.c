/* SPDX-License-Identifier: MIT */
/*
 * `tracelake call`: prints a call and what is known of all calls of its function. A value that the
 * trace does not tell is left out instead of printed as zero.
 */
#include "cli/cli.h"
#include "out/durations.h"
#include "terminal/plain.h"
#include "terminal/span.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_text(const char *label, const char *text)
{
    if (!*text)
        return;
    printf("%-12s ", label);
    tl_print_plain(stdout, text, 0);
    putchar('\n');
}

static void print_number(const char *label, uint64_t number)
{
    if (number != TRACELAKE_END)
        printf("%-12s %" PRIu64 "\n", label, number);
}

static void print_address(const char *label, uint64_t address)
{
    printf("%-12s 0x%" PRIx64 "\n", label, address);
}

/* How long it took, with no more digits than the bounds allow. */
static void print_duration(const struct tracelake_call_details *c)
{
    char text[TL_DURATION_TEXT];
    if (c->has_time)
        printf("%-12s %s%s\n", "took", tl_duration_bounds(&c->time, c->time_unit_ns, text),
               c->time_unit_ns ? "" : " ticks");
}

/* All calls of its function. */
static void print_all(const struct tracelake_call_details *c)
{
    print_number("calls in all", c->calls);
    print_number("completed", c->finished);
    print_number("shortest", c->min);
    print_number("longest", c->max);
    print_number("longest at", c->longest);
    print_number("previous at", c->previous);
    print_number("next at", c->next);
    if (c->finished > 0)
        printf("%-12s %.1f\n", "average", (double)c->total / (double)c->finished);
}

static void print_call(const struct tracelake_call_details *c)
{
    static const char *const kinds[] = {"root", "call", "tail", "exception"};
    print_text("function", c->name);
    print_text("kind", kinds[c->kind]);
    if (c->exception >= 0)
        print_number("exception", (uint64_t)c->exception);
    print_number("depth", c->depth);
    print_number("begins at", c->from);
    print_number("ends at", c->to);
    print_number("instructions", c->insns);
    print_number("self", c->self);
    if (c->has_time) {
        print_number("from time", c->time_from);
        print_number("to time", c->time_to);
    }
    print_address("address", c->pc);
    print_text("caller", c->caller);
    print_number("caller since", c->caller_from);
    if (c->return_pc)
        print_address("returns to", c->return_pc);
    if (c->number > 0)
        print_number("call number", c->number);
    print_duration(c);
    if (*c->name)
        print_all(c);
}

/* Ask for the call, and print it. */
static int show(struct tracelake *lake, const struct tl_remote_name *name, uint64_t insn,
                uint32_t depth, struct tracelake_error *error)
{
    struct tracelake_call_details *call;
    const int r = tracelake_get_call(lake, name->trace, name->stream, insn, depth, &call, error);
    if (r < 0)
        return r;
    print_call(call);
    if (call->behind_from != TRACELAKE_END)
        tl_cli_behind(name->trace, call->behind_from);
    tracelake_call_details_free(call);
    return TRACELAKE_OK;
}

static int show_json(struct tracelake *lake, const struct tl_remote_name *name, uint64_t insn,
                     uint32_t depth, struct tracelake_error *error)
{
    char *json;
    const int r = tracelake_call(lake, name->trace, name->stream, insn, depth, &json, error);
    if (r < 0)
        return r;
    puts(json);
    free(json);
    return TRACELAKE_OK;
}

static int run(struct tracelake *lake, struct tl_remote_name *name, const struct tl_time_arg *time,
               uint64_t insn, uint64_t depth, bool raw)
{
    struct tracelake_error error;
    int status = tl_remote_one_stream(lake, name);
    if (status == TL_ARGS_GO && insn == UINT64_MAX)
        status = tl_span_insn_at(time, lake, name, &insn);
    if (status != TL_ARGS_GO)
        return status;
    const uint32_t at = depth < TRACELAKE_INNERMOST ? (uint32_t)depth : TRACELAKE_INNERMOST;
    const int r = (raw ? show_json : show)(lake, name, insn, at, &error);
    return r < 0 ? tl_remote_fail_query(name->trace, &error) : TL_CLI_DONE;
}

int tl_cmd_call(int argc, char **argv)
{
    struct tl_remote remote = {0};
    uint64_t insn = UINT64_MAX, depth = TRACELAKE_INNERMOST;
    struct tl_time_arg time = {UINT64_MAX, false};
    bool raw = false;
    const struct tl_option args[] = {
        {"insn", 0, TL_ARG_COUNT, &insn, "N", "the instruction"},
        {"time", 0, TL_ARG_TIME, &time, "T", "the instruction at this time, such as 1.5ms"},
        {"depth", 0, TL_ARG_U64, &depth, "N", "0 is the outermost one (default: the innermost)"},
        {"json", 0, TL_ARG_FLAG, &raw, NULL, "as JSON"},
        TL_NAMES_ARG(remote),
        TL_REMOTE_ARGS(remote),
        {0},
    };
    int first;
    struct tl_remote_name name;
    struct tracelake *lake;
    int status = tl_args_parse(argc, argv, args, &first);
    if (status == TL_ARGS_GO && argc - first != 1)
        status = tl_cli_usage("call", "give one TRACE/STREAM");
    if (status == TL_ARGS_GO && (insn == UINT64_MAX) == (time.value == UINT64_MAX))
        status = tl_cli_usage("call", "give the place: --insn N, or --time T");
    if (status == TL_ARGS_GO)
        status = tl_remote_name("call", argv[first], &name);
    if (status == TL_ARGS_GO)
        status = tl_remote_connect(&lake, &remote);
    if (status != TL_ARGS_GO)
        return status;
    status = run(lake, &name, &time, insn, depth, raw);
    tracelake_close(lake);
    return status;
}
