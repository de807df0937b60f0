/* SPDX-License-Identifier: MIT */
/* `tracelake call`: details of a call. */
#include "cli/cli.h"
#include "out/durations.h"
#include "out/jsonread.h"
#include "terminal/plain.h"
#include "terminal/span.h"

#include <cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number or text of the answer, "-" if absent. */
static const char *field(const cJSON *o, const char *name, char room[static 32])
{
    const cJSON *const item = cJSON_GetObjectItem(o, name);
    if (cJSON_IsString(item))
        return item->valuestring;
    if (!cJSON_IsNumber(item))
        return "-";
    snprintf(room, 32, "%.0f", item->valuedouble);
    return room;
}

static void print_field(const cJSON *o, const char *label, const char *name)
{
    char room[32];
    if (!cJSON_GetObjectItem(o, name))
        return;
    printf("%-12s ", label);
    tl_print_plain(stdout, field(o, name, room), 0);
    putchar('\n');
}

/* How long it took, with no more digits than the bounds allow. */
static void print_duration(const cJSON *o)
{
    char text[TL_DURATION_TEXT];
    const cJSON *const most = cJSON_GetObjectItem(o, "time_most");
    const bool ns = cJSON_IsTrue(cJSON_GetObjectItem(o, "time_unit_ns"));
    const struct tracelake_duration duration = {
        (uint64_t)(tl_json_number(o, "time_to") - tl_json_number(o, "time_from")),
        (uint64_t)tl_json_number(o, "time_least"),
        most ? (uint64_t)tl_json_value(most) : UINT64_MAX};
    if (cJSON_GetObjectItem(o, "time_least"))
        printf("%-12s %s%s\n", "took", tl_duration_bounds(&duration, ns, text), ns ? "" : " ticks");
}

static void print_call(const cJSON *o)
{
    static const char *const fields[][2] = {
        {"function", "name"},
        {"kind", "kind"},
        {"exception", "exception"},
        {"depth", "depth"},
        {"begins at", "from"},
        {"ends at", "to"},
        {"instructions", "insns"},
        {"self", "self"},
        {"from time", "time_from"},
        {"to time", "time_to"},
        {"address", "pc"},
        {"caller", "caller"},
        {"caller since", "caller_from"},
        {"returns to", "return_pc"},
        {"call number", "number"},
    };
    static const char *const all[][2] = {
        {"calls in all", "calls"}, {"completed", "finished"}, {"shortest", "min"},
        {"longest", "max"},        {"longest at", "longest"}, {"previous at", "previous"},
        {"next at", "next"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        print_field(o, fields[i][0], fields[i][1]);
    print_duration(o);
    const cJSON *const others = cJSON_GetObjectItem(o, "all");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        print_field(others, all[i][0], all[i][1]);
    const double ended = tl_json_number(others, "finished");
    if (ended > 0)
        printf("%-12s %.1f\n", "average", tl_json_number(others, "total") / ended);
}

static int run(struct tracelake *lake, struct tl_remote_name *name, const struct tl_time_arg *time,
               uint64_t insn, uint64_t depth, bool raw)
{
    struct tracelake_error error;
    char *json = NULL;
    int status = tl_remote_one_stream(lake, name);
    if (status == TL_ARGS_GO && insn == UINT64_MAX)
        status = tl_span_insn_at(time, lake, name, &insn);
    if (status != TL_ARGS_GO)
        return status;
    if (tracelake_call(lake, name->trace, name->stream, insn,
                       depth < TRACELAKE_INNERMOST ? (uint32_t)depth : TRACELAKE_INNERMOST, &json,
                       &error) < 0)
        return tl_remote_fail_query(name->trace, &error);
    cJSON *const tree = raw ? NULL : cJSON_Parse(json);
    if (tree)
        print_call(tree);
    else
        puts(json);
    cJSON_Delete(tree);
    free(json);
    return TL_CLI_DONE;
}

int tl_cmd_call(int argc, char **argv)
{
    struct tl_remote remote = {0};
    uint64_t insn = UINT64_MAX, depth = TRACELAKE_INNERMOST;
    struct tl_time_arg time = {UINT64_MAX, false};
    bool raw = false;
    const struct tl_option args[] = {
        {"insn", 0, TL_ARG_U64, &insn, "N", "the instruction"},
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
